//! A slow and simple scheduler: it scans one flat list of tasks for every question.
//!
//! It follows the written rules and shares no structure with the real one: no tree, no counters, no timers. Apart from
//! its tasks it keeps only what they do not show.

use std::sync::Arc;

use laneway_core::{
    Block, CancelReason, DeadLetter, End, Event, Fence, Gate, Handler, LaneName, LaneSettings, Millis, Name,
    Outcome, Parent, Pattern, RateLimit, Rejection, Reply, STOP_GRACE, Settings, StopReason, TaskId,
    TaskSpec, Timestamp,
};

pub(crate) const NEVER: Timestamp = Timestamp::NEVER;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Phase {
    Delayed(Timestamp),
    Held,
    InLine,
    BackingOff(Timestamp),
    Running,
}

pub(crate) struct Task {
    pub(crate) id: TaskId,
    pub(crate) spec: TaskSpec,
    /// Each lane once, `global` last unless it is the home lane.
    pub(crate) lanes: Vec<LaneName>,
    pub(crate) parent: Option<TaskId>,
    pub(crate) depth: u8,
    pub(crate) after: Option<TaskId>,
    pub(crate) arrival: u64,
    pub(crate) submitted: Timestamp,
    pub(crate) since: Timestamp,
    pub(crate) wait_until: Timestamp,
    pub(crate) deadline: Timestamp,
    pub(crate) look_at: Timestamp,
    pub(crate) phase: Phase,
    pub(crate) handler: Handler,
    pub(crate) priority: u8,
    pub(crate) aged: u8,
    pub(crate) boosted: u8,
    pub(crate) noticed: bool,
    pub(crate) attempts: u32,
    pub(crate) retries: u32,
    pub(crate) redeliveries: u32,
    pub(crate) joined: u32,
    /// The fair key, while the task stands in the line.
    pub(crate) key: Option<LaneName>,
    pub(crate) passed: u32,
    pub(crate) blocked: Vec<LaneName>,
    pub(crate) taken: Vec<LaneName>,
    pub(crate) reserved: bool,
    pub(crate) fence: Fence,
    pub(crate) lease: Millis,
    pub(crate) lease_until: Timestamp,
    pub(crate) timeout_at: Timestamp,
    pub(crate) stopping: Option<(StopReason, Timestamp)>,
    pub(crate) borrowed: Vec<(LaneName, TaskId)>,
}

impl Task {
    pub(crate) fn level(&self) -> u8 {
        self.priority + self.aged + self.boosted
    }

    pub(crate) fn home(&self) -> &LaneName {
        &self.lanes[0]
    }

    pub(crate) fn is_external(&self) -> bool {
        self.handler == Handler::External
    }
}

pub(crate) struct Key {
    pub(crate) key: Arc<str>,
    pub(crate) task: TaskId,
    pub(crate) fingerprint: u64,
    pub(crate) until: Timestamp,
    pub(crate) until_end: bool,
}

/// What was reported about the depth of a lane.
#[derive(Clone, Default)]
pub(crate) struct ReportedDepth {
    pub(crate) pressure: bool,
    pub(crate) warning: bool,
    pub(crate) critical: bool,
    pub(crate) drained: bool,
}

#[derive(Default)]
pub(crate) struct Naive {
    pub(crate) now: Timestamp,
    pub(crate) tasks: Vec<Task>,
    pub(crate) dead_letters: Vec<DeadLetter>,
    pub(crate) keys: Vec<Key>,
    pub(crate) blocks: Vec<(Pattern, LaneSettings)>,
    pub(crate) gates: Vec<(LaneName, Gate)>,
    /// When each lane's bucket is full again, in nanoseconds.
    pub(crate) buckets: Vec<(LaneName, u128)>,
    /// The tag of each fair key, and the clock of tags.
    pub(crate) tags: Vec<(LaneName, u64)>,
    pub(crate) clock: u64,
    pub(crate) reported: Vec<(LaneName, ReportedDepth)>,
    /// Tasks that ended while they ran.
    pub(crate) ended_runs: Vec<TaskId>,
    pub(crate) arrivals: u64,
    pub(crate) fences: u64,
    pub(crate) events: Vec<Event>,
    /// How often a task was passed over.
    pub(crate) passed_over: u64,
}

impl Naive {
    pub(crate) fn find(&self, id: TaskId) -> Option<usize> {
        self.tasks.iter().position(|task| task.id == id)
    }

    pub(crate) fn live(&self, task: TaskId) -> Result<usize, Rejection> {
        self.find(task).ok_or(Rejection::NotLive { task })
    }

    pub(crate) fn emit(&mut self, event: Event) {
        self.events.push(event);
    }

