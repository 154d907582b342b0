//! A run that waits for others: what it did is replayed as long after the last thing it waited for as in the recording.
//!
//! In a recording the run of a parent holds the waiting of its children. Were it replayed as it was, a child that waits
//! longer would be cut off by the end of its parent, and one that waits less would change nothing. So each thing that the
//! parent did (ask for another child, end) hangs on what was over by then: its own start, and the ends of the children
//! it had waited for.

/// What a run does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// It asks for this task.
    Ask(usize),
    /// It ends.
    End,
}

/// A child, as it was recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Child {
    /// Which task.
    pub(crate) task: usize,
    /// When it was asked for.
    pub(crate) asked: u64,
    /// When it was over; `None`: the parent did not wait for it.
    pub(crate) over: Option<u64>,
}

/// One attempt of a parent and its children.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    /// In the order of their time.
    deeds: Vec<Hanging>,
    /// The children that are waited for, in the order of their recorded ends.
    awaited: Vec<usize>,
    /// When those were over in the replay.
    over: Vec<Option<u64>>,
    /// So many of the first of them are over.
    done: usize,
    /// So many deeds are due.
    released: usize,
    /// When the attempt began or the last of `done` was over.
    reached: u64,
}

#[derive(Clone, Copy, Debug)]
struct Hanging {
    /// It waits for so many of the first children to end.
    after: usize,
    /// And then so long.
    pause: u64,
    deed: Deed,
}

impl Family {
    /// From a recorded attempt; `children` in the order in which they were asked for.
    pub(crate) fn new(start: u64, end: u64, children: &[Child]) -> Family {
        let mut ends: Vec<(u64, usize)> =
            children.iter().filter_map(|child| Some((child.over?, child.task))).collect();
        ends.retain(|(over, _)| *over <= end);
        ends.sort_unstable();
        let hang = |at: u64, deed: Deed| {
            let after = ends.partition_point(|(over, _)| *over <= at);
            let reached = after.checked_sub(1).map_or(start, |last| ends[last].0.max(start));
            Hanging { after, pause: at.saturating_sub(reached), deed }
        };
        let asks = children.iter().map(|child| hang(child.asked, Deed::Ask(child.task)));
        let deeds = asks.chain([hang(end, Deed::End)]).collect();
        let awaited: Vec<usize> = ends.iter().map(|(_, task)| *task).collect();
        let over = vec![None; awaited.len()];
        Family { deeds, awaited, over, done: 0, released: 0, reached: 0 }
    }

    /// The attempt begins in the replay. Tells what is due, and when.
    pub(crate) fn begin(&mut self, now: u64) -> Vec<(u64, Deed)> {
        self.reached = now;
        self.release()
    }

    /// A child is over in the replay, or was refused.
    pub(crate) fn child_over(&mut self, task: usize, now: u64) -> Vec<(u64, Deed)> {
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

    fn release(&mut self) -> Vec<(u64, Deed)> {
        let mut due = Vec::new();
        while let Some(next) = self.deeds.get(self.released).filter(|next| next.after <= self.done) {
            due.push((self.reached.saturating_add(next.pause), next.deed));
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
        assert_eq!(family.begin(1000), [(1010, Deed::Ask(1))]);
        // The first child took 490 instead of 40: all that followed it follows it still.
        assert_eq!(family.child_over(1, 1500), [(1510, Deed::Ask(2)), (1515, Deed::Ask(3))]);
        assert_eq!(family.child_over(3, 1600), []);
        assert_eq!(family.child_over(2, 1700), [(1730, Deed::End)]);
    }

    #[test]
    fn children_side_by_side_may_end_in_another_order() {
        let together = [FIRST, Child { task: 2, asked: 115, over: Some(140) }];
        let mut family = Family::new(100, 160, &together);
        assert_eq!(family.begin(0), [(10, Deed::Ask(1)), (15, Deed::Ask(2))]);
        assert_eq!(family.child_over(1, 50), []);
        assert_eq!(family.child_over(2, 90), [(100, Deed::End)]);
    }
}
