//! The one loop: take what was asked, decide it, keep it, then tell the world.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use laneway_core::{BlobId, Command, Millis, Name, Outcome, Scheduler, TaskId, Timestamp};
use laneway_store::{Durability, Head, StoreError, Try};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, Sleep};

use crate::driver::batch::Turn;
use crate::driver::clock::{Flow, millis};
use crate::driver::effects::Start;
use crate::driver::ids::{ByTask, Ids};
use crate::driver::in_memory::InMemory;
use crate::driver::mailbox::{Ask, Call, Inbox, Look, Mailbox, Receivers, Report, Waiters, Wants, mail};
use crate::driver::outbox::{Outbox, Told};
use crate::driver::shutdown::Closing;
use crate::driver::spawner::Tasks;
use crate::error::{Error, RunError};
use crate::events::positions::Positions;
use crate::events::watch::Watchers;
use crate::handle::{Handle, Shared, Toolbox};
use crate::journal::Journal;
use crate::journal::recovery::Outage;
use crate::journal::snapshotter::Saver;
use crate::options::{Options, UnknownKinds};
use crate::replica::Replica;
use crate::replica::apply_remote::news;
use crate::replica::broadcast::Voice;
use crate::replica::follower::Follower;
use crate::runs::slot::Slot;
use crate::runs::stop::Stopped;
use crate::runs::table::{Run, Runs};

/// A shorter silence says nothing.
const REPLICA_LEASE_MIN: Millis = Millis(100);

/// The loop's own: nobody else touches any of it.
///
/// | question | file |
/// |---|---|
/// | how is a batch decided and kept? | `turn.rs`, `journal.rs` |
/// | what follows from an event? | `effects.rs`, `runs.rs` |
/// | what if the store is away, or another was faster? | `recovery.rs`, `others.rs`, `baton.rs` |
/// | how do others hear what runs say? | `voice.rs` |
/// | how does the log stay short? | `saver.rs` |
/// | how does it end? | `closing.rs` |
pub(crate) struct Engine {
    pub(crate) scheduler: Scheduler,
    pub(crate) head: Head,
    pub(crate) flow: Flow,
    pub(crate) journal: Journal,
    pub(crate) tools: Toolbox,
    shared: Weak<Shared>,
    /// Where handlers run, whoever has the engine.
    pub(crate) tasks: Tasks,
    /// When whoever keeps the time comes next.
    alarm: Option<Timestamp>,
    /// What callers of a queue in a store send.
    mail: Option<Receivers>,
    /// Empty but for their room, to be used again.
    pub(crate) inbox: Inbox,
    pub(crate) asks: Vec<Ask>,
    pub(crate) spare: Turn,
    /// Who waits for a slot.
    pub(crate) slots: ByTask<oneshot::Sender<Result<Slot, RunError>>>,
    /// Who waits for the end of a task.
    pub(crate) waiters: ByTask<Waiters>,
    /// What to tell when the engine is free.
    pub(crate) outbox: Outbox,
    /// Handlers that are to run when everybody has been told.
    pub(crate) starts: Vec<Start>,
    /// Somebody watched when the last turn was decided.
    pub(crate) is_watched: bool,
    pub(crate) runs: Runs,
    /// Whose the attempts are that this engine starts, where others share the store.
    pub(crate) runner: Option<Name>,
    pub(crate) unknown_kinds: UnknownKinds,
    /// The payloads of dead letters.
    pub(crate) letters: HashMap<TaskId, BlobId>,
    /// The attempts of live tasks after which another followed.
    pub(crate) tries: HashMap<TaskId, Vec<Try>>,
    pub(crate) positions: Positions,
    /// Decided again as soon as the store can be reached.
    pub(crate) kept: Vec<Ask>,
    pub(crate) outage: Option<Outage>,
    /// What cannot be read, so that nothing more is decided.
    pub(crate) broken: Option<StoreError>,
    pub(crate) saver: Saver,
    pub(crate) closing: Option<Closing>,
    pub(crate) stop_grace: Duration,
    /// Where others share the log.
    pub(crate) replica: Option<Box<Replica>>,
}