    /// The block of that exact name, else the longest pattern that matches.
    pub(crate) fn block(&self, name: &LaneName) -> Option<&(Pattern, LaneSettings)> {
        let exact = self.blocks.iter().find(|(pattern, _)| pattern.as_str() == name.as_str());
        let fitting = self.blocks.iter().filter(|(pattern, _)| pattern.matches(name));
        exact.or(fitting.max_by_key(|(pattern, _)| pattern.as_str().len()))
    }

    pub(crate) fn settings(&self, name: &LaneName) -> Settings {
        Settings::for_lane(&self.block(name).map(|block| self.layered(block)).unwrap_or_default(), name)
    }

    /// What a block says, and what it leaves open as more general patterns say it.
    fn layered(&self, (block, asked): &(Pattern, LaneSettings)) -> LaneSettings {
        let covers = |(pattern, _): &&(Pattern, LaneSettings)| {
            pattern != block && !pattern.is_exact() && pattern.covers(block)
        };
        let mut general: Vec<&(Pattern, LaneSettings)> = self.blocks.iter().filter(covers).collect();
        general.sort_by_key(|(pattern, _)| (std::cmp::Reverse(pattern.as_str().len()), pattern.clone()));
        let mut asked = asked.clone();
        general.iter().for_each(|(_, general)| asked.fill_from(general));
        asked
    }

    pub(crate) fn home_settings(&self, index: usize) -> Settings {
        self.settings(self.tasks[index].home())
    }

    pub(crate) fn gate(&self, name: &LaneName) -> Gate {
        self.gates.iter().find(|(lane, _)| lane == name).map_or(Gate::OPEN, |(_, gate)| *gate)
    }

    /// Slots taken, a lent one once.
    pub(crate) fn running_in(&self, name: &LaneName) -> u32 {
        let owns = |task: &&Task| {
            task.phase == Phase::Running
                && task.lanes.contains(name)
                && task.borrowed.iter().all(|(lane, _)| lane != name)
        };
        self.tasks.iter().filter(owns).count() as u32
    }

    pub(crate) fn waiting_in(&self, name: &LaneName) -> u32 {
        let waits = |task: &&Task| {
            matches!(task.phase, Phase::Delayed(_) | Phase::Held | Phase::InLine) && task.lanes.contains(name)
        };
        self.tasks.iter().filter(waits).count() as u32
    }

    /// The running tasks in the order of their grants.
    pub(crate) fn running(&self) -> Vec<usize> {
        let mut running: Vec<usize> =
            (0..self.tasks.len()).filter(|index| self.tasks[*index].phase == Phase::Running).collect();
        running.sort_by_key(|index| self.tasks[*index].fence);
        running
    }

    pub(crate) fn children(&self, parent: TaskId) -> Vec<TaskId> {
        let mut children: Vec<&Task> = self.tasks.iter().filter(|task| task.parent == Some(parent)).collect();
        children.sort_by_key(|task| task.arrival);
        children.into_iter().map(|task| task.id).collect()
    }

    pub(crate) fn configure(&mut self, blocks: Vec<Block>) -> Result<Reply, Rejection> {
        for settings in blocks.iter().filter_map(|block| block.settings.as_ref()) {
            settings.check().map_err(|error| Rejection::BadSetting(Box::new(error)))?;
        }
        let before = self.limits();
        for block in &blocks {
            self.blocks.retain(|(pattern, _)| *pattern != block.lanes);
            if let Some(settings) = &block.settings {
                self.blocks.push((block.lanes.clone(), settings.clone()));
            }
        }
        if !blocks.is_empty() {
            self.emit(Event::Configured { blocks });
            self.change_limits(before);
            self.rejoin_all();
        }
        let mut labels: Vec<Pattern> = self.blocks.iter().map(|(pattern, _)| pattern.clone()).collect();
        labels.sort();
        for label in labels {
            let most = self.blocks.iter().find(|(pattern, _)| *pattern == label);
            let most = most.and_then(|block| self.layered(block).dead_letters_max).unwrap_or(1000);
            self.drop_dead_letters(&label, most);
        }
        Ok(Reply::Done)
    }

    /// The lanes in use, each with its rate and whether its slots are limited.
    fn limits(&self) -> Vec<(LaneName, Option<RateLimit>, bool)> {
        let named = self.tasks.iter().flat_map(|task| task.lanes.clone());
        let mut lanes: Vec<LaneName> =
            named.chain(self.buckets.iter().map(|(lane, _)| lane.clone())).collect();
        lanes.sort();
        lanes.dedup();
        let limits = |lane: LaneName| {
            let settings = self.settings(&lane);
            (lane, settings.rate_limit, settings.max_concurrency.is_some())
        };
        lanes.into_iter().map(limits).collect()
    }

