//! One turn of the loop: a batch of commands is decided at one time and kept in one step.

use std::collections::HashSet;
use std::mem::take;
use std::ops::Range;
use std::sync::PoisonError;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::{
    BlobId, Command, End, Event, Handler, LaneChange, LaneName, LetterGone, Name, Rejection, Reply,
    SessionCommand, TaskId, TaskSpec, TaskView, Timestamp,
};
use laneway_store::{Append, Batch, Entry, ErrorKind, Finished, Head, Log, StoreError, Try};

use crate::driver::engine_loop::Engine;
use crate::driver::ids::{ByTask, Ids};
use crate::driver::mailbox::{Ask, Inbox, Wants};
use crate::error::Error;
use crate::handle::task::is_slot;
use crate::journal::Journal;
use crate::replica::ReplicaId;

/// How often an append whose fate is unknown is repeated at once, and after which pauses.
const REPEAT_AFTER: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(100)];

/// What was decided together.
#[derive(Default)]
pub(crate) struct Turn {
    pub(crate) at: Timestamp,
    pub(crate) events: Vec<Event>,
    pub(crate) changes: Vec<LaneChange>,
    /// What each command answers, and which events it brought.
    pub(crate) replies: Vec<(Result<Reply, Error>, Range<usize>)>,
    /// The tasks that ended, in the order of their ends.
    pub(crate) departed: Vec<TaskView>,
    /// What the attempts that ended here produced.
    pub(crate) results: ByTask<Bytes>,
    /// What those that may end with this were to do, if that is to be remembered.
    pub(crate) works: ByTask<Bytes>,
    pub(crate) payloads: Vec<(BlobId, Bytes)>,
}

