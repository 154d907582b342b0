//! What follows from a stored batch: answers, runs, ends, updates.

use std::sync::Arc;

use bytes::Bytes;
use laneway_core::{
    BlobId, End, Event, Fence, LaneName, LiveTaskView, Millis, Name, Outcome, Owner, Reply, TaskId, Timestamp,
};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::driver::batch::Batch;
use crate::driver::engine::Engine;
use crate::driver::mailbox::{Accepted, Ending, ReplyTo, Report, Request, Waiter};
use crate::driver::outbox::Delivery;
use crate::error::{Error, RunError};
use crate::events::update::Update;
use crate::handle::workers::Claim;
use crate::runs::context::Context;
use crate::runs::handler;
use crate::runs::slot::Slot;
use crate::runs::stop::{StopSignal, Stopped};
use crate::runs::table::AttemptStart;
use crate::runs::turn_payload::turn_payload;

/// What starting an attempt needs of its grant.
pub(crate) struct Grant {
    pub(crate) task: TaskId,
    pub(crate) fence: Fence,
    pub(crate) attempt: u32,
    pub(crate) lease: Millis,
    pub(crate) timeout_at: Option<Timestamp>,
}

/// Where the payload for a handler is.
pub(crate) enum Payload {
    /// In the store, if there is any.
    Stored(Option<BlobId>),
    /// Here: it came with the task just now, or a turn that answers messages is put together from them.
    Ready(Bytes),
}

/// What is needed to start a handler.
pub(super) struct Start {
    pub(super) kind: Name,
    payload: Payload,
    grant: Grant,
    deadline: Option<Timestamp>,
    lanes: Arc<[LaneName]>,
    trace: Option<Arc<str>>,
    stop: StopSignal,
}

impl Engine {
    /// Answers, starts runs and sends updates, now that the batch is stored.
    pub(crate) fn publish(&mut self, requests: &mut Vec<Request>, mut batch: Box<Batch>) {
        let is_claim_in_vain = batch.events.is_empty() && !requests.is_empty();
        for (request, (reply, span)) in requests.drain(..).zip(batch.replies.drain(..)) {
            if let Some(output) = request.output.as_deref().filter(|_| reply.is_ok()) {
                output.0.iter().for_each(|update| self.publish_output(update));
            }
            self.answer(request.reply_to, reply, &batch.events[span]);
        }
        let mut departed = batch.departed.iter().peekable();
        for event in &batch.events {
            let view = match event {
                Event::Ended { task, .. } => departed.next_if(|view| view.id == *task),
                _ => None,
            };
            self.effect(event, &batch, view);
        }
        if !is_claim_in_vain {
            self.resources.offers.notify_waiters();
        }
        if self.skips_events(&batch) {
            let events = &mut batch.events;
            self.remember(batch.at, || std::mem::take(events));
        } else {
            self.remember(batch.at, || batch.events.clone());
            self.publish_events(&mut batch);
        }
        batch.clear();
        self.buffers.batch = Some(batch);
        self.begin_runs();
    }

    /// Publishes what the attempt of a worker says, unless the attempt is over meanwhile.
    fn publish_output(&self, output: &Update) {
        let (Update::Delta { task, fence, .. }
        | Update::Progress { task, fence, .. }
        | Update::Usage { task, fence, .. }) = output
        else {
            return;
        };
        let Some(view) = self.scheduler.task(*task) else { return };
        if view.running.is_none_or(|running| running.fence != *fence) {
            return;
        }
        self.resources.hub.publish_output(output, &view.lanes);
        if let Some(broadcast) = &self.resources.broadcast {
            broadcast.publish(output, &view.lanes);
        }
    }

    /// Starts the handlers, after the grants were published: the output of the runs comes next.
    pub(crate) fn begin_runs(&mut self) {
        if self.starts.is_empty() {
            return;
        }
        let mut starts = std::mem::take(&mut self.starts);
        for start in starts.drain(..) {
            self.start_handler(start);
        }
        self.starts = starts;
    }

    fn answer(&mut self, reply_to: ReplyTo, reply: Result<Reply, Error>, events: &[Event]) {
        let told = match (reply_to, reply) {
            (ReplyTo::Restored(task), Err(_)) => return self.on_restore_refused(task),
            (ReplyTo::NoCaller | ReplyTo::Restored(_), _) => return,
            (ReplyTo::Reply(answer), reply) => Delivery::Reply(answer, reply),
            (reply_to, Err(error)) => Delivery::Refusal(reply_to, error),
            (ReplyTo::Slot(answer), Ok(reply)) => {
                if let Reply::Accepted { task, .. } = reply {
                    self.callers.slots.insert(task, answer);
                }
                return;
            }
            (ReplyTo::Task(answer), Ok(reply)) => match self.accepted(&reply) {
                Some(accepted) => {
                    let is_live = !accepted.joined || events.contains(&Event::Joined { task: accepted.task });
                    let waiter = is_live.then(|| self.wait_for(accepted.task));
                    Delivery::Task(answer, Accepted { waiter, ..accepted })
                }
                None => return,
            },
            (ReplyTo::Acceptance(answer), Ok(reply)) => match self.accepted(&reply) {
                Some(accepted) => Delivery::Task(answer, accepted),
                None => return,
            },
            (ReplyTo::Batch(answer), Ok(_)) => {
                let submitted = events.iter().filter_map(|event| match event {
                    Event::Submitted { task, .. } => Some(*task),
                    _ => None,
                });
                Delivery::Batch(answer, submitted.map(|task| self.wait_for(task)).collect())
            }
            (ReplyTo::Claim(answer), Ok(_)) => Delivery::Claims(answer, self.claims(events)),
        };
        self.callers.outbox.push(told);
    }

