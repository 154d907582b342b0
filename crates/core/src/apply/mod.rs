//! What each event does to the state. Nothing here decides.

pub(crate) mod attempt;
pub(crate) mod queue;
pub(crate) mod task;

use std::sync::Arc;

use crate::api::event::{AlertLevel, Event, LaneChange};
use crate::api::ids::TaskId;
use crate::api::lane_settings::{Block, Settings};
use crate::api::name::LaneName;
use crate::api::task_spec::TaskSpec;
use crate::api::time::Timestamp;
use crate::scheduler::Scheduler;
use crate::state::dead_letters::DeadLetter;
use crate::state::lane::{Gate, Lane};
use crate::state::ready_tree::{Line, NONE};
use crate::state::task::{Phase, Task};

impl Scheduler {
    pub(crate) fn change(&mut self, at: Timestamp, event: &Event) {
        self.now = self.now.max(at);
        match event {
            Event::Configured { blocks } => self.on_configured(blocks),
            Event::Submitted { .. } => self.on_submitted(event),
            Event::Granted { .. } => self.on_granted(event),
            Event::Ended { task, end } => self.with(*task, |this, slot| this.on_ended(slot, end)),
            Event::Paused { lane } | Event::Resumed { lane } | Event::Draining { lane } => {
                self.on_gate(lane, event);
            }
            Event::LetterGone { letter, .. } => self.on_letter_gone(*letter),
            Event::Drained { lane } => self.with_lane(lane, |lane| lane.drained = true),
            Event::Pressure { lane, .. } => self.with_lane(lane, |lane| lane.under_pressure = true),
            Event::Idle { lane } => self.with_lane(lane, |lane| lane.under_pressure = false),
            Event::Alert { lane, level, .. } => self.on_alert(lane, *level, true),
            Event::AlertOver { lane, level } => self.on_alert(lane, *level, false),
            Event::Session(event) => self.on_session(event),
            Event::Unbound { home } => self.on_unbound(home),
            Event::Noted { changes } => self.on_noted(changes),
            Event::FencesRaised { to } => self.fences = self.fences.max(to.0),
            Event::MessagesConfigured { settings } => self.on_messages_configured(settings),
            _ => self.on_task_event(event),
        }
    }

    fn on_task_event(&mut self, event: &Event) {
        match event {
            Event::Joined { task } => self.with(*task, |this, slot| this.tasks[slot].rare().joined += 1),
            Event::Left { task } => self.with(*task, |this, slot| {
                let joined = &mut this.tasks[slot].rare().joined;
                *joined = joined.saturating_sub(1);
            }),
            Event::Ready { task } => self.with(*task, |this, slot| {
                if !matches!(this.tasks[slot].phase, Phase::Delayed(_)) {
                    this.time_wait(slot, this.now);
                }
                this.on_ready(slot);
            }),
            Event::Aged { task, levels } => {
                self.with(*task, |this, slot| this.relevel(slot, |task| task.aged = *levels));
            }
            Event::Boosted { task, levels } => {
                self.with(*task, |this, slot| this.relevel(slot, |task| task.boosted = *levels));
            }
            Event::Reprioritised { task, priority } => {
                let change = |task: &mut Task| (task.priority, task.aged) = (*priority, 0);
                self.with(*task, |this, slot| this.relevel(slot, change));
            }
            Event::Noticed { task, .. } => {
                self.with(*task, |this, slot| {
                    this.tasks[slot].noticed = true;
                    this.plan_look(slot);
                });
            }
            Event::Reserved { task } => self.with(*task, Scheduler::on_reserved),
            Event::Renewed { task, lease_until, .. } => self.with(*task, |this, slot| {
                if let Some(attempt) = this.tasks[slot].attempt_mut() {
                    attempt.lease_until = *lease_until;
                }
                this.plan(slot);
            }),
            Event::Stopping { task, reason, until, .. } => self.with(*task, |this, slot| {
                if let Some(attempt) = this.tasks[slot].attempt_mut() {
                    attempt.stopping = Some((*reason, *until));
                }
                this.plan(slot);
            }),
            Event::Retrying { task, at, .. } => self.with(*task, |this, slot| this.on_retrying(slot, *at)),
            Event::Redelivered { task, .. } => self.with(*task, Scheduler::on_redelivered),
            Event::DeadLettered { task, error, attempts } => {
                self.with(*task, |this, slot| this.on_dead_lettered(slot, error, *attempts));
            }
            _ => debug_assert!(false, "an event that nothing happens at: {event:?}"),
        }
    }

