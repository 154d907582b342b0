//! What follows a failure, a timeout, a silent worker, a stop?

use std::sync::Arc;

use crate::api::command::{Outcome, Reply};
use crate::api::event::{CancelReason, End, Event, LetterGone, StopReason};
use crate::api::ids::{Fence, TaskId};
use crate::api::lane_settings::{Handler, STOP_GRACE};
use crate::api::rejection::Rejection;
use crate::api::time::{Millis, Timestamp};
use crate::scheduler::Scheduler;
use crate::state::task::{Attempt, Phase};

impl Scheduler {
    pub(crate) fn live(&self, task: TaskId) -> Result<u32, Rejection> {
        self.tasks.find(task).ok_or(Rejection::NotLive { task })
    }

    /// The task, if `fence` is that of its current attempt.
    pub(crate) fn fenced(&self, task: TaskId, fence: Fence) -> Result<(u32, &Attempt), Rejection> {
        // Few tasks run, so their list is at hand where the table of all is not.
        let running = self.tasks.running.find(fence).filter(|slot| self.tasks[*slot].id == task);
        if let Some(slot) = running {
            self.tasks.expect(slot);
        }
        let slot = match self.live(task) {
            Err(_) if self.ended_runs.contains(&task) => return Err(Rejection::StaleLease { task, fence }),
            other => other?,
        };
        match self.tasks[slot].attempt() {
            Some(attempt) if attempt.fence == fence => Ok((slot, attempt)),
            _ => Err(Rejection::StaleLease { task, fence }),
        }
    }

    pub(crate) fn heartbeat(
        &mut self,
        task: TaskId,
        fence: Fence,
        events: &mut Vec<Event>,
    ) -> Result<Reply, Rejection> {
        let (until, stopping) = self.renew_lease(task, fence, events)?;
        Ok(Reply::Renewed { until, stopping })
    }

    /// Renews the lease of an attempt. One that was told to stop keeps its grace, and the reason is returned.
    pub(crate) fn renew_lease(
        &mut self,
        task: TaskId,
        fence: Fence,
        events: &mut Vec<Event>,
    ) -> Result<(Timestamp, Option<StopReason>), Rejection> {
        let (_, attempt) = self.fenced(task, fence)?;
        if let Some((reason, until)) = attempt.stopping {
            return Ok((until, Some(reason)));
        }
        let lease_until = self.now + attempt.lease;
        self.emit(Event::Renewed { task, fence, lease_until }, events);
        Ok((lease_until, None))
    }

    pub(crate) fn finish(
        &mut self,
        task: TaskId,
        fence: Fence,
        outcome: Outcome,
        events: &mut Vec<Event>,
    ) -> Result<Reply, Rejection> {
        let (slot, attempt) = self.fenced(task, fence)?;
        if attempt.stopping.is_some() {
            self.conclude_stop(slot, events);
            return Ok(Reply::Done);
        }
        match outcome {
            Outcome::Success => self.end(slot, End::Completed, events),
            Outcome::Failure { error, retryable } => {
                self.fail(slot, Arc::clone(&error), retryable, End::Failed { error }, events);
            }
            Outcome::Stopped => {
                let error: Arc<str> = "the run stopped without an outcome".into();
                self.fail(slot, Arc::clone(&error), true, End::Failed { error }, events);
            }
        }
        Ok(Reply::Done)
    }

    /// The runner of an attempt is dead, so there is no lease to wait for; one that was to stop has.
    pub(crate) fn lapse_now(
        &mut self,
        task: TaskId,
        fence: Fence,
        events: &mut Vec<Event>,
    ) -> Result<Reply, Rejection> {
        let (slot, attempt) = self.fenced(task, fence)?;
        if attempt.stopping.is_some() {
            self.conclude_stop(slot, events);
        } else {
            self.lapse(slot, events);
        }
        Ok(Reply::Done)
    }

    /// Tells a running attempt to stop, and everything that it waits for.
    pub(crate) fn stop(&mut self, slot: u32, reason: StopReason, events: &mut Vec<Event>) {
        let Some(attempt) = self.tasks[slot].attempt() else { return };
        let (task, fence) = (self.tasks[slot].id, attempt.fence);
        let until = attempt.stopping.map_or(self.now + STOP_GRACE, |(_, until)| until);
        self.cancel_children(slot, events);
        self.emit(Event::Stopping { task, fence, reason, until }, events);
    }

    /// An attempt that was told to stop has stopped, or its grace is over.
    pub(crate) fn conclude_stop(&mut self, slot: u32, events: &mut Vec<Event>) {
        let stopping = self.tasks[slot].attempt().and_then(|attempt| attempt.stopping);
        match stopping {
            Some((StopReason::Timeout, _)) => {
                self.fail(slot, "the attempt took too long".into(), true, End::TimedOut, events);
            }
            Some((StopReason::Cancelled(reason), _)) => self.end(slot, End::Cancelled { reason }, events),
            None => {}
        }
    }