    /// A lane owes the same number of grants at its new rate, at most a whole bucket. Where slots became limited or
    /// unlimited, reservations end.
    fn change_limits(&mut self, before: Vec<(LaneName, Option<RateLimit>, bool)>) {
        let now = u128::from(self.now.0) * 1_000_000;
        for (lane, old, was_limited) in before {
            let settings = self.settings(&lane);
            if let Some((_, full_at)) = self.buckets.iter_mut().find(|(other, _)| *other == lane)
                && settings.rate_limit != old
            {
                let cost =
                    |rate: RateLimit| u128::from(rate.per.millis().0) * 1_000_000 / u128::from(rate.max);
                let owed = match (old, settings.rate_limit) {
                    (Some(old), Some(new)) => {
                        let owed = (full_at.saturating_sub(now) * cost(new)).div_ceil(cost(old));
                        owed.min(cost(new) * u128::from(new.max))
                    }
                    _ => 0,
                };
                *full_at = now + owed;
            }
            if settings.max_concurrency.is_some() != was_limited {
                let names_it = |task: &&mut Task| task.lanes.contains(&lane);
                self.tasks.iter_mut().filter(names_it).for_each(|task| task.reserved = false);
            }
        }
    }

    /// The task of a current attempt, if `fence` is its fence.
    fn fenced(&self, task: TaskId, fence: Fence) -> Result<usize, Rejection> {
        if self.find(task).is_none() && self.ended_runs.contains(&task) {
            return Err(Rejection::StaleLease { task, fence });
        }
        let index = self.live(task)?;
        let this = &self.tasks[index];
        let is_current = this.phase == Phase::Running && this.fence == fence;
        if is_current { Ok(index) } else { Err(Rejection::StaleLease { task, fence }) }
    }

    pub(crate) fn heartbeat(&mut self, task: TaskId, fence: Fence) -> Result<Reply, Rejection> {
        let index = self.fenced(task, fence)?;
        let (now, task) = (self.now, &mut self.tasks[index]);
        let stopping = task.stopping.map(|(reason, _)| reason);
        if let Some((reason, until)) = task.stopping
            && !task.is_external()
        {
            return Ok(Reply::Renewed { until, stopping: Some(reason) });
        }
        let lease_until = now + task.lease;
        task.lease_until = lease_until;
        task.stopping = stopping.map(|reason| (reason, lease_until));
        let id = task.id;
        self.emit(Event::Renewed { task: id, fence, lease_until });
        Ok(Reply::Renewed { until: lease_until, stopping })
    }

    pub(crate) fn lapse_now(&mut self, task: TaskId, fence: Fence) -> Result<Reply, Rejection> {
        let index = self.fenced(task, fence)?;
        match self.tasks[index].stopping {
            Some(_) => self.finish_stop(task),
            None => self.lapse(task),
        }
        Ok(Reply::Done)
    }

    pub(crate) fn finish(
        &mut self,
        task: TaskId,
        fence: Fence,
        outcome: Outcome,
    ) -> Result<Reply, Rejection> {
        let index = self.fenced(task, fence)?;
        if self.tasks[index].stopping.is_some() {
            self.finish_stop(task);
            return Ok(Reply::Done);
        }
        match outcome {
            Outcome::Success => self.end(task, End::Completed),
            Outcome::Failure { error, retryable } => {
                self.fail(task, Arc::clone(&error), retryable, End::Failed { error });
            }
            Outcome::Stopped => {
                let error: Arc<str> = "the attempt stopped without an outcome".into();
                self.fail(task, Arc::clone(&error), true, End::Failed { error });
            }
        }
        Ok(Reply::Done)
    }

    pub(crate) fn stop(&mut self, id: TaskId, reason: StopReason) {
        self.cancel_children(id);
        let Some(index) = self.find(id) else { return };
        let now = self.now;
        let task = &mut self.tasks[index];
        let by_itself = if task.is_external() { task.lease_until } else { now + STOP_GRACE };
        let until = task.stopping.map_or(by_itself, |(_, until)| until);
        task.stopping = Some((reason, until));
        let fence = task.fence;
        self.emit(Event::Stopping { task: id, fence, reason, until });
    }

    pub(crate) fn finish_stop(&mut self, id: TaskId) {
        let stopping = self.find(id).and_then(|index| self.tasks[index].stopping);
        match stopping {
            Some((StopReason::Timeout, _)) => {
                self.fail(id, "the attempt took too long".into(), true, End::TimedOut);
            }
            Some((StopReason::Cancelled(reason), _)) => self.end(id, End::Cancelled { reason }),
            None => {}
        }
    }