    /// Does something to a live task. An event about any other cannot come from a log of ours.
    fn with(&mut self, task: TaskId, change: impl FnOnce(&mut Scheduler, u32)) {
        match self.tasks.find(task) {
            Some(slot) => change(self, slot),
            None => debug_assert!(false, "an event about {task}, which is not live"),
        }
    }

    fn with_lane(&mut self, name: &LaneName, change: impl FnOnce(&mut Lane)) {
        if let Some(lane) = self.lanes.find(name) {
            change(&mut self.lanes[lane]);
            self.lanes[lane].quiet = Lane::LOUD;
            self.drop_if_idle(lane);
        }
    }

    fn on_alert(&mut self, lane: &LaneName, level: AlertLevel, is_on: bool) {
        self.with_lane(lane, |lane| match level {
            AlertLevel::Warning => lane.warned = is_on,
            AlertLevel::Critical => lane.critical = is_on,
        });
    }

    pub(crate) fn settings(&self, lane: u32) -> &Settings {
        &self.book.class(self.lanes[lane].class).settings
    }

    fn on_configured(&mut self, blocks: &[Block]) {
        self.lanes.drop_all_kept();
        let before = self.book.class_settings();
        let classes: Vec<(u32, u32)> = self.lanes.iter().map(|(lane, this)| (lane, this.class)).collect();
        self.book.configure(blocks);
        self.lanes.reclassify(&mut self.book);
        let book = &mut self.book;
        self.letters
            .reclassify(|letter| book.class_of(letter.spec.lanes.first().unwrap_or(&LaneName::main())));
        self.book.recount_letters(self.letters.classes());
        self.book.sweep();
        let mut changed = Vec::new();
        for (lane, old) in classes.iter().map(|(lane, class)| (*lane, &before[class])) {
            if old != self.settings(lane) {
                self.on_settings_changed(lane, old);
                changed.push(lane);
            }
        }
        self.rebuild();
        // By name: the order in which things are told must not depend on how a lane is numbered here.
        changed.sort_by(|a, b| self.lanes[*a].name.cmp(&self.lanes[*b].name));
        for lane in changed {
            self.touch(lane);
            self.drop_if_idle(lane);
        }
    }

    fn on_settings_changed(&mut self, lane: u32, old: &Settings) {
        let (rate, is_limited) = {
            let new = self.settings(lane);
            (new.rate_limit, new.max_concurrency.is_some())
        };
        if old.rate_limit != rate {
            self.lanes[lane].bucket.change_rate(self.now, old.rate_limit, rate);
        }
        if old.max_concurrency.is_some() != is_limited {
            // Slots are kept where they are limited: whoever still starves asks for them anew.
            for slot in self.reserved_through(lane) {
                self.reservations.remove(&slot);
                for lane in self.lanes.route(self.tasks[slot].route).lanes.clone() {
                    if self.lanes[lane].reserved == slot {
                        self.lanes[lane].reserved = NONE;
                    }
                }
            }
        }
    }

    /// The tasks with kept slots that name this lane, in the order of their arrival.
    fn reserved_through(&self, lane: u32) -> Vec<u32> {
        let names_it = |slot: &u32| self.lanes.route(self.tasks[*slot].route).lanes.contains(&lane);
        let mut slots: Vec<u32> = self.reservations.iter().copied().filter(names_it).collect();
        slots.sort_unstable_by_key(|slot| self.tasks[*slot].arrival);
        slots
    }

    /// Makes everything that follows from tasks and lanes anew: the line, whose turn it is, the timers.
    pub(crate) fn rebuild(&mut self) {
        self.line = Line::new(self.seed);
        self.may_grant = true;
        self.fair.suspend();
        self.timers.clear();
        self.in_line = Default::default();
        self.waiting_in_line = 0;
        for lane in self.lanes.iter().map(|(lane, _)| lane).collect::<Vec<_>>() {
            self.lanes[lane].roll = None;
            self.refresh_lane(lane);
            self.watch_bucket(lane);
        }
        for slot in self.tasks.by_arrival() {
            self.tasks[slot].due = Timestamp::NEVER;
            self.tasks[slot].look_at = Timestamp::NEVER;
            if matches!(self.tasks[slot].phase, Phase::Waiting) {
                self.join_line(slot);
            }
            self.plan(slot);
        }
        self.fair.resume();
    }

    pub(crate) fn each_lane(&mut self, slot: u32, mut change: impl FnMut(&mut Scheduler, u32)) {
        let route = self.tasks[slot].route;
        for index in 0..self.lanes.route(route).lanes.len() {
            let lane = self.lanes.route(route).lanes[index];
            change(self, lane);
            self.touch(lane);
        }
    }

    pub(crate) fn seen(&mut self, lane: u32) -> &mut crate::state::stats::LaneStats {
        &mut self.book.class_mut(self.lanes[lane].class).stats
    }

