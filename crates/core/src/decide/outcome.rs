//! What follows a failure, a timeout, a silent worker, a stop?

use std::sync::Arc;

use crate::api::command::{Outcome, Reply};
use crate::api::event::{CancelReason, DeadLetterRemoval, End, Event, StopReason};
use crate::api::ids::{Fence, TaskId};
use crate::api::lane_settings::{Handler, STOP_GRACE};
use crate::api::owner::Owner;
use crate::api::rejection::Rejection;
use crate::api::session_command::SessionDelta;
use crate::api::time::{Millis, Timestamp};
use crate::scheduler::Scheduler;
use crate::sessions::message::MessageId;
use crate::state::lane_config::ClassIdx;
use crate::state::task::{Attempt, Phase, TaskIdx};
use crate::step::Step;

/// The error of an attempt whose owner was silent begins so.
pub const LEASE_LAPSED: &str = "the lease lapsed";

impl Step<'_> {
    pub(crate) fn heartbeat(&mut self, task: TaskId, fence: Fence) -> Result<Reply, Rejection> {
        let (until, stopping) = self.renew_lease(task, fence)?;
        Ok(Reply::Renewed { until, stopping })
    }

    /// Renews the lease of an attempt. Returns why it must stop, if it must. A stopping attempt of a replica keeps its grace;
    /// a worker's keeps its slots for as long as it renews its lease.
    pub(crate) fn renew_lease(
        &mut self,
        task: TaskId,
        fence: Fence,
    ) -> Result<(Timestamp, Option<StopReason>), Rejection> {
        let (_, attempt) = self.fenced(task, fence)?;
        let stopping = attempt.stopping;
        match stopping {
            Some((reason, until)) if attempt.owner.worker().is_none() => return Ok((until, Some(reason))),
            _ => {}
        }
        let lease_until = self.state.now + attempt.lease;
        self.emit(Event::Renewed { task, fence, lease_until });
        Ok((lease_until, stopping.map(|(reason, _)| reason)))
    }

    pub(super) fn finish(
        &mut self,
        task: TaskId,
        fence: Fence,
        taken: &[MessageId],
        outcome: Outcome,
    ) -> Result<Reply, Rejection> {
        if !taken.is_empty() {
            self.take_messages(task, fence, Some(taken))?;
        }
        let (idx, attempt) = self.fenced(task, fence)?;
        if attempt.stopping.is_some() {
            self.conclude_stop(idx);
            return Ok(Reply::Done);
        }
        match outcome {
            Outcome::Success => self.end(idx, End::Completed),
            Outcome::Failure { error, retryable } => {
                if !retryable {
                    self.give_up_turn(idx);
                }
                self.fail(idx, Arc::clone(&error), retryable, End::Failed { error });
            }
            Outcome::Stopped => {
                let error: Arc<str> = "the attempt stopped without an outcome".into();
                self.fail(idx, Arc::clone(&error), true, End::Failed { error });
            }
        }
        Ok(Reply::Done)
    }

    /// Notes that no other attempt helps the messages of a turn.
    fn give_up_turn(&mut self, idx: TaskIdx) {
        if let Some((session, _)) = self.session_of_task(idx).filter(|_| self.is_message_turn(idx)) {
            let turn = self.state.tasks[idx].id;
            let lane = self.state.sessions[session].lane.clone();
            self.in_session(&lane, SessionDelta::GaveUp { turn });
        }
    }

    /// The owner of an attempt is dead, so its lease ends now. A stopping attempt has stopped.
    pub(crate) fn lapse_now(&mut self, task: TaskId, fence: Fence) -> Result<Reply, Rejection> {
        let (idx, attempt) = self.fenced(task, fence)?;
        if attempt.stopping.is_some() {
            self.conclude_stop(idx);
        } else {
            self.lapse(idx);
        }
        Ok(Reply::Done)
    }

    /// Stops a running attempt and cancels the children that it waits for. Its slots are free when its owner confirms that
    /// it has stopped. A replica has a short time for that. A worker may hear of it late, so it has its lease.
    pub(super) fn stop(&mut self, idx: TaskIdx, reason: StopReason) {
        let Some(attempt) = self.state.tasks[idx].attempt() else { return };
        let (task, fence) = (self.state.tasks[idx].id, attempt.fence);
        let until = match (attempt.stopping, &attempt.owner) {
            (Some((_, until)), _) => until,
            (None, Owner::Worker(_)) => attempt.lease_until,
            (None, Owner::Replica(_)) => self.state.now + STOP_GRACE,
        };
        self.cancel_children(idx);
        self.emit(Event::Stopping { task, fence, reason, until });
    }

    /// A stopping attempt has stopped, or the time that it had for that is over.
    pub(crate) fn conclude_stop(&mut self, task: TaskIdx) {
        let stopping = self.state.tasks[task].attempt().and_then(|attempt| attempt.stopping);
        match stopping {
            Some((StopReason::Timeout, _)) => {
                self.fail(task, "the attempt took too long".into(), true, End::TimedOut);
            }
            Some((StopReason::Cancelled(reason), _)) => self.end(task, End::Cancelled { reason }),
            None => {}
        }
    }

    /// The lease of an attempt lapsed, because its owner is silent.
    pub(super) fn lapse(&mut self, idx: TaskIdx) {
        let task = &self.state.tasks[idx];
        let Some(attempt) = task.attempt() else { return };
        let (id, fence) = (task.id, attempt.fence);
        if task.worker().is_some() {
            let error: Arc<str> = "its owner sent no heartbeat".into();
            self.fail(idx, Arc::clone(&error), false, End::Failed { error });
        } else if task.handler != Handler::External {
            self.fail(idx, LEASE_LAPSED.into(), true, End::Lost);
        } else if self.may_redeliver(idx) {
            self.cancel_children(idx);
            self.emit(Event::Redelivered { task: id, fence });
        } else {
            let error: Arc<str> = format!("{LEASE_LAPSED} {} times", task.redeliveries() + 1).into();
            self.fail(idx, Arc::clone(&error), false, End::Failed { error });
        }
    }

    /// An attempt did not succeed: another follows, or the task ends as `end` with a dead letter.
    fn fail(&mut self, idx: TaskIdx, error: Arc<str>, retryable: bool, end: End) {
        self.cancel_children(idx);
        let task = &self.state.tasks[idx];
        let fence = task.attempt().map(|attempt| attempt.fence);
        match (self.next_delay(idx).filter(|_| retryable), fence) {
            (Some(delay), Some(fence)) => {
                let retrying = Event::Retrying { task: task.id, fence, error, at: self.state.now + delay };
                self.emit(retrying);
            }
            _ => {
                self.keep_dead_letter(idx, error);
                self.end(idx, end);
            }
        }
    }

    /// Keeps a task that could not be done, and makes room for it first.
    fn keep_dead_letter(&mut self, idx: TaskIdx, error: Arc<str>) {
        let (task, attempts) = (self.state.tasks[idx].id, self.state.tasks[idx].attempts);
        let class = self.state.lanes[self.state.lanes.route(self.state.tasks[idx].route).first_lane()].class;
        let most = self.state.lane_config.class(class).settings.dead_letters_max;
        // What failed of a session is its messages: they are tried again, or parked.
        if most == 0 || self.is_message_turn(idx) {
            return;
        }
        self.drop_dead_letters(class, most - 1);
        self.emit(Event::DeadLettered { task, error, attempts });
    }

    /// Drops the oldest dead letters of a class until it has at most `most`.
    pub(crate) fn drop_dead_letters(&mut self, class: ClassIdx, most: u32) {
        while self.state.lane_config.class(class).dead_letters > most
            && let Some(dead_letter) = self.state.dead_letters.oldest(class)
        {
            self.emit(Event::DeadLetterRemoved { dead_letter, why: DeadLetterRemoval::Overflow });
        }
    }

    /// Brings a task to its end; those that were held until then join the line.
    pub(crate) fn end(&mut self, idx: TaskIdx, end: End) {
        let task = self.state.tasks[idx].id;
        if self.state.tasks[idx].rare.is_none() {
            // No other task depends on it.
            return self.emit(Event::Ended { task, end });
        }
        self.cancel_children(idx);
        let followers = self.state.tasks[idx].rare.as_ref().map_or(vec![], |rare| rare.followers.clone());
        self.emit(Event::Ended { task, end });
        for follower in followers {
            let task = self.state.tasks[follower].id;
            if matches!(self.state.tasks[follower].phase, Phase::Held) {
                self.emit(Event::Ready { task });
            }
        }
    }

    /// Cancels one task, whatever it does. Says whether it only waited.
    pub(crate) fn cancel_slot(&mut self, task: TaskIdx, reason: CancelReason) -> bool {
        match self.state.tasks[task].attempt().map(|attempt| attempt.stopping) {
            None => {
                self.end(task, End::Cancelled { reason });
                return true;
            }
            Some(Some((StopReason::Cancelled(_), _))) => {}
            Some(_) => self.stop(task, StopReason::Cancelled(reason)),
        }
        false
    }
}

