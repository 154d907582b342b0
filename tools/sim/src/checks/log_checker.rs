//! Checks every batch of the log when it is written, with counts of its own.

use std::collections::{BTreeMap, BTreeSet};

use laneway_core::{
    Command, End, Event, Handler, LaneName, MessageId, Owner, ReplicaId, Scheduler, SessionDelta, Snapshot,
    TaskId, TaskSpec, Timestamp,
};
use laneway_store::{Batch, Head};

use crate::checks::message_order::MessageOrder;

/// The log as it is, and what follows from it.
pub(crate) struct Checker {
    /// The state that the log leads to.
    pub(crate) scheduler: Scheduler,
    pub(crate) head: Head,
    last_at: Timestamp,
    last_fence: u64,
    pub(crate) live: BTreeMap<TaskId, Seen>,
    pub(crate) ended: BTreeMap<TaskId, End>,
    /// How tasks ended in parts that the log has lost: that may be told once more.
    pub(crate) forgotten: BTreeMap<TaskId, End>,
    /// Under which fence tasks ended that ran when they did.
    pub(crate) ended_under: BTreeMap<TaskId, u64>,
    /// Every attempt that was granted, and by whose batch.
    pub(crate) grants: BTreeMap<(TaskId, u64), u64>,
    running: BTreeMap<LaneName, u32>,
    /// The arrival of the turn that each conversation started last.
    last_started: BTreeMap<LaneName, u64>,
    /// The messages that were accepted, and whether they have ended.
    pub(crate) messages: BTreeMap<MessageId, bool>,
    talks: MessageOrder,
    accepted: u64,
    /// What the last batch shows that must not be.
    pub(crate) wrong: Vec<String>,
    /// The attempts whose leases lapsed with the last batch.
    pub(crate) lapses: Vec<Lapse>,
}

/// A live task.
pub(crate) struct Seen {
    pub(crate) lanes: Vec<LaneName>,
    /// Who executes it, if that was fixed when it was accepted.
    owner: Option<Owner>,
    /// Who has its caller.
    pub(crate) caller_at: Option<ReplicaId>,
    pub(crate) is_external: bool,
    arrival: u64,
    attempts: u32,
    pub(crate) run: Option<Run>,
}

/// A live attempt.
#[derive(Clone)]
pub(crate) struct Run {
    pub(crate) fence: u64,
    pub(crate) owner: Owner,
    counted: Vec<LaneName>,
    pub(crate) is_stopping: bool,
}

/// A lease that was not renewed in time.
pub(crate) struct Lapse {
    pub(crate) task: TaskId,
    pub(crate) fence: u64,
    pub(crate) owner: Owner,
}

impl Seen {
    /// Whose slot it is, if it is one.
    pub(crate) fn slot_of(&self) -> Option<ReplicaId> {
        self.owner.as_ref().and_then(Owner::replica)
    }
}

impl Checker {
    pub(crate) fn new() -> Checker {
        Checker {
            scheduler: Scheduler::new(0),
            head: Head::EMPTY,
            last_at: Timestamp(0),
            last_fence: 0,
            live: BTreeMap::new(),
            ended: BTreeMap::new(),
            forgotten: BTreeMap::new(),
            ended_under: BTreeMap::new(),
            grants: BTreeMap::new(),
            running: BTreeMap::new(),
            last_started: BTreeMap::new(),
            messages: BTreeMap::new(),
            talks: MessageOrder::default(),
            accepted: 0,
            wrong: Vec::new(),
            lapses: Vec::new(),
        }
    }

    /// Takes up one more batch.
    pub(crate) fn take(&mut self, head: Head, batch: &Batch) {
        self.wrong.clear();
        self.lapses.clear();
        let author = (batch.id.0 >> 64) as u64;
        if batch.at < self.last_at {
            self.wrong(format!("time went back from {} to {}", self.last_at.0, batch.at.0));
        }
        (self.last_at, self.head) = (self.last_at.max(batch.at), head);
        for event in &batch.events {
            self.scheduler.apply(batch.at, event);
            self.event(author, event);
        }
        self.scheduler.advance_to(batch.at);
    }

