//! Who is next?

use smallvec::SmallVec;

use crate::api::command::Reply;
use crate::api::event::Event;
use crate::api::ids::{Fence, TaskId};
use crate::api::lane_settings::Handler;
use crate::api::name::{Name, Pattern};
use crate::api::rejection::{BadTask, Rejection};
use crate::api::time::{Millis, Timestamp};
use crate::scheduler::Scheduler;
use crate::state::ready_tree::{EXTERNAL, INTERNAL, NONE};
use crate::state::task::Phase;

/// A task that was passed over so often, because it needs several lanes, has its slots kept free for it.
const PASSED_OVER_MAX: u32 = 64;
/// The most tasks that one claim can take.
pub(crate) const CLAIM_MAX: u32 = 1000;

fn check_lease(lease: Option<Millis>) -> Result<(), Rejection> {
    match lease {
        Some(Millis(0)) => Err(Rejection::BadTask(BadTask::Zero("lease"))),
        Some(length) if length > Millis::MAX => Err(Rejection::BadTask(BadTask::TooLong("lease"))),
        _ => Ok(()),
    }
}

impl Scheduler {
    /// Starts everything that may run, best first.
    pub(crate) fn grant(&mut self, events: &mut Vec<Event>) {
        if self.is_stopped || !self.may_grant && self.reservations.is_empty() {
            return;
        }
        while let Some(slot) = self.next_to_start() {
            let runner = self.runner_of(slot);
            self.start(slot, runner, None, events);
        }
        self.may_grant = false;
    }

    fn next_to_start(&self) -> Option<u32> {
        if self.reservations.is_empty() {
            return self.line.best(INTERNAL);
        }
        let best = self.ready_reservation().or_else(|| self.line.best(INTERNAL));
        best.or_else(|| self.child_kept_waiting(|slot| self.tasks[slot].handler != Handler::External))
    }

    /// Hands the best external tasks that fit to a worker.
    pub(crate) fn claim(
        &mut self,
        worker: &Name,
        lanes: &[Pattern],
        kinds: &[Name],
        max: u32,
        lease: Option<Millis>,
        events: &mut Vec<Event>,
    ) -> Result<Reply, Rejection> {
        if lanes.is_empty() || max == 0 {
            return Err(Rejection::BadTask(BadTask::EmptyClaim));
        }
        check_lease(lease)?;
        let mut claimed = Vec::new();
        while claimed.len() < max.min(CLAIM_MAX) as usize {
            let fits = |leaf: &(u32, u32)| {
                let (home, kind) = self.line.home_and_kind(leaf.0);
                let lane_fits = lanes.iter().any(|pattern| pattern.matches(&self.lanes[home].name));
                lane_fits && (kinds.is_empty() || kinds.contains(self.kinds.name(kind)))
            };
            let kept_waiting = |slot: u32| {
                self.tasks[slot].handler == Handler::External && fits(&(self.tasks[slot].leaf, slot))
            };
            let best = self.line.best_first(EXTERNAL).find(fits).map(|(_, slot)| slot);
            let Some(slot) = best.or_else(|| self.child_kept_waiting(kept_waiting)) else { break };
            claimed.push(self.tasks[slot].id);
            self.start(slot, Some(worker.clone()), lease, events);
        }
        Ok(Reply::Claimed(claimed))
    }

    /// Hands those of these external tasks that may run now to a worker.
    pub(crate) fn claim_these(
        &mut self,
        worker: &Name,
        tasks: &[TaskId],
        lease: Option<Millis>,
        events: &mut Vec<Event>,
    ) -> Result<Reply, Rejection> {
        if tasks.is_empty() {
            return Err(Rejection::BadTask(BadTask::EmptyClaim));
        }
        if tasks.len() > CLAIM_MAX as usize {
            return Err(Rejection::BadTask(BadTask::TooManyClaimed(tasks.len())));
        }
        check_lease(lease)?;
        let mut claimed = Vec::new();
        for id in tasks {
            let Some(slot) = self.tasks.find(*id) else { continue };
            let task = &self.tasks[slot];
            let is_offered = task.handler == Handler::External && matches!(task.phase, Phase::Waiting);
            if is_offered && self.may_run(slot) {
                claimed.push(*id);
                self.start(slot, Some(worker.clone()), lease, events);
            }
        }
        Ok(Reply::Claimed(claimed))
    }

    /// Whether each lane of a waiting task has a slot for it.
    pub(crate) fn may_run(&self, slot: u32) -> bool {
        let parent = self.parent_of(slot);
        self.lanes.route(self.tasks[slot].route).lanes.iter().all(|lane| {
            self.lanes[*lane].open || self.lanes[*lane].passable && self.lender(parent, *lane).is_some()
        })
    }

    fn start(&mut self, slot: u32, worker: Option<Name>, lease: Option<Millis>, events: &mut Vec<Event>) {
        self.tasks.expect(slot);
        let task = &self.tasks[slot];
        let home = self.settings(self.lanes.route(task.route).home());
        let lease = lease.or(task.claimer().and_then(|claimer| claimer.lease)).unwrap_or(home.lease);
        let timeout = task.rare.as_ref().and_then(|rare| rare.timeout).or(home.timeout);
        let granted = Event::Granted {
            task: task.id,
            attempt: task.attempts + 1,
            fence: Fence(self.fences + 1),
            lease_until: self.now + lease,
            lease,
            timeout_at: timeout.map(|length| self.now + length),
            worker,
            borrowed: self.borrowed_lanes(slot),
        };
        self.emit(granted, events);
        if !self.passed_over.is_empty() {
            for passed in std::mem::take(&mut self.passed_over) {
                self.reserve_for(passed, events);
            }
        }
    }