impl Engine {
    pub(crate) fn new(journal: Journal, options: Options, durability: Durability) -> (Engine, Handle) {
        let (mailbox, receivers) = match journal {
            Journal::Memory(_) => (Mailbox::InMemory(InMemory::default()), None),
            Journal::Kept(_) => {
                let (mailbox, receivers) = Mailbox::of_loop(options.calls_max);
                (mailbox, Some(receivers))
            }
        };
        let ids = options.seed.map_or_else(Ids::new, Ids::seeded);
        let tasks = Tasks::new(options.tasks);
        let is_shared = options.shares.is_some() || journal.log().is_some_and(|log| log.store().is_shared());
        let runner = if is_shared { ids.runner() } else { None };
        let mut scheduler = Scheduler::new(ids.seed());
        scheduler.keep_departed();
        scheduler.run_as(runner.clone());
        let lease = millis(options.replica_lease).max(REPLICA_LEASE_MIN);
        let watchers: Arc<Watchers> = Arc::default();
        let voice = options.shares.as_ref().map(|store| {
            let (voice, ears) = Voice::new(ids.replica().0, store, Arc::clone(&watchers));
            tasks.spawn(ears.run());
            voice
        });
        let replica = options.shares.map(|store| Replica::new(ids.replica(), lease, Follower::new(store)));
        let tools = Toolbox {
            slot_kind: replica.as_ref().and_then(|replica| Name::new(replica.id.slot_kind()).ok()),
            runner: runner.clone().filter(|_| replica.is_some()),
            ids: Arc::new(ids),
            handlers: options.handlers,
            watchers,
            journal: Arc::new(Mutex::new(Some(journal.clone()))),
            offers: Arc::new(Notify::new()),
            tool_calls: Arc::default(),
            payloads_kept_max: options.payloads_kept_max,
            refusals: Arc::default(),
            appends: Arc::default(),
            voice,
        };
        let handle = Handle::new(mailbox, tools.clone(), options.updates_max, durability);
        let engine = Engine {
            scheduler,
            head: Head::EMPTY,
            flow: Flow::new(options.clock),
            journal,
            tools,
            shared: handle.downgrade(),
            tasks: tasks.clone(),
            alarm: None,
            mail: receivers,
            inbox: Inbox::default(),
            asks: Vec::new(),
            spare: Turn::default(),
            slots: ByTask::default(),
            waiters: ByTask::default(),
            outbox: Outbox::default(),
            starts: Vec::new(),
            is_watched: true,
            runs: Runs::default(),
            runner,
            unknown_kinds: options.unknown_kinds,
            letters: HashMap::new(),
            tries: HashMap::new(),
            positions: Positions::default(),
            kept: Vec::new(),
            outage: None,
            broken: None,
            saver: Saver::new(
                options.snapshot_every,
                options.history_max,
                options.history_for,
                replica.is_some(),
                tasks,
            ),
            closing: None,
            stop_grace: options.stop_grace,
            replica: replica.map(Box::new),
        };
        (engine, handle)
    }

    /// A handle for a run; none when nobody holds one, which is the end.
    pub(crate) fn handle(&self) -> Option<Handle> {
        self.shared.upgrade().map(Handle::from_shared)
    }

