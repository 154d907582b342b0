//! What this engine accepted lately, for a log that goes back behind it: what the log has lost and we still know, we ask for
//! once more.

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

use crate::driver::batch::Turn;
use crate::driver::engine_loop::Engine;
use crate::driver::mailbox::{Ask, Ending, Wants};
use crate::driver::outbox::Told;
use crate::error::RunError;
use crate::handle::task::is_slot;

/// A failover loses a moment, seldom more: what is older than this is taken for kept.
const AGE_MAX: Duration = Duration::from_secs(60);
/// The most tasks, ends of tasks, messages and changes of settings, and bytes of payloads and results, that are remembered.
const ACCEPTED_MAX: usize = 20_000;
const BYTES_MAX: usize = 16 << 20;

/// The newest tasks, their ends, messages and changes of settings that were accepted here, the oldest first: at most [`ACCEPTED_MAX`], with
/// at most [`BYTES_MAX`].
#[derive(Default)]
pub(crate) struct Recent {
    accepted: VecDeque<Accepted>,
    bytes: usize,
}

struct Accepted {
    at: Instant,
    /// The batch that says so.
    head: Head,
    command: Command,
    payloads: Vec<(BlobId, Bytes)>,
    /// What an attempt produced that is over, and what it was to do, if that is remembered.
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

    /// Asks for it again. It is noted anew when that has been kept.
    fn into_ask(self) -> Ask {
        let wants = match self.command {
            Command::Submit { task, .. } | Command::Recount { task, .. } => Wants::PutBack(task),
            _ => Wants::Nothing,
        };
        let Accepted { payloads, result, work, .. } = self;
        Ask { payloads, result, work, ..Ask::new(self.command, wants) }
    }
}

/// What tasks were that were accepted here lately.
type Specs = HashMap<TaskId, Box<TaskSpec>>;

/// What an engine asks for that the log has lost.
#[derive(Default)]
pub(crate) struct PutBack {
    /// Tasks that are asked for again.
    pub(crate) asked: HashSet<TaskId>,
    /// Tasks of which it is told once more how they ended.
    pub(crate) ended: HashSet<TaskId>,
}

/// Whether it changes what holds for all.
fn is_setting(command: &Command) -> bool {
    match command {
        Command::Configure(blocks) => !blocks.is_empty(),
        Command::Session(command) => matches!(**command, SessionCommand::ConfigureMessages(_)),
        _ => false,
    }
}

/// What was noted and the log has lost. Whoever is first puts it back; for others it is as it was then.
fn notes<'a>(before: &'a Scheduler, now: &'a Scheduler) -> impl Iterator<Item = Command> + 'a {
    let lost = before.notes("").filter(|(key, text)| now.note(key) != Some(*text));
    lost.map(|(key, text)| {
        let expected = vec![(Arc::clone(key), now.note(key).cloned())];
        let changes = vec![(Arc::clone(key), Some(Arc::clone(text)))];
        Command::Note(Box::new(NoteChange { expected, changes }))
    })
}

