//! What each event does to the state. Nothing here decides.

pub(crate) mod attempt;
pub(crate) mod clock;
pub(crate) mod finish;
pub(crate) mod lane;
pub(crate) mod lending;
pub(crate) mod queue;
pub(crate) mod session;
pub(crate) mod task;

use std::sync::Arc;

use crate::api::event::{AlertLevel, Event, LaneChange};
use crate::api::ids::TaskId;
use crate::api::lane_settings::{Block, Settings};
use crate::api::name::LaneName;
use crate::api::task_spec::TaskSpec;
use crate::api::time::Timestamp;
use crate::decide::notes::Note;
use crate::scheduler::Scheduler;
use crate::state::dead_letters::DeadLetter;
use crate::state::lane::{Gate, Lane};
use crate::state::ready_tree::{Line, NONE};
use crate::state::task::{Phase, Task};

impl Scheduler {
    /// What an event does. Live and replayed events come here alike.
    pub(crate) fn apply_event(&mut self, event: &Event) {
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
            Event::FencesRaised { to } => self.state.fences = self.state.fences.max(to.0),
            Event::MessagesConfigured { settings } => self.on_messages_configured(settings),
            _ => self.on_task_event(event),
        }
    }

    fn on_task_event(&mut self, event: &Event) {
        match event {
            Event::Joined { task } => {
                self.with(*task, |this, slot| this.state.tasks[slot].rare().joined += 1)
            }
            Event::Left { task } => self.with(*task, |this, slot| {
                let joined = &mut this.state.tasks[slot].rare().joined;
                *joined = joined.saturating_sub(1);
            }),
            Event::Ready { task } => self.with(*task, |this, slot| {
                if !matches!(this.state.tasks[slot].phase, Phase::Delayed(_)) {
                    this.time_wait(slot, this.state.now);
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
                    this.state.tasks[slot].noticed = true;
                    this.plan_look(slot);
                });
            }
            Event::Reserved { task } => self.with(*task, Scheduler::on_reserved),
            Event::Renewed { task, lease_until, .. } => self.with(*task, |this, slot| {
                if let Some(attempt) = this.state.tasks[slot].attempt_mut() {
                    attempt.lease_until = *lease_until;
                }
                this.plan(slot);
            }),
            Event::Stopping { task, reason, until, .. } => self.with(*task, |this, slot| {
                if let Some(attempt) = this.state.tasks[slot].attempt_mut() {
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
        match self.state.tasks.find(task) {
            Some(slot) => change(self, slot),
            None => debug_assert!(false, "an event about {task}, which is not live"),
        }
    }

    fn with_lane(&mut self, name: &LaneName, change: impl FnOnce(&mut Lane)) {
        if let Some(lane) = self.state.lanes.find(name) {
            change(&mut self.state.lanes[lane]);
            self.state.lanes[lane].quiet = Lane::LOUD;
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
        &self.state.book.class(self.state.lanes[lane].class).settings
    }

    fn on_configured(&mut self, blocks: &[Block]) {
        self.state.lanes.drop_all_kept();
        let before = self.state.book.class_settings();
        let classes: Vec<(u32, u32)> =
            self.state.lanes.iter().map(|(lane, this)| (lane, this.class)).collect();
        self.state.book.configure(blocks);
        self.state.lanes.reclassify(&mut self.state.book);
        let book = &mut self.state.book;
        self.state
            .letters
            .reclassify(|letter| book.class_of(letter.spec.lanes.first().unwrap_or(&LaneName::main())));
        self.state.book.recount_letters(self.state.letters.classes());
        self.state.book.sweep();
        let mut changed = Vec::new();
        for (lane, old) in classes.iter().map(|(lane, class)| (*lane, &before[class])) {
            if old != self.settings(lane) {
                self.on_settings_changed(lane, old);
                changed.push(lane);
            }
        }
        self.rebuild();
        // By name: the order in which things are told must not depend on how a lane is numbered here.
        changed.sort_by(|a, b| self.state.lanes[*a].name.cmp(&self.state.lanes[*b].name));
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
            self.state.lanes[lane].bucket.change_rate(self.state.now, old.rate_limit, rate);
        }
        if old.max_concurrency.is_some() != is_limited {
            // Slots are kept where they are limited: whoever still starves asks for them anew.
            for slot in self.reserved_through(lane) {
                self.state.reservations.remove(&slot);
                for lane in self.state.lanes.route(self.state.tasks[slot].route).lanes.clone() {
                    if self.state.lanes[lane].reserved == slot {
                        self.state.lanes[lane].reserved = NONE;
                    }
                }
            }
        }
    }

    /// The tasks with kept slots that name this lane, in the order of their arrival.
    fn reserved_through(&self, lane: u32) -> Vec<u32> {
        let names_it =
            |slot: &u32| self.state.lanes.route(self.state.tasks[*slot].route).lanes.contains(&lane);
        let mut slots: Vec<u32> = self.state.reservations.iter().copied().filter(names_it).collect();
        slots.sort_unstable_by_key(|slot| self.state.tasks[*slot].arrival);
        slots
    }

    /// Makes everything that follows from tasks and lanes anew: the line, whose turn it is, the timers.
    pub(crate) fn rebuild(&mut self) {
        self.indexes.line = Line::new(self.local.seed);
        self.indexes.may_grant = true;
        self.state.fair.suspend();
        self.indexes.timers.clear();
        self.indexes.in_line = Default::default();
        self.indexes.waiting_in_line = 0;
        for lane in self.state.lanes.iter().map(|(lane, _)| lane).collect::<Vec<_>>() {
            self.state.lanes[lane].roll = None;
            self.refresh_lane(lane);
            self.watch_bucket(lane);
        }
        for slot in self.state.tasks.by_arrival() {
            self.state.tasks[slot].due = Timestamp::NEVER;
            self.state.tasks[slot].look_at = Timestamp::NEVER;
            if matches!(self.state.tasks[slot].phase, Phase::Waiting) {
                self.join_line(slot);
            }
            self.plan(slot);
        }
        self.state.fair.resume();
    }

    pub(crate) fn each_lane(&mut self, slot: u32, mut change: impl FnMut(&mut Scheduler, u32)) {
        let route = self.state.tasks[slot].route;
        for index in 0..self.state.lanes.route(route).lanes.len() {
            let lane = self.state.lanes.route(route).lanes[index];
            change(self, lane);
            self.touch(lane);
        }
    }

    pub(crate) fn seen(&mut self, lane: u32) -> &mut crate::state::stats::LaneStats {
        &mut self.state.book.class_mut(self.state.lanes[lane].class).stats
    }

    /// What was asked for a live task, enough to ask again.
    pub(crate) fn spec_of(&self, slot: u32) -> TaskSpec {
        let task = &self.state.tasks[slot];
        let mut spec = TaskSpec::new(self.state.kinds.name(task.kind).clone(), self.names_of(slot));
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
        let lanes = &self.state.lanes.route(self.state.tasks[slot].route).lanes;
        let mut names: Vec<LaneName> =
            lanes.iter().map(|lane| self.state.lanes[*lane].name.clone()).collect();
        if names.len() > 1 && names.last() == Some(&LaneName::global()) {
            names.pop();
        }
        names
    }

    fn on_dead_lettered(&mut self, slot: u32, error: &Arc<str>, attempts: u32) {
        let class = self.state.lanes[self.state.lanes.route(self.state.tasks[slot].route).home()].class;
        let letter = DeadLetter {
            task: self.state.tasks[slot].id,
            spec: self.spec_of(slot),
            error: Arc::clone(error),
            attempts,
            at: self.state.now,
        };
        self.state.letters.insert(letter, class);
        self.state.book.class_mut(class).letters += 1;
    }

    fn on_letter_gone(&mut self, letter: TaskId) {
        if let Some(class) = self.state.letters.remove(letter) {
            self.state.book.class_mut(class).letters -= 1;
        }
    }

    /// A lane was paused or drained, which leaves the other as it was, or is open again.
    fn on_gate(&mut self, name: &LaneName, event: &Event) {
        let lane = self.state.lanes.lane(name, &mut self.state.book);
        let this = &mut self.state.lanes[lane];
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
        self.scratch.touched.note(lane, &mut self.state.lanes[lane]);
    }

    /// A lane that was touched, unless it is gone meanwhile.
    pub(crate) fn still_there(&self, (lane, birth): (u32, u32)) -> Option<u32> {
        self.state.lanes.get(lane).is_some_and(|this| this.birth == birth).then_some(lane)
    }

    /// Begins a step or a replayed event: forgets what the last one changed, and lets the time pass.
    pub(crate) fn begin_step(&mut self, now: Timestamp) {
        self.scratch.reset();
        // A replica that looked at the clock in between, without an event, may be ahead of the log.
        self.state.now = now;
        self.elapse();
    }

    pub(crate) fn lane_change(&self, number: u32) -> LaneChange {
        let lane = &self.state.lanes[number];
        LaneChange {
            lane: lane.name.clone(),
            running: lane.running,
            waiting: lane.waiting,
            max_concurrency: self.settings(number).max_concurrency,
        }
    }

    /// Whether there is nothing to remember of a lane.
    pub(crate) fn is_idle(&self, lane: u32) -> bool {
        self.state.lanes[lane].is_idle(self.state.now)
    }

    /// Lets a lane go when there is nothing to remember of it.
    pub(crate) fn drop_if_idle(&mut self, lane: u32) {
        if !self.is_idle(lane) {
            self.watch_bucket(lane);
            return;
        }
        if self.scratch.touched.has(&self.state.lanes[lane]) {
            self.scratch.gone.push(self.lane_change(lane));
        }
        self.state.lanes.forget(lane);
    }

    /// Tells the clock when a lane that is empty but for its bucket can go.
    pub(crate) fn watch_bucket(&mut self, lane: u32) {
        let full_at = self.state.lanes[lane].bucket.full_at();
        if self.state.lanes[lane].routes == 0 && full_at > self.state.now {
            self.indexes.timers.add_lane(full_at, lane);
        }
    }

    pub(crate) fn on_noted(&mut self, changes: &[Note]) {
        for (key, text) in changes {
            self.state.notes.set(key, text.as_ref());
        }
    }
}