    /// Runs a queue in a store until its end.
    pub(crate) async fn run(mut self) {
        let mut inbox = Inbox::default();
        let sleep = tokio::time::sleep(Duration::ZERO);
        tokio::pin!(sleep);
        loop {
            let wake = self.plan(sleep.as_mut());
            let mut heard = None;
            let is_open = tokio::select! {
                biased;
                news = news(&mut self.replica) => {
                    heard = Some(news);
                    true
                }
                is_open = mail(&mut self.mail, &mut inbox) => is_open,
                () = sleep.as_mut(), if wake => true,
            };
            if !is_open {
                break;
            }
            if let Some(news) = heard {
                self.hear(news).await;
            }
            self.take_more(&mut inbox);
            if !inbox.reports.is_empty() || inbox.calls.iter().any(Call::may_append) || self.is_due() {
                self.await_baton().await;
                self.take_more(&mut inbox);
            }
            if self.outage_is_over().await {
                // Hearing of others is nothing to decide about, but for what they wait for.
                let is_asked = !inbox.is_empty() || !self.kept.is_empty();
                if self.replica.is_none() || is_asked || self.is_due() || self.has_baton() {
                    self.turn(&mut inbox).await;
                }
            } else {
                self.refuse(&mut inbox);
            }
            std::mem::take(&mut self.outbox).send();
            if self.is_done() {
                break;
            }
        }
        self.leave().await;
        if let Some(mail) = self.mail.take() {
            mail.close().await;
        }
        self.end().await;
    }

    /// Sets the alarm to the next thing that is due; says whether there is one.
    fn plan(&mut self, sleep: std::pin::Pin<&mut Sleep>) -> bool {
        let Some(wake) = self.set_alarm() else { return false };
        if sleep.deadline() != wake {
            sleep.reset(wake);
        }
        true
    }

    /// Notes when something is due next.
    pub(crate) fn set_alarm(&mut self) -> Option<Instant> {
        self.alarm = self.due_at();
        self.positions.is_alarm_set = true;
        let due = self.alarm.map(|at| Instant::now() + self.flow.until(at));
        [due, self.other_alarm()].into_iter().flatten().min()
    }

    /// Whether something is due before the alarm that was set. If so, whoever keeps the time must be told, and the alarm
    /// counts as set.
    pub(crate) fn is_alarm_late(&mut self) -> bool {
        let due = self.due_at();
        let is_late = due.is_some_and(|due| self.alarm.is_none_or(|alarm| due < alarm));
        if is_late {
            self.alarm = due;
        }
        self.closing.is_some() || self.positions.wants_alarm() || is_late
    }

    /// Whether something is due now.
    pub(crate) fn is_due(&mut self) -> bool {
        let is_other_due = self.other_alarm().is_some_and(|at| at <= Instant::now());
        is_other_due || self.due_at().is_some_and(|at| at <= self.flow.now())
    }

    /// When the scheduler or a lease wants to be looked at.
    fn due_at(&self) -> Option<Timestamp> {
        let is_waiting = self.outage.is_some() || self.broken.is_some();
        let wakeup = self.scheduler.next_wakeup().map(|at| at + self.tardiness());
        #[cfg(feature = "planted")]
        let wakeup = wakeup.filter(|_| !crate::planted::is(crate::planted::Bug::LapseUnseen));
        let due = [wakeup, self.runs.next_renewal(), self.replica_due_at()];
        due.into_iter().flatten().min().filter(|_| !is_waiting)
    }

    /// When the store is tried again, a shutdown loses its patience, or places in line are looked at.
    fn other_alarm(&self) -> Option<Instant> {
        let outage = self.outage.as_ref().map(|outage| outage.retry_at);
        let closing = self.closing.as_ref().map(Closing::alarm);
        // Nothing is looked at while the state here may not be that of the log.
        let look = self.positions.due.filter(|_| self.outage.is_none() && self.broken.is_none());
        [outage, closing, look].into_iter().flatten().min()
    }

    fn take_more(&mut self, inbox: &mut Inbox) {
        if let Some(mail) = &mut self.mail {
            mail.take_more(inbox);
        }
    }

    /// Whether more was asked meanwhile.
    pub(crate) fn has_more(&self) -> bool {
        self.mail.as_ref().is_some_and(Receivers::has_more)
    }

