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
use crate::state::lane::{Gate, LaneIdx, LiveLane};
use crate::state::lane_config::ClassIdx;
use crate::state::ready_tree::ReadyTree;
use crate::state::stats::Count;
use crate::state::task::{LiveTask, Phase, TaskIdx};

impl Scheduler {
    /// What an event does. Live and replayed events come here alike.
    pub(crate) fn apply_event(&mut self, event: &Event) {
        match event {
            Event::Configured { blocks } => self.on_configured(blocks),
            Event::Submitted { .. } => self.on_submitted(event),
            Event::Granted { .. } => self.on_granted(event),
            Event::Ended { task, end } => self.with(*task, |this, idx| this.on_ended(idx, end)),
            Event::Paused { lane } | Event::Resumed { lane } | Event::Draining { lane } => {
                self.on_gate(lane, event);
            }
            Event::DeadLetterRemoved { dead_letter, .. } => self.on_dead_letter_removed(*dead_letter),
            Event::Drained { lane } => self.with_lane(lane, |lane| lane.drained = true),
            Event::Pressure { lane, .. } => self.with_lane(lane, |lane| lane.under_pressure = true),
            Event::Idle { lane } => self.with_lane(lane, |lane| lane.under_pressure = false),
            Event::Alert { lane, level, .. } => self.on_alert(lane, *level, true),
            Event::AlertOver { lane, level } => self.on_alert(lane, *level, false),
            Event::Session(event) => self.on_session(event),
            Event::Unbound { replica } => self.on_unbound(*replica),
            Event::Noted { changes } => self.on_noted(changes),
            Event::FencesRaised { to } => self.state.fences = self.state.fences.max(to.0),
            Event::MessagesConfigured { settings } => self.on_messages_configured(settings),
            _ => self.on_task_event(event),
        }
    }

    fn on_task_event(&mut self, event: &Event) {
        match event {
            Event::Joined { task } => self.with(*task, |this, idx| this.state.tasks[idx].rare().joined += 1),
            Event::Left { task } => self.with(*task, |this, idx| {
                let joined = &mut this.state.tasks[idx].rare().joined;
                *joined = joined.saturating_sub(1);
            }),
            Event::Ready { task } => self.with(*task, |this, idx| {
                if !matches!(this.state.tasks[idx].phase, Phase::Delayed(_)) {
                    this.time_wait(idx, this.state.now);
                }
                this.on_ready(idx);
            }),
            Event::Aged { task, levels } => {
                self.with(*task, |this, idx| this.relevel(idx, |task| task.aged = *levels));
            }
            Event::Boosted { task, levels } => {
                self.with(*task, |this, idx| this.relevel(idx, |task| task.boosted = *levels));
            }
            Event::Reprioritised { task, priority } => {
                let change = |task: &mut LiveTask| (task.priority, task.aged) = (*priority, 0);
                self.with(*task, |this, idx| this.relevel(idx, change));
            }
            Event::Noticed { task, .. } => {
                self.with(*task, |this, idx| {
                    this.state.tasks[idx].noticed = true;
                    this.plan_wait_check(idx);
                });
            }
            Event::Reserved { task } => self.with(*task, Scheduler::on_reserved),
            Event::Renewed { task, lease_until, .. } => self.with(*task, |this, idx| {
                if let Some(attempt) = this.state.tasks[idx].attempt_mut() {
                    attempt.renew(*lease_until);
                }
                this.plan(idx);
            }),
            Event::Stopping { task, reason, until, .. } => self.with(*task, |this, idx| {
                if let Some(attempt) = this.state.tasks[idx].attempt_mut() {
                    attempt.stopping = Some((*reason, *until));
                }
                this.plan(idx);
            }),
            Event::Retrying { task, at, .. } => self.with(*task, |this, idx| this.on_retrying(idx, *at)),
            Event::Redelivered { task, .. } => self.with(*task, Scheduler::on_redelivered),
            Event::DeadLettered { task, error, attempts } => {
                self.with(*task, |this, idx| this.on_dead_lettered(idx, error, *attempts));
            }
            _ => debug_assert!(false, "an event that nothing happens at: {event:?}"),
        }
    }

    /// Does something to a live task. An event about any other cannot come from a log of ours.
    fn with(&mut self, task: TaskId, change: impl FnOnce(&mut Scheduler, TaskIdx)) {
        match self.state.tasks.find(task) {
            Some(idx) => change(self, idx),
            None => debug_assert!(false, "an event about {task}, which is not live"),
        }
    }

    fn with_lane(&mut self, name: &LaneName, change: impl FnOnce(&mut LiveLane)) {
        if let Some(lane) = self.state.lanes.find(name) {
            change(&mut self.state.lanes[lane]);
            self.state.lanes[lane].quiet = LiveLane::LOUD;
            self.drop_if_idle(lane);
        }
    }

