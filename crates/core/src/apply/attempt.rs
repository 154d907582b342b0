//! Attempts: how they take slots and give them back, and what remains of a task that ends.

use smallvec::SmallVec;

use crate::api::event::{End, Event};
use crate::api::ids::TaskId;
use crate::api::lane_settings::Handler;
use crate::api::time::{Millis, Timestamp};
use crate::scheduler::Scheduler;
use crate::state::lane::LaneIdx;
use crate::state::routes::RouteIdx;
use crate::state::stats::Count;
use crate::state::task::{Attempt, Phase, TaskIdx};
use crate::state::{Indexes, State, StepScratch};

/// Of how many tasks that ended while they ran the ids are remembered.
const ENDED_RUNS_MAX: usize = 1024;

impl Scheduler {
    pub(super) fn on_granted(&mut self, event: &Event) {
        let Event::Granted { task, fence, lease_until, lease, timeout_at, owner, borrowed, .. } = event
        else {
            return;
        };
        let Some(idx) = self.state.tasks.find(*task) else { return };
        self.count_passed_over(idx, borrowed);
        self.check_turn(idx);
        let attempt = Attempt {
            fence: *fence,
            started: self.state.now,
            lease: *lease,
            lease_until: *lease_until,
            timeout_at: timeout_at.unwrap_or(Timestamp::NEVER),
            stopping: None,
            owner: owner.clone(),
            borrowed: self.borrow(idx, borrowed),
            lent: Default::default(),
        };
        let task = &self.state.tasks[idx];
        let (leaf, waited) = (task.leaf, self.state.now.since(task.since));
        // Slots first: a leaf that its lane has closed has no seat to be moved about.
        self.take_slots(task.route, &attempt, waited);
        let key = leaf.and_then(|leaf| self.indexes.ready.key_of(leaf));
        let turn = key.map(|key| (key, self.state.fair.charge(key)));
        self.leave_ready_tree(idx, turn);
        let lenders: SmallVec<[TaskIdx; 2]> = attempt.borrowed.iter().map(|(_, lender)| *lender).collect();
        self.begin_attempt(idx, attempt);
        for lender in lenders {
            self.reroute_family(lender);
        }
    }

    /// An attempt that has its slots begins.
    pub(super) fn begin_attempt(&mut self, idx: TaskIdx, attempt: Attempt) {
        self.state.tasks.running.insert(attempt.fence, idx);
        self.state.fences = self.state.fences.max(attempt.fence.0);
        let attempt = self.state.tasks.boxed(attempt);
        let task = &mut self.state.tasks[idx];
        task.attempts += 1;
        task.phase = Phase::Running(attempt);
        self.plan(idx);
    }

    /// Checks that a granted task is the first of its level with its lanes and fair key. External tasks are exempt,
    /// because a worker may claim any of them.
    fn check_turn(&mut self, idx: TaskIdx) {
        let task = &self.state.tasks[idx];
        // A reserved slot may go to a child of a running task, out of turn.
        if self.state.reservations.is_empty()
            && task.handler != Handler::External
            && let Some(leaf) = task.leaf
            && let Some(earlier) = self.indexes.ready.earlier_of_its_level(leaf, task.rank())
        {
            let earlier = self.state.tasks[earlier].id;
            self.scratch.overrun = Some(format!("{} started before {earlier}, which came first", task.id));
        }
    }

    /// Records that `idx` was passed over by a task that took slots of `taken`.
    pub(crate) fn pass_over(&mut self, idx: TaskIdx, taken: &[LaneIdx]) {
        let task = &self.state.tasks[idx];
        if task.handler == Handler::External {
            return;
        }
        let (mut blocked_bits, mut taken_bits) = (0u128, 0u128);
        for (index, lane) in self.state.lanes.route(task.route).lanes.iter().enumerate() {
            blocked_bits |= u128::from(!self.state.lanes[*lane].open) << index;
            taken_bits |= u128::from(taken.contains(lane)) << index;
        }
        let passed = &mut self.state.tasks[idx].rare().passed;
        passed.times = passed.times.saturating_add(1);
        passed.blocked |= blocked_bits;
        passed.taken |= taken_bits;
        self.scratch.passed_over.push(idx);
    }

