//! A batch: commands that are decided at one time and stored together.

use std::mem::take;
use std::ops::Range;
use std::sync::PoisonError;

use bytes::Bytes;
use laneway_core::{
    BlobId, Command, End, Event, LaneChange, LiveTaskView, Reply, Scheduler, TaskId, Timestamp,
};

use crate::driver::engine::Engine;
use crate::driver::ids::ByTask;
use crate::driver::mailbox::{Inbox, Request};
use crate::error::Error;
use crate::journal::Journal;

/// What was decided together.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) at: Timestamp,
    /// Another replica made it.
    pub(crate) is_remote: bool,
    pub(crate) events: Vec<Event>,
    pub(crate) changes: Vec<LaneChange>,
    /// What each command answers, and which events it brought.
    pub(crate) replies: Vec<(Result<Reply, Error>, Range<usize>)>,
    /// The tasks that ended, in the order of their ends.
    pub(crate) departed: Vec<LiveTaskView>,
    /// What the attempts that ended here produced.
    pub(crate) results: ByTask<Bytes>,
    /// What those that may end with this were to do, if that is to be remembered.
    pub(crate) ended_payloads: ByTask<Bytes>,
    pub(crate) payloads: Vec<(BlobId, Bytes)>,
    /// When attempts reported their ends, if that was before `at`, while the store was away.
    pub(crate) reported: ByTask<Timestamp>,
}

impl Engine {
    pub(crate) fn decide(&mut self, now: Timestamp, requests: &mut [Request]) -> Box<Batch> {
        // Others that share the log may be a little ahead.
        let at = now.max(self.scheduler.now());
        let mut batch = self.buffers.batch.take().unwrap_or_default();
        batch.at = at;
        self.is_watched = self.resources.hub.is_listening();
        let is_end_awaited = !self.callers.waiters.is_empty();
        self.scheduler.collect_slots(self.is_watched || is_end_awaited || self.replica.is_some());
        // What is due follows when nothing was asked, and after what was asked earlier.
        let mut is_tick_due = requests.is_empty();
        for request in requests {
            if request.reported.is_some() {
                is_tick_due = true;
            } else if take(&mut is_tick_due) {
                self.tick(&mut batch);
            }
            let start = batch.events.len();
            let reply = self.decide_one(request, &mut batch);
            let end = batch.events.len();
            batch.replies.push((reply, start..end));
        }
        if is_tick_due {
            self.tick(&mut batch);
        }
        batch
    }

    fn tick(&mut self, batch: &mut Batch) {
        let _nothing_to_refuse = self.scheduler.step(batch.at, Command::Tick, &mut batch.events);
        batch.take_changes(&mut self.scheduler, self.is_watched);
    }

    fn decide_one(&mut self, request: &mut Request, batch: &mut Batch) -> Result<Reply, Error> {
        if let Some(faults) = &self.resources.faults {
            faults.command(&self.scheduler, &mut request.command);
        }
        let finishing = match &request.command {
            Command::Finish { task, .. } | Command::RestoreOutcome { task, .. }
                if request.result.is_some() || request.work.is_some() =>
            {
                Some(*task)
            }
            _ => None,
        };
        let mut began_late = None;
        if let Command::Finish { task, fence, .. } = &request.command {
            batch.reported.extend(request.reported.map(|at| (*task, at)));
            began_late = self.runs.get(*task, *fence).and_then(|run| Some((*task, run.began_late?)));
        }
        let reply = self.admit(request).and_then(|()| {
            let command = if self.storage.journal.log().is_some() {
                request.command.clone()
            } else {
                std::mem::replace(&mut request.command, Command::Tick)
            };
            let reply = match request.reported {
                Some(_) => self.scheduler.step_late(batch.at, command, &mut batch.events),
                None => self.scheduler.step(batch.at, command, &mut batch.events),
            };
            reply.map_err(|rejection| self.with_return_time(batch.at, rejection))
        });
        batch.take_changes(&mut self.scheduler, self.is_watched);
        if let Some((task, began)) = began_late {
            batch.correct_start(task, began);
        }
        if !request.payloads.is_empty()
            && matches!(reply, Ok(Reply::Accepted { joined: false, .. } | Reply::Done))
        {
            batch.payloads.extend(request.payloads.iter().cloned());
        }
        if let (Ok(_), Some(task)) = (&reply, finishing) {
            batch.results.extend(request.result.clone().map(|result| (task, result)));
            batch.ended_payloads.extend(request.work.clone().map(|work| (task, work)));
        }
        reply
    }

