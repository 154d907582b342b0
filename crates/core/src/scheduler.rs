//! The central type: one state machine that decides everything.

use std::sync::Arc;

use crate::api::command::{Command, Reply};
use crate::api::event::{Event, LaneChange};
use crate::api::ids::Fence;
use crate::api::owner::ReplicaId;
use crate::api::rejection::Rejection;
use crate::api::time::Timestamp;
use crate::api::views::LiveTaskView;
use crate::state::stats::Count;
use crate::state::{Indexes, LocalOptions, State, StepScratch};
use crate::step::Step;

/// Decides which work may run now.
///
/// Tasks name lanes; a lane is a named limit; a task runs when every lane it names (and `global`, which all
/// name) has a free slot, and takes all its slots in one step. Among those that may run, the order is
/// effective priority, then whose turn it is between fair keys, then arrival. Everything else (retries, leases,
/// rates, ageing, deadlines, parents and children) is in the modules listed below, each in one place.
///
/// # How a decision is made
///
/// [`step`](Scheduler::step) takes the time and a [`Command`]. It first lets the time pass (leases lapse,
/// waits time out, waiting work ages), then decides the command, then grants every task that may run. A decision reads
/// the scheduler and emits [`Event`]s. Each event is applied at once, by the same code that replays it, and no
/// other code changes the state. So replaying the events gives the state, on any machine, without deciding again. A
/// rejected command leaves no event, except those of the time that passed.
///
/// # How to drive it
///
/// Call `step` for each command, and with [`Command::Tick`] at [`next_wakeup`](Scheduler::next_wakeup); keep
/// the events; then tell the world. Run what [`Event::Granted`] says, stop attempts that [`Event::Stopping`]
/// names, and report the end of each attempt with [`Command::Finish`] under its fence. Stop also an attempt whose task got
/// [`Event::Ended`] while it ran, as after a force release: its slots belong to another task already, and its
/// report is refused.
///
/// # Where to look
///
/// | question | file |
/// |---|---|
/// | may this be accepted? | `decide/submit.rs` |
/// | which task is next? | `decide/dispatch.rs`, over the tree in `state/ready_tree/` |
/// | what follows a failure, a timeout, a silent worker? | `decide/outcome.rs` |
/// | cancel, pause, configure, redrive | `decide/control.rs` |
/// | what follows from the time | `decide/expire.rs`, `apply/clock.rs` |
/// | what may a decision do? | `step.rs` |
/// | what does each event do to the state? | `apply/` |
/// | parents lend slots to children | `decide/lending.rs`, `apply/lending.rs` |
/// | why does a task wait, and for how long? | `query/explain.rs`, `query/estimate.rs` |
/// | what must always hold | `invariants.rs` |
/// | notes of programs | `decide/notes.rs` |
/// | who executes an attempt, and what follows when a replica ends or dies? | `decide/replicas.rs` |
/// | what becomes of a message to a busy session? | `sessions/send.rs`, `sessions/turns.rs`, `sessions/steering.rs` |
pub struct Scheduler {
    pub(crate) state: State,
    pub(crate) indexes: Indexes,
    pub(crate) scratch: StepScratch,
    pub(crate) local: LocalOptions,
}

