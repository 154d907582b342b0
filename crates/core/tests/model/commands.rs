//! The naive scheduler's replies to commands.

use laneway_core::{
    BadTask, CHAIN_DEPTH_MAX, CancelReason, Command, DeadLetterRemoval, End, Event, Gate, KEY_WINDOW,
    LaneFull, LaneName, Millis, Owner, Parent, Rejection, Reply, Selector, StopReason, TaskId, TaskSpec,
    Timestamp,
};

use crate::naive::{Key, NEVER, Naive, Phase, Task};

impl Naive {
    pub(crate) fn step(&mut self, now: Timestamp, command: Command) -> Result<Reply, Rejection> {
        if now < self.now {
            return Err(Rejection::ClockWentBack { now, last: self.now });
        }
        self.now = now;
        self.expire();
        let reply = self.decide(command);
        if reply.is_ok() {
            self.expire();
        }
        self.settle();
        reply
    }

    fn decide(&mut self, command: Command) -> Result<Reply, Rejection> {
        match command {
            Command::Configure(blocks) => self.configure(blocks),
            Command::Submit { task, spec } => self.submit(task, *spec),
            Command::Leave { task } => self.leave(task),
            Command::Cancel { task, reason } => self.cancel(task, reason),
            Command::CancelWaiting { which, reason } => Ok(self.cancel_waiting(&which, reason)),
            Command::Reprioritise { task, priority } => self.reprioritise(task, priority),
            Command::Claim { worker, lanes, kinds, max, lease } => {
                if lanes.is_empty() || max == 0 {
                    return Err(Rejection::BadTask(BadTask::EmptyClaim));
                }
                let fits = |task: &Task| {
                    lanes.iter().any(|pattern| pattern.matches(task.home())) && Naive::has_kind(task, &kinds)
                };
                let mut claimed = vec![];
                while claimed.len() < max as usize
                    && let Some(index) = self.best_external(fits)
                {
                    claimed.push(self.tasks[index].id);
                    self.start(index, Owner::Worker(worker.clone()), lease);
                }
                Ok(Reply::Claimed(claimed))
            }
            Command::Heartbeat { task, fence } => self.heartbeat(task, fence),
            Command::Lapse { task, fence } => self.lapse_now(task, fence),
            Command::Finish { task, fence, outcome, .. } => self.finish(task, fence, outcome),
            Command::ForceRelease { lane } => Ok(self.force_release(&lane)),
            Command::Pause { lane } => Ok(self.pause(lane)),
            Command::Resume { lane } => Ok(self.set_gate(lane, Gate::OPEN)),
            Command::Drain { lane } => {
                let gate = Gate { draining: true, ..self.gate(&lane) };
                Ok(self.set_gate(lane, gate))
            }
            Command::Redrive { dead_letter: letter, task } => {
                let dead = self.dead_letters.iter().find(|dead| dead.task == letter);
                let spec = dead.ok_or(Rejection::NoSuchDeadLetter { dead_letter: letter })?.spec.clone();
                let reply = self.submit(task, spec)?;
                self.dead_letters.retain(|dead| dead.task != letter);
                self.emit(Event::DeadLetterRemoved {
                    dead_letter: letter,
                    why: DeadLetterRemoval::Redriven(task),
                });
                Ok(reply)
            }
            Command::Discard { dead_letter: letter } => {
                let is_known = self.dead_letters.iter().any(|dead| dead.task == letter);
                is_known.then_some(()).ok_or(Rejection::NoSuchDeadLetter { dead_letter: letter })?;
                self.dead_letters.retain(|dead| dead.task != letter);
                self.emit(Event::DeadLetterRemoved {
                    dead_letter: letter,
                    why: DeadLetterRemoval::Discarded,
                });
                Ok(Reply::Done)
            }
            _ => Ok(Reply::Done),
        }
    }