impl Recent {
    /// Takes note of what was accepted, which the log has kept.
    pub(crate) fn note(&mut self, head: Head, asks: &[Ask], turn: &Turn) {
        let at = Instant::now();
        for (ask, (reply, span)) in asks.iter().zip(&turn.replies) {
            let is_new = match (&ask.command, reply) {
                (Command::Submit { .. }, Ok(Reply::Accepted { joined, .. })) => !joined,
                // Not of an attempt after which another follows.
                (Command::Finish { task, .. }, Ok(_)) => {
                    let is_end =
                        |event: &Event| matches!(event, Event::Ended { task: ended, .. } if ended == task);
                    turn.events[span.clone()].iter().any(is_end)
                }
                (Command::Session(command), Ok(_)) if matches!(**command, SessionCommand::Send(_)) => true,
                (command, Ok(_)) => is_setting(command),
                _ => false,
            };
            if is_new {
                let (command, payloads) = (ask.command.clone(), ask.payloads.clone());
                let (result, work) = (ask.result.clone(), ask.work.clone());
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

    /// Forgets what the log still says: whatever is not live of that has ended there.
    async fn forget_kept(&mut self, log: &Log) -> Result<(), StoreError> {
        log.store().forget_log();
        // A log that went back has kept everything up to some batch, and nothing behind it.
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
    /// Forgets of what was accepted lately whatever the log, as it is now, still says.
    pub(crate) async fn forget_kept(&mut self) -> Result<(), StoreError> {
        match (&mut self.replica, self.journal.log()) {
            (Some(replica), Some(log)) => replica.recent.forget_kept(log).await,
            _ => Ok(()),
        }
    }

    /// Asks again, in the next turn, for what was accepted here, had not ended in the state `before`, and is not in the log any
    /// more, with fences above all that are known; and tells once more how tasks ended. What ran is treated as if whoever ran it
    /// had died.
    pub(crate) fn put_back(&mut self, before: &Scheduler) -> PutBack {
        let Some(replica) = &mut self.replica else { return PutBack::default() };
        let recent = std::mem::take(&mut replica.recent);
        let mut commands = vec![Command::RaiseFences { to: before.highest_fence() }];
        let has_settings = self.scheduler.blocks().next().is_some();
        if !has_settings {
            // The log has lost everything: without settings nothing would have a limit.
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
        let mut asks = Vec::new();
        for accepted in recent.accepted {
            if let Command::Submit { task, spec } = &accepted.command {
                specs.insert(*task, spec.clone());
            }
            let asked = match is_setting(&accepted.command) {
                true => has_settings.then_some(accepted),
                false => self.wanted(accepted, before, &specs),
            };
            asks.extend(asked.map(Accepted::into_ask));
        }
        // Settings first, so that nothing is granted under others. Then how what waits has ended, so that it does not begin when
        // what runs has ended.
        asks.sort_by_key(|ask| match &ask.command {
            command if is_setting(command) => 0,
            Command::Recount { .. } => 1,
            Command::Finish { .. } => 2,
            _ => 3,
        });
        let mut put_back = PutBack::default();
        for ask in &asks {
            match &ask.command {
                Command::Submit { task, .. } => put_back.asked.extend([*task]),
                Command::Finish { task, .. } | Command::Recount { task, .. } => {
                    put_back.ended.extend([*task])
                }
                _ => {}
            }
        }
        self.kept.extend(commands.into_iter().map(|command| Ask::new(command, Wants::Nothing)));
        self.kept.extend(asks);
        put_back
    }

    /// A task that was to be put back is refused: it is gone for good, and so is whoever waits for it.
    pub(crate) fn not_put_back(&mut self, task: TaskId) {
        if self.scheduler.task(task).is_none() {
            self.tell_waiters(task, Ending::lost);
            if let Some(answer) = self.slots.remove(&task) {
                self.outbox.push(Told::Slot(answer, Err(RunError::Ended(End::Lost))));
            }
        }
    }

    /// What to ask for in place of something that the log has lost: a task or message that had not ended before, or how a task did.
    fn wanted(&self, accepted: Accepted, before: &Scheduler, specs: &Specs) -> Option<Accepted> {
        let is_wanted = match &accepted.command {
            // Of slots only those that somebody still waits for: whoever had one hears that it was taken away.
            Command::Submit { task, spec } if is_slot(&spec.kind) => self.slots.contains_key(task),
            Command::Submit { task, .. } if before.survives_its_runner(*task) => true,
            // It ran and may not run again.
            Command::Submit { task, spec } if before.task(*task).is_some() => {
                let command = Command::Recount { task: *task, spec: Some(spec.clone()), end: End::Lost };
                return Some(Accepted { command, payloads: Vec::new(), ..accepted });
            }
            Command::Finish { task, fence, outcome } => match self.scheduler.task(*task) {
                Some(view) if view.running.is_some() => {
                    view.running.is_some_and(|running| running.fence == *fence)
                }
                // It is told once more how it ended.
                _ if before.task(*task).is_none() => {
                    let end = match outcome {
                        Outcome::Success => End::Completed,
                        Outcome::Failure { error, .. } => End::Failed { error: Arc::clone(error) },
                        Outcome::Stopped => return None,
                    };
                    let command = Command::Recount { task: *task, spec: specs.get(task).cloned(), end };
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