    /// Decides everything in the inbox of a queue in memory, and answers.
    pub(super) fn decide_in_memory(&mut self, inbox: &mut Inbox) {
        let (mut requests, mut queries) = (take(&mut self.buffers.requests), Vec::new());
        let now = self.clock.now();
        self.gather(now, inbox, &mut requests, &mut queries);
        if !requests.is_empty() || queries.is_empty() {
            let mut batch = self.decide(now, &mut requests);
            self.record_in_memory(&mut batch);
            self.publish(&mut requests, batch);
        }
        self.buffers.requests = requests;
        queries.into_iter().for_each(|query| self.answer_query(query));
    }

    fn record_in_memory(&mut self, batch: &mut Batch) {
        let Journal::Memory(memory) = self.storage.journal.clone() else { return };
        if batch.is_forgotten() {
            return;
        }
        for (task, payload) in self.unrecorded_payloads(batch) {
            let stored = || memory.lock().unwrap_or_else(PoisonError::into_inner).payload(payload);
            let work = batch.payload(payload).or_else(stored);
            self.record_payload(batch, task, work);
        }
        let mut entry = self.entry(batch);
        memory.lock().unwrap_or_else(PoisonError::into_inner).keep(&mut entry);
    }
}

impl Batch {
    /// Whether nothing of it is kept in memory: slots were asked for, given and given back.
    pub(super) fn is_forgotten(&self) -> bool {
        let is_passing = |event: &Event| {
            matches!(event, Event::Submitted { .. } | Event::Granted { .. } | Event::Ended { .. })
        };
        let is_of_slot = |view: &LiveTaskView| view.is_slot() && view.payload.is_none();
        self.payloads.is_empty() && self.departed.iter().all(is_of_slot) && self.events.iter().all(is_passing)
    }

    /// Empties it, but keeps its room.
    pub(super) fn clear(&mut self) {
        self.is_remote = false;
        self.events.clear();
        self.changes.clear();
        self.replies.clear();
        self.departed.clear();
        self.results.clear();
        self.ended_payloads.clear();
        self.payloads.clear();
        self.reported.clear();
    }

    /// Notes that the last attempt of a task that ended began later than its grant.
    fn correct_start(&mut self, task: TaskId, began: Timestamp) {
        let view = self.departed.iter_mut().find(|view| view.id == task);
        if let Some(run) = view.and_then(|view| view.running.as_mut()) {
            run.started = began;
        }
    }

    /// When the attempt of a task ended.
    pub(crate) fn ended_at(&self, task: TaskId) -> Timestamp {
        self.reported.get(&task).copied().unwrap_or(self.at)
    }

    /// A payload that came with a command.
    pub(crate) fn payload(&self, id: BlobId) -> Option<Bytes> {
        self.payloads.iter().find(|(blob, _)| *blob == id).map(|(_, payload)| payload.clone())
    }

    /// What a task that ended so produced. A failure may have an output too.
    pub(crate) fn result_of(&self, task: TaskId, end: &End) -> Option<Bytes> {
        self.results.get(&task).filter(|_| matches!(end, End::Completed | End::Failed { .. })).cloned()
    }

    pub(crate) fn take_changes(&mut self, scheduler: &mut Scheduler, is_watched: bool) {
        if scheduler.has_ended() {
            self.departed.extend(scheduler.take_ended());
        }
        if is_watched {
            self.changes.extend(scheduler.changes());
        }
    }
}
