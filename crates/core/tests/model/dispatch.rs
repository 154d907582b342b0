//! The naive scheduler's line: the tasks in it, those that may run, the next one, and those that are passed over.

use laneway_core::{Event, Fence, LaneName, Millis, Name, Order, Owner, ReplicaId, Timestamp};

use crate::naive::{Naive, Phase, Task};

/// What one grant costs a fair key of weight one.
const COST: u64 = 1 << 20;
const NANOS: u128 = 1_000_000;

/// One step of a task's way through the lanes, the most widely shared first.
#[derive(Clone, Default, PartialEq)]
struct Step {
    /// The lane, and whether a parent's slot of it is lent.
    lane: Option<(LaneName, bool)>,
    /// The fair key, where the shared lanes end.
    key: Option<LaneName>,
    /// The home lane and kind, at the end of an external task's way.
    leaf: Option<(LaneName, Name)>,
}

type Rank = (u8, u64, u64);

impl Naive {
    fn in_line(&self) -> Vec<usize> {
        (0..self.tasks.len()).filter(|index| self.tasks[*index].phase == Phase::InLine).collect()
    }

    /// How widely a lane is probably shared: `global` most, the lanes of one session least.
    fn width(&self, name: &LaneName, is_home: bool) -> u8 {
        let is_declared = self.blocks.iter().any(|(pattern, _)| pattern.as_str() == name.as_str());
        match name.as_str() {
            "global" => 0,
            _ if name.is_session_family() => 5,
            "main" | "subagent" | "cron" => 1,
            _ if is_declared => 1,
            _ if is_home => 4,
            _ if self.block(name).is_some() => 2,
            _ => 3,
        }
    }

    fn way(&self, task: &Task) -> Vec<LaneName> {
        let mut way = task.lanes.clone();
        way.sort_by_key(|lane| (self.width(lane, lane == task.home()), lane.clone()));
        way
    }

    /// The name of a `fifo` lane is the key of all its tasks. Other tasks have their own key or their home lane.
    fn fair_key(&self, task: &Task) -> LaneName {
        let fifo = self.way(task).into_iter().find(|lane| self.settings(lane).order == Order::Fifo);
        fifo.or(task.spec.fair_key.clone()).unwrap_or_else(|| task.home().clone())
    }

    fn waits_under(&self, key: &LaneName) -> bool {
        self.in_line().into_iter().any(|index| self.tasks[index].key.as_ref() == Some(key))
    }

    fn tag(&self, task: &Task) -> u64 {
        let tag = self.tags.iter().find(|(key, _)| Some(key) == task.key.as_ref());
        tag.map(|(_, tag)| *tag).expect("a key without a tag")
    }

    pub(crate) fn rank(&self, index: usize) -> Rank {
        let task = &self.tasks[index];
        (u8::MAX - task.level(), self.tag(task), task.arrival)
    }

    pub(crate) fn join_line(&mut self, index: usize) {
        let key = self.fair_key(&self.tasks[index]);
        let (is_new, clock) = (!self.waits_under(&key), self.clock);
        match self.tags.iter_mut().find(|(other, _)| *other == key) {
            // An idle key earns no credit.
            Some((_, tag)) if is_new => *tag = (*tag).max(clock),
            Some(_) => {}
            None => self.tags.push((key.clone(), clock)),
        }
        let now = self.now;
        let task = &mut self.tasks[index];
        task.key = Some(key);
        task.phase = Phase::InLine;
        task.since = now;
        task.noticed = false;
        self.plan_look(index);
    }

    /// Settings changed: determines the fair key of each task again, and moves no tag.
    pub(crate) fn rejoin_all(&mut self) {
        for index in self.in_line() {
            let key = self.fair_key(&self.tasks[index]);
            if self.tags.iter().all(|(other, _)| *other != key) {
                self.tags.push((key.clone(), self.clock));
            }
            self.tasks[index].key = Some(key);
            self.plan_look(index);
        }
    }

    pub(crate) fn leave_line(&mut self, id: laneway_core::TaskId) {
        let Some(index) = self.find(id) else { return };
        let task = &mut self.tasks[index];
        if task.phase != Phase::InLine {
            return;
        }
        task.phase = Phase::Held;
        task.key = None;
        (task.passed, task.blocked, task.taken, task.reserved) = (0, vec![], vec![], false);
        // A key without waiting tasks is forgotten when the clock has reached it, or the line is empty.
        let is_empty = self.in_line().is_empty();
        let tags = std::mem::take(&mut self.tags);
        let is_kept = |(key, tag): &(LaneName, u64)| self.waits_under(key) || !is_empty && *tag > self.clock;
        self.tags = tags.into_iter().filter(is_kept).collect();
    }