    /// What was asked for a live task, enough to ask again.
    pub(crate) fn spec_of(&self, slot: u32) -> TaskSpec {
        let task = &self.tasks[slot];
        let mut spec = TaskSpec::new(self.kinds.name(task.kind).clone(), self.names_of(slot));
        spec.payload = task.payload;
        spec.source = task.source;
        spec.priority = Some(task.priority);
        spec.retry = task.retry();
        if let Some(rare) = &task.rare {
            spec.timeout = rare.timeout;
            spec.wait_timeout = rare.wait_timeout;
            spec.fair_key = rare.fair_key.clone();
            spec.group = rare.group.clone();
            spec.claimer = rare.claimer.clone();
            spec.caller = rare.caller.clone();
            spec.trace = rare.trace.clone();
        }
        spec
    }

    /// The lanes that a task named.
    pub(crate) fn names_of(&self, slot: u32) -> Vec<LaneName> {
        let lanes = &self.lanes.route(self.tasks[slot].route).lanes;
        let mut names: Vec<LaneName> = lanes.iter().map(|lane| self.lanes[*lane].name.clone()).collect();
        if names.len() > 1 && names.last() == Some(&LaneName::global()) {
            names.pop();
        }
        names
    }

    fn on_dead_lettered(&mut self, slot: u32, error: &Arc<str>, attempts: u32) {
        let class = self.lanes[self.lanes.route(self.tasks[slot].route).home()].class;
        let letter = DeadLetter {
            task: self.tasks[slot].id,
            spec: self.spec_of(slot),
            error: Arc::clone(error),
            attempts,
            at: self.now,
        };
        self.letters.insert(letter, class);
        self.book.class_mut(class).letters += 1;
    }

    fn on_letter_gone(&mut self, letter: TaskId) {
        if let Some(class) = self.letters.remove(letter) {
            self.book.class_mut(class).letters -= 1;
        }
    }

    /// A lane was paused or drained, which leaves the other as it was, or is open again.
    fn on_gate(&mut self, name: &LaneName, event: &Event) {
        let lane = self.lanes.lane(name, &mut self.book);
        let this = &mut self.lanes[lane];
        match event {
            Event::Paused { .. } => this.gate.paused = true,
            Event::Draining { .. } => (this.gate.draining, this.drained) = (true, false),
            _ => (this.gate, this.drained) = (Gate::OPEN, false),
        }
        this.quiet = Lane::LOUD;
        if matches!(event, Event::Paused { .. }) {
            // Nobody can use what is kept for a task that a pause holds up.
            for slot in self.reserved_through(lane) {
                self.unreserve(slot);
            }
        }
        self.refresh_lane(lane);
        self.touch(lane);
        self.drop_if_idle(lane);
    }

    pub(crate) fn touch(&mut self, lane: u32) {
        self.lanes.touch(lane);
    }

    /// A lane that was touched, unless it is gone meanwhile.
    pub(crate) fn still_there(&self, (lane, birth): (u32, u32)) -> Option<u32> {
        self.lanes.get(lane).is_some_and(|this| this.birth == birth).then_some(lane)
    }

    pub(crate) fn forget_changes(&mut self) {
        self.lanes.step += 1;
        self.lanes.touched.clear();
        self.accepted.clear();
        if !self.gone.is_empty() {
            self.gone.clear();
        }
        if !self.departed.is_empty() {
            self.departed.clear();
        }
        self.sessions.stirred.clear();
    }

    pub(crate) fn lane_change(&self, number: u32) -> LaneChange {
        let lane = &self.lanes[number];
        LaneChange {
            lane: lane.name.clone(),
            running: lane.running,
            waiting: lane.waiting,
            max_concurrency: self.settings(number).max_concurrency,
        }
    }

    /// Whether there is nothing to remember of a lane.
    pub(crate) fn is_idle(&self, lane: u32) -> bool {
        self.lanes[lane].is_idle(self.now)
    }

    /// Lets a lane go when there is nothing to remember of it.
    pub(crate) fn drop_if_idle(&mut self, lane: u32) {
        if !self.is_idle(lane) {
            self.watch_bucket(lane);
            return;
        }
        if self.unwatched.is_none() && self.lanes[lane].touched_in == self.lanes.step {
            self.gone.push(self.lane_change(lane));
        }
        self.lanes.forget(lane);
    }

    /// Tells the clock when a lane that is empty but for its bucket can go.
    pub(crate) fn watch_bucket(&mut self, lane: u32) {
        let full_at = self.lanes[lane].bucket.full_at();
        if self.lanes[lane].routes == 0 && full_at > self.now {
            self.timers.add_lane(full_at, lane);
        }
    }
}
