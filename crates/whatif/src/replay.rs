//! A trace through the real scheduler, on virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use laneway_core::{
    Block, CancelReason, Command, End, Event, Fence, Handler, LaneName, Millis, Name, Pattern, Rejection,
    Reply, Scheduler, TaskId, Timestamp,
};

use crate::export::limits;
use crate::family::Action;
use crate::recorder::outcome;
use crate::script::{Assumptions, RunEnd, Script, task_id};
use crate::timeline::{Fate, Run, TaskTimeline, Timeline};
use crate::trace::{TaskOutcome, Trace};

/// The scheduler does not take the settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the scheduler does not take the settings: {0}")]
pub struct ReplayError(#[source] Rejection);

/// Replays a trace with these settings of lanes. The same trace and settings always give the same result.
///
/// Runs take their recorded time. A run that is asked to stop does so as late as in the recording, or at once. Workers of
/// external lanes are always there. Callers that cancelled cancel again, after the same time. At one moment, runs end
/// first; heartbeats, cancels and arrivals follow.
pub fn replay(trace: &Trace, blocks: Vec<Block>) -> Result<Timeline, ReplayError> {
    let mut replay = Replay::new(trace);
    replay.configure(blocks)?;
    replay.run();
    Ok(replay.into_timeline())
}

/// What will happen, the earliest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: u64,
    what: DueKind,
    task: usize,
    fence: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum DueKind {
    End,
    Heartbeat,
    Cancel,
    Arrive,
}

/// The attempt of a task that runs.
#[derive(Clone, Copy, Debug)]
struct Running {
    fence: Fence,
    attempt: u32,
    lease: Millis,
    end: RunEnd,
    stop_ms: u64,
}

struct Replay<'a> {
    script: Script<'a>,
    scheduler: Scheduler,
    due: BinaryHeap<Reverse<Due>>,
    events: Vec<Event>,
    played: Vec<TaskTimeline>,
    running: Vec<Option<Running>>,
    /// What workers claim from; empty while nothing is external.
    external: Vec<Pattern>,
    worker: Option<Name>,
}