impl Scheduler {
    /// An empty scheduler in which every lane has its default settings. The seed keeps callers from choosing names
    /// that collide in look-up tables; no decision depends on it.
    pub fn new(seed: u64) -> Scheduler {
        Scheduler {
            state: State::new(seed),
            indexes: Indexes::new(seed),
            scratch: StepScratch::default(),
            local: LocalOptions {
                seed,
                collects_ended: false,
                collects_slots: false,
                is_stopped: false,
                replica: ReplicaId::SOLE,
            },
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
        let reply = self.within_step(now, events, |step| step.run(command));
        debug_assert!(self.state.tasks.len() > 64 || self.violation().is_none(), "{:?}", self.violation());
        reply
    }

    /// Carries out a command that was given before the time passed, and could not be decided then. So a report that came before
    /// a lease lapsed counts, and the lapse does not. What is due and what may start follows with the next [`step`](Scheduler::step),
    /// which belongs to the same batch.
    pub fn step_late(
        &mut self,
        now: Timestamp,
        command: Command,
        events: &mut Vec<Event>,
    ) -> Result<Reply, Rejection> {
        self.within_step(now, events, |step| step.run_late(command))
    }

    fn within_step(
        &mut self,
        now: Timestamp,
        events: &mut Vec<Event>,
        decide: impl FnOnce(&mut Step<'_>) -> Result<Reply, Rejection>,
    ) -> Result<Reply, Rejection> {
        if now > Timestamp::MAX {
            return Err(Rejection::TimeTooLate { now });
        }
        if now < self.state.now {
            return Err(Rejection::ClockWentBack { now, last: self.state.now });
        }
        let mut step = Step::begin(self, now, events);
        let reply = decide(&mut step);
        step.close();
        reply
    }

    /// Replays one event that an earlier `step`, here or on another machine, returned for `at`.
    pub fn apply(&mut self, at: Timestamp, event: &Event) {
        self.begin_step(at);
        self.apply_event(event);
    }

    /// Replays a moment for which an earlier `step` returned no event and which was kept all the same.
    pub fn advance_to(&mut self, at: Timestamp) {
        if at > self.state.now {
            self.begin_step(at);
        }
    }

    /// When to call `step` with [`Command::Tick`], if at all.
    pub fn next_wakeup(&self) -> Option<Timestamp> {
        let keys = self.indexes.key_ends.first().map(|(at, _)| *at);
        [self.indexes.timers.next(), keys, self.state.sessions.next_due()].into_iter().flatten().min()
    }

    /// The time of the last step or event.
    pub fn now(&self) -> Timestamp {
        self.state.now
    }

    /// The lanes whose numbers the last `step` or `apply` changed, with their numbers now.
    pub fn changes(&self) -> impl Iterator<Item = LaneChange> {
        let live = self.scratch.touched.lanes().iter().filter_map(|touched| self.still_there(*touched));
        let live = live.map(|lane| self.lane_change(lane));
        self.scratch.gone.iter().cloned().chain(live)
    }

    /// From now on keeps what each `step` or `apply` ends, for [`take_ended`](Scheduler::take_ended).
    pub fn collect_ended(&mut self) {
        (self.local.collects_ended, self.local.collects_slots) = (true, true);
    }

    /// Whether [`take_ended`](Scheduler::take_ended) hands out also the slots of programs that are in no group, which are many.
    pub fn collect_slots(&mut self, collects: bool) {
        self.local.collects_slots = collects;
    }

    /// Hands out the tasks that the last `step` or `apply` ended, as they were before, in the order of their ends. Empty
    /// unless [`collect_ended`](Scheduler::collect_ended) was called.
    pub fn take_ended(&mut self) -> impl Iterator<Item = LiveTaskView> {
        self.scratch.ended.drain(..)
    }

    /// From now on keeps what each `step` or `apply` counts, for [`take_counts`](Scheduler::take_counts).
    pub fn collect_counts(&mut self) {
        self.scratch.counted.collect();
    }

    /// Hands out what lanes have counted since the last call, each with the label of the lane. A replica so tells its own part
    /// from that of others. Empty unless [`collect_counts`](Scheduler::collect_counts) was called.
    pub fn take_counts(&mut self) -> impl Iterator<Item = (Arc<str>, Count)> {
        self.scratch.counted.take()
    }

    /// Names the replica that owns the attempts which this scheduler starts from now on; until then, that is
    /// [`SOLE`](ReplicaId::SOLE). Replicas that share a log tell their own attempts by it. It is no event, because it ends with the process.
    pub fn run_as(&mut self, replica: ReplicaId) {
        self.local.replica = replica;
    }

    /// The highest fence that an attempt has had.
    pub fn highest_fence(&self) -> Fence {
        Fence(self.state.fences)
    }

    /// Whether [`take_ended`](Scheduler::take_ended) has something to hand out.
    pub fn has_ended(&self) -> bool {
        !self.scratch.ended.is_empty()
    }

    /// Starts no further tasks, because the process is about to end. Running tasks may finish, waiting tasks are kept,
    /// and workers can still claim. It is no event, because it ends with the process.
    pub fn stop_granting(&mut self) {
        self.local.is_stopped = true;
    }
}