    fn on_alert(&mut self, lane: &LaneName, level: AlertLevel, is_on: bool) {
        self.with_lane(lane, |lane| match level {
            AlertLevel::Warning => lane.warned = is_on,
            AlertLevel::Critical => lane.critical = is_on,
        });
    }

    pub(crate) fn settings(&self, lane: LaneIdx) -> &Settings {
        &self.state.lane_config.class(self.state.lanes[lane].class).settings
    }

    fn on_configured(&mut self, blocks: &[Block]) {
        self.state.lanes.drop_all_kept();
        let named = blocks.iter().filter_map(|block| block.lanes.exact());
        let unused = named.filter(|name| self.state.lanes.find(name).is_none());
        let limit = |name: LaneName| (self.state.lane_config.settings(&name).max_concurrency, name);
        let unused: Vec<(Option<u32>, LaneName)> = unused.map(limit).collect();
        let before = self.state.lane_config.class_settings();
        let classes: Vec<(LaneIdx, ClassIdx)> =
            self.state.lanes.iter().map(|(lane, this)| (lane, this.class)).collect();
        self.state.lane_config.configure(blocks);
        self.state.lanes.reclassify(&mut self.state.lane_config);
        let lane_config = &mut self.state.lane_config;
        self.state.dead_letters.reclassify(|dead_letter| {
            lane_config.class_of(dead_letter.spec.lanes.first().unwrap_or(&LaneName::main()))
        });
        self.state.lane_config.recount_dead_letters(self.state.dead_letters.classes());
        self.state.lane_config.sweep();
        let mut changed = Vec::new();
        for (lane, old) in classes.iter().map(|(lane, class)| (*lane, &before[class])) {
            if old != self.settings(lane) {
                self.on_settings_changed(lane, old);
                changed.push(lane);
            }
        }
        self.rebuild();
        // By name, because the order of reports must not depend on the numbers of lanes in this process.
        changed.sort_by(|a, b| self.state.lanes[*a].name.cmp(&self.state.lanes[*b].name));
        for lane in changed {
            self.touch(lane);
            self.drop_if_idle(lane);
        }
        // Watchers also hear of the new limit of a lane that nothing uses.
        for (old, lane) in unused {
            let max_concurrency = self.state.lane_config.settings(&lane).max_concurrency;
            if max_concurrency != old {
                self.scratch.gone.push(LaneChange { lane, running: 0, waiting: 0, max_concurrency });
            }
        }
    }

    fn on_settings_changed(&mut self, lane: LaneIdx, old: &Settings) {
        let (rate, is_limited) = {
            let new = self.settings(lane);
            (new.rate_limit, new.max_concurrency.is_some())
        };
        if old.rate_limit != rate {
            self.state.lanes[lane].bucket.change_rate(self.state.now, old.rate_limit, rate);
        }
        if old.max_concurrency.is_some() != is_limited {
            // Only limited slots are reserved: a task that still starves reserves again.
            for task in self.reserved_through(lane) {
                self.state.reservations.remove(&task);
                for lane in self.state.lanes.route(self.state.tasks[task].route).lanes.clone() {
                    if self.state.lanes[lane].reserved == Some(task) {
                        self.state.lanes[lane].reserved = None;
                    }
                }
            }
        }
    }

    /// The tasks with kept slots that name this lane, in the order of their arrival.
    fn reserved_through(&self, lane: LaneIdx) -> Vec<TaskIdx> {
        let names_it =
            |task: &TaskIdx| self.state.lanes.route(self.state.tasks[*task].route).lanes.contains(&lane);
        let mut tasks: Vec<TaskIdx> = self.state.reservations.iter().copied().filter(names_it).collect();
        tasks.sort_unstable_by_key(|task| self.state.tasks[*task].arrival);
        tasks
    }

    /// Rebuilds the indexes that follow from tasks and lanes: the ready tree, the fair shares and the timers.
    pub(crate) fn rebuild(&mut self) {
        self.indexes.ready = ReadyTree::new(self.local.seed);
        self.indexes.may_grant = true;
        self.state.fair.suspend();
        self.indexes.timers.clear();
        self.indexes.ready_by_level = Default::default();
        self.indexes.ready_count = 0;
        for lane in self.state.lanes.iter().map(|(lane, _)| lane).collect::<Vec<_>>() {
            self.state.lanes[lane].waiting_list = None;
            self.refresh_lane(lane);
            self.watch_bucket(lane);
        }
        for task in self.state.tasks.by_arrival() {
            self.state.tasks[task].due = Timestamp::NEVER;
            self.state.tasks[task].check_at = Timestamp::NEVER;
            if matches!(self.state.tasks[task].phase, Phase::Waiting) {
                self.enter_ready_tree(task);
            }
            self.plan(task);
        }
        self.state.fair.resume();
    }

    pub(crate) fn each_lane(&mut self, task: TaskIdx, mut change: impl FnMut(&mut Scheduler, LaneIdx)) {
        let route = self.state.tasks[task].route;
        for index in 0..self.state.lanes.route(route).lanes.len() {
            let lane = self.state.lanes.route(route).lanes[index];
            change(self, lane);
            self.touch(lane);
        }
    }