    /// Looks at the whole state.
    pub(crate) fn look(&mut self) {
        let mut violation = self.scheduler.violation();
        if violation.as_ref().is_some_and(|text| text.contains("looks for")) {
            // A deciding replica removes stale looks, and here none decides. A scheduler restored from the state has
            // none, and everything else about it is checked, now and from here on.
            self.scheduler = Scheduler::restore(0, &self.state());
            violation = self.scheduler.violation();
        }
        if let Some(violation) = violation {
            self.wrong(format!("the state is not sound: {violation}"));
        }
    }

    /// The state of the log.
    pub(crate) fn state(&self) -> Snapshot {
        self.scheduler.snapshot()
    }

    /// What should have happened by then and has not.
    pub(crate) fn due(&self, by: Timestamp) -> Vec<String> {
        let mut events = Vec::new();
        if by > self.scheduler.now() {
            let mut ahead = Scheduler::restore(0, &self.state());
            // Nothing is asked, so nothing can be refused.
            drop(ahead.step(by, Command::Tick, &mut events));
        }
        events.iter().map(crate::report::event).collect()
    }

    /// Whether the log ever held this task.
    pub(crate) fn knows(&self, task: TaskId) -> bool {
        self.live.contains_key(&task) || self.ended.contains_key(&task)
    }

    fn wrong(&mut self, text: String) {
        self.wrong.push(text);
    }

    fn event(&mut self, author: u64, event: &Event) {
        match event {
            Event::Submitted { task, spec, handler, .. } => self.submitted(*task, spec, *handler),
            Event::Granted { task, fence, owner, borrowed, .. } => {
                self.granted(author, *task, fence.0, owner, borrowed);
            }
            Event::Unbound { replica } => {
                let live = self.live.values_mut();
                let bound = live.filter(|seen| seen.caller_at == Some(*replica));
                bound.for_each(|seen| seen.caller_at = None);
            }
            Event::Renewed { task, fence, .. } => {
                let run = self.live.get(task).and_then(|seen| seen.run.as_ref());
                if run.is_none_or(|run| run.fence != fence.0) {
                    self.wrong(format!("{task} was renewed under the old fence {}", fence.0));
                }
            }
            Event::Stopping { task, .. } => {
                if let Some(run) = self.live.get_mut(task).and_then(|seen| seen.run.as_mut()) {
                    run.is_stopping = true;
                }
            }
            Event::Retrying { task, fence, error, .. } => {
                self.over(*task, Some(fence.0), &**error == "the lease lapsed");
            }
            Event::Redelivered { task, fence } => self.over(*task, Some(fence.0), true),
            Event::Ended { task, end } => self.end(*task, end),
            Event::Session(session) => {
                self.session(&session.change);
                let wrong = self.talks.take(session);
                self.wrong.extend(wrong);
            }
            _ => {}
        }
    }

    fn submitted(&mut self, task: TaskId, spec: &TaskSpec, handler: Handler) {
        if self.knows(task) {
            self.wrong(format!("{task} was accepted twice"));
        }
        self.accepted += 1;
        let seen = Seen {
            lanes: spec.lanes.clone(),
            owner: spec.owner.clone(),
            caller_at: spec.caller_at,
            is_external: handler == Handler::External,
            arrival: self.accepted,
            attempts: 0,
            run: None,
        };
        self.live.insert(task, seen);
    }

