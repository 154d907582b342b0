//! What follows from what was decided and kept: answers, runs, ends, updates.

use std::sync::Arc;

use bytes::Bytes;
use laneway_core::{
    BlobId, End, Event, Fence, LaneName, Millis, Name, Outcome, Reply, TaskId, TaskView, Timestamp,
};
use tokio::sync::oneshot;

use crate::driver::batch::Turn;
use crate::driver::engine_loop::Engine;
use crate::driver::ids::Ids;
use crate::driver::mailbox::{Accepted, Ask, Ending, Report, Waiter, Wants};
use crate::driver::outbox::Told;
use crate::error::{Error, RunError};
use crate::events::watch::{Update, lane_of_event, task_of_event};
use crate::handle::task::is_slot;
use crate::handle::workers::Claim;
use crate::runs::context::Context;
use crate::runs::handler;
use crate::runs::slot::Slot;
use crate::runs::stop::{StopSignal, Stopped};
use crate::runs::table::Begun;
use crate::runs::turn_payload::turn_payload;

/// A grant, as the loop needs it.
pub(crate) struct Grant {
    pub(crate) task: TaskId,
    pub(crate) fence: Fence,
    pub(crate) attempt: u32,
    pub(crate) lease: Millis,
    pub(crate) timeout_at: Option<Timestamp>,
}

/// Where what a handler gets is.
pub(crate) enum Payload {
    /// In the store, if there is any.
    Stored(Option<BlobId>),
    /// Here: it came with the task just now, or a turn that answers messages is put together from them.
    Ready(Bytes),
}

/// What is needed to start a handler.
pub(crate) struct Start {
    pub(crate) kind: Name,
    payload: Payload,
    grant: Grant,
    deadline: Option<Timestamp>,
    lanes: Arc<[LaneName]>,
    stop: StopSignal,
}

impl Engine {
    /// Tells everybody what was decided, now that it is kept.
    pub(crate) fn publish(&mut self, asks: &mut Vec<Ask>, mut turn: Turn) {
        let is_claim_in_vain = turn.events.is_empty() && !asks.is_empty();
        for (ask, (reply, span)) in asks.drain(..).zip(turn.replies.drain(..)) {
            if let Err(error) = &reply {
                self.tools.count_refusal(error, &self.scheduler);
            }
            self.answer(ask.wants, reply, &turn.events[span]);
        }
        let mut departed = turn.departed.iter().peekable();
        for event in &turn.events {
            let view = match event {
                Event::Ended { task, .. } => departed.next_if(|view| view.id == *task),
                _ => None,
            };
            self.effect(event, &turn, view);
        }
        if !is_claim_in_vain {
            self.tools.offers.notify_waiters();
        }
        if self.tools.watchers.is_empty() {
            self.positions.forget();
            let events = &mut turn.events;
            self.remember(turn.at, || std::mem::take(events));
        } else {
            let has_changed = !turn.events.is_empty();
            self.remember(turn.at, || turn.events.clone());
            self.tell_watchers(&mut turn);
            self.tell_positions(has_changed);
        }
        turn.clear();
        self.spare = turn;
        self.begin_runs();
    }

    /// Runs the handlers of what was started: after those who watch have heard so, since they hear next what the runs say.
    pub(crate) fn begin_runs(&mut self) {
        let mut starts = std::mem::take(&mut self.starts);
        for start in starts.drain(..) {
            self.start_handler(start);
        }
        self.starts = starts;
    }

    fn answer(&mut self, wants: Wants, reply: Result<Reply, Error>, events: &[Event]) {
        let told = match (wants, reply) {
            (Wants::PutBack(task), Err(_)) => return self.not_put_back(task),
            (Wants::Nothing | Wants::PutBack(_), _) => return,
            (Wants::Reply(answer), reply) => Told::Reply(answer, reply),
            (wants, Err(error)) => Told::Refusal(wants, error),
            (Wants::Slot(answer), Ok(reply)) => {
                if let Reply::Accepted { task, .. } = reply {
                    self.slots.insert(task, answer);
                }
                return;
            }
            (Wants::Task(answer), Ok(reply)) => match self.accepted(&reply) {
                Some(accepted) => {
                    let is_live = !accepted.joined || events.contains(&Event::Joined { task: accepted.task });
                    let waiter = is_live.then(|| self.wait_for(accepted.task));
                    Told::Task(answer, Accepted { waiter, ..accepted })
                }
                None => return,
            },
            (Wants::Acceptance(answer), Ok(reply)) => match self.accepted(&reply) {
                Some(accepted) => Told::Task(answer, accepted),
                None => return,
            },
            (Wants::Batch(answer), Ok(_)) => {
                let submitted = events.iter().filter_map(|event| match event {
                    Event::Submitted { task, .. } => Some(*task),
                    _ => None,
                });
                Told::Batch(answer, submitted.map(|task| self.wait_for(task)).collect())
            }
            (Wants::Claim(answer), Ok(_)) => Told::Claims(answer, self.claims(events)),
        };
        self.outbox.push(told);
    }