impl<'a> Replay<'a> {
    fn new(trace: &'a Trace) -> Replay<'a> {
        let script = Script::new(trace);
        let free = (0..trace.arrivals.len()).filter(|task| script.asked_by(*task).is_none());
        let arrive = |task: usize| {
            Reverse(Due { at: trace.arrivals[task].at_ms, what: DueKind::Arrive, task, fence: 0 })
        };
        Replay {
            due: free.map(arrive).collect(),
            scheduler: Scheduler::new(0),
            events: Vec::new(),
            played: trace.arrivals.iter().map(TaskTimeline::to_come).collect(),
            running: vec![None; trace.arrivals.len()],
            external: Vec::new(),
            worker: Name::new("what-if").ok(),
            script,
        }
    }

    fn configure(&mut self, blocks: Vec<Block>) -> Result<(), ReplayError> {
        let first = self.script.arrivals.first().map_or(0, |arrival| arrival.at_ms);
        let configured = self.step(first, Command::Configure(blocks));
        configured.map(drop).map_err(ReplayError)
    }

    fn run(&mut self) {
        let mut ticked = None;
        loop {
            // A tick that changed nothing is not repeated at the same time.
            let least = ticked.map_or(0, |last: u64| last + 1).max(self.now());
            let wakeup = self.scheduler.next_wakeup().map(|at| at.0.max(least));
            let next = self.due.peek().map(|Reverse(due)| due.at);
            match (next, wakeup) {
                (Some(at), wakeup) if wakeup.is_none_or(|wakeup| at <= wakeup) => {
                    if let Some(Reverse(due)) = self.due.pop() {
                        self.run_due(due);
                    }
                }
                (None, _) if self.scheduler.live_tasks() == 0 => return,
                (_, Some(at)) if at <= Timestamp::MAX.0 => {
                    ticked = Some(at);
                    // A tick is never refused.
                    drop(self.step(at, Command::Tick));
                }
                _ => return,
            }
        }
    }

    fn now(&self) -> u64 {
        self.scheduler.now().0
    }

    /// One step, what follows from it, and the claims of workers for what may run then.
    fn step(&mut self, at: u64, command: Command) -> Result<Reply, Rejection> {
        let reply = self.scheduler.step(Timestamp(at), command, &mut self.events);
        self.take_events();
        while let (false, Some(worker)) = (self.external.is_empty(), self.worker.clone()) {
            let (lanes, kinds) = (self.external.clone(), Vec::new());
            let claim = Command::Claim { worker, lanes, kinds, max: u32::MAX, lease: None };
            let claimed = self.scheduler.step(Timestamp(at), claim, &mut self.events);
            self.take_events();
            if !matches!(claimed, Ok(Reply::Claimed(tasks)) if !tasks.is_empty()) {
                break;
            }
        }
        reply
    }

    fn push(&mut self, at: u64, what: DueKind, task: usize, fence: u64) {
        self.due.push(Reverse(Due { at, what, task, fence }));
    }

    fn run_due(&mut self, due: Due) {
        let running = self.running[due.task].filter(|running| running.fence.0 == due.fence);
        match (due.what, running) {
            (DueKind::Arrive, _) => self.arrive(due),
            (DueKind::Cancel, _) => {
                let cancel = Command::Cancel { task: task_id(due.task), reason: CancelReason::Caller };
                // A task that has ended refuses it, which is fine.
                drop(self.step(due.at, cancel));
            }
            (DueKind::End, Some(running)) => {
                // The lease is the attempt's own, so nothing is refused.
                drop(self.step(due.at, running.end.command(due.task, running.fence)));
            }
            (DueKind::Heartbeat, Some(running)) => {
                let heartbeat = Command::Heartbeat { task: task_id(due.task), fence: running.fence };
                drop(self.step(due.at, heartbeat));
                self.push(due.at + half(running.lease), DueKind::Heartbeat, due.task, due.fence);
            }
            (DueKind::End | DueKind::Heartbeat, None) => {}
        }
    }

    fn arrive(&mut self, due: Due) {
        let task = due.task;
        let is_asked = self.script.asked_by(task).is_none_or(|asked| {
            self.running[asked.parent].is_some_and(|running| running.attempt == asked.attempt)
        });
        if !is_asked {
            return;
        }
        let arrival = &self.script.arrivals[task];
        let is_live = |other: usize| self.scheduler.task(task_id(other)).is_some();
        let spec = self.script.spec(task, is_live);
        self.played[task].arrived = due.at;
        self.played[task].ready = due.at + arrival.run_after_ms.unwrap_or_default();
        self.played[task].fate = Fate::Accepted(TaskOutcome::Live);
        let is_own_wish =
            arrival.outcome == TaskOutcome::Cancelled && arrival.reason.as_deref() != Some("parent");
        if let Some(ended) = arrival.ended_ms.filter(|_| is_own_wish) {
            self.push(due.at + ended, DueKind::Cancel, task, 0);
        }
        match self.step(due.at, Command::Submit { task: task_id(task), spec: Box::new(spec) }) {
            Ok(_) => {}
            Err(Rejection::ParentNotRunning { .. }) => self.played[task].fate = Fate::Unasked,
            Err(rejection) => {
                self.played[task].fate = Fate::Refused(rejection.code().to_owned());
                self.notify_parent(task);
            }
        }
    }

    fn take_events(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        for event in events.drain(..) {
            match event {
                Event::Submitted { spec, handler: Handler::External, .. } => self.expect_workers(&spec.lanes),
                Event::Granted { task, attempt, fence, lease_until, lease, borrowed, .. } => {
                    let task = place(task);
                    self.start(
                        task,
                        Running { fence, attempt, lease, end: RunEnd::Success, stop_ms: 0 },
                        borrowed,
                    );
                    self.push(lease_until.0 - lease.0 + half(lease), DueKind::Heartbeat, task, fence.0);
                }
                Event::Stopping { task, fence, .. } => {
                    let stop_ms = self.running[place(task)].map_or(0, |running| running.stop_ms);
                    self.push(self.now() + stop_ms, DueKind::End, place(task), fence.0);
                }
                Event::Retrying { task, .. } | Event::Redelivered { task, .. } => self.stop(place(task)),
                Event::Ended { task, end } => self.end(place(task), &end),
                _ => {}
            }
        }
        self.events = events;
    }

    /// Workers claim from all lanes; a star in a pattern does not stand for a slash.
    fn expect_workers(&mut self, lanes: &[LaneName]) {
        let slashes = lanes.first().map_or(0, |home| home.as_str().matches('/').count());
        while self.external.len() <= slashes {
            let Ok(pattern) = Pattern::new(format!("*{}", "/*".repeat(self.external.len()))) else { return };
            self.external.push(pattern);
        }
    }

    fn start(&mut self, task: usize, mut running: Running, borrowed: Vec<u8>) {
        let now = self.now();
        let act = self.script.act(task, running.attempt);
        (running.end, running.stop_ms) = (act.end, act.stop_ms);
        self.running[task] = Some(running);
        self.played[task].runs.push(Run { start: now, end: now, borrowed });
        match self.script.families.get_mut(&(task, running.attempt)) {
            None => self.push(now + act.run_ms, DueKind::End, task, running.fence.0),
            Some(family) => {
                let actions = family.begin(now);
                self.schedule(task, running.fence, actions);
            }
        }
    }

    fn schedule(&mut self, task: usize, fence: Fence, actions: Vec<(u64, Action)>) {
        for (at, action) in actions {
            match action {
                Action::Submit(child) => self.push(at, DueKind::Arrive, child, 0),
                Action::End => self.push(at, DueKind::End, task, fence.0),
            }
        }
    }

    /// An attempt is over.
    fn stop(&mut self, task: usize) {
        let now = self.now();
        if self.running[task].take().is_some()
            && let Some(run) = self.played[task].runs.last_mut()
        {
            run.end = now;
        }
    }

    fn end(&mut self, task: usize, end: &End) {
        self.stop(task);
        self.played[task].ended = Some(self.now());
        self.played[task].fate = Fate::Accepted(outcome(end).0);
        self.notify_parent(task);
    }

    fn notify_parent(&mut self, task: usize) {
        let now = self.now();
        let Some(asked) = self.script.asked_by(task) else { return };
        let running = self.running[asked.parent].filter(|running| running.attempt == asked.attempt);
        let family = self.script.families.get_mut(&(asked.parent, asked.attempt));
        if let (Some(running), Some(family)) = (running, family) {
            let actions = family.child_over(task, now);
            self.schedule(asked.parent, running.fence, actions);
        }
    }

    fn into_timeline(mut self) -> Timeline {
        for task in 0..self.played.len() {
            self.stop(task);
        }
        let unasked = self.played.iter().filter(|task| task.fate == Fate::Unasked).count() as u64;
        let assumptions = Assumptions { unasked, ..self.script.assumptions };
        let limits = limits(&self.scheduler, self.script.arrivals);
        Timeline { tasks: self.played, limits, assumptions: Some(assumptions) }
    }
}

fn place(task: TaskId) -> usize {
    usize::try_from(task.0.saturating_sub(1)).unwrap_or(usize::MAX)
}

fn half(lease: Millis) -> u64 {
    (lease.0 / 2).max(1)
}
