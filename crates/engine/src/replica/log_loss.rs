//! Restoring what a log has lost: an engine remembers what it accepted lately, and submits it again when the log goes back.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use laneway_core::{
    BlobId, Block, Command, End, Event, LaneSettings, NoteChange, Outcome, Pattern, Reply, Scheduler,
    SessionCommand, TaskId, TaskSpec,
};
use laneway_store::{ErrorKind, Head, Log, StoreError};
use tokio::time::Instant;

use crate::driver::batch::Batch;
use crate::driver::engine::Engine;
use crate::driver::mailbox::{Ending, ReplyTo, Request};
use crate::driver::outbox::Delivery;
use crate::error::RunError;

/// A failover loses the last moments of a log. What is older counts as stored.
const AGE_MAX: Duration = Duration::from_secs(60);
/// The most that is remembered: commands, and bytes of their payloads and results.
const ACCEPTED_MAX: usize = 20_000;
const BYTES_MAX: usize = 16 << 20;

/// The newest tasks, ends of tasks, messages and settings that were accepted here, the oldest first: at most [`ACCEPTED_MAX`],
/// with at most [`BYTES_MAX`].
#[derive(Default)]
pub(crate) struct RecentWork {
    accepted: VecDeque<Accepted>,
    bytes: usize,
}

struct Accepted {
    at: Instant,
    /// The batch that stored it.
    head: Head,
    command: Command,
    payloads: Vec<(BlobId, Bytes)>,
    /// The result and the payload of an attempt that ended.
    result: Option<Bytes>,
    work: Option<Bytes>,
}

impl Accepted {
    fn bytes(&self) -> usize {
        let text = match &self.command {
            Command::Session(command) => match &**command {
                SessionCommand::Send(message) => message.text.len(),
                _ => 0,
            },
            _ => 0,
        };
        let produced = [&self.result, &self.work].into_iter().flatten().map(Bytes::len).sum::<usize>();
        text + produced + self.payloads.iter().map(|(_, payload)| payload.len()).sum::<usize>()
    }

    /// Submits it again.
    fn into_ask(self) -> Request {
        let reply_to = match self.command {
            Command::Submit { task, .. } | Command::RestoreOutcome { task, .. } => ReplyTo::Restored(task),
            _ => ReplyTo::NoCaller,
        };
        let Accepted { payloads, result, work, .. } = self;
        Request { payloads, result, work, ..Request::new(self.command, reply_to) }
    }
}

/// The specs of tasks that were accepted here lately.
type Specs = HashMap<TaskId, Box<TaskSpec>>;

/// What an engine submits again after the log has lost it.
#[derive(Default)]
pub(super) struct LostWork {
    /// Tasks that are submitted again.
    pub(super) asked: HashSet<TaskId>,
    /// Tasks whose ends are decided again.
    pub(super) ended: HashSet<TaskId>,
}

/// Whether a command changes settings.
fn is_setting(command: &Command) -> bool {
    match command {
        Command::Configure(blocks) => !blocks.is_empty(),
        Command::ChangeSettings(_) => true,
        Command::Session(command) => matches!(**command, SessionCommand::ConfigureMessages(_)),
        _ => false,
    }
}

/// The notes that the log has lost. The first replica restores them; for the others the expectation fails.
fn notes<'a>(before: &'a Scheduler, now: &'a Scheduler) -> impl Iterator<Item = Command> + 'a {
    let lost = before.notes("").filter(|(key, text)| now.note(key) != Some(*text));
    lost.map(|(key, text)| {
        let expected = vec![(Arc::clone(key), now.note(key).cloned())];
        let changes = vec![(Arc::clone(key), Some(Arc::clone(text)))];
        Command::Note(Box::new(NoteChange { expected, changes }))
    })
}

impl RecentWork {
    /// Remembers what a stored batch has accepted.
    pub(crate) fn note(&mut self, head: Head, requests: &[Request], batch: &Batch) {
        let at = Instant::now();
        for (request, (reply, span)) in requests.iter().zip(&batch.replies) {
            let is_new = match (&request.command, reply) {
                (Command::Submit { .. }, Ok(Reply::Accepted { joined, .. })) => !joined,
                // Only the last attempt ends a task.
                (Command::Finish { task, .. }, Ok(_)) => {
                    let is_end =
                        |event: &Event| matches!(event, Event::Ended { task: ended, .. } if ended == task);
                    batch.events[span.clone()].iter().any(is_end)
                }
                (Command::Session(command), Ok(_)) if matches!(**command, SessionCommand::Send(_)) => true,
                (command, Ok(_)) => is_setting(command),
                _ => false,
            };
            if is_new {
                let (command, payloads) = (request.command.clone(), request.payloads.clone());
                let (result, work) = (request.result.clone(), request.work.clone());
                let accepted = Accepted { at, head, command, payloads, result, work };
                self.bytes += accepted.bytes();
                self.accepted.push_back(accepted);
            }
        }
        while self.accepted.front().is_some_and(|oldest| {
            self.accepted.len() > ACCEPTED_MAX || self.bytes > BYTES_MAX || at - oldest.at > AGE_MAX
        }) {
            self.bytes -= self.accepted.pop_front().map_or(0, |oldest| oldest.bytes());
        }
    }

