//! What an engine refuses before the scheduler decides, which does not know what runs here.

use laneway_core::{
    Command, Handler, LaneName, Name, Rejection, SessionCommand, TaskId, TaskSpec, Timestamp,
};

use crate::driver::engine::Engine;
use crate::driver::mailbox::{Call, ReplyTo, Request};
use crate::error::Error;

impl Engine {
    /// Whether this program can do what the request asks for.
    pub(super) fn admit(&self, request: &Request) -> Result<(), Error> {
        if self.closing.is_some() && request.is_new_work() {
            return Err(Error::Closed);
        }
        match (&request.command, &request.reply_to) {
            // It was admitted before.
            (_, ReplyTo::Restored(_)) => Ok(()),
            (Command::Submit { spec, .. }, reply_to) if is_for_caller(spec, reply_to) => {
                match spec.lanes.first() {
                    Some(home) if self.is_external(home) => Err(Error::ExternalLane { lane: home.clone() }),
                    _ => Ok(()),
                }
            }
            (Command::Submit { spec, .. }, _) => self.admit_kind(&spec.kind, spec.lanes.first()),
            (Command::SubmitBatch(batch), _) => batch.calls.iter().try_for_each(|call| {
                let lane = LaneName::tool(&batch.session, call.lane).ok();
                self.admit_kind(&call.tool, lane.as_ref())
            }),
            (Command::Session(command), _) => match &**command {
                SessionCommand::Send(incoming) => {
                    self.admit_kind(&incoming.agent.kind, incoming.agent.lane().ok().as_ref())
                }
                SessionCommand::Resend { message, .. } => {
                    let mut parked = self.scheduler.parked_messages();
                    let Some((_, kept)) = parked.find(|(_, kept)| kept.id == *message) else { return Ok(()) };
                    let agent = &kept.address.agent;
                    self.admit_kind(&agent.kind, agent.lane().ok().as_ref())
                }
                SessionCommand::HeartbeatOfTurn { turn, fence, .. } if !self.is_claimed(*turn) => {
                    Err(Rejection::StaleLease { task: *turn, fence: *fence }.into())
                }
                _ => Ok(()),
            },
            (Command::Finish { task, fence, .. } | Command::Heartbeat { task, fence }, ReplyTo::Reply(_)) => {
                if self.is_claimed(*task) {
                    Ok(())
                } else {
                    Err(Rejection::StaleLease { task: *task, fence: *fence }.into())
                }
            }
            (Command::Redrive { dead_letter, .. }, _) => {
                let mut dead_letters = self.scheduler.dead_letters();
                match dead_letters.find(|dead| dead.task == *dead_letter) {
                    Some(dead) if dead.spec.owner.is_some() => Err(Error::NotForClosures("a second life")),
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Refuses a submission that finds no room, and returns any other call.
    pub(crate) fn refuse_if_full(&mut self, call: Call) -> Option<Call> {
        let Call::Request(request) = call else { return Some(call) };
        let Command::Submit { task, spec } = &request.command else { return Some(Call::Request(request)) };
        let now = self.clock.now();
        let full = self.scheduler.lane_full_for(now, *task, spec);
        match full.filter(|_| self.admit(&request).is_ok()) {
            None => Some(Call::Request(request)),
            Some(rejection) => {
                request.reply_to.refuse(self.with_return_time(now, rejection));
                None
            }
        }
    }

    /// Gives a caller that was refused for want of room a moment of its own to come back.
    pub(super) fn with_return_time(&mut self, now: Timestamp, mut rejection: Rejection) -> Error {
        if let Rejection::LaneFull(full) = &mut rejection {
            self.callers.return_times.give(now, full);
        }
        rejection.into()
    }

    fn admit_kind(&self, kind: &Name, home: Option<&LaneName>) -> Result<(), Error> {
        let runs_here = self.resources.handlers.get(kind).is_some();
        if runs_here || home.is_some_and(|home| self.is_external(home)) {
            Ok(())
        } else {
            Err(Error::NoHandler { kind: kind.clone() })
        }
    }

    /// Whether a worker may report on it: what an engine runs itself, only that engine reports.
    fn is_claimed(&self, task: TaskId) -> bool {
        let Some(view) = self.scheduler.task(task) else { return true };
        view.running.is_none_or(|run| run.worker().is_some())
    }

    fn is_external(&self, home: &LaneName) -> bool {
        self.scheduler.handler_for(home) == Handler::External
    }
}

/// Whether the caller itself uses the slot of a task, so that no handler runs it.
fn is_for_caller(spec: &TaskSpec, reply_to: &ReplyTo) -> bool {
    spec.owner.is_some() || matches!(reply_to, ReplyTo::Slot(_))
}
