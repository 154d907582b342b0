//! The central type: one state machine that decides everything.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::api::command::{Command, Reply};
use crate::api::event::{Event, LaneChange};
use crate::api::ids::{Fence, TaskId};
use crate::api::lane_settings::LEVEL_MAX;
use crate::api::name::Name;
use crate::api::rejection::Rejection;
use crate::api::time::Timestamp;
use crate::api::views::TaskView;
use crate::decide::notes::Notes;
use crate::sessions::table::Sessions;
use crate::state::dead_letters::Letters;
use crate::state::interner::Kinds;
use crate::state::lane_config::Book;
use crate::state::lanes::Lanes;
use crate::state::ready_tree::Line;
use crate::state::ready_tree::fair_share::FairShare;
use crate::state::task::Tasks;
use crate::state::timers::Timers;

/// Decides which work may run now.
///
/// Tasks name lanes; a lane is a named limit; a task runs when every lane it names (and `global`, which all
/// name) has a free slot, and takes all its slots in one step. Among those that may run, the order is
/// effective priority, then whose turn it is between fair keys, then arrival. Everything else (retries, leases,
/// rates, ageing, deadlines, parents and children) is in the modules beside this one, each in one place.
///
/// # How a decision is made
///
/// [`step`](Scheduler::step) takes the time and a [`Command`]. It first lets the time pass (leases lapse,
/// waits time out, waiting work ages), then decides the command, then grants whatever may run. Each decision
/// is an [`Event`], and each event goes through [`apply`](Scheduler::apply) at once, which is the only code
/// that changes the state. So replaying the events gives the state, on any machine, without
/// deciding anything again. A command that is refused leaves no event, beside those of the time that passed.
///
/// # How to drive it
///
/// Call `step` for each command, and with [`Command::Tick`] at [`next_wakeup`](Scheduler::next_wakeup); keep
/// the events; then tell the world. Run what [`Event::Granted`] says, end runs that [`Event::Stopping`]
/// names, and report each run's end with [`Command::Finish`] under its fence. End also a run whose task got
/// [`Event::Ended`] while it ran, as a force release does: its slots are another's already, nobody asks it to
/// stop first, and whatever it reports is refused.
///
/// # Where to look
///
/// | question | file |
/// |---|---|
/// | may this be accepted? | `submit.rs` |
/// | who is next? | `grant.rs`, over the tree in `line.rs` |
/// | what follows a failure, a timeout, a silent worker? | `attempts.rs` |
/// | what is shorter where nobody waits and nobody watches? | `at_once.rs` |
/// | cancel, pause, configure, redrive | `control.rs` |
/// | what the clock brings | `clock.rs` |
/// | what each event does to the state | `apply.rs` |
/// | parents lend slots to children | `lending.rs` |
/// | why does it wait, and for how long? | `explain.rs` |
/// | what must always hold | `violation.rs` |
/// | what programs keep beside the work | `notes.rs` |
/// | what becomes of a message to a busy session? | `send.rs`, `turns.rs`, `steering.rs` |
pub struct Scheduler {
    pub(crate) seed: u64,
    pub(crate) now: Timestamp,
    pub(crate) tasks: Tasks,
    pub(crate) lanes: Lanes,
    pub(crate) line: Line,
    pub(crate) fair: FairShare,
    pub(crate) kinds: Kinds,
    pub(crate) timers: Timers,
    pub(crate) book: Book,
    pub(crate) letters: Letters,
    pub(crate) sessions: Sessions,
    pub(crate) notes: Notes,
    pub(crate) keys: BTreeMap<Arc<str>, RememberedKey>,
    /// When the remembered keys may be forgotten, the earliest first.
    pub(crate) key_ends: BTreeSet<(Timestamp, Arc<str>)>,
    /// How many tasks were accepted; each one's number is its arrival.
    pub(crate) arrivals: u64,
    pub(crate) ended: u64,
    /// The last tasks that ended while they ran, so that a late report is told that its lease is stale.
    pub(crate) ended_runs: VecDeque<TaskId>,
    /// The last fence that was given out.
    pub(crate) fences: u64,
    /// How many tasks stand in the line, by their level without what waiting has added.
    pub(crate) in_line: [u32; LEVEL_MAX as usize + 1],
    /// How many stand in the line, all together.
    pub(crate) waiting_in_line: u32,
    /// Something changed that may let a task start: a lane opened, or one joined the line behind open lanes.
    pub(crate) may_grant: bool,
    /// Tasks for which slots are kept free.
    pub(crate) reservations: BTreeSet<u32>,
    /// Tasks that the last grant passed over.
    pub(crate) passed_over: SmallVec<[u32; 2]>,
    /// The lanes that the last step or event let go.
    pub(crate) gone: Vec<LaneChange>,
    /// The tasks that the last step or event ended, if somebody asked for them.
    pub(crate) departed: Vec<TaskView>,
    pub(crate) keeps_departed: bool,
    /// Nobody watches, and of tasks of this kind nobody wants to know that they ended.
    pub(crate) unwatched: Option<Name>,
    /// Nothing is granted any more, see [`stop_granting`](Scheduler::stop_granting).
    pub(crate) is_stopped: bool,
    /// Who runs what is granted here, see [`run_as`](Scheduler::run_as).
    pub(crate) runner: Option<Name>,
    /// Tasks that the step accepted.
    pub(crate) accepted: Vec<u32>,
    /// The first grant or acceptance above a limit or out of turn, which must never be.
    pub(crate) overrun: Option<String>,
}

