//! A trace through the real scheduler, on virtual time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::fmt;

use laneway_core::{
    Block, CancelReason, Command, End, Event, Fence, Handler, LaneName, Millis, Name, Pattern, Rejection,
    Reply, Scheduler, TaskId, Timestamp,
};

use crate::family::Deed;
use crate::played::{Fate, Played, PlayedTask, Run};
use crate::script::{RunEnd, Script, task_id};
use crate::trace::{TaskOutcome, Trace};

/// Why a trace could not be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayError(Rejection);

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the scheduler does not take the settings: {}", self.0)
    }
}

impl std::error::Error for ReplayError {}

/// Replays a trace with these settings of lanes. The same trace and settings give the same answer, always.
///
/// Runs take their recorded time; a run that is told to stop does so at once, or
/// as late as it did in the recording; workers of external lanes are always
/// there; callers who cancelled cancel again, as long after they asked. What happens at one moment happens in this order:
/// runs end, signs of life, cancels, arrivals.
pub fn replay(trace: &Trace, blocks: Vec<Block>) -> Result<Played, ReplayError> {
    let mut replay = Replay::new(trace);
    replay.configure(blocks)?;
    replay.run();
    Ok(replay.into_played())
}

/// What is to come, the earliest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: u64,
    what: What,
    task: usize,
    fence: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    End,
    SignOfLife,
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
    played: Vec<PlayedTask>,
    running: Vec<Option<Running>>,
    /// What workers claim from; empty while nothing is external.
    external: Vec<Pattern>,
    worker: Option<Name>,
}

impl<'a> Replay<'a> {
    fn new(trace: &'a Trace) -> Replay<'a> {
        let script = Script::new(trace);
        let free = (0..trace.arrivals.len()).filter(|task| script.asked_by(*task).is_none());
        let arrive =
            |task: usize| Reverse(Due { at: trace.arrivals[task].at_ms, what: What::Arrive, task, fence: 0 });
        Replay {
            due: free.map(arrive).collect(),
            scheduler: Scheduler::new(0),
            events: Vec::new(),
            played: trace.arrivals.iter().map(PlayedTask::to_come).collect(),
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
        let mut looked = None;
        loop {
            // A look at the clock that changed nothing is not repeated at the same time.
            let least = looked.map_or(0, |last: u64| last + 1).max(self.now());
            let wakeup = self.scheduler.next_wakeup().map(|at| at.0.max(least));
            let next = self.due.peek().map(|Reverse(due)| due.at);
            match (next, wakeup) {
                (Some(at), wakeup) if wakeup.is_none_or(|wakeup| at <= wakeup) => {
                    if let Some(Reverse(due)) = self.due.pop() {
                        self.carry_out(due);
                    }
                }
                (None, _) if self.scheduler.live_tasks() == 0 => return,
                (_, Some(at)) if at <= Timestamp::MAX.0 => {
                    looked = Some(at);
                    // Nothing can be wrong with a look at the clock.
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

    fn push(&mut self, at: u64, what: What, task: usize, fence: u64) {
        self.due.push(Reverse(Due { at, what, task, fence }));
    }

    fn carry_out(&mut self, due: Due) {
        let running = self.running[due.task].filter(|running| running.fence.0 == due.fence);
        match (due.what, running) {
            (What::Arrive, _) => self.arrive(due),
            (What::Cancel, _) => {
                let cancel = Command::Cancel { task: task_id(due.task), reason: CancelReason::Caller };
                // It may be over already, and then nobody minds.
                drop(self.step(due.at, cancel));
            }
            (What::End, Some(running)) => {
                // The lease is the attempt's own, so nothing is refused.
                drop(self.step(due.at, running.end.command(due.task, running.fence)));
            }
            (What::SignOfLife, Some(running)) => {
                let sign = Command::Heartbeat { task: task_id(due.task), fence: running.fence };
                drop(self.step(due.at, sign));
                self.push(due.at + half(running.lease), What::SignOfLife, due.task, due.fence);
            }
            (What::End | What::SignOfLife, None) => {}
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
            self.push(due.at + ended, What::Cancel, task, 0);
        }
        match self.step(due.at, Command::Submit { task: task_id(task), spec: Box::new(spec) }) {
            Ok(_) => {}
            Err(Rejection::ParentNotRunning { .. }) => self.played[task].fate = Fate::Unasked,
            Err(rejection) => {
                self.played[task].fate = Fate::Refused(rejection.code().to_owned());
                self.tell_parent(task);
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
                    self.push(lease_until.0 - lease.0 + half(lease), What::SignOfLife, task, fence.0);
                }
                Event::Stopping { task, fence, .. } => {
                    let stop_ms = self.running[place(task)].map_or(0, |running| running.stop_ms);
                    self.push(self.now() + stop_ms, What::End, place(task), fence.0);
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
            None => self.push(now + act.run_ms, What::End, task, running.fence.0),
            Some(family) => {
                let deeds = family.begin(now);
                self.intend(task, running.fence, deeds);
            }
        }
    }

    fn intend(&mut self, task: usize, fence: Fence, deeds: Vec<(u64, Deed)>) {
        for (at, deed) in deeds {
            match deed {
                Deed::Ask(child) => self.push(at, What::Arrive, child, 0),
                Deed::End => self.push(at, What::End, task, fence.0),
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
        self.played[task].fate = Fate::Accepted(match end {
            End::Completed => TaskOutcome::Completed,
            End::Failed { .. } => TaskOutcome::Failed,
            End::TimedOut => TaskOutcome::TimedOut,
            End::Cancelled { .. } => TaskOutcome::Cancelled,
            End::Expired => TaskOutcome::Expired,
            End::WaitTimeout => TaskOutcome::WaitTimeout,
            End::Lost => TaskOutcome::Lost,
        });
        self.tell_parent(task);
    }

    fn tell_parent(&mut self, task: usize) {
        let now = self.now();
        let Some(asked) = self.script.asked_by(task) else { return };
        let running = self.running[asked.parent].filter(|running| running.attempt == asked.attempt);
        let family = self.script.families.get_mut(&(asked.parent, asked.attempt));
        if let (Some(running), Some(family)) = (running, family) {
            let deeds = family.child_over(task, now);
            self.intend(asked.parent, running.fence, deeds);
        }
    }

    fn into_played(mut self) -> Played {
        for task in 0..self.played.len() {
            self.stop(task);
        }
        let unasked = self.played.iter().filter(|task| task.fate == Fate::Unasked).count() as u64;
        let assumptions = crate::script::Assumptions { unasked, ..self.script.assumptions };
        let lanes: BTreeSet<&LaneName> =
            self.script.arrivals.iter().flat_map(|arrival| &arrival.lanes).collect();
        let shared = lanes.into_iter().filter(|lane| !lane.as_str().starts_with("session:")).cloned();
        let shared = shared.chain([LaneName::global(), LaneName::main()]);
        let limit =
            |lane: LaneName| Some((lane.clone(), self.scheduler.settings_for(&lane).max_concurrency?));
        let limits: BTreeMap<LaneName, u32> = shared.filter_map(limit).collect();
        Played { tasks: self.played, limits, assumptions: Some(assumptions) }
    }
}

fn place(task: TaskId) -> usize {
    usize::try_from(task.0.saturating_sub(1)).unwrap_or(usize::MAX)
}

fn half(lease: Millis) -> u64 {
    (lease.0 / 2).max(1)
}
