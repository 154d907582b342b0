//! What callers send to the engine, and what they get back.

use std::sync::Arc;

use bytes::Bytes;
use laneway_core::{
    BlobId, Command, End, Fence, LiveTaskView, Millis, Outcome, Reply, Scheduler, SessionCommand, TaskId,
    Timestamp,
};
use laneway_store::Finished;
use smallvec::SmallVec;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::driver::in_memory::InMemory;
use crate::error::{Error, RunError};
use crate::events::update::Update;
use crate::handle::workers::Claim;
use crate::runs::slot::Slot;

/// How a task ended and what it produced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Which end.
    pub end: End,
    /// How many attempts there were.
    pub attempts: u32,
    /// How long it waited until its last attempt started, or until its end if none did.
    pub waited: Millis,
    /// How long its last attempt ran; zero if none started.
    pub ran: Millis,
    /// What it produced, as JSON. A failure may have an output too.
    pub result: Option<Bytes>,
}

/// The way to an engine.
pub(crate) enum Mailbox {
    /// To the loop of a queue in a store: a caller waits for room.
    Loop { calls: mpsc::Sender<Call>, reports: mpsc::UnboundedSender<Report> },
    /// To a queue in memory, which answers at once.
    InMemory(Box<InMemory>),
}

impl Mailbox {
    pub(super) fn of_loop(calls_max: usize) -> (Mailbox, Option<Receivers>) {
        let (calls, calls_in) = mpsc::channel(calls_max.max(1));
        // What is alive bounds it, see `Report`.
        let (reports, reports_in) = mpsc::unbounded_channel();
        (
            Mailbox::Loop { calls, reports },
            Some(Receivers { calls: calls_in, reports: reports_in, held: Vec::new() }),
        )
    }

    /// Waits for room for one call.
    pub(crate) async fn room(&self) -> Result<Room<'_>, Error> {
        match self {
            Mailbox::Loop { calls, .. } => calls.reserve().await.map(Room::Loop).map_err(|_| Error::Closed),
            Mailbox::InMemory(driver) => Ok(Room::InMemory(driver)),
        }
    }

    pub(crate) fn report(&self, report: Report) {
        match self {
            // After the end there is nothing to free.
            Mailbox::Loop { reports, .. } => drop(reports.send(report)),
            Mailbox::InMemory(driver) => driver.report(report),
        }
    }

    /// Reports from inside the engine.
    pub(crate) fn report_later(&self, report: Report) {
        match self {
            Mailbox::Loop { .. } => self.report(report),
            Mailbox::InMemory(driver) => driver.report_later(report),
        }
    }
}

/// Room for one call. A caller makes its call once it has room, which keeps the futures that wait for room small.
pub(crate) enum Room<'a> {
    Loop(mpsc::Permit<'a, Call>),
    InMemory(&'a InMemory),
}

impl Room<'_> {
    pub(crate) fn call(self, call: Call) -> Result<(), Error> {
        match self {
            Room::Loop(permit) => {
                permit.send(call);
                Ok(())
            }
            Room::InMemory(driver) => driver.call(call),
        }
    }
}

/// The other end of the mailbox of a loop.
pub(crate) struct Receivers {
    calls: mpsc::Receiver<Call>,
    reports: mpsc::UnboundedReceiver<Report>,
    /// Calls that came while a batch was being stored, and wait for the next one.
    held: Vec<Call>,
}

impl Receivers {
    /// The next call while a batch is being stored; never, if the next batch is full.
    pub(crate) async fn next_call(&mut self) -> Call {
        if self.held.len() < BATCH_MAX
            && let Some(call) = self.calls.recv().await
        {
            return call;
        }
        std::future::pending().await
    }

    pub(crate) fn hold(&mut self, call: Call) {
        self.held.push(call);
    }

    /// Takes what is there already, so that it is decided together.
    pub(super) fn take_more(&mut self, inbox: &mut Inbox) {
        while inbox.reports.len() < BATCH_MAX
            && let Ok(report) = self.reports.try_recv()
        {
            inbox.reports.push(report);
        }
        while inbox.calls.len() < BATCH_MAX
            && let Ok(call) = self.calls.try_recv()
        {
            inbox.calls.push(call);
        }
    }