    pub(crate) fn count_passed_over(&mut self, idx: TaskIdx, borrowed: &[u8]) {
        let task = &self.state.tasks[idx];
        self.scratch.passed_over.clear();
        let Some(leaf) = task.leaf else { return };
        let passed = self.indexes.ready.passed_over(leaf, task.rank());
        if passed.is_empty() {
            return;
        }
        let lanes = self.state.lanes.route(task.route).lanes.iter().enumerate();
        let taken = lanes.filter(|(index, _)| !borrowed.contains(&(*index as u8))).map(|(_, lane)| *lane);
        let taken: Vec<LaneIdx> = taken.collect();
        for passed in passed {
            self.pass_over(passed, &taken);
        }
    }

    /// Takes a slot of each lane, those that are borrowed excepted.
    pub(crate) fn take_slots(&mut self, route: RouteIdx, attempt: &Attempt, waited: Millis) {
        let Scheduler { state, indexes, scratch, .. } = self;
        let StepScratch { touched, overrun, counted, .. } = scratch;
        let (Indexes { ready, may_grant, .. }, State { lanes, lane_config, now, .. }) = (indexes, state);
        let mut is_rated = false;
        lanes.change_each(touched, route, |idx, lane| {
            let own = attempt.borrowed.iter().all(|(other, _)| *other != idx);
            lane.waiting -= 1;
            if own {
                lane.running += 1;
                lane.last_change = *now;
                if lane.running > lane.slots {
                    *overrun = Some(lane.overrun());
                }
            }
            lane_config.class_mut(lane.class).count(counted, Count::Started { waited });
            is_rated |= lane.is_rated;
            *may_grant |= lane.reopen(idx, ready);
        });
        if is_rated {
            self.pay_rates(route);
        }
    }

    fn pay_rates(&mut self, route: RouteIdx) {
        for lane in self.state.lanes.route(route).lanes.clone() {
            let Some(rate) = self.settings(lane).rate_limit else { continue };
            let this = &mut self.state.lanes[lane];
            if this.bucket.ready_at(rate) > self.state.now {
                self.scratch.overrun = Some(format!("{} granted faster than {rate:?}", this.name));
            }
            this.bucket.pay(self.state.now, rate);
            self.refresh_lane(lane);
        }
    }

    /// Ends the attempt of a running task, whatever follows: its `end`, or another attempt. `ran_its_course` says that its length tells
    /// something about the next one's.
    pub(crate) fn end_attempt(&mut self, task: TaskIdx, ran_its_course: bool, end: Option<&End>) {
        let phase = std::mem::replace(&mut self.state.tasks[task].phase, Phase::Held);
        let Phase::Running(attempt) = phase else {
            self.state.tasks[task].phase = phase;
            return;
        };
        self.state.tasks.running.remove(attempt.fence);
        let is_shared = !attempt.borrowed.is_empty() || !attempt.lent.is_empty();
        let free = is_shared.then(|| self.give_back(task, &attempt));
        let length = self.state.now.since(attempt.started);
        let route = self.state.tasks[task].route;
        let Scheduler { state, indexes, scratch: StepScratch { touched, counted, .. }, .. } = self;
        let (Indexes { ready, may_grant, .. }, State { lanes, lane_config, now, .. }) = (indexes, state);
        lanes.change_each(touched, route, |idx, lane| {
            let class = lane_config.class_mut(lane.class);
            class.count(counted, Count::Ran { length, ran_its_course });
            if ran_its_course {
                lane.run_time.record(length);
            }
            if let Some(end) = end {
                class.count(counted, end.into());
            }
            if free.as_ref().is_none_or(|free| free.contains(&idx)) {
                lane.running -= 1;
                lane.last_change = *now;
                *may_grant |= lane.reopen(idx, ready);
            }
        });
        for (_, lender) in &attempt.borrowed {
            self.reroute_family(*lender);
        }
        self.state.tasks.recycle(attempt);
    }