    /// The lease of an attempt lapsed: whoever ran it is silent.
    pub(crate) fn lapse(&mut self, slot: u32, events: &mut Vec<Event>) {
        let task = &self.tasks[slot];
        let Some(attempt) = task.attempt() else { return };
        let (id, fence) = (task.id, attempt.fence);
        if task.claimer().is_some() {
            let error: Arc<str> = "its holder gave no sign of life".into();
            self.fail(slot, Arc::clone(&error), false, End::Failed { error }, events);
        } else if task.handler != Handler::External {
            self.fail(slot, "the lease lapsed".into(), true, End::Lost, events);
        } else if self.may_redeliver(slot) {
            self.cancel_children(slot, events);
            self.emit(Event::Redelivered { task: id, fence }, events);
        } else {
            let error: Arc<str> = format!("the lease lapsed {} times", task.redeliveries() + 1).into();
            self.fail(slot, Arc::clone(&error), false, End::Failed { error }, events);
        }
    }

    /// Whether a live task is done, although whoever ran it may have died: it was not begun, or another attempt follows.
    pub fn survives_its_runner(&self, task: TaskId) -> bool {
        let Some(slot) = self.tasks.find(task) else { return false };
        let task = &self.tasks[slot];
        match task.handler {
            _ if task.attempt().is_none() => true,
            Handler::External => self.may_redeliver(slot),
            _ => self.next_delay(slot).is_some(),
        }
    }

    fn may_redeliver(&self, slot: u32) -> bool {
        let task = &self.tasks[slot];
        let home = self.settings(self.lanes.route(task.route).home());
        task.redeliveries() < home.max_redelivery
    }

    /// After which pause another attempt follows one that failed, if any does.
    fn next_delay(&self, slot: u32) -> Option<Millis> {
        let task = &self.tasks[slot];
        let retry = task.retry().unwrap_or(self.settings(self.lanes.route(task.route).home()).retry);
        let seed = task.id.0 as u64 ^ (task.id.0 >> 64) as u64;
        retry.delay(task.retries() + 1, seed)
    }

    /// An attempt did not succeed: another follows, or the task ends as `end` with a dead letter.
    fn fail(&mut self, slot: u32, error: Arc<str>, retryable: bool, end: End, events: &mut Vec<Event>) {
        self.cancel_children(slot, events);
        let task = &self.tasks[slot];
        let fence = task.attempt().map(|attempt| attempt.fence);
        match (self.next_delay(slot).filter(|_| retryable), fence) {
            (Some(delay), Some(fence)) => {
                let retrying = Event::Retrying { task: task.id, fence, error, at: self.now + delay };
                self.emit(retrying, events);
            }
            _ => {
                self.keep_letter(slot, error, events);
                self.end(slot, end, events);
            }
        }
    }

    /// Keeps a task that could not be done, and makes room for it first.
    fn keep_letter(&mut self, slot: u32, error: Arc<str>, events: &mut Vec<Event>) {
        let (task, attempts) = (self.tasks[slot].id, self.tasks[slot].attempts);
        let class = self.lanes[self.lanes.route(self.tasks[slot].route).home()].class;
        let most = self.book.class(class).settings.dead_letters_max;
        // What failed of a conversation is its messages: they are tried again, or set aside.
        if most == 0 || self.is_message_turn(slot) {
            return;
        }
        self.drop_letters(class, most - 1, events);
        self.emit(Event::DeadLettered { task, error, attempts }, events);
    }

    /// Drops the oldest letters of a class until it has at most `most`.
    pub(crate) fn drop_letters(&mut self, class: u32, most: u32, events: &mut Vec<Event>) {
        while self.book.class(class).letters > most
            && let Some(letter) = self.letters.oldest(class)
        {
            self.emit(Event::LetterGone { letter, why: LetterGone::Overflow }, events);
        }
    }

    /// Brings a task to its end; those that were held until then join the line.
    pub(crate) fn end(&mut self, slot: u32, end: End, events: &mut Vec<Event>) {
        let task = self.tasks[slot].id;
        if self.tasks[slot].rare.is_none() {
            // Nobody depends on it.
            return self.emit(Event::Ended { task, end }, events);
        }
        self.cancel_children(slot, events);
        let followers = self.tasks[slot].rare.as_ref().map_or(vec![], |rare| rare.followers.clone());
        self.emit(Event::Ended { task, end }, events);
        for follower in followers {
            let task = self.tasks[follower].id;
            if matches!(self.tasks[follower].phase, Phase::Held) {
                self.emit(Event::Ready { task }, events);
            }
        }
    }

    /// Cancels one task, whatever it does. Says whether it only waited.
    pub(crate) fn cancel_slot(&mut self, slot: u32, reason: CancelReason, events: &mut Vec<Event>) -> bool {
        match self.tasks[slot].attempt().map(|attempt| attempt.stopping) {
            None => {
                self.end(slot, End::Cancelled { reason }, events);
                return true;
            }
            Some(Some((StopReason::Cancelled(_), _))) => {}
            Some(_) => self.stop(slot, StopReason::Cancelled(reason), events),
        }
        false
    }
}