    pub(crate) fn count(&mut self, lane: LaneIdx, count: Count) {
        let class = self.state.lane_config.class_mut(self.state.lanes[lane].class);
        class.count(&mut self.scratch.counted, count);
    }

    /// What was asked for a live task, enough to ask again.
    pub(crate) fn spec_of(&self, idx: TaskIdx) -> TaskSpec {
        let task = &self.state.tasks[idx];
        let mut spec = TaskSpec::new(self.state.kinds.name(task.kind).clone(), self.names_of(idx));
        spec.payload = task.payload;
        spec.source = task.source;
        spec.priority = Some(task.priority);
        spec.retry = task.retry();
        spec.owner = self.fixed_owner(idx);
        if let Some(rare) = &task.rare {
            spec.timeout = rare.timeout;
            spec.wait_timeout = rare.wait_timeout;
            spec.fair_key = rare.fair_key.clone();
            spec.group = rare.group.clone();
            spec.lease = rare.lease;
            spec.caller = rare.caller.clone();
            spec.trace = rare.trace.clone();
            spec.label = rare.label.clone();
        }
        spec
    }

    /// The lanes that a task named.
    pub(crate) fn names_of(&self, task: TaskIdx) -> Vec<LaneName> {
        let lanes = &self.state.lanes.route(self.state.tasks[task].route).lanes;
        let mut names: Vec<LaneName> =
            lanes.iter().map(|lane| self.state.lanes[*lane].name.clone()).collect();
        if names.len() > 1 && names.last() == Some(&LaneName::global()) {
            names.pop();
        }
        names
    }

    fn on_dead_lettered(&mut self, idx: TaskIdx, error: &Arc<str>, attempts: u32) {
        let class = self.state.lanes[self.state.lanes.route(self.state.tasks[idx].route).first_lane()].class;
        let dead_letter = DeadLetter {
            task: self.state.tasks[idx].id,
            spec: self.spec_of(idx),
            error: Arc::clone(error),
            attempts,
            at: self.state.now,
        };
        self.state.dead_letters.insert(dead_letter, class);
        self.state.lane_config.class_mut(class).dead_letters += 1;
    }

    fn on_dead_letter_removed(&mut self, dead_letter: TaskId) {
        if let Some(class) = self.state.dead_letters.remove(dead_letter) {
            self.state.lane_config.class_mut(class).dead_letters -= 1;
        }
    }

    /// A lane was paused or drained, which leaves the other as it was, or is open again.
    fn on_gate(&mut self, name: &LaneName, event: &Event) {
        let lane = self.state.lanes.lane(name, &mut self.state.lane_config);
        let this = &mut self.state.lanes[lane];
        match event {
            Event::Paused { .. } => this.gate.paused = true,
            Event::Draining { .. } => (this.gate.draining, this.drained) = (true, false),
            _ => (this.gate, this.drained) = (Gate::OPEN, false),
        }
        this.quiet = LiveLane::LOUD;
        if matches!(event, Event::Paused { .. }) {
            // Slots that are reserved for a task in a paused lane would stay unused.
            for task in self.reserved_through(lane) {
                self.unreserve(task);
            }
        }
        self.refresh_lane(lane);
        self.touch(lane);
        self.drop_if_idle(lane);
    }

    pub(crate) fn touch(&mut self, lane: LaneIdx) {
        self.scratch.touched.note(lane, &mut self.state.lanes[lane]);
    }

    /// A lane that was touched, unless it is gone meanwhile.
    pub(crate) fn still_there(&self, (lane, birth): (LaneIdx, u32)) -> Option<LaneIdx> {
        self.state.lanes.get(lane).is_some_and(|this| this.birth == birth).then_some(lane)
    }

    /// Begins a step or a replayed event: forgets what the last one changed, and lets the time pass.
    pub(crate) fn begin_step(&mut self, now: Timestamp) {
        self.scratch.reset();
        // A replica that ticked in between without an event may be ahead of the log.
        self.state.now = now;
        self.elapse();
    }

    pub(crate) fn lane_change(&self, idx: LaneIdx) -> LaneChange {
        let lane = &self.state.lanes[idx];
        LaneChange {
            lane: lane.name.clone(),
            running: lane.running,
            waiting: lane.waiting,
            max_concurrency: self.settings(idx).max_concurrency,
        }
    }

    /// Whether there is nothing to remember of a lane.
    pub(crate) fn is_idle(&self, lane: LaneIdx) -> bool {
        self.state.lanes[lane].is_idle(self.state.now)
    }

    /// Lets a lane go when there is nothing to remember of it.
    pub(crate) fn drop_if_idle(&mut self, lane: LaneIdx) {
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
    pub(crate) fn watch_bucket(&mut self, lane: LaneIdx) {
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