    pub(super) fn has_more(&self) -> bool {
        !self.reports.is_empty() || !self.calls.is_empty() || !self.held.is_empty()
    }

    /// Takes no more, and drops what is on its way: its callers would wait for ever.
    pub(super) async fn close(mut self) {
        self.calls.close();
        self.held.clear();
        while let Some(call) = self.calls.recv().await {
            drop(call);
        }
    }
}

/// Waits for something to be sent; `false`: no sender is left.
pub(crate) async fn mail(receivers: &mut Option<Receivers>, inbox: &mut Inbox) -> bool {
    let Some(Receivers { calls, reports, held }) = receivers else { return false };
    if !held.is_empty() {
        inbox.calls.append(held);
        return true;
    }
    tokio::select! {
        biased;
        taken = reports.recv_many(&mut inbox.reports, BATCH_MAX) => taken > 0,
        taken = calls.recv_many(&mut inbox.calls, BATCH_MAX) => taken > 0,
    }
}

/// The most that is decided and stored together.
const BATCH_MAX: usize = 512;

/// What was sent and is to be decided together.
#[derive(Default)]
pub(crate) struct Inbox {
    pub(super) reports: Vec<Report>,
    pub(super) calls: Vec<Call>,
}

impl Inbox {
    pub(super) fn is_empty(&self) -> bool {
        self.reports.is_empty() && self.calls.is_empty()
    }
}

/// What a caller sends and may wait with.
#[expect(clippy::large_enum_variant, reason = "most calls are requests")]
pub(crate) enum Call {
    Request(Request),
    Query(Query),
    Shutdown { deadline: Instant, done: oneshot::Sender<()> },
}

/// Looks at the state, or hears why there is none.
pub(super) type Look = Box<dyn FnOnce(Result<&Scheduler, Error>) + Send>;

/// A question to the engine.
pub(crate) enum Query {
    State(Look),
    /// What tells of the end of a task; `None`: the task is not live.
    End {
        task: TaskId,
        answer: oneshot::Sender<Result<Option<Waiter>, Error>>,
    },
}

/// What an attempt or a dropped handle sends without waiting for room, since `Drop` cannot. There is at most one report
/// of each attempt and of each handle, which bounds them.
pub(crate) enum Report {
    Finish {
        task: TaskId,
        fence: Fence,
        outcome: Outcome,
        result: Option<Bytes>,
        /// Its payload, if the history is to remember it.
        work: Option<Bytes>,
        /// When it ended.
        at: Instant,
    },
    /// A caller has gone that waited for a slot, or for a task that is to be cancelled then.
    Leave { task: TaskId },
}

/// A command with what belongs to it, and the way back to its caller.
pub(crate) struct Request {
    pub(crate) command: Command,
    /// The payloads that the command refers to.
    pub(crate) payloads: Vec<(BlobId, Bytes)>,
    /// What the attempt that this ends produced.
    pub(crate) result: Option<Bytes>,
    /// Its payload, if the history is to remember it.
    pub(crate) work: Option<Bytes>,
    /// What an attempt says with its report, to be published if the report counts.
    pub(crate) output: Option<Box<Output>>,
    /// When it was asked, if that was a while ago, because the store stood still or was away.
    pub(crate) reported: Option<Timestamp>,
    pub(crate) reply_to: ReplyTo,
}

/// Text, progress and usage of an attempt, in order. Boxed, because few requests have any.
pub(crate) struct Output(pub(crate) Vec<Update>);

/// Who gets which answer to a command.
pub(crate) enum ReplyTo {
    /// No caller: it is decided again after an outage.
    NoCaller,
    /// The callers of this task, which the log has lost and the engine restores.
    Restored(TaskId),
    Reply(oneshot::Sender<Result<Reply, Error>>),
    Slot(oneshot::Sender<Result<Slot, RunError>>),
    Task(oneshot::Sender<Result<Accepted, Error>>),
    /// The same without the end.
    Acceptance(oneshot::Sender<Result<Accepted, Error>>),
    Batch(oneshot::Sender<Result<Vec<Waiter>, Error>>),
    Claim(oneshot::Sender<Result<Vec<Claim>, Error>>),
}

