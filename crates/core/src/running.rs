//! Attempts: how they take slots and give them back, and what remains of a task that ends.

use smallvec::SmallVec;

use crate::event::{End, Event};
use crate::scheduler::Scheduler;
use crate::task::{Attempt, Phase};
use crate::time::{Millis, Timestamp};

/// Of how many tasks that ended while they ran the ids are remembered.
const ENDED_RUNS_MAX: usize = 1024;

impl Scheduler {
    pub(crate) fn on_granted(&mut self, event: &Event) {
        let Event::Granted { task, fence, lease_until, lease, timeout_at, worker, borrowed, .. } = event
        else {
            return;
        };
        let Some(slot) = self.tasks.find(*task) else { return };
        self.count_passed_over(slot, borrowed);
        let task = &self.tasks[slot];
        // A slot that is kept for one task may be given to a child of running work, whoever came first.
        if self.reservations.is_empty()
            && let Some(earlier) = self.line.earlier_of_its_level(task.leaf, task.place())
        {
            let earlier = self.tasks[earlier].id;
            self.overrun = Some(format!("{} started before {earlier}, which came first", task.id));
        }
        let task = &self.tasks[slot];
        let (key, waited) = (self.line.key_of(task.leaf), self.now.since(task.since));
        let attempt = Attempt {
            fence: *fence,
            started: self.now,
            lease: *lease,
            lease_until: *lease_until,
            timeout_at: timeout_at.unwrap_or(Timestamp::NEVER),
            stopping: None,
            worker: worker.clone(),
            borrowed: self.borrow(slot, borrowed),
            lent: Default::default(),
        };
        let lenders: SmallVec<[u32; 2]> = attempt.borrowed.iter().map(|(_, lender)| *lender).collect();
        let own = |lane: u32| attempt.borrowed.iter().all(|(other, _)| *other != lane);
        // Slots first: a leaf that its lane has closed has no seat to be moved about.
        self.each_lane(slot, |this, lane| this.take_slot(lane, own(lane), waited));
        let tag = self.fair.charge(key);
        self.line.set_tag(key, tag);
        self.leave_line(slot);
        self.tasks.running.insert(*fence, slot);
        self.fences = self.fences.max(fence.0);
        self.tasks[slot].attempts += 1;
        self.tasks[slot].phase = Phase::Running(self.tasks.boxed(attempt));
        self.plan(slot);
        for lender in lenders {
            self.reroute_family(lender);
        }
    }

    pub(crate) fn count_passed_over(&mut self, slot: u32, borrowed: &[u8]) {
        let task = &self.tasks[slot];
        self.passed_over.clear();
        let passed = self.line.passed_over(task.leaf, task.place());
        if passed.is_empty() {
            return;
        }
        let lanes = self.lanes.route(task.route).lanes.iter().enumerate();
        let taken = lanes.filter(|(index, _)| !borrowed.contains(&(*index as u8))).map(|(_, lane)| *lane);
        let taken: Vec<u32> = taken.collect();
        for passed in passed {
            self.pass_over(passed, &taken);
        }
    }

    pub(crate) fn take_slot(&mut self, lane: u32, own: bool, waited: Millis) {
        let now = self.now;
        let this = &mut self.lanes[lane];
        let is_rated = this.is_rated;
        this.waiting -= 1;
        if own {
            this.running += 1;
            this.last_change = now;
            if this.running > this.slots {
                self.overrun = Some(format!("{} runs {} of {}", this.name, this.running, this.slots));
            }
        }
        if is_rated {
            self.pay_rate(lane);
        }
        let stats = self.seen(lane);
        stats.started += 1;
        stats.wait.record(waited);
        self.refresh_lane(lane);
    }

    fn pay_rate(&mut self, lane: u32) {
        let Some(rate) = self.settings(lane).rate_limit else { return };
        let this = &mut self.lanes[lane];
        if this.bucket.ready_at(rate) > self.now {
            self.overrun = Some(format!("{} granted faster than {rate:?}", this.name));
        }
        this.bucket.pay(self.now, rate);
    }