    /// Forgets what the log still holds.
    async fn forget_kept(&mut self, log: &Log) -> Result<(), StoreError> {
        log.store().forget_log();
        // A log that went back holds everything up to some batch, and nothing behind it.
        let (mut kept, mut lost) = (0, self.accepted.len());
        while kept < lost {
            let middle = (kept + lost) / 2;
            match log.read(self.accepted[middle].head).await {
                Ok(_) | Err(StoreError::Trimmed { .. }) => kept = middle + 1,
                Err(error) if error.kind() == ErrorKind::Conflict => lost = middle,
                Err(error) => return Err(error),
            }
        }
        self.bytes -= self.accepted.drain(..kept).map(|accepted| accepted.bytes()).sum::<usize>();
        Ok(())
    }
}

impl Engine {
    /// Forgets what the log, as it is now, still holds of what was accepted lately.
    pub(super) async fn forget_kept(&mut self) -> Result<(), StoreError> {
        match (&mut self.replica, self.storage.journal.log()) {
            (Some(replica), Some(log)) => replica.recent.forget_kept(log).await,
            _ => Ok(()),
        }
    }

    /// Submits again, with the next batch, what was accepted here and is lost, unless it had ended in the state `before`; also
    /// restores fences and the ends of tasks. What ran is treated as if its replica had died.
    pub(super) fn lost_work(&mut self, before: &Scheduler) -> LostWork {
        let Some(replica) = &mut self.replica else { return LostWork::default() };
        let recent = std::mem::take(&mut replica.recent);
        let mut commands = vec![Command::RaiseFences { to: before.highest_fence() }];
        let has_settings = self.scheduler.blocks().next().is_some();
        if !has_settings {
            // The log has lost everything. Without settings no lane would have its limit.
            let block = |(lanes, settings): (&Pattern, &LaneSettings)| Block {
                lanes: lanes.clone(),
                settings: Some(settings.clone()),
            };
            commands.push(Command::Configure(before.blocks().map(block).collect()));
            let messages = Box::new(before.message_settings().clone());
            commands.push(Command::Session(Box::new(SessionCommand::ConfigureMessages(messages))));
        }
        commands.extend(notes(before, &self.scheduler));
        let mut specs = HashMap::new();
        let mut requests = Vec::new();
        for accepted in recent.accepted {
            if let Command::Submit { task, spec } = &accepted.command {
                specs.insert(*task, spec.clone());
            }
            let asked = if is_setting(&accepted.command) {
                has_settings.then_some(accepted)
            } else {
                self.wanted(accepted, before, &specs)
            };
            requests.extend(asked.map(Accepted::into_ask));
        }
        // Settings first, so that nothing is granted under others. Ends before reports, so that a task that has ended does not
        // start when a report frees a slot.
        requests.sort_by_key(|request| match &request.command {
            command if is_setting(command) => 0,
            Command::RestoreOutcome { .. } => 1,
            Command::Finish { .. } => 2,
            _ => 3,
        });
        let mut lost_work = LostWork::default();
        for request in &requests {
            match &request.command {
                Command::Submit { task, .. } => lost_work.asked.extend([*task]),
                Command::Finish { task, .. } | Command::RestoreOutcome { task, .. } => {
                    lost_work.ended.extend([*task])
                }
                _ => {}
            }
        }
        self.storage
            .deferred
            .extend(commands.into_iter().map(|command| Request::new(command, ReplyTo::NoCaller)));
        self.storage.deferred.extend(requests);
        lost_work
    }

    /// A task that was to be restored is refused: it is lost, and its callers hear so.
    pub(crate) fn on_restore_refused(&mut self, task: TaskId) {
        if self.scheduler.task(task).is_none() {
            self.tell_waiters(task, Ending::lost);
            if let Some(answer) = self.callers.slots.remove(&task) {
                self.callers.outbox.push(Delivery::Slot(answer, Err(RunError::Ended(End::Lost))));
            }
        }
    }

    /// What to submit in place of something that the log has lost.
    fn wanted(&self, accepted: Accepted, before: &Scheduler, specs: &Specs) -> Option<Accepted> {
        let is_wanted = match &accepted.command {
            // Only slots that a caller still waits for: a slot that was held has been taken away.
            Command::Submit { task, spec } if spec.is_slot() => self.callers.slots.contains_key(task),
            Command::Submit { task, .. } if before.survives_its_owner(*task) => true,
            // It ran and may not run again.
            Command::Submit { task, spec } if before.task(*task).is_some() => {
                let command =
                    Command::RestoreOutcome { task: *task, spec: Some(spec.clone()), end: End::Lost };
                return Some(Accepted { command, payloads: Vec::new(), ..accepted });
            }
            Command::Finish { task, fence, outcome, .. } => match self.scheduler.task(*task) {
                Some(view) if view.running.is_some() => {
                    view.running.is_some_and(|running| running.fence == *fence)
                }
                // Its end is decided again.
                _ if before.task(*task).is_none() => {
                    let end = match outcome {
                        Outcome::Success => End::Completed,
                        Outcome::Failure { error, .. } => End::Failed { error: Arc::clone(error) },
                        Outcome::Stopped => return None,
                    };
                    let command =
                        Command::RestoreOutcome { task: *task, spec: specs.get(task).cloned(), end };
                    return Some(Accepted { command, ..accepted });
                }
                _ => false,
            },
            Command::Session(command) => match &**command {
                SessionCommand::Send(message) => before.live_message(message.id).is_some(),
                _ => false,
            },
            _ => false,
        };
        is_wanted.then_some(accepted)
    }
}