/// What is remembered of a request under an idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct RememberedKey {
    pub(crate) task: TaskId,
    pub(crate) fingerprint: u64,
    pub(crate) until: Timestamp,
    /// The end of the task frees the key, whatever that is.
    #[serde(default)]
    pub(crate) until_end: bool,
}

impl Scheduler {
    /// An empty scheduler in which every lane has its default settings. The seed only keeps outsiders from
    /// choosing names that collide in look-up tables; no decision depends on it.
    pub fn new(seed: u64) -> Scheduler {
        Scheduler {
            seed,
            now: Timestamp::default(),
            tasks: Tasks::new(seed),
            lanes: Lanes::new(seed),
            line: Line::new(seed),
            fair: FairShare::new(seed),
            kinds: Kinds::new(seed),
            timers: Timers::default(),
            book: Book::default(),
            letters: Letters::default(),
            sessions: Sessions::new(seed),
            notes: Notes::default(),
            keys: BTreeMap::new(),
            key_ends: BTreeSet::new(),
            arrivals: 0,
            ended: 0,
            ended_runs: VecDeque::new(),
            fences: 0,
            in_line: [0; LEVEL_MAX as usize + 1],
            waiting_in_line: 0,
            may_grant: false,
            reservations: BTreeSet::new(),
            passed_over: SmallVec::new(),
            gone: Vec::new(),
            departed: Vec::new(),
            keeps_departed: false,
            unwatched: None,
            is_stopped: false,
            runner: None,
            accepted: Vec::new(),
            overrun: None,
        }
    }

    /// Carries out `command` at `now` and adds what happened to `events`, in order.
    ///
    /// On a rejection the command changed nothing; `events` may still have grown by what was due anyway.
    pub fn step(
        &mut self,
        now: Timestamp,
        command: Command,
        events: &mut Vec<Event>,
    ) -> Result<Reply, Rejection> {
        if now > Timestamp::MAX {
            return Err(Rejection::TimeTooLate { now });
        }
        if now < self.now {
            return Err(Rejection::ClockWentBack { now, last: self.now });
        }
        self.now = now;
        self.forget_changes();
        self.expire(events);
        let reply = self.decide(command, events);
        if reply.is_ok() {
            self.tend_sessions(events);
            self.expire(events);
            self.grant(events);
        }
        self.settle(events);
        debug_assert!(self.tasks.len() > 64 || self.violation().is_none(), "{:?}", self.violation());
        reply
    }

    /// Replays one event that an earlier `step`, here or on another machine, returned for `at`.
    pub fn apply(&mut self, at: Timestamp, event: &Event) {
        self.forget_changes();
        if at > self.now {
            self.now = at;
            self.elapse();
        }
        // A look in between that changed nothing is in no log: whoever did not look must come to the same state.
        self.now = at;
        self.change(at, event);
    }

    /// Replays a moment for which an earlier `step` returned nothing and which was kept all the same: what follows is not earlier.
    pub fn reach(&mut self, at: Timestamp) {
        if at > self.now {
            self.now = at;
            self.elapse();
        }
    }

    /// When to call `step` with [`Command::Tick`], if at all.
    pub fn next_wakeup(&self) -> Option<Timestamp> {
        let keys = self.key_ends.first().map(|(at, _)| *at);
        [self.timers.next(), keys, self.sessions.next_due()].into_iter().flatten().min()
    }