/// A task that was accepted, or that an earlier request under the same key had brought.
pub(crate) struct Accepted {
    pub(crate) task: TaskId,
    pub(crate) joined: bool,
    /// Brings the end; `None`: it has ended already, or the caller does not wait for that.
    pub(crate) waiter: Option<Waiter>,
    pub(crate) standing: crate::handle::submission::Standing,
}

/// A caller that waits for the end of a task. Boxed, because its room is taken from the acceptance on, and a million tasks
/// may wait.
pub(crate) type Waiter = oneshot::Receiver<Box<Ending>>;

/// The callers that wait for the end of one task: most often one.
pub(crate) type Waiters = SmallVec<[oneshot::Sender<Box<Ending>>; 1]>;

impl Request {
    pub(crate) fn new(command: Command, reply_to: ReplyTo) -> Request {
        Request {
            command,
            payloads: Vec::new(),
            result: None,
            work: None,
            output: None,
            reported: None,
            reply_to,
        }
    }

    /// Whether this would bring new work.
    pub(super) fn is_new_work(&self) -> bool {
        match &self.command {
            Command::Submit { .. }
            | Command::SubmitBatch(_)
            | Command::Redrive { .. }
            | Command::Claim { .. }
            | Command::ClaimThese { .. } => true,
            Command::Session(command) => {
                matches!(**command, SessionCommand::Send(_) | SessionCommand::Resend { .. })
            }
            _ => false,
        }
    }
}

impl Call {
    /// Whether it may lead to an append.
    pub(super) fn may_append(&self) -> bool {
        !matches!(self, Call::Query(_))
    }
}

impl ReplyTo {
    pub(crate) fn refuse(self, error: Error) {
        // A caller that has gone needs no answer.
        let _gone = match self {
            ReplyTo::NoCaller | ReplyTo::Restored(_) => Ok(()),
            ReplyTo::Reply(answer) => answer.send(Err(error)).map_err(drop),
            ReplyTo::Slot(answer) => answer.send(Err(error.into())).map_err(drop),
            ReplyTo::Task(answer) | ReplyTo::Acceptance(answer) => answer.send(Err(error)).map_err(drop),
            ReplyTo::Batch(answer) => answer.send(Err(error)).map_err(drop),
            ReplyTo::Claim(answer) => answer.send(Err(error)).map_err(drop),
        };
    }
}

impl Ending {
    /// The end of a task, with its times and without what it produced. `view` is the task as it was until then.
    pub(crate) fn new(end: End, view: Option<&LiveTaskView>, ended: Timestamp) -> Ending {
        let started = view.and_then(|view| view.running.as_ref()).map(|run| run.started);
        let submitted = view.map_or(ended, |view| view.submitted);
        let attempts = view.map_or(0, |view| view.attempts);
        Ending { attempts, ..Ending::at(end, submitted, started, ended) }
    }

    /// The end of a task of which nothing else is known.
    pub(crate) fn lost() -> Ending {
        Ending::new(End::Lost, None, Timestamp(0))
    }

    fn at(end: End, submitted: Timestamp, started: Option<Timestamp>, ended: Timestamp) -> Ending {
        let waited = started.unwrap_or(ended).since(submitted);
        let ran = started.map_or(Millis(0), |started| ended.since(started));
        Ending { end, attempts: 0, waited, ran, result: None }
    }

    /// The end of a task as it is remembered.
    pub(crate) fn of_finished(finished: Finished, result: Option<Bytes>) -> Ending {
        let Finished { end, submitted, started, ended, attempts, .. } = finished;
        Ending { attempts, result, ..Ending::at(end, submitted, started, ended) }
    }

    /// What a task that failed produced all the same.
    pub fn output(&self) -> Option<serde_json::Value> {
        let output = self.result.as_deref().filter(|_| matches!(self.end, End::Failed { .. }));
        output.and_then(|output| serde_json::from_slice(output).ok())
    }

    /// The end as a result: what it produced, or why it produced nothing.
    pub fn into_result(self) -> Result<serde_json::Value, RunError> {
        match (self.end, self.result) {
            (End::Completed, None) => Ok(serde_json::Value::Null),
            (End::Completed, Some(result)) => serde_json::from_slice(&result).map_err(|error| {
                let reason: Arc<str> = error.to_string().into();
                RunError::Refused(Error::Json(reason))
            }),
            (end, _) => Err(RunError::Ended(end)),
        }
    }
}