    fn cost(&self, key: &LaneName) -> u64 {
        COST / u64::from(self.settings(key).weight)
    }

    fn charge(&mut self, key: &LaneName) {
        let cost = self.cost(key);
        let Some((_, tag)) = self.tags.iter_mut().find(|(other, _)| other == key) else { return };
        self.clock = (*tag).max(self.clock);
        *tag = self.clock + cost;
    }

    /// An attempt that must be repeated costs nothing.
    pub(crate) fn refund(&mut self, index: usize) {
        let key = self.fair_key(&self.tasks[index]);
        let cost = self.cost(&key);
        if let Some((_, tag)) = self.tags.iter_mut().find(|(other, _)| *other == key) {
            *tag = tag.saturating_sub(cost);
        }
    }

    /// When the lane's rate allows another grant.
    fn ready_at(&self, name: &LaneName) -> Timestamp {
        let Some(rate) = self.settings(name).rate_limit else { return Timestamp(0) };
        let period = u128::from(rate.per.millis().0) * NANOS;
        let full_at = self.buckets.iter().find(|(lane, _)| lane == name).map_or(0, |(_, at)| *at);
        let burst = period - period / u128::from(rate.max);
        Timestamp(full_at.saturating_sub(burst).div_ceil(NANOS) as u64)
    }

    fn pay(&mut self, name: &LaneName) {
        let Some(rate) = self.settings(name).rate_limit else { return };
        let cost = u128::from(rate.per.millis().0) * NANOS / u128::from(rate.max);
        let now = u128::from(self.now.0) * NANOS;
        match self.buckets.iter_mut().find(|(lane, _)| lane == name) {
            Some((_, full_at)) => *full_at = (*full_at).max(now) + cost,
            None => self.buckets.push((name.clone(), now + cost)),
        }
    }

    /// Neither a pause nor the rate blocks the lane.
    pub(crate) fn is_passable(&self, name: &LaneName) -> bool {
        !self.gate(name).paused && self.ready_at(name) <= self.now
    }

    fn has_slots(&self, name: &LaneName, kept: u32) -> bool {
        let slots = self.settings(name).max_concurrency;
        slots.is_none_or(|slots| self.running_in(name) + kept < slots)
    }

    /// The lane can give a slot to any task. One slot may be reserved for a task that was passed over too often.
    pub(crate) fn is_open(&self, name: &LaneName) -> bool {
        let kept = self.tasks.iter().any(|task| task.reserved && task.lanes.contains(name));
        self.is_passable(name) && self.has_slots(name, kept.into())
    }

    pub(crate) fn has_free_slot(&self, name: &LaneName) -> bool {
        self.has_slots(name, 0)
    }

    fn may_run(&self, task: &Task) -> bool {
        let is_lent = |lane: &LaneName| self.is_passable(lane) && self.lender(task.parent, lane).is_some();
        task.lanes.iter().all(|lane| self.is_open(lane) || is_lent(lane))
    }

    /// A task with reserved slots that now has all of them.
    fn ready_reservation(&self) -> Option<usize> {
        let mut reserved: Vec<usize> =
            self.in_line().into_iter().filter(|index| self.tasks[*index].reserved).collect();
        reserved.sort_by_key(|index| self.tasks[*index].arrival);
        reserved.into_iter().find(|index| self.has_slots_with_reserved(&self.tasks[*index]))
    }

    fn has_slots_with_reserved(&self, task: &Task) -> bool {
        let has_slot = |lane: &LaneName| self.has_free_slot(lane) || self.lender(task.parent, lane).is_some();
        task.lanes.iter().all(|lane| self.is_passable(lane) && has_slot(lane))
    }

    /// A child may take a slot that is reserved for a task, because its parent may keep that task waiting.
    fn blocked_child(&self, fits: impl Fn(&Task) -> bool) -> Option<usize> {
        let may_go = |index: &usize| {
            let task = &self.tasks[*index];
            task.parent.is_some() && fits(task) && self.has_slots_with_reserved(task)
        };
        let place =
            |index: &usize| (std::cmp::Reverse(self.tasks[*index].level()), self.tasks[*index].arrival);
        self.in_line().into_iter().filter(may_go).min_by_key(place)
    }