    fn submit(&mut self, id: TaskId, spec: TaskSpec) -> Result<Reply, Rejection> {
        if let Some(asked) = &spec.idempotency
            && let Some(known) = self.keys.iter().find(|known| known.key == asked.key)
            && !self.is_being_cancelled(known.task)
        {
            let task = known.task;
            if known.fingerprint != asked.fingerprint {
                return Err(Rejection::KeyConflict { task });
            }
            if let Some(index) = self.find(task) {
                self.tasks[index].joined += 1;
                self.emit(Event::Joined { task });
            }
            return Ok(Reply::Accepted { task, joined: true });
        }
        if self.find(id).is_some() || self.dead_letters.iter().any(|letter| letter.task == id) {
            return Err(Rejection::IdTaken { task: id });
        }
        if spec.after.is_some_and(|after| self.find(after).is_none()) {
            return Err(Rejection::BadTask(BadTask::After));
        }
        let depth = self.check_chain(&spec)?;
        let deadline = self.deadline_of(&spec)?;
        let lanes = lanes_of(&spec);
        let home = self.settings(&lanes[0]);
        self.check_lanes(&spec, &lanes)?;
        let wait = spec.wait_timeout.or(home.wait_timeout);
        // An accepted task that may not wait starts in this step.
        let waits_from = self.now + spec.run_after.unwrap_or_default();
        // A task that is held behind another does not wait yet.
        let wait = wait.filter(|length| length.0 > 0 && spec.after.is_none());
        let wait_until = wait.map(|length| waits_from + length);
        let of_source = home.priorities.or(self.settings(&LaneName::global()).priorities).unwrap_or_default();
        let priority = spec.priority.or(home.priority).unwrap_or(of_source.of(spec.source));
        let handler = home.handler;
        let boxed = Box::new(spec.clone());
        self.emit(Event::Submitted { task: id, spec: boxed, priority, handler, wait_until, deadline });
        if let Some(asked) = &spec.idempotency {
            let until = self.now + KEY_WINDOW;
            let laneway_core::Idempotency { key, fingerprint, until_end } = asked.clone();
            self.keys.retain(|known| known.key != key);
            self.keys.push(Key { key, task: id, fingerprint, until, until_end });
        }
        let mut task = new_task(id, spec, lanes, self.arrivals, self.now);
        task.depth = depth;
        (task.priority, task.handler) = (priority, handler);
        task.wait_until = wait_until.unwrap_or(NEVER);
        task.deadline = deadline.unwrap_or(NEVER);
        self.arrivals += 1;
        let run_after = task.spec.run_after.filter(|length| length.0 > 0);
        let is_held = task.after.is_some();
        task.phase =
            run_after.filter(|_| !is_held).map_or(Phase::Held, |length| Phase::Delayed(self.now + length));
        self.tasks.push(task);
        if !is_held && run_after.is_none() {
            self.join_line(self.tasks.len() - 1);
        }
        Ok(Reply::Accepted { task: id, joined: false })
    }

    fn is_being_cancelled(&self, task: TaskId) -> bool {
        let live = self.tasks.iter().find(|live| live.id == task);
        live.is_some_and(|live| {
            live.phase == Phase::Running && matches!(live.stopping, Some((StopReason::Cancelled(_), _)))
        })
    }

    /// The depth of a new task in its chain, if its parent may submit it.
    fn check_chain(&self, spec: &TaskSpec) -> Result<u8, Rejection> {
        let Some(Parent { task, detached }) = spec.parent else { return Ok(1) };
        let running = self.find(task).map(|index| &self.tasks[index]);
        let running = running
            .filter(|parent| parent.phase == Phase::Running && (detached || parent.stopping.is_none()));
        let parent = running.ok_or(Rejection::ParentNotRunning { task })?;
        if detached {
            return Ok(1);
        }
        if parent.depth >= CHAIN_DEPTH_MAX {
            return Err(Rejection::ChainTooDeep);
        }
        for ancestor in self.ancestors(Naive::waiting_parent(spec.parent)) {
            let holder = &self.tasks[ancestor];
            let session = holder.lanes.iter().find(|lane| lane.is_session() && spec.lanes.contains(lane));
            if let Some(lane) = session {
                return Err(Rejection::WouldDeadlock {
                    lane: lane.clone(),
                    label: "".into(),
                    holder: holder.id,
                });
            }
        }
        Ok(parent.depth + 1)
    }

    fn deadline_of(&self, spec: &TaskSpec) -> Result<Option<Timestamp>, Rejection> {
        let parent = Naive::waiting_parent(spec.parent).and_then(|parent| self.find(parent));
        let inherited = parent.map(|parent| self.tasks[parent].deadline).filter(|at| *at < NEVER);
        let own = spec.deadline.map(|length| self.now + length);
        let deadline = own.into_iter().chain(inherited).min();
        let starts_in = spec.run_after.unwrap_or_default();
        match deadline {
            Some(at) if at <= self.now + starts_in => {
                Err(Rejection::DeadlineUnmeetable { starts_in, deadline: at.since(self.now) })
            }
            _ => Ok(deadline),
        }
    }