    /// The time of the last step or event.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The lanes whose numbers the last `step` or `apply` changed, with their numbers now.
    pub fn changes(&self) -> impl Iterator<Item = LaneChange> {
        let live = self.lanes.touched.iter().filter_map(|touched| self.still_there(*touched));
        let live = live.map(|lane| self.lane_change(lane));
        self.gone.iter().cloned().chain(live)
    }

    /// From now on keeps what each `step` or `apply` ends, for [`take_departed`](Scheduler::take_departed).
    pub fn keep_departed(&mut self) {
        self.keeps_departed = true;
    }

    /// Nobody watches: from now on nothing is kept of tasks of this kind that end, nor of lanes that go. `None`: somebody
    /// does again.
    pub fn unwatched(&mut self, kind: Option<Name>) {
        self.unwatched = kind;
    }

    /// Hands out the tasks that the last `step` or `apply` ended, in the order of their ends, as they were until
    /// then; nothing unless [`keep_departed`](Scheduler::keep_departed) was called.
    pub fn take_departed(&mut self) -> impl Iterator<Item = TaskView> {
        self.departed.drain(..)
    }

    /// From now on says whose the attempts are that this scheduler starts, where several programs share a log: each must
    /// know which of them are its own. It is no event, because it is over with the program.
    pub fn run_as(&mut self, runner: Option<Name>) {
        self.runner = runner;
    }

    /// The highest fence that an attempt has had.
    pub fn highest_fence(&self) -> Fence {
        Fence(self.fences)
    }

    /// Whether there is something to take.
    pub fn has_departed(&self) -> bool {
        !self.departed.is_empty()
    }

    /// Starts nothing any more, for a program that is about to end: what runs may finish, what waits is kept. It
    /// is no event, because it is over with the program; a claim is still granted to whoever makes one.
    pub fn stop_granting(&mut self) {
        self.is_stopped = true;
    }

    fn decide(&mut self, command: Command, events: &mut Vec<Event>) -> Result<Reply, Rejection> {
        match command {
            Command::Tick => Ok(Reply::Done),
            Command::Configure(blocks) => self.configure(blocks, events),
            Command::ChangeSettings { lanes, settings } => self.change_settings(lanes, &settings, events),
            Command::Note(change) => self.change_notes(*change, events),
            Command::Submit { task, spec } => self.submit(task, spec, events),
            Command::SubmitBatch(batch) => self.submit_batch(*batch, events),
            Command::Leave { task } => self.leave(task, events),
            Command::Cancel { task, reason } => self.cancel(task, reason, events),
            Command::CancelWaiting { which, reason } => Ok(self.cancel_waiting(&which, reason, events)),
            Command::Reprioritise { task, priority } => self.reprioritise(task, priority, events),
            Command::Claim { worker, lanes, kinds, max, lease } => {
                self.claim(&worker, &lanes, &kinds, max, lease, events)
            }
            Command::ClaimThese { worker, tasks, lease } => self.claim_these(&worker, &tasks, lease, events),
            Command::Heartbeat { task, fence } => self.heartbeat(task, fence, events),
            Command::Finish { task, fence, outcome } => self.finish(task, fence, outcome, events),
            Command::Lapse { task, fence } => self.lapse_now(task, fence, events),
            Command::RaiseFences { to } => {
                if to > self.highest_fence() {
                    self.emit(Event::FencesRaised { to }, events);
                }
                Ok(Reply::Done)
            }
            Command::Recount { task, spec, end } => self.recount(task, spec, end, events),
            Command::Unbind { home } => Ok(self.unbind(home, events)),
            Command::ForceRelease { lane } => Ok(self.force_release(&lane, events)),
            Command::Pause { lane } => Ok(self.pause(lane, events)),
            Command::Resume { lane } => Ok(self.resume(lane, events)),
            Command::Drain { lane } => Ok(self.drain(lane, events)),
            Command::Redrive { letter, task } => self.redrive(letter, task, events),
            Command::Discard { letter } => self.discard(letter, events),
            Command::Session(command) => self.decide_session(*command, events),
        }
    }

    /// Makes one event happen.
    pub(crate) fn emit(&mut self, event: Event, events: &mut Vec<Event>) {
        self.change(self.now, &event);
        events.push(event);
    }
}