    /// Ends the attempt of a running task, whatever follows. `ran_its_course` says that its length tells
    /// something about the next one's.
    pub(crate) fn end_attempt(&mut self, slot: u32, ran_its_course: bool) {
        let phase = std::mem::replace(&mut self.tasks[slot].phase, Phase::Held);
        let Phase::Running(attempt) = phase else {
            self.tasks[slot].phase = phase;
            return;
        };
        self.tasks.running.remove(attempt.fence);
        let is_shared = !attempt.borrowed.is_empty() || !attempt.lent.is_empty();
        let free = is_shared.then(|| self.give_back(slot, &attempt));
        let ran = self.now.since(attempt.started);
        self.each_lane(slot, |this, lane| {
            let stats = this.seen(lane);
            stats.run.record(ran);
            if ran_its_course {
                stats.run_time.record(ran);
            }
            let now = this.now;
            let this_lane = &mut this.lanes[lane];
            if ran_its_course {
                this_lane.run_time.record(ran);
            }
            if free.as_ref().is_none_or(|free| free.contains(&lane)) {
                this_lane.running -= 1;
                this_lane.last_change = now;
                this.refresh_lane(lane);
            }
        });
        for (_, lender) in &attempt.borrowed {
            self.reroute_family(*lender);
        }
        self.tasks.recycle(attempt);
    }

    pub(crate) fn on_retrying(&mut self, slot: u32, at: Timestamp) {
        self.end_attempt(slot, true);
        self.refund(slot);
        self.tasks[slot].rare().retries += 1;
        self.tasks[slot].phase = Phase::BackingOff(at);
        // Time spent running was no waiting.
        self.tasks[slot].wait_until = Timestamp::NEVER;
        self.each_lane(slot, |this, lane| {
            this.lanes[lane].retrying += 1;
            this.seen(lane).retried += 1;
        });
        self.plan(slot);
    }

    /// Sets when a task that was accepted before and waits from `from` on has waited too long. It may wait even
    /// where new ones start at once or are refused.
    pub(crate) fn time_wait(&mut self, slot: u32, from: Timestamp) {
        let home = self.lanes.route(self.tasks[slot].route).home();
        let own = self.tasks[slot].rare.as_ref().and_then(|rare| rare.wait_timeout);
        let wait = own.or(self.settings(home).wait_timeout).filter(|length| *length > Millis(0));
        self.tasks[slot].wait_until = wait.map_or(Timestamp::NEVER, |length| from + length);
    }

    pub(crate) fn on_redelivered(&mut self, slot: u32) {
        self.end_attempt(slot, false);
        self.refund(slot);
        self.time_wait(slot, self.now);
        self.each_lane(slot, |this, lane| {
            this.lanes[lane].waiting += 1;
            this.seen(lane).retried += 1;
        });
        self.wait_again(slot);
    }

    pub(crate) fn on_ended(&mut self, slot: u32, end: &End) {
        if self.keeps_departed {
            self.departed.push(self.view(slot));
        }
        let session = self.session_of_task(slot);
        match self.tasks[slot].phase {
            Phase::Waiting => {
                self.leave_line(slot);
                self.each_lane(slot, |this, lane| this.lanes[lane].waiting -= 1);
            }
            Phase::Delayed(_) | Phase::Held => {
                self.each_lane(slot, |this, lane| this.lanes[lane].waiting -= 1);
            }
            Phase::BackingOff(_) => self.each_lane(slot, |this, lane| this.lanes[lane].retrying -= 1),
            Phase::Running(_) => {
                if self.ended_runs.len() == ENDED_RUNS_MAX {
                    self.ended_runs.pop_front();
                }
                self.ended_runs.push_back(self.tasks[slot].id);
                let ran_its_course = matches!(end, End::Completed | End::Failed { .. } | End::TimedOut);
                self.end_attempt(slot, ran_its_course);
            }
        }
        self.each_lane(slot, |this, lane| this.count_end(lane, end));
        self.unlink(slot);
        if matches!(end, End::Cancelled { .. }) {
            self.free_key(slot);
        }
        let task = self.tasks.remove(slot);
        self.ended += 1;
        self.timers.move_task(task.due, Timestamp::NEVER, task.arrival, slot);
        self.kinds.leave(task.kind);
        if let Some(lanes) = self.lanes.leave_route(task.route) {
            for lane in lanes {
                self.drop_if_idle(lane);
            }
        }
        if let Some((session, fence)) = session {
            self.on_session_task_ended(session, task.id, end, fence);
        }
    }

    pub(crate) fn count_end(&mut self, lane: u32, end: &End) {
        let stats = self.seen(lane);
        let counter = match end {
            End::Completed => &mut stats.completed,
            End::Failed { .. } | End::TimedOut => &mut stats.failed,
            End::Cancelled { .. } => &mut stats.cancelled,
            End::Expired | End::WaitTimeout => &mut stats.timed_out_waiting,
            End::Lost => &mut stats.lost,
        };
        *counter += 1;
    }
}