    /// Starts all tasks that may run, best first.
    pub(crate) fn grant(&mut self) {
        loop {
            let fits = |index: &usize| !self.tasks[*index].is_external() && self.may_run(&self.tasks[*index]);
            let best = || self.in_line().into_iter().filter(fits).min_by_key(|index| self.rank(*index));
            let blocked_child = || self.blocked_child(|task| !task.is_external());
            let Some(index) = self.ready_reservation().or_else(best).or_else(blocked_child) else { return };
            self.start(index, Owner::Replica(ReplicaId::SOLE), None);
        }
    }

    /// The best external task that may run and fits.
    pub(crate) fn best_external(&self, fits: impl Fn(&Task) -> bool) -> Option<usize> {
        let may_go = |index: &usize| {
            let task = &self.tasks[*index];
            task.is_external() && fits(task) && self.may_run(task)
        };
        let best = self.in_line().into_iter().filter(may_go).min_by_key(|index| self.rank(*index));
        best.or_else(|| self.blocked_child(|task| task.is_external() && fits(task)))
    }

    pub(crate) fn start(&mut self, index: usize, owner: Owner, lease: Option<Millis>) {
        let passed = self.passed_by(index);
        let home = self.home_settings(index);
        let task = &self.tasks[index];
        let (id, lanes, parent) = (task.id, task.lanes.clone(), task.parent);
        let lease = lease.unwrap_or(home.lease);
        let timeout = task.spec.timeout.or(home.timeout).map(|length| self.now + length);
        let lent = |lane: &LaneName| self.lender(parent, lane).map(|lender| (lane.clone(), lender));
        let borrowed: Vec<(LaneName, laneway_core::TaskId)> = lanes.iter().filter_map(lent).collect();
        let is_borrowed = |lane: &LaneName| borrowed.iter().any(|(other, _)| other == lane);
        let taken: Vec<LaneName> = lanes.iter().filter(|lane| !is_borrowed(lane)).cloned().collect();
        let indexes =
            (0..lanes.len()).filter(|number| is_borrowed(&lanes[*number])).map(|number| number as u8);
        let indexes: Vec<u8> = indexes.collect();
        self.count_passed(&passed, &taken);
        let key = self.tasks[index].key.clone().expect("in line");
        self.charge(&key);
        self.leave_line(id);
        self.fences += 1;
        let (now, fence) = (self.now, Fence(self.fences));
        let task = &mut self.tasks[index];
        task.phase = Phase::Running;
        task.attempts += 1;
        task.fence = fence;
        (task.lease, task.lease_until) = (lease, now + lease);
        task.timeout_at = timeout.unwrap_or(crate::naive::NEVER);
        task.stopping = None;
        task.borrowed = borrowed;
        let attempt = task.attempts;
        lanes.iter().for_each(|lane| self.pay(lane));
        self.emit(Event::Granted {
            task: id,
            attempt,
            fence,
            lease_until: now + lease,
            lease,
            timeout_at: timeout,
            owner,
            borrowed: indexes,
        });
        passed.into_iter().for_each(|passed| self.reserve_for(passed));
    }

    fn count_passed(&mut self, passed: &[usize], taken: &[LaneName]) {
        for index in
            passed.iter().filter(|index| !self.tasks[**index].is_external()).copied().collect::<Vec<_>>()
        {
            let lanes = self.tasks[index].lanes.clone();
            let blocked = lanes.iter().filter(|lane| !self.is_open(lane)).cloned().collect::<Vec<_>>();
            let taken = lanes.iter().filter(|lane| taken.contains(lane)).cloned().collect::<Vec<_>>();
            let task = &mut self.tasks[index];
            task.passed += 1;
            task.blocked.extend(blocked);
            task.taken.extend(taken);
            self.passed_over += 1;
        }
    }

    /// Reserves slots for a task that was passed over 64 times and is blocked by a lane whose slots went to later tasks.
    fn reserve_for(&mut self, index: usize) {
        let task = &self.tasks[index];
        let starves = task.passed >= 64 && task.blocked.iter().any(|lane| task.taken.contains(lane));
        let is_kept =
            |lane: &LaneName| self.tasks.iter().any(|task| task.reserved && task.lanes.contains(lane));
        // A lane without a limit reserves no slots.
        let has_enough = |lane: &LaneName| self.settings(lane).max_concurrency.is_none();
        let is_free = |lane: &LaneName| self.is_passable(lane) && (has_enough(lane) || !is_kept(lane));
        if starves && !task.is_external() && task.lanes.iter().all(is_free) {
            let id = task.id;
            self.tasks[index].reserved = true;
            self.emit(Event::Reserved { task: id });
        }
    }