    fn accepted(&self, reply: &Reply) -> Option<Accepted> {
        let Reply::Accepted { task, joined } = *reply else { return None };
        let standing = crate::handle::submission::Standing::of(&self.scheduler, task);
        Some(Accepted { task, joined, waiter: None, standing })
    }

    /// What tells of the end of a live task.
    pub(super) fn wait_for(&mut self, task: TaskId) -> Waiter {
        let (tell, waiter) = oneshot::channel();
        let waiters = self.callers.waiters.entry(task).or_default();
        // A caller may look often and go each time.
        waiters.retain(|waiter| !waiter.is_closed());
        waiters.push(tell);
        waiter
    }

    /// What a worker got, of what is still there.
    fn claims(&self, events: &[Event]) -> Vec<Claim> {
        let granted = events.iter().filter_map(|event| match event {
            Event::Granted {
                task, attempt, fence, lease_until, timeout_at, owner: Owner::Worker(_), ..
            } => {
                // The same step may have granted a task to a worker that waits for that one.
                let view = self.scheduler.task(*task).filter(|view| view.owner.is_none())?;
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
                    trace: view.trace,
                    blob,
                })
            }
            _ => None,
        });
        granted.collect()
    }

    fn effect(&mut self, event: &Event, batch: &Batch, view: Option<&LiveTaskView>) {
        match event {
            Event::Granted { task, attempt, fence, lease, timeout_at, owner, .. }
                if *owner == self.owner() =>
            {
                let grant = Grant {
                    task: *task,
                    fence: *fence,
                    attempt: *attempt,
                    lease: *lease,
                    timeout_at: *timeout_at,
                };
                self.start(grant, batch.at, &batch.payloads);
            }
            Event::Granted { task, fence, owner, .. } => {
                let worker = owner.worker().cloned();
                let start_of = AttemptStart { fence: *fence, started: batch.at, worker };
                self.runs.note(*task, start_of);
            }
            Event::Stopping { task, fence, reason, .. } => self.runs.tell(*task, *fence, (*reason).into()),
            Event::Retrying { task, .. } | Event::Redelivered { task, .. } => {
                self.runs.remove(*task, Stopped::Revoked);
            }
            Event::Ended { task, end } => {
                self.runs.remove(*task, stopped_by(end));
                if !self.callers.slots.is_empty()
                    && let Some(answer) = self.callers.slots.remove(task)
                {
                    self.callers.outbox.push(Delivery::Slot(answer, Err(RunError::Ended(end.clone()))));
                }
                self.tell_waiters(*task, || {
                    let result = batch.result_of(*task, end);
                    Ending { result, ..Ending::new(end.clone(), view, batch.ended_at(*task)) }
                });
            }
            _ => {}
        }
    }

    pub(crate) fn tell_waiters(&mut self, task: TaskId, ending: impl Fn() -> Ending) {
        if self.callers.waiters.is_empty() {
            return;
        }
        for waiter in self.callers.waiters.remove(&task).unwrap_or_default() {
            // Many callers let a task go on alone.
            if !waiter.is_closed() {
                self.callers.outbox.push(Delivery::Ending(waiter, Box::new(ending())));
            }
        }
    }

    /// Starts what was granted: the caller that waits for the slot gets it, else the handler of its kind runs it once
    /// [`begin_runs`](Engine::begin_runs) is called.
    ///
    /// `payloads` are those that came with what was decided: what is at hand need not be read again. There are at most as
    /// many as a turn has commands.
    pub(crate) fn start(&mut self, grant: Grant, started: Timestamp, payloads: &[(BlobId, Bytes)]) {
        let Grant { task, fence, timeout_at, .. } = grant;
        let stop = self.runs.insert(task, fence, grant.lease, started, self.clock.now());
        if let Some(answer) = self.callers.slots.remove(&task) {
            if let Some(handle) = self.handle() {
                let slot = Slot::new(task, fence, timeout_at, stop, handle);
                self.callers.outbox.push(Delivery::Slot(answer, Ok(slot)));
            }
            return;
        }
        let Some(view) = self.scheduler.task(task) else { return };
        if view.is_slot() {
            // Its caller got an error when the store was away, and has gone.
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
        let LiveTaskView { kind, deadline, trace, .. } = view;
        self.starts.push(Start { kind, payload, grant, deadline, lanes: view.lanes.into(), trace, stop });
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
        let Some(handler) = self.resources.handlers.get(&start.kind) else {
            // It was removed, or the task is older than this program: the dead letter can be run again.
            let error = Error::NoHandler { kind: start.kind }.to_string().into();
            let (task, fence) = (start.grant.task, start.grant.fence);
            let outcome = Outcome::Failure { error, retryable: false };
            return handle.report_later(Report::Finish {
                task,
                fence,
                outcome,
                result: None,
                work: None,
                at: Instant::now(),
            });
        };
        let Grant { task, fence, attempt, timeout_at, .. } = start.grant;
        let Start { payload, deadline, lanes, trace, stop, .. } = start;
        let context =
            Context { task, fence, attempt, timeout_at, deadline, lanes, trace, stop, handle, is_task: true };
        let journal = self.storage.journal.clone();
        let kept_max = self.resources.payloads_kept_max;
        self.spawner.spawn(handler::run(
            handler,
            context,
            journal,
            payload,
            self.run_options.stop_grace,
            kept_max,
        ));
    }
}

/// Why to stop an attempt whose task ended otherwise than by its own report.
fn stopped_by(end: &End) -> Stopped {
    match end {
        End::Cancelled { reason } => Stopped::Cancelled(*reason),
        End::TimedOut => Stopped::Timeout,
        _ => Stopped::Revoked,
    }
}