impl Engine {
    /// Decides, keeps and tells. When somebody else was faster, decides again; when the store is away, everybody
    /// is told so, and what runs here is done again later.
    pub(crate) async fn decide_and_keep(&mut self, asks: &mut Vec<Ask>) {
        loop {
            let now = self.flow.now();
            let mut turn = self.decide(now, asks);
            match self.keep(&mut turn).await {
                Ok(head) if head == self.head && self.refuses(&turn) => {
                    // What others have ended meanwhile may leave room for it.
                    match self.catch_up(None).await {
                        Ok(true) => {}
                        Ok(false) => return self.publish(asks, turn),
                        Err(error) => return self.give_up(error, take(asks)),
                    }
                }
                Ok(head) => {
                    if head != self.head {
                        self.head = head;
                        self.tools.appends.kept.add();
                        self.note(ReplicaId::of_batch(head.batch), &turn);
                        if let Some(replica) = &mut self.replica {
                            replica.recent.note(head, asks, &turn);
                        }
                    }
                    let events = turn.events.len() as u64;
                    self.publish(asks, turn);
                    self.saver.count(events, &self.journal, self.head, &self.scheduler);
                    return;
                }
                #[cfg(feature = "planted")]
                Err(StoreError::Conflict { current, .. })
                    if crate::planted::is(crate::planted::Bug::StaleGrant) && !turn.events.is_empty() =>
                {
                    self.head = current;
                    if let Ok(head) = self.keep(&mut turn).await {
                        self.head = head;
                        return self.publish(asks, turn);
                    }
                }
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    self.tools.appends.lost.add();
                    if let Err(error) = self.give_way(&error).await {
                        return self.give_up(error, take(asks));
                    }
                    self.await_baton().await;
                    if let Some(error) = self.store_trouble() {
                        return self.give_up(error, take(asks));
                    }
                }
                Err(error) => return self.give_up(error, take(asks)),
            }
        }
    }

    fn decide(&mut self, now: Timestamp, asks: &mut [Ask]) -> Turn {
        // Others that share the log may be a little ahead.
        let at = now.max(self.scheduler.now());
        let mut turn = Turn { at, ..take(&mut self.spare) };
        self.is_watched = !self.tools.watchers.is_empty();
        if asks.is_empty() {
            // Nothing was asked, so the time has come for something.
            let _nothing_to_refuse = self.scheduler.step(turn.at, Command::Tick, &mut turn.events);
            turn.take_changes(&mut self.scheduler, self.is_watched);
        }
        for ask in asks {
            let start = turn.events.len();
            let reply = self.decide_one(ask, &mut turn);
            let end = turn.events.len();
            turn.replies.push((reply, start..end));
        }
        turn
    }

    fn decide_one(&mut self, ask: &mut Ask, turn: &mut Turn) -> Result<Reply, Error> {
        #[cfg(feature = "planted")]
        if let Some(believed) = self.believe(ask) {
            return Ok(believed);
        }
        let finishing = match &ask.command {
            Command::Finish { task, .. } | Command::Recount { task, .. }
                if ask.result.is_some() || ask.work.is_some() =>
            {
                Some(*task)
            }
            _ => None,
        };
        let reply = self.admit(ask).and_then(|()| {
            let command = match self.journal.log().is_some() {
                true => ask.command.clone(),
                false => std::mem::replace(&mut ask.command, Command::Tick),
            };
            Ok(self.scheduler.step(turn.at, command, &mut turn.events)?)
        });
        turn.take_changes(&mut self.scheduler, self.is_watched);
        if !ask.payloads.is_empty()
            && matches!(reply, Ok(Reply::Accepted { joined: false, .. } | Reply::Done))
        {
            turn.payloads.extend(ask.payloads.iter().cloned());
        }
        if let (Ok(_), Some(task)) = (&reply, finishing) {
            turn.results.extend(ask.result.clone().map(|result| (task, result)));
            turn.works.extend(ask.work.clone().map(|work| (task, work)));
        }
        reply
    }

    /// What a planted bug makes of a report: another fence, or an answer that it should not get.
    #[cfg(feature = "planted")]
    fn believe(&self, ask: &mut Ask) -> Option<Reply> {
        use crate::planted::{Bug, is};
        let Command::Finish { task, fence, .. } = &mut ask.command else { return None };
        match self.scheduler.task(*task) {
            None if is(Bug::CompletedTwice) => return Some(Reply::Done),
            Some(view) if is(Bug::FenceIgnored) => {
                *fence = view.running.map_or(*fence, |running| running.fence);
            }
            _ => {}
        }
        None
    }

    /// Whether this program can do what is asked; the scheduler does not know what runs here.
    fn admit(&self, ask: &Ask) -> Result<(), Error> {
        if self.closing.is_some() && ask.is_new_work() {
            return Err(Error::Closed);
        }
        match (&ask.command, &ask.wants) {
            // It was admitted once.
            (_, Wants::PutBack(_)) => Ok(()),
            (Command::Submit { spec, .. }, wants) if is_for_caller(spec, wants) => match spec.lanes.first() {
                Some(home) if self.is_external(home) => Err(Error::ExternalLane { lane: home.clone() }),
                _ => Ok(()),
            },
            (Command::Submit { spec, .. }, _) => self.admit_kind(&spec.kind, spec.lanes.first()),
            (Command::SubmitBatch(batch), _) => batch.calls.iter().try_for_each(|call| {
                let lane = LaneName::tool(&batch.session, call.lane).ok();
                self.admit_kind(&call.tool, lane.as_ref())
            }),
            (Command::Session(command), _) => match &**command {
                SessionCommand::Send(incoming) => {
                    let home = LaneName::new(format!("agent:{}", incoming.agent.name)).ok();
                    self.admit_kind(&incoming.agent.kind, home.as_ref())
                }
                SessionCommand::Resend { message, .. } => {
                    let mut aside = self.scheduler.messages_set_aside();
                    let Some((_, kept)) = aside.find(|(_, kept)| kept.id == *message) else { return Ok(()) };
                    let agent = &kept.address.agent;
                    let home = LaneName::new(format!("agent:{}", agent.name)).ok();
                    self.admit_kind(&agent.kind, home.as_ref())
                }
                _ => Ok(()),
            },
            (Command::Finish { task, fence, .. } | Command::Heartbeat { task, fence }, Wants::Reply(_)) => {
                match self.is_claimed(*task) {
                    true => Ok(()),
                    false => Err(Rejection::StaleLease { task: *task, fence: *fence }.into()),
                }
            }
            (Command::Redrive { letter, .. }, _) => {
                let mut letters = self.scheduler.dead_letters();
                let held_a_slot = |spec: &TaskSpec| is_slot(&spec.kind) || spec.claimer.is_some();
                match letters.find(|dead| dead.task == *letter) {
                    Some(dead) if held_a_slot(&dead.spec) => Err(Error::NotForClosures("a second life")),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn admit_kind(&self, kind: &Name, home: Option<&LaneName>) -> Result<(), Error> {
        let runs_here = self.tools.handlers.get(kind).is_some();
        match runs_here || home.is_some_and(|home| self.is_external(home)) {
            true => Ok(()),
            false => Err(Error::NoHandler { kind: kind.clone() }),
        }
    }

    /// Whether somebody outside may have it: what a process does itself, here or elsewhere, only that one reports.
    fn is_claimed(&self, task: TaskId) -> bool {
        let Some(view) = self.scheduler.task(task) else { return true };
        let by_worker = |worker: Option<Name>| worker.is_some_and(|worker| !Ids::is_runner(&worker));
        view.running.is_none_or(|run| by_worker(run.worker))
    }

    fn is_external(&self, home: &LaneName) -> bool {
        self.scheduler.handler_for(home) == Handler::External
    }

    /// Decides everything in the inbox of a queue in memory, and answers.
    pub(crate) fn decide_in_memory(&mut self, inbox: &mut Inbox) {
        let (mut asks, mut looks) = (take(&mut self.asks), Vec::new());
        let now = self.flow.now();
        self.gather(now, inbox, &mut asks, &mut looks);
        if !asks.is_empty() || looks.is_empty() {
            let mut turn = self.decide(now, &mut asks);
            self.keep_in_memory(&mut turn);
            self.publish(&mut asks, turn);
        }
        self.asks = asks;
        looks.into_iter().for_each(|look| self.answer_look(look));
    }

    fn keep_in_memory(&mut self, turn: &mut Turn) {
        let Journal::Memory(memory) = self.journal.clone() else { return };
        if turn.is_forgotten() {
            return;
        }
        for (task, payload) in self.unrecorded_payloads(turn) {
            let stored = || memory.lock().unwrap_or_else(PoisonError::into_inner).payload(payload);
            let work = turn.payload(payload).or_else(stored);
            self.record_payload(turn, task, work);
        }
        let mut entry = self.entry(turn);
        memory.lock().unwrap_or_else(PoisonError::into_inner).keep(&mut entry);
    }

    /// Keeps what was decided. An append of unknown fate is repeated as it is, which is always right.
    async fn keep(&mut self, turn: &mut Turn) -> Result<Head, StoreError> {
        // Whoever was passed the baton passes it on.
        let is_idle = !self.must_show(turn.at) && !self.has_baton();
        if turn.events.is_empty() && is_idle {
            return Ok(self.head);
        }
        let Some(log) = self.journal.log().cloned() else { return Ok(self.head) };
        self.recall_works(turn).await;
        #[cfg_attr(not(feature = "planted"), expect(unused_mut, reason = "a planted bug changes it"))]
        let mut append = self.seal(&log, turn)?;
        let mut pauses = REPEAT_AFTER.iter();
        loop {
            match (log.store().append(append.clone()).await, pauses.next()) {
                (Err(error), Some(pause)) if error.kind() == ErrorKind::Unavailable => {
                    tokio::time::sleep(*pause).await;
                    #[cfg(feature = "planted")]
                    if crate::planted::is(crate::planted::Bug::AppendedTwice)
                        && let Ok(head) = log.store().head().await
                    {
                        self.head = head;
                        append = self.seal(&log, turn)?;
                    }
                }
                (done, _) => {
                    self.note_place(append.requeue, &done);
                    return done;
                }
            }
        }
    }

    /// Makes what was decided ready to be kept.
    fn seal(&mut self, log: &Log, turn: &mut Turn) -> Result<Append, StoreError> {
        let requeue = self.will_append_again(turn);
        let mut entry = self.entry(turn);
        // Lent, because there may be many.
        entry.batch.events = take(&mut turn.events);
        let sealed = log.seal(self.head, &entry);
        turn.events = entry.batch.events;
        sealed.map(|append| Append { requeue, ..append })
    }

    /// What is kept of a turn beside its events.
    fn entry(&mut self, turn: &Turn) -> Entry {
        let chance = self.tools.ids.batch();
        let id = self.replica.as_ref().map_or(chance, |replica| replica.id.batch(chance.0 as u64));
        let mut entry = Entry::of(Batch { id, at: turn.at, events: Vec::new() });
        entry.payloads.clone_from(&turn.payloads);
        let mut departed = turn.departed.iter().peekable();
        let mut lettered = HashSet::new();
        for event in &turn.events {
            match event {
                Event::Retrying { task, fence, error, .. } => {
                    self.note_try(*task, *fence, error, turn.at, &mut entry);
                }
                Event::Redelivered { task, fence } => {
                    self.note_try(*task, *fence, &"the lease lapsed".into(), turn.at, &mut entry);
                }
                Event::DeadLettered { task, .. } => drop(lettered.insert(*task)),
                Event::LetterGone { letter, why } => {
                    let payload = self.letters.remove(letter);
                    entry.dropped.extend(payload.filter(|_| !matches!(why, LetterGone::Redriven(_))));
                }
                Event::Ended { task, end } => {
                    let Some(view) = departed.next_if(|view| view.id == *task) else { continue };
                    match view.payload {
                        Some(payload) if lettered.contains(task) => {
                            self.letters.insert(*task, payload);
                        }
                        Some(payload) => entry.dropped.push(payload),
                        None => {}
                    }
                    if !is_slot(&view.kind) {
                        let result = turn.result_of(*task, end);
                        let tries = self.take_tries(*task, &mut entry);
                        let payload = turn.works.get(task).cloned();
                        let finished = Finished { payload, ..finished(view, end, turn.at, tries) };
                        entry.finished.push((finished, result));
                    }
                }
                _ => {}
            }
        }
        entry
    }
}

impl Turn {
    /// Whether nothing of it is kept in memory: slots were asked for, given and given back.
    pub(crate) fn is_forgotten(&self) -> bool {
        let is_passing = |event: &Event| {
            matches!(event, Event::Submitted { .. } | Event::Granted { .. } | Event::Ended { .. })
        };
        let is_of_slot = |view: &TaskView| is_slot(&view.kind) && view.payload.is_none();
        self.payloads.is_empty() && self.departed.iter().all(is_of_slot) && self.events.iter().all(is_passing)
    }

    /// Empties it, but keeps its room.
    pub(crate) fn clear(&mut self) {
        self.events.clear();
        self.changes.clear();
        self.replies.clear();
        self.departed.clear();
        self.results.clear();
        self.works.clear();
        self.payloads.clear();
    }

    /// A payload that came with a command.
    pub(crate) fn payload(&self, id: BlobId) -> Option<Bytes> {
        self.payloads.iter().find(|(blob, _)| *blob == id).map(|(_, payload)| payload.clone())
    }

    /// What a task that ended so produced.
    pub(crate) fn result_of(&self, task: TaskId, end: &End) -> Option<Bytes> {
        self.results.get(&task).filter(|_| *end == End::Completed).cloned()
    }

    pub(crate) fn take_changes(&mut self, scheduler: &mut laneway_core::Scheduler, is_watched: bool) {
        if scheduler.has_departed() {
            self.departed.extend(scheduler.take_departed());
        }
        if is_watched {
            self.changes.extend(scheduler.changes());
        }
    }
}

fn finished(view: &TaskView, end: &End, at: Timestamp, tries: Vec<Try>) -> Finished {
    Finished {
        task: view.id,
        kind: view.kind.clone(),
        lanes: view.lanes.clone(),
        source: view.source,
        priority: view.priority,
        group: view.group.clone(),
        parent: view.parent,
        worker: view.running.as_ref().and_then(|running| running.worker.clone()),
        submitted: view.submitted,
        started: view.running.as_ref().map(|running| running.started),
        ended: at,
        attempts: view.attempts,
        end: end.clone(),
        tries,
        payload: None,
    }
}

/// Whether the caller itself uses the slot of a task, so that no handler runs it.
fn is_for_caller(spec: &TaskSpec, wants: &Wants) -> bool {
    spec.claimer.is_some() || matches!(wants, Wants::Slot(_))
}