    fn granted(&mut self, author: u64, id: TaskId, fence: u64, owner: &Owner, borrowed: &[u8]) {
        if fence <= self.last_fence {
            self.wrong(format!("{id} was granted under fence {fence} after {}", self.last_fence));
        }
        self.last_fence = self.last_fence.max(fence);
        let Some(seen) = self.live.get_mut(&id) else {
            return self.wrong(format!("{id} was granted and is not there"));
        };
        if seen.run.is_some() {
            return self.wrong(format!("{id} was granted while it runs"));
        }
        let caller_at = seen.caller_at.filter(|_| seen.attempts == 0);
        let expected = seen.owner.clone().unwrap_or(Owner::Replica(caller_at.unwrap_or(ReplicaId(author))));
        let is_claimed = seen.is_external && owner.worker().is_some();
        if !is_claimed && *owner != expected {
            let wrong = format!("{id} of {expected:?} was granted by {author:016x} to {owner:?}");
            self.wrong.push(wrong);
        }
        let own = |index: &usize| !borrowed.contains(&(*index as u8));
        let counted: Vec<LaneName> = seen
            .lanes
            .iter()
            .enumerate()
            .filter(|(index, _)| own(index))
            .map(|(_, lane)| lane.clone())
            .collect();
        seen.attempts += 1;
        let (is_first, arrival) = (seen.attempts == 1, seen.arrival);
        seen.run = Some(Run { fence, owner: owner.clone(), counted: counted.clone(), is_stopping: false });
        self.grants.insert((id, fence), author);
        for lane in counted {
            self.count(id, &lane, is_first, arrival);
        }
    }

    fn count(&mut self, id: TaskId, lane: &LaneName, is_first: bool, arrival: u64) {
        let running = self.running.entry(lane.clone()).or_default();
        *running += 1;
        let running = *running;
        let most = self.scheduler.settings_for(lane).max_concurrency;
        if most.is_some_and(|most| running > most) {
            self.wrong(format!("{running} run in {lane}, which has {most:?} slots"));
        }
        let is_session = lane.as_str().starts_with("session:");
        if is_session && running > 1 {
            self.wrong(format!("{running} turns of {lane} run at once"));
        }
        if is_first && is_session {
            let before = self.last_started.insert(lane.clone(), arrival).unwrap_or(0);
            if before > arrival {
                self.wrong(format!("{id} of {lane} started after one that came later"));
            }
        }
    }

    /// An attempt is over.
    fn over(&mut self, id: TaskId, fence: Option<u64>, is_lapse: bool) {
        let Some(run) = self.live.get_mut(&id).and_then(|seen| seen.run.take()) else {
            if fence.is_some() {
                self.wrong(format!("an attempt of {id} was over and there was none"));
            }
            return;
        };
        for lane in &run.counted {
            self.running.entry(lane.clone()).and_modify(|running| *running -= 1);
        }
        if fence.is_some_and(|fence| fence != run.fence) {
            self.wrong(format!("{id} was ended under the old fence {fence:?}"));
        }
        if is_lapse && !run.is_stopping {
            self.lapses.push(Lapse { task: id, fence: run.fence, owner: run.owner });
        }
    }

    fn end(&mut self, id: TaskId, end: &End) {
        let fence = self.live.get(&id).and_then(|seen| seen.run.as_ref()).map(|run| run.fence);
        self.ended_under.extend(fence.map(|fence| (id, fence)));
        let is_restored = self.forgotten.get(&id) == Some(end);
        if *end == End::Completed && fence.is_none() && !is_restored {
            self.wrong(format!("{id} was completed and did not run"));
        }
        self.over(id, None, *end == End::Lost);
        if self.live.remove(&id).is_none() || self.ended.insert(id, end.clone()).is_some() {
            self.wrong(format!("{id} ended and was not there, or twice"));
        }
    }

    fn session(&mut self, change: &SessionDelta) {
        let (message, is_right, wrong) = match change {
            SessionDelta::Accepted { message, .. } => {
                (message.id, self.messages.insert(message.id, false).is_none(), "was accepted twice")
            }
            SessionDelta::Ended { message, .. } => {
                let is_first = self.messages.insert(*message, true) == Some(false);
                (*message, is_first, "ended twice, or was never accepted")
            }
            _ => return,
        };
        if !is_right {
            self.wrong(format!("message {message} {wrong}"));
        }
    }

    /// The tasks that the log held and `shorter`, a beginning of it, does not.
    pub(crate) fn missing_in(&self, shorter: &Checker) -> BTreeSet<TaskId> {
        let all = self.live.keys().chain(self.ended.keys());
        all.filter(|task| !shorter.knows(**task)).copied().collect()
    }
}
