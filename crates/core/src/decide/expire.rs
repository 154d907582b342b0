//! What the clock brings.

use crate::api::event::{AlertLevel, End, Event, StopReason};
use crate::api::lane_settings::{Boost, LEVEL_MAX};
use crate::api::time::{Millis, Timestamp};
use crate::scheduler::Scheduler;
use crate::state::ready_tree::Line;
use crate::state::task::{Phase, Task};
use crate::state::timers::{Held, Look};

/// The tables of an empty scheduler may stay as large as this many tasks have made them.
const ROOM_KEPT: usize = 1024;

impl Scheduler {
    /// Lets the time pass up to now: ends what has lasted too long, wakes what has slept enough.
    pub(crate) fn expire(&mut self, events: &mut Vec<Event>) {
        if self.timers.may_be_due(self.now) {
            self.expire_due(events);
        } else if self.timers.has_held() {
            self.catch_up(events);
        }
    }

    fn expire_due(&mut self, events: &mut Vec<Event>) {
        self.elapse();
        while let Some(slot) = self.timers.due_task(self.now) {
            self.come_due(slot, events);
        }
        while let Some(look) = self.timers.due_look(self.now) {
            if self.is_live(&look) {
                self.look_at(look.slot, events);
            }
        }
        self.start_due_turns(events);
        self.tend_sessions(events);
        self.catch_up(events);
        self.timers.nothing_due_before(self.next_wakeup().unwrap_or(Timestamp::NEVER));
        self.grant(events);
    }

    /// What follows from the time alone and needs no event: buckets fill, old keys are forgotten.
    pub(crate) fn elapse(&mut self) {
        while let Some(lane) = self.timers.due_lane(self.now) {
            if self.lanes.get(lane).is_some() {
                self.refresh_lane(lane);
                self.drop_if_idle(lane);
            }
        }
        while let Some((at, key)) = self.key_ends.first().cloned()
            && at <= self.now
        {
            self.key_ends.pop_first();
            self.keys.remove(&key);
        }
        self.sessions.forget(self.now);
    }

    /// The moment of a task has come; what for depends on what it does.
    fn come_due(&mut self, slot: u32, events: &mut Vec<Event>) {
        let task = &self.tasks[slot];
        let (id, now) = (task.id, self.now);
        match &task.phase {
            Phase::Running(attempt) if attempt.stopping.is_some() => self.conclude_stop(slot, events),
            Phase::Running(attempt) if attempt.timeout_at <= attempt.lease_until => {
                self.stop(slot, StopReason::Timeout, events);
            }
            Phase::Running(_) => self.lapse(slot, events),
            _ if task.deadline() <= now && task.deadline() <= task.wait_until => {
                self.end(slot, End::Expired, events);
            }
            Phase::Delayed(_) | Phase::Held | Phase::Waiting if task.wait_until <= now => {
                self.end(slot, End::WaitTimeout, events);
            }
            Phase::Delayed(_) | Phase::BackingOff(_) => self.emit(Event::Ready { task: id }, events),
            Phase::Held | Phase::Waiting => {
                if let Some((_, levels)) = self.next_boost(task) {
                    self.emit(Event::Boosted { task: id, levels }, events);
                }
            }
        }
    }

    /// When a task's deadline next raises its priority, and to how many levels above its own.
    pub(crate) fn next_boost(&self, task: &Task) -> Option<(Timestamp, u8)> {
        let boost: Boost = self.settings(self.lanes.route(task.route).home()).boost?;
        let by = match task.deadline() {
            Timestamp::NEVER => task.submitted + boost.deadline?,
            deadline => deadline,
        };
        boost.next(task.submitted, by, task.boosted)
    }

    /// Whether a look still means something: its task waits, and is not looked at at another time.
    fn is_live(&self, look: &Look) -> bool {
        self.tasks.get(look.slot).is_some_and(|task| {
            task.arrival == look.arrival && task.look_at == look.at && matches!(task.phase, Phase::Waiting)
        })
    }

    /// Nobody waits himself above the highest level in the line. When somebody more urgent joins it, what the
    /// others have waited counts at once, so that they are ahead of newer work.
    fn catch_up(&mut self, events: &mut Vec<Event>) {
        let highest = self.highest_in_line();
        while let Some(held) = self.timers.next_held_below(highest) {
            if self.is_held(&held) {
                self.look_at(held.slot, events);
            }
        }
    }

