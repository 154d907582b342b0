//! The short way of work that waits for nobody: it comes, starts and goes while nobody stands in line.
//!
//! What is decided is what [`step`](Scheduler::step) would decide, and the state afterwards is the same to the last
//! number. But no event tells of it, because whoever asks keeps no log and nobody watches: making two events of a start
//! and one of an end, only to forget them, would be most of the work. Wherever anything is not as simple as that, nothing
//! is done here, and `step` decides.

use crate::api::event::End;
use crate::api::ids::{Fence, TaskId};
use crate::api::lane_settings::{Handler, Source};
use crate::api::name::{LaneName, Name};
use crate::api::time::{Millis, Timestamp};
use crate::scheduler::Scheduler;
use crate::state::lane::Lane;
use crate::state::ready_tree::NONE;
use crate::state::table::Mark;
use crate::state::task::{Attempt, Phase, Task};

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

impl Start {
    #[inline]
    fn attempt(&self, now: Timestamp, worker: Option<Name>) -> Attempt {
        Attempt {
            fence: self.fence,
            started: now,
            lease: self.lease,
            lease_until: now + self.lease,
            timeout_at: self.timeout_at.unwrap_or(Timestamp::NEVER),
            stopping: None,
            worker,
            borrowed: Default::default(),
            lent: Default::default(),
        }
    }
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
        if !self.has_free_way(route) || self.letters.get(task).is_some() {
            return None;
        }
        let hash = self.tasks.vacant(task)?;
        self.now = now;
        self.forget_changes();
        let home = &self.book.class(self.lanes[self.lanes.route(route).home()].class).settings;
        let start = Start {
            fence: Fence(self.fences + 1),
            lease: home.lease,
            timeout_at: home.timeout.map(|length| now + length),
        };
        let attempt = start.attempt(now, self.runner.clone());
        let due = attempt.lease_until.min(attempt.timeout_at);
        let started = Task {
            id: task,
            phase: Phase::Running(self.tasks.boxed(attempt)),
            rare: None,
            route,
            kind: self.kinds.join(kind),
            leaf: NONE,
            attempts: 1,
            priority: home.priority.unwrap_or(Source::default().priority()),
            aged: 0,
            boosted: 0,
            source: Source::default(),
            handler: home.handler,
            noticed: false,
            is_once: true,
            mark: Mark::Used,
            arrival: self.arrivals,
            since: now,
            wait_until: home.wait_timeout.map_or(Timestamp::NEVER, |length| now + length),
            due,
            look_at: Timestamp::NEVER,
            submitted: now,
            payload: None,
        };
        let slot = self.tasks.insert_hashed(hash, started);
        self.tasks.running.insert(start.fence, slot);
        self.timers.add_task(due, self.arrivals, slot);
        self.arrivals += 1;
        self.fences += 1;
        let Scheduler { lanes, line, book, overrun, .. } = self;
        lanes.take_route_and(route, |number, lane| {
            lane.running += 1;
            lane.last_change = now;
            if lane.running > lane.slots {
                *overrun = Some(lane.overrun());
            }
            let stats = &mut book.class_mut(lane.class).stats;
            stats.accepted += 1;
            stats.count_start(Millis(0));
            lane.reopen(number, line);
        });
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
        let Some(attempt) = this.attempt().filter(|attempt| attempt.stopping.is_none()) else { return false };
        let is_plain = this.id == task && this.rare.is_none() && this.payload.is_none();
        if !is_plain || !self.is_ignored(slot) || !self.is_silent_way(this.route) {
            return false;
        }
        let (route, kind, due, arrival) = (this.route, this.kind, this.due, this.arrival);
        let ran = now.since(attempt.started);
        self.now = now;
        self.forget_changes();
        self.tasks.running.remove(fence);
        self.timers.remove_task(due, arrival);
        self.tasks.discard_run(slot);
        self.kinds.leave(kind);
        self.remember_run(task);
        self.ended += 1;
        let Scheduler { lanes, line, book, .. } = self;
        let remembered = lanes.leave_route_and(route, now, |number, lane| {
            let stats = &mut book.class_mut(lane.class).stats;
            stats.count_run(ran, true);
            stats.count_end(&End::Completed);
            lane.run_time.record(ran);
            lane.running -= 1;
            lane.last_change = now;
            lane.reopen(number, line);
        });
        for lane in remembered {
            self.watch_bucket(lane);
        }
        self.tidy();
        self.may_grant = false;
        debug_assert!(self.tasks.len() > 64 || self.violation().is_none(), "{:?}", self.violation());
        true
    }

    /// Whether anybody stands in line: then nothing starts or ends at once.
    pub fn has_line(&self) -> bool {
        self.waiting_in_line > 0
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
            && home.wait_timeout != Some(Millis(0))
            && route.lanes.iter().all(|lane| {
                let lane = &self.lanes[*lane];
                lane.open
                    && !lane.is_rated
                    && !lane.gate.draining
                    && lane.has_room()
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