    /// Decides everything in the inbox, stores it, and answers.
    async fn turn(&mut self, inbox: &mut Inbox) {
        let (mut asks, mut looks) = (std::mem::take(&mut self.asks), Vec::new());
        let now = self.flow.now();
        self.gather(now, inbox, &mut asks, &mut looks);
        let buried = self.bury(now).await;
        asks.extend(buried.into_iter().map(|command| Ask::new(command, Wants::Nothing)));
        self.decide_and_keep(&mut asks).await;
        self.asks = asks;
        if !looks.is_empty() {
            self.catch_up_to_look().await;
        }
        looks.into_iter().for_each(|look| self.answer_look(look));
    }

    /// What is to be decided now: what is in the inbox, what was deferred, and the renewals that are due.
    pub(crate) fn gather(
        &mut self,
        now: Timestamp,
        inbox: &mut Inbox,
        asks: &mut Vec<Ask>,
        looks: &mut Vec<Look>,
    ) {
        asks.append(&mut self.kept);
        asks.extend(inbox.reports.drain(..).filter_map(|report| self.heed(report)));
        self.sort(&mut inbox.calls, asks, looks);
        // A shutdown that begins defers something.
        asks.append(&mut self.kept);
        let renewals = self.runs.renewals(now);
        #[cfg(feature = "planted")]
        let renewals =
            if crate::planted::is(crate::planted::Bug::LeaseNotRenewed) { vec![] } else { renewals };
        asks.extend(renewals.into_iter().map(|command| Ask::new(command, Wants::Nothing)));
    }

    /// Answers everything with why it cannot be done now; reports of runs are kept.
    fn refuse(&mut self, inbox: &mut Inbox) {
        let (mut asks, mut looks) = (Vec::new(), Vec::new());
        let reported: Vec<Ask> = inbox.reports.drain(..).filter_map(|report| self.heed(report)).collect();
        self.kept.extend(reported);
        self.sort(&mut inbox.calls, &mut asks, &mut looks);
        for ask in asks {
            ask.wants.refuse(self.trouble().unwrap_or(Error::Closed));
        }
        looks.into_iter().for_each(|look| self.answer_look(look));
    }

    /// Answers a question about the state, or says why nothing is known of it.
    pub(crate) fn answer_look(&mut self, look: Look) {
        match look {
            Look::State(look) => look(self.readable()),
            Look::End { task, answer } => {
                let is_live = self.readable().map(|state| state.status(task).is_some());
                let waiter = is_live.map(|is_live| is_live.then(|| self.wait_for(task)));
                self.outbox.push(Told::Awaited(answer, waiter));
            }
        }
    }

    /// The state, if it is that of the log.
    fn readable(&self) -> Result<&Scheduler, Error> {
        self.trouble().map_or(Ok(&self.scheduler), Err)
    }

    fn sort(&mut self, calls: &mut Vec<Call>, asks: &mut Vec<Ask>, looks: &mut Vec<Look>) {
        for call in calls.drain(..) {
            match call {
                // Its caller has gone, and has said so before.
                Call::Ask(Ask { wants: Wants::Slot(answer), .. }) if answer.is_closed() => {}
                Call::Ask(ask) => asks.push(ask),
                Call::Look(look) => looks.push(look),
                Call::Shutdown { deadline, done } => self.close(deadline, done),
            }
        }
    }

    /// What a report asks for.
    pub(crate) fn heed(&mut self, report: Report) -> Option<Ask> {
        match report {
            Report::Leave { task } => Some(Ask::new(Command::Leave { task }, Wants::Nothing)),
            Report::Finish { task, fence, outcome, result, work } => {
                let is_shutdown = |run: &Run| run.stop.reason() == Some(Stopped::Shutdown);
                // What ends with the program was not stopped by anybody: the lane's rule decides, as after a crash.
                let command = match outcome {
                    Outcome::Stopped if self.runs.get(task, fence).is_some_and(is_shutdown) => {
                        Command::Lapse { task, fence }
                    }
                    outcome => Command::Finish { task, fence, outcome },
                };
                let mut ask = Ask::new(command, Wants::Nothing);
                (ask.result, ask.work) = (result, work);
                Some(ask)
            }
        }
    }
}