    fn highest_in_line(&self) -> u8 {
        self.in_line.iter().rposition(|tasks| *tasks > 0).unwrap_or_default() as u8
    }

    /// How far waiting could have raised a task by now, were it not for the highest level in the line. Levels
    /// that deadlines give count there and here, so that work which is boosted all the time starves nobody.
    fn level_by_waiting(&self, task: &Task) -> u8 {
        let Some(ageing) = self.settings(self.lanes.route(task.route).home()).ageing else { return 0 };
        let turns = self.now.since(task.since).0 / ageing.after.0;
        (task.urgency() + turns.min(LEVEL_MAX.into()) as u8).min(ageing.max)
    }

    /// Whether a task still waits where the highest level in the line held it.
    fn is_held(&self, held: &Held) -> bool {
        self.tasks.get(held.slot).is_some_and(|task| {
            let is_it = task.arrival == held.arrival && matches!(task.phase, Phase::Waiting);
            is_it && task.level() == held.level && self.level_by_waiting(task) > held.level
        })
    }

    /// A waiting task is looked at: is it time for a notice, or has waiting raised it?
    fn look_at(&mut self, slot: u32, events: &mut Vec<Event>) {
        let task = &self.tasks[slot];
        let id = task.id;
        let waited = self.now.since(task.since);
        let notice_after = self.settings(self.lanes.route(task.route).home()).notice_after;
        if !task.noticed && notice_after.is_some_and(|after| after <= waited) {
            let ahead = self.ahead(slot) as u32;
            self.emit(Event::Noticed { task: id, waited, ahead }, events);
        }
        let task = &self.tasks[slot];
        let level = self.level_by_waiting(task).min(self.highest_in_line());
        let levels = level.saturating_sub(task.urgency());
        if levels > task.aged {
            self.emit(Event::Aged { task: id, levels }, events);
        }
        self.plan_look(slot);
    }

    /// Tells the clock when to look at a waiting task next: at its notice, and each time it has waited for
    /// another `after`, as long as waiting could still raise it.
    pub(crate) fn plan_look(&mut self, slot: u32) {
        let task = &self.tasks[slot];
        let home = self.settings(self.lanes.route(task.route).home());
        let notice = home.notice_after.filter(|_| !task.noticed).map(|after| task.since + after);
        let ageing = home.ageing.filter(|ageing| task.level() < ageing.max);
        // Most have just joined the line.
        let has_waited = self.now > task.since;
        let ageing = ageing.map_or(Timestamp::NEVER, |ageing| {
            let turns = if has_waited { self.now.since(task.since).0 / ageing.after.0 } else { 0 };
            task.since + Millis(ageing.after.0.saturating_mul(turns + 1))
        });
        let at = notice.map_or(ageing, |notice| notice.min(ageing));
        let (arrival, level) = (task.arrival, task.level());
        if has_waited && self.level_by_waiting(task) > level {
            self.timers.hold(Held { level, arrival, slot });
        }
        let known = std::mem::replace(&mut self.tasks[slot].look_at, at);
        if at != known && at != Timestamp::NEVER {
            self.timers.add_look(Look { at, arrival, slot });
        }
    }

    /// Tells the clock when something must happen to a task.
    pub(crate) fn plan(&mut self, slot: u32) {
        let task = &self.tasks[slot];
        let boost = match task.phase {
            Phase::Waiting => self.next_boost(task).map_or(Timestamp::NEVER, |(at, _)| at),
            _ => Timestamp::NEVER,
        };
        let (old, new, arrival) = (task.due, task.next_due(boost), task.arrival);
        if old != new {
            self.timers.move_task(old, new, arrival, slot);
            self.tasks[slot].due = new;
        }
    }