    pub(crate) fn lapse(&mut self, id: TaskId) {
        let Some(index) = self.find(id) else { return };
        let redeliveries = self.tasks[index].redeliveries;
        if !self.tasks[index].is_external() {
            self.fail(id, "the lease lapsed".into(), true, End::Lost);
        } else if redeliveries < self.home_settings(index).max_redelivery {
            self.cancel_children(id);
            self.give_back(id);
            self.refund(index);
            self.time_wait(index, self.now);
            let task = &mut self.tasks[index];
            task.redeliveries += 1;
            let fence = task.fence;
            self.emit(Event::Redelivered { task: id, fence });
            self.join_line(index);
        } else {
            let error: Arc<str> = format!("the lease lapsed {} times", redeliveries + 1).into();
            self.fail(id, Arc::clone(&error), false, End::Failed { error });
        }
    }

    pub(crate) fn fail(&mut self, id: TaskId, error: Arc<str>, retryable: bool, end: End) {
        self.cancel_children(id);
        let Some(index) = self.find(id) else { return };
        let retry = self.tasks[index].spec.retry.unwrap_or(self.home_settings(index).retry);
        let delay = retry.delay(self.tasks[index].retries + 1, id.0 as u64).filter(|_| retryable);
        let Some(delay) = delay else {
            self.keep_dead_letter(index, error);
            self.end(id, end);
            return;
        };
        self.give_back(id);
        self.refund(index);
        let at = self.now + delay;
        let task = &mut self.tasks[index];
        task.retries += 1;
        task.wait_until = NEVER;
        task.phase = Phase::BackingOff(at);
        let fence = task.fence;
        self.emit(Event::Retrying { task: id, fence, error, at });
    }

    pub(crate) fn end(&mut self, id: TaskId, end: End) {
        self.cancel_children(id);
        if self.tasks.iter().any(|task| task.id == id && task.phase == Phase::Running) {
            self.ended_runs.push(id);
        }
        self.leave_line(id);
        self.give_back(id);
        self.tasks.retain(|task| task.id != id);
        let is_cancelled = matches!(end, End::Cancelled { .. });
        self.keys.retain(|key| key.task != id || !(is_cancelled || key.until_end));
        self.emit(Event::Ended { task: id, end });
        self.release_followers(&[id]);
    }

    /// Tasks that were held behind ended tasks join the line.
    pub(crate) fn release_followers(&mut self, ended: &[TaskId]) {
        for id in ended {
            let held = |task: &&Task| task.phase == Phase::Held && task.after == Some(*id);
            for follower in self.tasks.iter().filter(held).map(|task| task.id).collect::<Vec<_>>() {
                self.release(follower);
            }
        }
    }

    /// Starts the wait timeout of an accepted task at `from`. A timeout of zero does not end it.
    fn time_wait(&mut self, index: usize, from: Timestamp) {
        let wait = self.tasks[index].spec.wait_timeout.or(self.home_settings(index).wait_timeout);
        let wait = wait.filter(|length| length.0 > 0);
        self.tasks[index].wait_until = wait.map_or(NEVER, |length| from + length);
    }

    /// The task before this one has ended; its own delay may still last.
    fn release(&mut self, id: TaskId) {
        let Some(index) = self.find(id) else { return };
        let task = &mut self.tasks[index];
        let run_at = task.submitted + task.spec.run_after.unwrap_or_default();
        if run_at > self.now {
            task.after = None;
            task.phase = Phase::Delayed(run_at);
            self.time_wait(index, run_at);
        } else {
            self.ready(id);
        }
    }

    pub(crate) fn ready(&mut self, id: TaskId) {
        let Some(index) = self.find(id) else { return };
        self.tasks[index].after = None;
        if !matches!(self.tasks[index].phase, Phase::Delayed(_)) {
            self.time_wait(index, self.now);
        }
        self.emit(Event::Ready { task: id });
        self.join_line(index);
    }

    pub(crate) fn cancel_children(&mut self, parent: TaskId) {
        for child in self.children(parent) {
            self.cancel_task(child, CancelReason::Parent);
        }
    }

    /// Returns whether the task only waited.
    pub(crate) fn cancel_task(&mut self, id: TaskId, reason: CancelReason) -> bool {
        let Some(index) = self.find(id) else { return false };
        if self.tasks[index].phase != Phase::Running {
            self.end(id, End::Cancelled { reason });
            return true;
        }
        if !matches!(self.tasks[index].stopping, Some((StopReason::Cancelled(_), _))) {
            self.stop(id, StopReason::Cancelled(reason));
        }
        false
    }

    pub(crate) fn waiting_parent(parent: Option<Parent>) -> Option<TaskId> {
        parent.filter(|parent| !parent.detached).map(|parent| parent.task)
    }

    pub(crate) fn has_kind(task: &Task, kinds: &[Name]) -> bool {
        kinds.is_empty() || kinds.contains(&task.spec.kind)
    }
}