    /// Keeps slots free for a task that was passed over too often, if no lane of it is reserved already. Of a
    /// lane that has slots for all there is nothing to keep.
    ///
    /// Being passed over while its conversation is busy starves nobody: nobody else takes that slot. Only
    /// where a lane that held it up was also given to later tasks, the task might wait for ever.
    fn reserve_for(&mut self, slot: u32, events: &mut Vec<Event>) {
        let Some(task) = self.tasks.get(slot) else { return };
        let passed = task.rare.as_ref().map(|rare| rare.passed).unwrap_or_default();
        if passed.times < PASSED_OVER_MAX || passed.blocked & passed.taken == 0 {
            return;
        }
        let lanes = &self.lanes.route(task.route).lanes;
        let is_free = |lane: &u32| self.lanes[*lane].reserved == NONE && self.lanes[*lane].passable;
        if task.handler != Handler::External && lanes.iter().all(is_free) {
            let task = task.id;
            self.emit(Event::Reserved { task }, events);
        }
    }

    /// A task for which slots were kept free and that now has all of them.
    fn ready_reservation(&self) -> Option<u32> {
        let mut reservations: SmallVec<[u32; 2]> = self.reservations.iter().copied().collect();
        reservations.sort_unstable_by_key(|slot| self.tasks[*slot].arrival);
        reservations.into_iter().find(|slot| self.has_slots(*slot))
    }

    /// A child of running work that only waits for slots that are kept for another. It may have them: its
    /// parent may hold what the other waits for, and all three would be stuck.
    fn child_kept_waiting(&self, is_wanted: impl Fn(u32) -> bool) -> Option<u32> {
        if self.reservations.is_empty() {
            return None;
        }
        let children = self.tasks.running.iter().flat_map(|(_, slot)| self.tasks[slot].children());
        let waiting = children.copied().filter(|child| matches!(self.tasks[*child].phase, Phase::Waiting));
        waiting
            .filter(|child| is_wanted(*child) && self.has_slots(*child))
            .min_by_key(|child| self.tasks[*child].place())
    }

    /// Whether each lane of a waiting task has a slot for it, kept ones included.
    fn has_slots(&self, slot: u32) -> bool {
        let parent = self.parent_of(slot);
        self.lanes.route(self.tasks[slot].route).lanes.iter().all(|lane| {
            let slots = self.settings(*lane).max_concurrency;
            let has_slot = slots.is_none_or(|slots| self.lanes[*lane].running < slots);
            self.lanes[*lane].passable && (has_slot || self.lender(parent, *lane).is_some())
        })
    }

    /// Records that `slot` was passed over by a task that took slots of `taken`.
    pub(crate) fn pass_over(&mut self, slot: u32, taken: &[u32]) {
        let task = &self.tasks[slot];
        if task.handler == Handler::External {
            return;
        }
        let (mut blocked_bits, mut taken_bits) = (0u128, 0u128);
        for (index, lane) in self.lanes.route(task.route).lanes.iter().enumerate() {
            blocked_bits |= u128::from(!self.lanes[*lane].open) << index;
            taken_bits |= u128::from(taken.contains(lane)) << index;
        }
        let passed = &mut self.tasks[slot].rare().passed;
        passed.times = passed.times.saturating_add(1);
        passed.blocked |= blocked_bits;
        passed.taken |= taken_bits;
        self.passed_over.push(slot);
    }

    /// Tells the line whether a lane can give a slot now, and the clock when to look again.
    pub(crate) fn refresh_lane(&mut self, lane: u32) {
        let ready_at = if self.lanes[lane].is_rated { self.rate_ready_at(lane) } else { Timestamp(0) };
        let this = &mut self.lanes[lane];
        let kept = u32::from(this.reserved != NONE);
        let passable = !this.gate.paused && ready_at <= self.now;
        let open = passable && this.running + kept < this.slots;
        let was = (this.passable, this.open);
        (this.passable, this.open) = (passable, open);
        if ready_at > self.now {
            self.timers.add_lane(ready_at, lane);
        }
        if was.0 != passable {
            self.may_grant |= passable;
            self.line.set_closed(gate_of(lane), !passable);
        }
        if was.1 != open {
            self.may_grant |= open;
            self.line.set_closed(slot_of(lane), !open);
        }
    }

    /// When the rate of a lane next lets a grant through.
    fn rate_ready_at(&self, lane: u32) -> Timestamp {
        let rate = self.settings(lane).rate_limit;
        rate.map_or(Timestamp(0), |rate| self.lanes[lane].bucket.ready_at(rate))
    }
}

/// How the line calls a lane of which a task needs a slot.
pub(crate) fn slot_of(lane: u32) -> u32 {
    lane << 1
}

/// How the line calls a lane whose slot is lent to the task: only pauses and rates of that lane hold it up.
pub(crate) fn gate_of(lane: u32) -> u32 {
    lane << 1 | 1
}
