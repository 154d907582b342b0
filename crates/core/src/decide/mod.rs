//! Decisions: a command or the time becomes events. Decisions read the state and never write it.

pub(crate) mod control;
pub(crate) mod dispatch;
pub(crate) mod expire;
pub(crate) mod lending;
pub(crate) mod notes;
pub(crate) mod outcome;
pub(crate) mod replicas;
pub(crate) mod restore_outcome;
pub(crate) mod submit;

use crate::api::command::{Command, Reply};
use crate::api::event::Event;
use crate::api::rejection::Rejection;
use crate::step::Step;

impl Step<'_> {
    /// Lets the time pass, decides the command, and grants what may run then.
    pub(crate) fn run(&mut self, command: Command) -> Result<Reply, Rejection> {
        self.expire();
        let mut reply = self.decide(command);
        if let Ok(reply) = &mut reply {
            self.update_changed_sessions();
            self.expire();
            self.grant();
            self.tell_waiting_turn(reply);
        }
        self.report_depths();
        reply
    }

    /// Decides a command that is older than what is due now, so that comes later, with the next command.
    pub(crate) fn run_late(&mut self, command: Command) -> Result<Reply, Rejection> {
        let reply = self.decide(command);
        self.update_changed_sessions();
        self.report_depths();
        reply
    }

    fn decide(&mut self, command: Command) -> Result<Reply, Rejection> {
        match command {
            Command::Tick => Ok(Reply::Done),
            Command::Configure(blocks) => self.configure(blocks),
            Command::ChangeSettings(change) => self.change_settings(*change),
            Command::Note(change) => self.change_notes(*change),
            Command::Submit { task, spec } => self.submit(task, spec),
            Command::SubmitBatch(batch) => self.submit_batch(*batch),
            Command::Leave { task } => self.leave(task),
            Command::Cancel { task, reason } => self.cancel(task, reason),
            Command::CancelWaiting { which, reason } => Ok(self.cancel_waiting(&which, reason)),
            Command::Reprioritise { task, priority } => self.reprioritise(task, priority),
            Command::Claim { worker, lanes, kinds, max, lease } => {
                self.claim(&worker, &lanes, &kinds, max, lease)
            }
            Command::ClaimThese { worker, tasks, lease } => self.claim_these(&worker, &tasks, lease),
            Command::Heartbeat { task, fence } => self.heartbeat(task, fence),
            Command::Finish { task, fence, taken, outcome } => self.finish(task, fence, &taken, outcome),
            Command::Lapse { task, fence } => self.lapse_now(task, fence),
            Command::RenewLeases { replica } => Ok(self.renew_leases(replica)),
            Command::RaiseFences { to } => {
                if to > self.highest_fence() {
                    self.emit(Event::FencesRaised { to });
                }
                Ok(Reply::Done)
            }
            Command::RestoreOutcome { task, spec, end } => self.restore_outcome(task, spec, end),
            Command::Unbind { replica } => Ok(self.unbind(replica)),
            Command::ReplicaGone { replica } => Ok(self.replica_gone(replica)),
            Command::ForceRelease { lane } => Ok(self.force_release(&lane)),
            Command::Pause { lane } => Ok(self.pause(lane)),
            Command::Resume { lane } => Ok(self.resume(lane)),
            Command::Drain { lane } => Ok(self.drain(lane)),
            Command::Redrive { dead_letter, task } => self.redrive(dead_letter, task),
            Command::Discard { dead_letter } => self.discard(dead_letter),
            Command::Session(command) => self.decide_session(*command),
        }
    }
}