    /// Whether such a new task could not start at once.
    pub(crate) fn must_wait(&self, spec: &TaskSpec) -> bool {
        let lanes = lanes_of(spec);
        let is_external = self.settings(&lanes[0]).handler == laneway_core::Handler::External;
        let is_delayed = spec.run_after.is_some_and(|length| length.0 > 0) || spec.after.is_some();
        is_external || is_delayed || self.first_closed(spec, &lanes).is_some()
    }

    fn all_closed(&self, spec: &TaskSpec, lanes: &[LaneName]) -> Vec<LaneName> {
        let parent = Naive::waiting_parent(spec.parent);
        let is_lent = |lane: &LaneName| self.is_passable(lane) && self.lender(parent, lane).is_some();
        lanes.iter().filter(|lane| !self.is_open(lane) && !is_lent(lane)).cloned().collect()
    }

    fn first_closed(&self, spec: &TaskSpec, lanes: &[LaneName]) -> Option<LaneName> {
        self.all_closed(spec, lanes).into_iter().next()
    }

    fn check_lanes(&self, spec: &TaskSpec, lanes: &[LaneName]) -> Result<(), Rejection> {
        let is_child = Naive::waiting_parent(spec.parent).is_some();
        let draining = lanes.iter().find(|lane| self.gate(lane).draining && !is_child);
        if let Some(lane) = draining {
            return Err(Rejection::LaneDraining { lane: lane.clone(), label: "".into() });
        }
        if !self.must_wait(spec) {
            return Ok(());
        }
        let wait = spec.wait_timeout.or(self.settings(&lanes[0]).wait_timeout);
        if wait == Some(Millis(0)) {
            let closed = self.first_closed(spec, lanes);
            let is_busy = closed.is_some();
            return Err(self.lane_full(&closed.unwrap_or_else(|| lanes[0].clone()), is_busy, None));
        }
        let is_full = |lane: &&LaneName| self.waiting_in(lane) >= self.settings(lane).max_queued;
        let closed = self.all_closed(spec, lanes);
        match closed.iter().find(is_full).or_else(|| lanes.iter().find(is_full)) {
            Some(full) => {
                let blocked_by = closed.first().filter(|_| !closed.contains(full)).cloned();
                Err(self.lane_full(full, false, blocked_by))
            }
            None => self.check_deadlock(spec, lanes),
        }
    }

    fn lane_full(&self, lane: &LaneName, is_busy: bool, blocked_by: Option<LaneName>) -> Rejection {
        let settings = self.settings(lane);
        let mut running = self.running().into_iter().map(|index| &self.tasks[index]);
        Rejection::LaneFull(Box::new(LaneFull {
            lane: lane.clone(),
            running: self.running_in(lane),
            max_concurrency: settings.max_concurrency,
            waiting: self.waiting_in(lane),
            max_queued: settings.max_queued,
            is_busy,
            blocked_by,
            current: running.find(|task| task.lanes.contains(lane)).map(|task| task.id),
            retry_after: Millis(0),
            every: Millis(0),
            label: None,
        }))
    }

    fn leave(&mut self, task: TaskId) -> Result<Reply, Rejection> {
        let index = self.live(task)?;
        if self.tasks[index].joined > 0 {
            self.tasks[index].joined -= 1;
            self.emit(Event::Left { task });
            return Ok(Reply::Done);
        }
        self.cancel(task, CancelReason::Caller)
    }

    fn cancel(&mut self, task: TaskId, reason: CancelReason) -> Result<Reply, Rejection> {
        self.live(task)?;
        let waited = self.cancel_task(task, reason);
        Ok(if waited { Reply::CancelledWhileWaiting } else { Reply::Stopping })
    }

