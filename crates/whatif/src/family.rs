//! A run that waits for its children. Each action of it is replayed as long after its cause as in the recording.
//!
//! The recorded time of a parent includes the waiting of its children. Replayed as it was, a parent would end before a child
//! that waits longer, and a child that waits less would change nothing. So each action of the parent (submit another child,
//! end) depends on what had happened by then: its own start, and the ends of the children that it had waited for.

/// What a run does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// It submits this task.
    Submit(usize),
    /// It ends.
    End,
}

/// A child, as it was recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Child {
    /// Which task.
    pub(crate) task: usize,
    /// When it was submitted.
    pub(crate) asked: u64,
    /// When it ended; `None`: the parent did not wait for it.
    pub(crate) over: Option<u64>,
}

/// One attempt of a parent and its children.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    /// In the order of their time.
    actions: Vec<Dependent>,
    /// The children that the parent waits for, in the order of their recorded ends.
    awaited: Vec<usize>,
    /// When those ended in the replay.
    over: Vec<Option<u64>>,
    /// How many of the first of them have ended.
    done: usize,
    /// How many actions are due.
    released: usize,
    /// When the attempt began or the last of `done` ended.
    reached: u64,
}

#[derive(Clone, Copy, Debug)]
struct Dependent {
    /// How many of the first children must end before it.
    after: usize,
    /// How long after that it happens.
    pause: u64,
    action: Action,
}

impl Family {
    /// From a recorded attempt; `children` in the order of their submission.
    pub(crate) fn new(start: u64, end: u64, children: &[Child]) -> Family {
        let mut ends: Vec<(u64, usize)> =
            children.iter().filter_map(|child| Some((child.over?, child.task))).collect();
        ends.retain(|(over, _)| *over <= end);
        ends.sort_unstable();
        let hang = |at: u64, action: Action| {
            let after = ends.partition_point(|(over, _)| *over <= at);
            let reached = after.checked_sub(1).map_or(start, |last| ends[last].0.max(start));
            Dependent { after, pause: at.saturating_sub(reached), action }
        };
        let asks = children.iter().map(|child| hang(child.asked, Action::Submit(child.task)));
        let actions = asks.chain([hang(end, Action::End)]).collect();
        let awaited: Vec<usize> = ends.iter().map(|(_, task)| *task).collect();
        let over = vec![None; awaited.len()];
        Family { actions, awaited, over, done: 0, released: 0, reached: 0 }
    }

    /// The attempt begins in the replay. Returns what is due, and when.
    pub(crate) fn begin(&mut self, now: u64) -> Vec<(u64, Action)> {
        self.reached = now;
        self.release()
    }

    /// A child has ended in the replay, or was refused.
    pub(crate) fn child_over(&mut self, task: usize, now: u64) -> Vec<(u64, Action)> {
        let Some(place) = self.awaited.iter().position(|child| *child == task) else { return Vec::new() };
        self.over[place] = Some(now);
        let mut due = Vec::new();
        while let Some(Some(over)) = self.over.get(self.done) {
            self.reached = self.reached.max(*over);
            self.done += 1;
            due.extend(self.release());
        }
        due
    }

    fn release(&mut self) -> Vec<(u64, Action)> {
        let mut due = Vec::new();
        while let Some(next) = self.actions.get(self.released).filter(|next| next.after <= self.done) {
            due.push((self.reached.saturating_add(next.pause), next.action));
            self.released += 1;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Child = Child { task: 1, asked: 110, over: Some(150) };
    const SECOND: Child = Child { task: 2, asked: 160, over: Some(200) };
    const ASIDE: Child = Child { task: 3, asked: 165, over: None };

    #[test]
    fn what_a_parent_does_hangs_on_the_children_that_it_waited_for() {
        let mut family = Family::new(100, 230, &[FIRST, SECOND, ASIDE]);
        assert_eq!(family.begin(1000), [(1010, Action::Submit(1))]);
        // The first child took 490 instead of 40: all that followed it follows it still.
        assert_eq!(family.child_over(1, 1500), [(1510, Action::Submit(2)), (1515, Action::Submit(3))]);
        assert_eq!(family.child_over(3, 1600), []);
        assert_eq!(family.child_over(2, 1700), [(1730, Action::End)]);
    }

    #[test]
    fn children_side_by_side_may_end_in_another_order() {
        let together = [FIRST, Child { task: 2, asked: 115, over: Some(140) }];
        let mut family = Family::new(100, 160, &together);
        assert_eq!(family.begin(0), [(10, Action::Submit(1)), (15, Action::Submit(2))]);
        assert_eq!(family.child_over(1, 50), []);
        assert_eq!(family.child_over(2, 90), [(100, Action::End)]);
    }
}