    fn accepted(&self, reply: &Reply) -> Option<Accepted> {
        let Reply::Accepted { task, joined } = *reply else { return None };
        let standing = crate::handle::submission::Standing::of(&self.scheduler, task);
        Some(Accepted { task, joined, waiter: None, standing })
    }

    /// What tells of the end of a live task.
    pub(crate) fn wait_for(&mut self, task: TaskId) -> Waiter {
        let (tell, waiter) = oneshot::channel();
        let waiters = self.waiters.entry(task).or_default();
        // A caller may look often and go each time.
        waiters.retain(|waiter| !waiter.is_closed());
        waiters.push(tell);
        waiter
    }

    /// What a worker got, of what is still there.
    fn claims(&self, events: &[Event]) -> Vec<Claim> {
        let granted = events.iter().filter_map(|event| match event {
            Event::Granted { task, attempt, fence, lease_until, timeout_at, worker, .. }
                if worker.as_ref().is_some_and(|worker| !Ids::is_runner(worker)) =>
            {
                let view = self.scheduler.task(*task)?;
                let (payload, blob) = match self.payload_of(*task, view.payload) {
                    Payload::Ready(payload) => (Some(payload), None),
                    Payload::Stored(blob) => (None, blob),
                };
                Some(Claim {
                    task: *task,
                    fence: *fence,
                    attempt: *attempt,
                    kind: view.kind,
                    lanes: view.lanes,
                    payload,
                    lease_until: *lease_until,
                    timeout_at: *timeout_at,
                    blob,
                })
            }
            _ => None,
        });
        granted.collect()
    }

    fn effect(&mut self, event: &Event, turn: &Turn, view: Option<&TaskView>) {
        match event {
            Event::Granted { task, attempt, fence, lease, timeout_at, worker, .. }
                if self.is_for_us(*task, worker.as_ref()) =>
            {
                let grant = Grant {
                    task: *task,
                    fence: *fence,
                    attempt: *attempt,
                    lease: *lease,
                    timeout_at: *timeout_at,
                };
                self.start(grant, turn.at, &turn.payloads);
            }
            Event::Granted { task, fence, worker, .. } => {
                let begun = Begun { fence: *fence, started: turn.at, worker: worker.clone() };
                self.runs.note(*task, begun);
            }
            Event::Stopping { task, fence, reason, .. } => self.runs.tell(*task, *fence, (*reason).into()),
            Event::Retrying { task, .. } | Event::Redelivered { task, .. } => {
                self.runs.remove(*task, Stopped::Revoked);
            }
            Event::Ended { task, end } => {
                self.runs.remove(*task, stopped_by(end));
                if !self.slots.is_empty()
                    && let Some(answer) = self.slots.remove(task)
                {
                    self.outbox.push(Told::Slot(answer, Err(RunError::Ended(end.clone()))));
                }
                self.tell_waiters(*task, || {
                    let result = turn.result_of(*task, end);
                    Ending { result, ..Ending::new(end.clone(), view, turn.at) }
                });
            }
            _ => {}
        }
    }

    pub(crate) fn tell_waiters(&mut self, task: TaskId, ending: impl Fn() -> Ending) {
        if self.waiters.is_empty() {
            return;
        }
        for waiter in self.waiters.remove(&task).unwrap_or_default() {
            // Most who let a task go its way are told nothing.
            if !waiter.is_closed() {
                self.outbox.push(Told::Ending(waiter, Box::new(ending())));
            }
        }
    }