    pub(crate) fn on_retrying(&mut self, task: TaskIdx, at: Timestamp) {
        self.end_attempt(task, true, None);
        self.refund(task);
        self.state.tasks[task].rare().retries += 1;
        self.state.tasks[task].phase = Phase::BackingOff(at);
        // Time spent running was no waiting.
        self.state.tasks[task].wait_until = Timestamp::NEVER;
        self.each_lane(task, |this, lane| {
            this.state.lanes[lane].retrying += 1;
            this.count(lane, Count::Retried);
        });
        self.plan(task);
    }

    /// Sets when a task that was accepted before and waits from `from` on has waited too long. It may wait even
    /// where new ones start at once or are refused.
    pub(crate) fn time_wait(&mut self, task: TaskIdx, from: Timestamp) {
        let home = self.state.lanes.route(self.state.tasks[task].route).first_lane();
        let own = self.state.tasks[task].rare.as_ref().and_then(|rare| rare.wait_timeout);
        let wait = own.or(self.settings(home).wait_timeout).filter(|length| *length > Millis(0));
        self.state.tasks[task].wait_until = wait.map_or(Timestamp::NEVER, |length| from + length);
    }

    pub(crate) fn on_redelivered(&mut self, task: TaskIdx) {
        self.end_attempt(task, false, None);
        self.refund(task);
        self.time_wait(task, self.state.now);
        self.each_lane(task, |this, lane| {
            this.state.lanes[lane].waiting += 1;
            this.count(lane, Count::Retried);
        });
        self.wait_again(task);
    }

    fn end_waiting(&mut self, task: TaskIdx, end: &End) {
        if matches!(self.state.tasks[task].phase, Phase::Waiting) {
            self.leave_ready_tree(task, None);
        }
        let is_retrying = matches!(self.state.tasks[task].phase, Phase::BackingOff(_));
        let (route, lane_config) = (self.state.tasks[task].route, &mut self.state.lane_config);
        let StepScratch { touched, counted, .. } = &mut self.scratch;
        self.state.lanes.change_each(touched, route, |_, lane| {
            if is_retrying {
                lane.retrying -= 1
            } else {
                lane.waiting -= 1
            }
            lane_config.class_mut(lane.class).count(counted, end.into());
        });
    }

    pub(crate) fn on_ended(&mut self, task: TaskIdx, end: &End) {
        if self.local.collects_ended && (self.local.collects_slots || !self.is_plain_slot(task)) {
            self.scratch.ended.push(self.view(task));
        }
        self.let_end(task, end);
    }

    /// Whether a task only holds a slot for a program, and is in no group.
    fn is_plain_slot(&self, task: TaskIdx) -> bool {
        let task = &self.state.tasks[task];
        self.state.kinds.slot_of(task.kind).is_some()
            && task.rare.as_ref().is_none_or(|rare| rare.group.is_none())
    }

    /// Remembers a task that ended while it ran.
    #[inline]
    pub(crate) fn remember_run(&mut self, task: TaskId) {
        if self.state.ended_runs.len() == ENDED_RUNS_MAX {
            self.state.ended_runs.pop_front();
        }
        self.state.ended_runs.push_back(task);
    }

    /// Removes a task that is over. Only the statistics of its lanes remain.
    pub(crate) fn let_end(&mut self, idx: TaskIdx, end: &End) {
        let session = self.session_of_task(idx);
        if self.state.tasks[idx].attempt().is_some() {
            self.remember_run(self.state.tasks[idx].id);
            let ran_its_course = matches!(end, End::Completed | End::Failed { .. } | End::TimedOut);
            self.end_attempt(idx, ran_its_course, Some(end));
        } else {
            self.end_waiting(idx, end);
        }
        self.unlink(idx);
        self.free_key(idx, end);
        let task = self.state.tasks.remove(idx);
        self.state.ended += 1;
        self.indexes.timers.move_task(task.due, Timestamp::NEVER, task.arrival, idx);
        self.state.kinds.leave(task.kind);
        if self.state.lanes.leave_route(task.route) {
            self.drop_idle_leaf_of_dropped_route();
            for index in 0..self.state.lanes.route(task.route).lanes.len() {
                self.drop_if_idle(self.state.lanes.route(task.route).lanes[index]);
            }
        }
        if let Some((session, fence)) = session {
            self.on_session_task_ended(session, task.id, end, fence);
        }
    }
}
