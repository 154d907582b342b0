//! The short way of work that waits for nobody: it comes, starts and goes while nobody stands in line.
//!
//! What is decided is what [`step`](Scheduler::step) would decide, and the state afterwards is the same to the last
//! number. But no event tells of it, because whoever asks keeps no log and nobody watches: making two events of a start
//! and one of an end, only to forget them, would be most of the work. Wherever anything is not as simple as that, nothing
//! is done here, and `step` decides.

use crate::event::End;
use crate::id::{Fence, TaskId};
use crate::lane::Lane;
use crate::line::NONE;
use crate::name::{LaneName, Name};
use crate::scheduler::Scheduler;
use crate::settings::{Handler, Source};
use crate::table::Mark;
use crate::task::{Attempt, Phase, Task};
use crate::time::{Millis, Timestamp};

/// An attempt that started at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Its fence.
    pub fence: Fence,
    /// How long its lease lasts without a sign of life.
    pub lease: Millis,
    /// When it will have taken too long.
    pub timeout_at: Option<Timestamp>,
}

impl Scheduler {
    /// Accepts and starts a task of which nothing is asked but these lanes, and one attempt only: as
    /// [`Command::Submit`](crate::Command::Submit) does, if that brings [`Submitted`](crate::Event::Submitted),
    /// [`Granted`](crate::Event::Granted) and nothing else. `None`: it might not, and nothing was changed.
    pub fn start_at_once(
        &mut self,
        now: Timestamp,
        task: TaskId,
        kind: &Name,
        lanes: &[LaneName],
    ) -> Option<Start> {
        if !self.is_calm(now) || self.is_stopped {
            return None;
        }
        let route = self.lanes.find_route(lanes)?;
        if !self.has_free_way(route) || self.tasks.find(task).is_some() || self.letters.get(task).is_some() {
            return None;
        }
        self.now = now;
        self.forget_changes();
        self.lanes.join_route(lanes, &mut self.book);
        let home = self.settings(self.lanes.route(route).home());
        let priority = home.priority.unwrap_or(Source::default().priority());
        let start = Start {
            fence: Fence(self.fences + 1),
            lease: home.lease,
            timeout_at: home.timeout.map(|length| now + length),
        };
        let wait_until = home.wait_timeout.map_or(Timestamp::NEVER, |length| now + length);
        let handler = home.handler;
        let kind = self.kinds.join(kind);
        let slot = self.tasks.insert(Task {
            id: task,
            phase: Phase::Waiting,
            rare: None,
            route,
            kind,
            leaf: NONE,
            attempts: 0,
            priority,
            aged: 0,
            boosted: 0,
            source: Source::default(),
            handler,
            noticed: false,
            is_once: true,
            mark: Mark::Used,
            arrival: self.arrivals,
            since: now,
            wait_until,
            due: Timestamp::NEVER,
            look_at: Timestamp::NEVER,
            submitted: now,
            payload: None,
        });
        self.arrivals += 1;
        let attempt = Attempt {
            fence: start.fence,
            started: now,
            lease: start.lease,
            lease_until: now + start.lease,
            timeout_at: start.timeout_at.unwrap_or(Timestamp::NEVER),
            stopping: None,
            worker: self.runner.clone(),
            borrowed: Default::default(),
            lent: Default::default(),
        };
        self.take_slots(route, &attempt, Millis(0), true);
        self.begin_attempt(slot, attempt);
        self.may_grant = false;
        debug_assert!(self.tasks.len() > 64 || self.violation().is_none(), "{:?}", self.violation());
        Some(start)
    }

    /// Ends a task whose attempt succeeded: as [`Command::Finish`](crate::Command::Finish) does, if that brings
    /// [`Ended`](crate::Event::Ended) and nothing else, and nobody wants to know of it, see
    /// [`unwatched`](Scheduler::unwatched). `false`: it might not, and nothing was changed.
    pub fn end_at_once(&mut self, now: Timestamp, task: TaskId, fence: Fence) -> bool {
        if !self.is_calm(now) {
            return false;
        }
        let Some(slot) = self.tasks.running.find(fence) else { return false };
        let this = &self.tasks[slot];
        let is_stopping = this.attempt().is_none_or(|attempt| attempt.stopping.is_some());
        let is_plain = this.id == task && !is_stopping && this.rare.is_none() && this.payload.is_none();
        if !is_plain || !self.is_ignored(slot) || !self.is_silent_way(this.route) {
            return false;
        }
        self.now = now;
        self.forget_changes();
        self.let_end(slot, &End::Completed);
        self.tidy();
        self.may_grant = false;
        debug_assert!(self.tasks.len() > 64 || self.violation().is_none(), "{:?}", self.violation());
        true
    }

    /// Whether nothing is due, and nobody waits whom a task that comes or goes could concern.
    fn is_calm(&self, now: Timestamp) -> bool {
        now >= self.now
            && now <= Timestamp::MAX
            && !self.timers.may_be_due(now)
            && !self.timers.has_held()
            && self.waiting_in_line == 0
            && self.fair.keys.is_empty()
            && self.reservations.is_empty()
    }

    /// Whether each lane of a route has a slot for a task that just comes along, and nothing to say to it.
    fn has_free_way(&self, route: u32) -> bool {
        let route = self.lanes.route(route);
        let home = self.settings(route.home());
        let has_sessions = !self.sessions.is_empty();
        home.handler != Handler::External
            && home.boost.is_none()
            && home.notice_after != Some(Millis(0))
            && home.wait_timeout != Some(Millis(0))
            && route.lanes.iter().all(|lane| {
                let lane = &self.lanes[*lane];
                let has_room = lane.waiting < self.book.class(lane.class).settings.max_queued;
                lane.open
                    && !lane.is_rated
                    && !lane.gate.draining
                    && has_room
                    && is_silent(lane, has_sessions)
            })
    }

    /// Whether there is nothing to tell of the lanes of a route when a task goes.
    fn is_silent_way(&self, route: u32) -> bool {
        let has_sessions = !self.sessions.is_empty();
        self.lanes.route(route).lanes.iter().all(|lane| is_silent(&self.lanes[*lane], has_sessions))
    }
}

/// Whether there is nothing to tell of a lane as long as nobody joins its line, and no conversation to look after.
fn is_silent(lane: &Lane, has_sessions: bool) -> bool {
    lane.is_quiet() && !(has_sessions && lane.is_session())
}