    /// Starts what was granted: whoever waits for the slot has it, else the handler of its kind runs it, once
    /// [`begin_runs`](Engine::begin_runs) is called.
    ///
    /// `payloads` are those that came with what was decided: what is at hand need not be read again. There are at most as
    /// many as a turn has commands.
    pub(crate) fn start(&mut self, grant: Grant, now: Timestamp, payloads: &[(BlobId, Bytes)]) {
        let Grant { task, fence, timeout_at, .. } = grant;
        let stop = self.runs.insert(task, fence, grant.lease, now);
        if let Some(answer) = self.slots.remove(&task) {
            if let Some(handle) = self.handle() {
                let slot = Slot::new(task, fence, timeout_at, stop, handle);
                self.outbox.push(Told::Slot(answer, Ok(slot)));
            }
            return;
        }
        let Some(view) = self.scheduler.task(task) else { return };
        if is_slot(&view.kind) {
            // Its caller was told that the store is away, and has gone.
            drop(self.handle().map(|handle| Slot::new(task, fence, timeout_at, stop, handle)));
            return;
        }
        // What starts when it is accepted starts in the order in which it came, most often.
        let (before, after) = payloads.split_at(self.starts.len().min(payloads.len()));
        let at_hand = after.iter().chain(before).find(|(id, _)| Some(*id) == view.payload);
        let payload = match at_hand {
            Some((_, payload)) => Payload::Ready(payload.clone()),
            None => self.payload_of(task, view.payload),
        };
        let kind = view.kind;
        let (deadline, lanes) = (view.deadline, view.lanes.into());
        self.starts.push(Start { kind, payload, grant, deadline, lanes, stop });
    }

    /// What a task's handler gets: its own payload, or the messages that it answers.
    fn payload_of(&self, task: TaskId, stored: Option<BlobId>) -> Payload {
        let content = self.scheduler.turn_content(task).filter(|_| stored.is_none());
        let ready = content.and_then(|content| turn_payload(&content).ok());
        ready.map_or(Payload::Stored(stored), Payload::Ready)
    }

    /// Runs the handler of the kind.
    fn start_handler(&mut self, start: Start) {
        let Some(handle) = self.handle() else { return };
        let Some(handler) = self.tools.handlers.get(&start.kind) else {
            // It was removed, or the task is older than this program: the dead letter can be run again.
            let error = Error::NoHandler { kind: start.kind }.to_string().into();
            let (task, fence) = (start.grant.task, start.grant.fence);
            let outcome = Outcome::Failure { error, retryable: false };
            return handle.report_later(Report::Finish { task, fence, outcome, result: None, work: None });
        };
        let Grant { task, fence, attempt, timeout_at, .. } = start.grant;
        let Start { payload, deadline, lanes, stop, .. } = start;
        let context =
            Context { task, fence, attempt, timeout_at, deadline, lanes, stop, handle, is_task: true };
        let journal = self.journal.clone();
        let kept_max = self.tools.payloads_kept_max;
        self.tasks.spawn(handler::run(handler, context, journal, payload, self.stop_grace, kept_max));
    }

    fn tell_watchers(&self, turn: &mut Turn) {
        let at = turn.at;
        for event in turn.events.drain(..) {
            let (task, lane) = (task_of_event(&event), lane_of_event(&event).cloned());
            let own_lanes = |task: TaskId| {
                let ended = turn.departed.iter().find(|view| view.id == task);
                ended.map(|view| view.lanes.clone()).or_else(|| Some(self.scheduler.task(task)?.lanes))
            };
            let update = Update::Event { at, event: Arc::new(event) };
            self.tools.watchers.tell(&update, |name| {
                lane.as_ref() == Some(name)
                    || task.and_then(own_lanes).is_some_and(|lanes| lanes.contains(name))
            });
        }
        for change in turn.changes.drain(..) {
            let lane = change.lane.clone();
            self.tools.watchers.tell(&Update::Lane { at, change }, |name| *name == lane);
        }
    }
}

/// What to tell a run whose task ended otherwise than by its own report.
fn stopped_by(end: &End) -> Stopped {
    match end {
        End::Cancelled { reason } => Stopped::Cancelled(*reason),
        End::TimedOut => Stopped::Timeout,
        _ => Stopped::Revoked,
    }
}