    /// Ends a step: tells of lines that grew long or empty, and tidies up.
    pub(crate) fn settle(&mut self, events: &mut Vec<Event>) {
        // By number, because what is told may let a lane go.
        let mut is_quiet = true;
        for index in 0..self.lanes.touched.len() {
            let touched = self.lanes.touched[index];
            if let Some(lane) = self.still_there(touched)
                && !self.lanes[lane].is_quiet()
            {
                is_quiet = false;
                self.tell_depth(lane, events);
                self.hush(touched);
            }
        }
        if !is_quiet {
            for index in 0..self.accepted.len() {
                self.check_depth(self.accepted[index]);
            }
        }
        self.tidy();
    }

    /// Gives back what is of no more use.
    pub(crate) fn tidy(&mut self) {
        if self.tasks.len() == 0 && self.tasks.room() > ROOM_KEPT {
            self.give_memory_back();
        }
        if self.timers.needs_sweep(self.waiting_in_line) {
            let mut timers = std::mem::take(&mut self.timers);
            timers.sweep(|look| self.is_live(look), |held| self.is_held(held));
            self.timers = timers;
        }
    }

    /// Everything was told of a lane, which may be gone with that.
    fn hush(&mut self, touched: (u32, u32)) {
        if let Some(lane) = self.still_there(touched) {
            let class = self.book.class(self.lanes[lane].class);
            self.lanes[lane].quiet = self.lanes[lane].quiet_within(&class.settings);
        }
    }

    /// Whoever was accepted and must wait found room in each of its lanes. Turns of messages that were accepted before are
    /// not refused, so that they may stand there beyond what there is room for.
    fn check_depth(&mut self, slot: u32) {
        let Some(task) = self.tasks.get(slot).filter(|task| task.attempts == 0) else { return };
        if self.is_message_turn(slot) {
            return;
        }
        for lane in &*self.lanes.route(task.route).lanes {
            let is_turn_here = |slot: &&u32| {
                let task = self.tasks.get(**slot);
                task.is_some_and(|task| self.lanes.route(task.route).lanes.contains(lane))
                    && self.is_message_turn(**slot)
            };
            let turns = self.accepted.iter().filter(is_turn_here).count() as u32;
            let (waiting, most) = (self.lanes[*lane].waiting, self.settings(*lane).max_queued);
            if waiting > most.saturating_add(turns) {
                let name = &self.lanes[*lane].name;
                self.overrun = Some(format!("{waiting} wait in {name}, which has room for {most}"));
            }
        }
    }

    /// Nothing is live: what the tables have grown to for a crowd is of no more use.
    fn give_memory_back(&mut self) {
        self.tasks.shrink();
        self.lanes.shrink();
        self.fair.shrink();
        self.line = Line::new(self.seed);
        self.timers.shrink();
        self.lanes.touched.shrink_to(ROOM_KEPT);
        self.gone.shrink_to(ROOM_KEPT);
    }

    fn tell_depth(&mut self, number: u32, events: &mut Vec<Event>) {
        let lane = &self.lanes[number];
        let settings = self.settings(number);
        let waiting = lane.waiting;
        let told = (lane.under_pressure, lane.warned, lane.critical);
        let over = |threshold: u32| waiting >= threshold;
        let pressure = over(settings.pressure_threshold) || lane.under_pressure && waiting > 0;
        let now = (pressure, over(settings.alert_warning), over(settings.alert_critical));
        if told == now && !lane.gate.draining {
            return;
        }
        let mut told: smallvec::SmallVec<[Event; 2]> = smallvec::SmallVec::new();
        let name = || lane.name.clone();
        if waiting >= settings.pressure_threshold && !lane.under_pressure {
            told.push(Event::Pressure { lane: name(), waiting });
        }
        if waiting == 0 && lane.under_pressure {
            told.push(Event::Idle { lane: name() });
        }
        let levels = [
            (AlertLevel::Warning, settings.alert_warning, lane.warned),
            (AlertLevel::Critical, settings.alert_critical, lane.critical),
        ];
        for (level, threshold, was_told) in levels {
            if waiting >= threshold && !was_told {
                told.push(Event::Alert { lane: name(), level, waiting });
            } else if waiting < threshold && was_told {
                told.push(Event::AlertOver { lane: name(), level });
            }
        }
        let empty = waiting == 0 && lane.running == 0 && lane.retrying == 0;
        if lane.gate.draining && empty && !lane.drained {
            told.push(Event::Drained { lane: name() });
        }
        for event in told {
            self.emit(event, events);
        }
    }
}
