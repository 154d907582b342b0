//! The short way: whoever finds the engine free has his slot decided on the spot.
//!
//! A slot that is asked for, given and given back goes through no channel, and where it is free nobody is woken. What is
//! decided and told is the same; whatever is not as simple as that goes the way of all turns.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use laneway_core::{Command, Event, Fence, LaneName, Reply, Start, TaskId, TaskSpec};
use tokio::sync::oneshot;

use crate::driver::batch::Turn;
use crate::driver::engine_loop::Engine;
use crate::driver::mailbox::{Ask, Report, Wants};
use crate::error::Error;
use crate::handle::Handle;
use crate::handle::task::slot_kind;
use crate::runs::slot::{Slot, Wait};

/// What comes of asking for a slot.
pub(crate) enum Asked {
    /// There was one.
    Given(Slot),
    /// It is told later.
    Told(Wait),
    /// Somebody has the engine: this must be sent to it.
    Busy(Box<Ask>, Wait),
}

impl Engine {
    /// Asks for a slot of each lane of `spec`.
    pub(crate) fn ask_slot(&mut self, task: TaskId, spec: Box<TaskSpec>, handle: &Handle) -> Asked {
        let mut ask = Ask::new(Command::Submit { task, spec }, Wants::SlotNow);
        let (turn, reply) = self.decide_now(&mut ask);
        if !self.is_watched
            && let [Event::Submitted { .. }, granted] = &*turn.events
            && let Event::Granted { task: other, fence, lease, timeout_at, worker: None, .. } = granted
            && *other == task
        {
            let stop = self.runs.insert(task, *fence, *lease, turn.at);
            let slot = Slot::new(task, *fence, *timeout_at, stop, handle.clone());
            self.expect(self.runs.next_renewal());
            self.expect(*timeout_at);
            self.end_turn(turn);
            return Asked::Given(slot);
        }
        let (answer, told) = oneshot::channel();
        if !self.is_watched && matches!(&*turn.events, [Event::Submitted { .. }]) {
            // It stands in line, and there is nobody else to tell.
            self.slots.insert(task, answer);
            self.positions.forget();
            self.may_be_late = true;
            self.end_turn(turn);
        } else {
            ask.wants = Wants::Slot(answer);
            self.publish_now(ask, turn, reply);
        }
        Asked::Told(Wait::new(task, told, handle.clone()))
    }

    /// A slot of each of these lanes for a task of which nothing else is asked, if nobody stands in line and nobody
    /// watches: what most who come find, and as short as it can be.
    pub(crate) fn slot_at_once(&mut self, lanes: &[LaneName], handle: &Handle) -> Option<Slot> {
        if self.scheduler.has_line() || self.look_for_watchers() {
            return None;
        }
        let now = self.flow.now();
        let task = self.tools.ids.task_at(now);
        let Start { fence, lease, timeout_at } =
            self.scheduler.start_at_once(now, task, slot_kind()?, lanes)?;
        let stop = self.runs.insert(task, fence, lease, now);
        self.expect(self.runs.next_renewal());
        self.expect(timeout_at);
        Some(Slot::new(task, fence, timeout_at, stop, handle.clone()))
    }

    /// Takes back a slot whose work succeeded; not if anybody is to hear of it or waits for it.
    pub(crate) fn end_at_once(&mut self, task: TaskId, fence: Fence) -> bool {
        if self.scheduler.has_line() || self.look_for_watchers() {
            return false;
        }
        let now = self.flow.now();
        let is_over = self.scheduler.end_at_once(now, task, fence);
        if is_over {
            self.runs.end(task);
        }
        is_over
    }

    /// Has a command decided, kept and told.
    pub(crate) fn take_ask(&mut self, mut ask: Ask) {
        let (turn, reply) = self.decide_now(&mut ask);
        self.publish_now(ask, turn, reply);
    }

    /// Takes a report of a run.
    pub(crate) fn take_report(&mut self, report: Report) {
        let Some(mut ask) = self.heed(report) else { return };
        let (turn, reply) = self.decide_now(&mut ask);
        if self.is_watched || !turn.is_forgotten() {
            return self.publish_now(ask, turn, reply);
        }
        for event in &turn.events {
            self.effect(event, &turn, 0);
        }
        self.begin_runs();
        self.may_be_late |= turn.events.len() > 1;
        self.end_turn(turn);
    }

    fn decide_now(&mut self, ask: &mut Ask) -> (Box<Turn>, Result<Reply, Error>) {
        let mut turn = self.spare.take().unwrap_or_default();
        turn.at = self.flow.now();
        self.look_for_watchers();
        let reply = self.decide_one(ask, &mut turn);
        (turn, reply)
    }

    /// Workers may find something else to do, now that this is decided.
    fn end_turn(&mut self, mut turn: Box<Turn>) {
        if !turn.events.is_empty() {
            self.tools.offers.notify_waiters();
        }
        turn.clear();
        self.spare = Some(turn);
    }

    /// Keeps and tells what was decided, as at the end of every turn.
    fn publish_now(&mut self, ask: Ask, mut turn: Box<Turn>, reply: Result<Reply, Error>) {
        let events = 0..turn.events.len();
        turn.replies.push((reply, events));
        let kept = pin!(self.keep(&mut turn)).poll(&mut Context::from_waker(Waker::noop()));
        debug_assert!(matches!(kept, Poll::Ready(Ok(_))), "what is kept in memory waits for nothing");
        self.publish(vec![ask], *turn);
        self.may_be_late = true;
    }
}