    fn path(&self, index: usize) -> Vec<Step> {
        let task = &self.tasks[index];
        let mut key = task.key.clone();
        let mut path: Vec<Step> = vec![];
        for lane in self.way(task) {
            let is_lent = self.lender(task.parent, &lane).is_some();
            let mut key = if lane.is_session_family() { key.take() } else { None };
            let is_own = key.as_ref() == Some(&lane);
            path.extend(key.take_if(|_| !is_own).map(|key| Step { key: Some(key), ..Step::default() }));
            path.push(Step { lane: Some((lane, is_lent)), key, leaf: None });
        }
        path.extend(key.map(|key| Step { key: Some(key), ..Step::default() }));
        if task.is_external() {
            let leaf = Some((task.home().clone(), task.spec.kind.clone()));
            path.push(Step { leaf, ..Step::default() });
        }
        path
    }

    /// Whether a task has a higher level, or arrived earlier, whatever its fair key.
    fn came_before(&self, one: usize, other: usize) -> bool {
        let place = |index: usize| {
            let (level, _, arrival) = self.rank(index);
            (level, arrival)
        };
        place(one) < place(other)
    }

    /// The tasks that a grant passes over: for each lane on its way, the best task behind a closed lane that came before
    /// it. A closed lane whose waiting tasks all go the same way does not count, because its slots go in order.
    fn passed_by(&self, granted: usize) -> Vec<usize> {
        let is_external = self.tasks[granted].is_external();
        let waiting = self.in_line();
        let all: Vec<(bool, Vec<Step>, usize)> = waiting
            .into_iter()
            .map(|index| (self.tasks[index].is_external(), self.path(index), index))
            .collect();
        let way = self.path(granted);
        let mut passed = vec![];
        for depth in (0..=way.len()).rev() {
            let best = Branches { naive: self, all: &all, is_external }.best_closed(&way[..depth]);
            if let Some(best) = best.filter(|best| self.came_before(*best, granted)) {
                passed.push(best);
            }
        }
        passed
    }
}

/// The ways of all waiting tasks as the branches of a tree.
struct Branches<'a> {
    naive: &'a Naive,
    all: &'a [(bool, Vec<Step>, usize)],
    is_external: bool,
}

impl Branches<'_> {
    fn best(&self, tasks: impl Iterator<Item = usize>) -> Option<usize> {
        tasks.min_by_key(|index| self.naive.rank(*index))
    }

    /// The branches that go on from here.
    fn branches(&self, from: &[Step]) -> Vec<Vec<Step>> {
        let mut branches: Vec<Vec<Step>> = vec![];
        for (is_external, path, _) in self.all {
            let goes_on =
                *is_external == self.is_external && path.len() > from.len() && path.starts_with(from);
            if goes_on && !branches.iter().any(|branch| path.starts_with(branch)) {
                branches.push(path[..=from.len()].to_vec());
            }
        }
        branches
    }

    fn is_closed(&self, branch: &[Step]) -> bool {
        match branch.last().and_then(|step| step.lane.as_ref()) {
            Some((lane, true)) => !self.naive.is_passable(lane),
            Some((lane, false)) => !self.naive.is_open(lane),
            None => false,
        }
    }

    fn counts(&self, branch: &[Step]) -> bool {
        let lane = branch.last().and_then(|step| step.lane.as_ref());
        let mut ways: Vec<(bool, &[Step])> = vec![];
        for (is_external, path, _) in self.all {
            let at = path.iter().position(|step| step.lane.is_some() && step.lane.as_ref() == lane);
            let way = at.map(|at| (*is_external, &path[..=at]));
            ways.extend(way.filter(|way| !ways.contains(way)));
        }
        ways.len() > 1 || !self.branches(branch).is_empty()
    }

    fn ends_here(&self, at: &[Step]) -> Option<usize> {
        self.best(
            self.all
                .iter()
                .filter(|(is_external, path, _)| *is_external == self.is_external && path == at)
                .map(|(_, _, index)| *index),
        )
    }

    /// The best task that may go on from here.
    fn best_open(&self, from: &[Step]) -> Option<usize> {
        let open = self.branches(from).into_iter().filter(|branch| !self.is_closed(branch));
        self.best(open.filter_map(|branch| self.best_open(&branch)).chain(self.ends_here(from)))
    }

    /// The best task behind a closed lane that comes next from here.
    fn best_closed(&self, from: &[Step]) -> Option<usize> {
        let closed = self.branches(from).into_iter();
        let closed = closed.filter(|branch| self.is_closed(branch) && self.counts(branch));
        self.best(closed.filter_map(|branch| self.best_below(&branch)))
    }

    fn best_below(&self, from: &[Step]) -> Option<usize> {
        self.best(self.best_open(from).into_iter().chain(self.best_closed(from)))
    }
}