impl Scheduler {
    pub(crate) fn live(&self, task: TaskId) -> Result<TaskIdx, Rejection> {
        self.state.tasks.find(task).ok_or(Rejection::NotLive { task })
    }

    /// The task, if `fence` is that of its current attempt.
    pub(crate) fn fenced(&self, task: TaskId, fence: Fence) -> Result<(TaskIdx, &Attempt), Rejection> {
        let idx = match self.live(task) {
            Err(_) if self.state.ended_runs.contains(&task) => {
                return Err(Rejection::StaleLease { task, fence });
            }
            other => other?,
        };
        match self.state.tasks[idx].attempt() {
            Some(attempt) if attempt.fence == fence => Ok((idx, attempt)),
            _ => Err(Rejection::StaleLease { task, fence }),
        }
    }

    /// Whether a live task outlives its owner: it has not begun, or another attempt follows.
    pub fn survives_its_owner(&self, task: TaskId) -> bool {
        let Some(idx) = self.state.tasks.find(task) else { return false };
        let task = &self.state.tasks[idx];
        match task.handler {
            _ if task.attempt().is_none() => true,
            Handler::External => self.may_redeliver(idx),
            _ => self.next_delay(idx).is_some(),
        }
    }

    fn may_redeliver(&self, idx: TaskIdx) -> bool {
        let task = &self.state.tasks[idx];
        let home = self.settings(self.state.lanes.route(task.route).first_lane());
        task.redeliveries() < home.max_redelivery
    }

    /// After which pause another attempt follows one that failed, if any does.
    fn next_delay(&self, idx: TaskIdx) -> Option<Millis> {
        let task = &self.state.tasks[idx];
        let retry =
            task.retry().unwrap_or(self.settings(self.state.lanes.route(task.route).first_lane()).retry);
        let seed = task.id.0 as u64 ^ (task.id.0 >> 64) as u64;
        retry.delay(task.retries() + 1, seed)
    }
}