    fn cancel_waiting(&mut self, which: &Selector, reason: CancelReason) -> Reply {
        let fits = |task: &&Task| {
            task.phase != Phase::Running
                && which.lane.as_ref().is_none_or(|lane| task.lanes.contains(lane))
                && which.kind.as_ref().is_none_or(|kind| task.spec.kind == *kind)
                && which.group.as_ref().is_none_or(|group| task.spec.group.as_ref() == Some(group))
        };
        let tasks: Vec<TaskId> = self.tasks.iter().filter(fits).map(|task| task.id).collect();
        for task in &tasks {
            self.leave_line(*task);
            self.tasks.retain(|other| other.id != *task);
            self.keys.retain(|key| key.task != *task);
            self.emit(Event::Ended { task: *task, end: End::Cancelled { reason } });
        }
        self.release_followers(&tasks);
        Reply::Cancelled(tasks.len())
    }

    fn reprioritise(&mut self, task: TaskId, priority: u8) -> Result<Reply, Rejection> {
        let index = self.live(task)?;
        if self.tasks[index].phase == Phase::Running {
            return Err(Rejection::NotWaiting { task });
        }
        if self.tasks[index].priority != priority {
            (self.tasks[index].priority, self.tasks[index].aged) = (priority, 0);
            self.emit(Event::Reprioritised { task, priority });
            if self.tasks[index].phase == Phase::InLine {
                self.plan_look(index);
            }
        }
        Ok(Reply::Done)
    }

    fn force_release(&mut self, lane: &LaneName) -> Reply {
        let running = self.running().into_iter().map(|index| &self.tasks[index]);
        let tasks: Vec<TaskId> =
            running.filter(|task| task.lanes.contains(lane)).map(|task| task.id).collect();
        for task in &tasks {
            if self.find(*task).is_some() {
                self.end(*task, End::Cancelled { reason: CancelReason::Released });
            }
        }
        Reply::Released(tasks)
    }

    fn pause(&mut self, lane: LaneName) -> Reply {
        let gate = self.gate(&lane);
        if !gate.paused {
            let keeps = |task: &&mut Task| task.lanes.contains(&lane);
            self.tasks.iter_mut().filter(keeps).for_each(|task| task.reserved = false);
            self.gates.retain(|(other, _)| *other != lane);
            self.emit(Event::Paused { lane: lane.clone() });
            self.gates.push((lane, Gate { paused: true, ..gate }));
        }
        Reply::Done
    }

    /// Drains or resumes a lane.
    fn set_gate(&mut self, lane: LaneName, gate: Gate) -> Reply {
        if self.gate(&lane) == gate {
            return Reply::Done;
        }
        self.gates.retain(|(other, _)| *other != lane);
        self.reported
            .iter_mut()
            .filter(|(other, _)| *other == lane)
            .for_each(|(_, reported)| reported.drained = false);
        let event = if gate.draining {
            Event::Draining { lane: lane.clone() }
        } else {
            Event::Resumed { lane: lane.clone() }
        };
        self.emit(event);
        if gate != Gate::OPEN {
            self.gates.push((lane, gate));
        }
        Reply::Done
    }
}

/// Each lane once, `main` for none, and `global` last unless it is the home lane.
fn lanes_of(spec: &TaskSpec) -> Vec<LaneName> {
    let mut lanes: Vec<LaneName> = vec![];
    let main = spec.lanes.is_empty().then(LaneName::main);
    for lane in spec.lanes.iter().cloned().chain(main) {
        if !lanes.contains(&lane) && (lanes.is_empty() || lane != LaneName::global()) {
            lanes.push(lane);
        }
    }
    if lanes[0] != LaneName::global() {
        lanes.push(LaneName::global());
    }
    lanes
}

fn new_task(id: TaskId, spec: TaskSpec, lanes: Vec<LaneName>, arrival: u64, now: Timestamp) -> Task {
    Task {
        id,
        parent: Naive::waiting_parent(spec.parent),
        after: spec.after,
        spec,
        lanes,
        depth: 1,
        arrival,
        submitted: now,
        since: now,
        wait_until: NEVER,
        deadline: NEVER,
        look_at: NEVER,
        phase: Phase::Held,
        handler: laneway_core::Handler::Internal,
        priority: 0,
        aged: 0,
        boosted: 0,
        noticed: false,
        attempts: 0,
        retries: 0,
        redeliveries: 0,
        joined: 0,
        key: None,
        passed: 0,
        blocked: vec![],
        taken: vec![],
        reserved: false,
        fence: laneway_core::Fence(0),
        lease: Millis(0),
        lease_until: NEVER,
        timeout_at: NEVER,
        stopping: None,
        borrowed: vec![],
    }
}
