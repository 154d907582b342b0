//! Tasks, lanes and what they have seen, to look at.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::api::event::AlertLevel;
use crate::api::ids::{BlobId, Fence, TaskId};
use crate::api::lane_settings::{Handler, LaneSettings, Settings, Source};
use crate::api::name::{LaneName, Name, Pattern};
use crate::api::owner::{Owner, ReplicaId};
use crate::api::time::{Millis, Timestamp};
use crate::scheduler::Scheduler;
use crate::state::dead_letters::DeadLetter;
use crate::state::lane::{Gate, LaneIdx};
use crate::state::ready_tree::fair_share::FairKeyIdx;
use crate::state::stats::LaneStats;
use crate::state::task::{Phase, TaskIdx};

/// What a live task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskStatus {
    /// It waits, in the line or for its time to join it.
    Queued,
    /// An attempt runs.
    Running,
    /// An attempt is over and the next one waits for its time.
    Retrying,
}

/// A live task, to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveTaskView {
    /// Its id.
    pub id: TaskId,
    /// What it does.
    pub status: TaskStatus,
    /// Its kind.
    pub kind: Name,
    /// The lanes that it named; the first is its home lane.
    pub lanes: Vec<LaneName>,
    /// Where its payload is.
    pub payload: Option<BlobId>,
    /// Who asked.
    pub source: Source,
    /// Who runs it.
    pub handler: Handler,
    /// Its own priority.
    pub priority: u8,
    /// Its priority with what waiting and its deadline have added.
    pub effective_priority: u8,
    /// When it was accepted.
    pub submitted: Timestamp,
    /// How many attempts have started.
    pub attempts: u32,
    /// The attempt that runs.
    pub running: Option<Running>,
    /// When it has waited too long.
    pub wait_until: Option<Timestamp>,
    /// How long an attempt may take.
    pub timeout: Option<Millis>,
    /// When it is too late to start.
    pub deadline: Option<Timestamp>,
    /// How many callers wait for it in addition to the first.
    pub joined: u32,
    /// The label that it shares with others.
    pub group: Option<Name>,
    /// The task that asked for it.
    pub parent: Option<TaskId>,
    /// The replica that its caller is connected to.
    pub caller_at: Option<ReplicaId>,
    /// The owner of its attempts, where that was known when it was submitted.
    pub owner: Option<Owner>,
    /// The token that asked, where callers have tokens.
    pub caller: Option<Name>,
    /// The trace that it belongs to.
    pub trace: Option<Arc<str>>,
    /// Its name for people who look at the queue.
    pub label: Option<Name>,
}

/// A running attempt, to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Its fence.
    pub fence: Fence,
    /// Since when it runs.
    pub started: Timestamp,
    /// When its lease lapses.
    pub lease_until: Timestamp,
    /// When it started or last renewed the lease.
    pub heard: Timestamp,
    /// When it has taken too long.
    pub timeout_at: Option<Timestamp>,
    /// It has to stop.
    pub stopping: bool,
    /// Who executes it.
    pub owner: Owner,
}

/// A lane, to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneView<'a> {
    /// Its name.
    pub name: LaneName,
    /// The block or family of defaults that speaks for it.
    pub label: &'a str,
    /// What holds for it.
    pub settings: &'a Settings,
    /// Whether work is let in and out.
    pub gate: Gate,
    /// Slots taken.
    pub running: u32,
    /// Tasks waiting.
    pub waiting: u32,
    /// Tasks waiting for their next attempt's time.
    pub retrying: u32,
    /// The worst alert about its line that is not over.
    pub alert: Option<AlertLevel>,
    /// What the lanes of its block have seen together.
    pub stats: &'a LaneStats,
}

impl Running {
    /// The worker that executes it, if one does.
    pub fn worker(&self) -> Option<&Name> {
        self.owner.worker()
    }
}

impl LiveTaskView {
    /// Whether it is a slot or closure of a program, which no handler runs.
    pub fn is_slot(&self) -> bool {
        matches!(self.owner, Some(Owner::Replica(_)))
    }

    /// How long a task that ends at `ended` waited for its last attempt: from its acceptance, attempts before counted in.
    pub fn waited(&self, ended: Timestamp) -> Millis {
        self.running.as_ref().map_or(ended, |run| run.started).since(self.submitted)
    }

    /// How long the last attempt of a task that ends at `ended` ran.
    pub fn ran(&self, ended: Timestamp) -> Millis {
        self.running.as_ref().map_or(Millis(0), |run| ended.since(run.started))
    }
}

impl Phase {
    fn status(&self) -> TaskStatus {
        match self {
            Phase::Running(_) => TaskStatus::Running,
            Phase::BackingOff(_) => TaskStatus::Retrying,
            Phase::Delayed(_) | Phase::Held | Phase::Waiting => TaskStatus::Queued,
        }
    }
}

impl Scheduler {
    /// A live task.
    pub fn task(&self, task: TaskId) -> Option<LiveTaskView> {
        self.state.tasks.find(task).map(|idx| self.view(idx))
    }

    /// What a live task does, without building the whole view.
    pub fn status(&self, task: TaskId) -> Option<TaskStatus> {
        self.state.tasks.find(task).map(|idx| self.state.tasks[idx].phase.status())
    }

    /// What sort of work a live task is.
    pub fn kind_of(&self, task: TaskId) -> Option<&Name> {
        self.state.tasks.find(task).map(|idx| self.state.kinds.name(self.state.tasks[idx].kind))
    }

    /// All live tasks, in the order of their arrival.
    pub fn tasks(&self) -> impl Iterator<Item = LiveTaskView> {
        self.state.tasks.by_arrival().into_iter().map(|task| self.view(task))
    }

    /// The kinds of live tasks, slots of programs not counted, in no particular order.
    pub fn kinds(&self) -> impl Iterator<Item = &Name> {
        self.state.kinds.names()
    }

    /// How many tasks are live.
    pub fn live_tasks(&self) -> usize {
        self.state.tasks.len()
    }

    pub(crate) fn view(&self, idx: TaskIdx) -> LiveTaskView {
        let task = &self.state.tasks[idx];
        let is_set = |at: Timestamp| (at != Timestamp::NEVER).then_some(at);
        let own_timeout = task.rare.as_ref().and_then(|rare| rare.timeout);
        LiveTaskView {
            id: task.id,
            status: task.phase.status(),
            kind: self.state.kinds.name(task.kind).clone(),
            lanes: self.names_of(idx),
            payload: task.payload,
            source: task.source,
            handler: task.handler,
            priority: task.priority,
            effective_priority: task.level(),
            submitted: task.submitted,
            attempts: task.attempts,
            running: task.attempt().map(|attempt| Running {
                fence: attempt.fence,
                started: attempt.started,
                lease_until: attempt.lease_until,
                heard: Timestamp(attempt.lease_until.0.saturating_sub(attempt.lease.0)),
                timeout_at: is_set(attempt.timeout_at),
                stopping: attempt.stopping.is_some(),
                owner: attempt.owner.clone(),
            }),
            wait_until: is_set(task.wait_until),
            timeout: own_timeout.or(self.settings(self.state.lanes.route(task.route).first_lane()).timeout),
            deadline: is_set(task.deadline()),
            joined: task.rare.as_ref().map_or(0, |rare| rare.joined),
            group: task.rare.as_ref().and_then(|rare| rare.group.clone()),
            caller_at: task.caller_at(),
            owner: self.fixed_owner(idx),
            caller: task.rare.as_ref().and_then(|rare| rare.caller.clone()),
            label: task.rare.as_ref().and_then(|rare| rare.label.clone()),
            trace: task.rare.as_ref().and_then(|rare| rare.trace.clone()),
            parent: task.rare.as_ref().and_then(|rare| rare.parent).map(|parent| parent.task),
        }
    }

    /// A lane that exists now (something is in it, or there is something to remember of it) or has a block of its
    /// own.
    pub fn lane(&self, name: &LaneName) -> Option<LaneView<'_>> {
        let live = self.state.lanes.find(name).map(|lane| self.lane_view(lane));
        live.or_else(|| self.empty_lanes().find(|lane| lane.name == *name))
    }

    /// All lanes that exist now or have a block of their own, by name.
    pub fn lanes(&self) -> Vec<LaneView<'_>> {
        let live = self.state.lanes.iter().map(|(lane, _)| self.lane_view(lane));
        let mut lanes: Vec<LaneView<'_>> = live.chain(self.empty_lanes()).collect();
        lanes.sort_by(|a, b| a.name.cmp(&b.name));
        lanes
    }

    /// What holds for a lane of this name, whether it exists or not.
    pub fn settings_for(&self, name: &LaneName) -> Settings {
        self.state.lane_config.settings(name)
    }

    /// Who runs the tasks whose home lane is called so, whether it exists or not.
    pub fn handler_for(&self, home: &LaneName) -> Handler {
        let lane = self.state.lanes.find_kept(home);
        lane.map_or_else(|| self.state.lane_config.settings(home).handler, |lane| self.settings(lane).handler)
    }

    /// The lanes that have a block of their own and nothing in them.
    fn empty_lanes(&self) -> impl Iterator<Item = LaneView<'_>> {
        let empty =
            self.state.lane_config.declared().filter(|(name, _)| self.state.lanes.find(name).is_none());
        empty.map(|(name, class)| LaneView {
            name,
            label: &class.label,
            settings: &class.settings,
            gate: Gate::OPEN,
            running: 0,
            waiting: 0,
            retrying: 0,
            alert: None,
            stats: &class.stats,
        })
    }

    /// What was asked for the lanes of a pattern, by their own block or by the one that applies instead.
    pub fn asked_for(&self, lanes: &Pattern) -> LaneSettings {
        self.state.lane_config.asked_for(lanes)
    }

    /// The blocks of settings as they were given, by name or pattern.
    pub fn blocks(&self) -> impl Iterator<Item = (&Pattern, &LaneSettings)> {
        self.state.lane_config.blocks()
    }

    pub(super) fn lane_view(&self, idx: LaneIdx) -> LaneView<'_> {
        let lane = &self.state.lanes[idx];
        let class = self.state.lane_config.class(lane.class);
        LaneView {
            name: lane.name.clone(),
            label: &class.label,
            settings: &class.settings,
            gate: lane.gate,
            running: lane.running,
            waiting: lane.waiting,
            retrying: lane.retrying,
            alert: match (lane.critical, lane.warned) {
                (true, _) => Some(AlertLevel::Critical),
                (false, true) => Some(AlertLevel::Warning),
                (false, false) => None,
            },
            stats: &class.stats,
        }
    }

    /// What the lanes of each block of settings have seen, by the block's name or pattern.
    pub fn stats(&self) -> impl Iterator<Item = (&str, &LaneStats)> {
        self.state.lane_config.classes().map(|class| (&*class.label, &class.stats))
    }

    /// What the lanes with the settings of the lane `name` have seen, whether that lane exists or not.
    pub fn stats_for(&self, name: &LaneName) -> Option<&LaneStats> {
        self.state.lane_config.class_for(name).map(|class| &class.stats)
    }

    /// The patterns under which lanes were used, with their settings and what their lanes have seen. A pattern may occur more
    /// than once, for lanes with different defaults.
    pub fn used_patterns(&self) -> impl Iterator<Item = (&str, &Settings, &LaneStats)> {
        let classes = self.state.lane_config.classes();
        let used = classes.filter(|class| class.label.contains('*') && class.stats.accepted > 0);
        used.map(|class| (&*class.label, self.state.lane_config.label_settings(class), &class.stats))
    }

    /// The dead letters, the oldest first.
    pub fn dead_letters(&self) -> impl Iterator<Item = &DeadLetter> {
        self.state.dead_letters.iter()
    }

    /// The tasks that a worker could claim now or later, in the order in which they would be handed out.
    pub fn pending_external(&self) -> Vec<LiveTaskView> {
        let is_pending = |idx: &TaskIdx| {
            let task = &self.state.tasks[*idx];
            task.handler == Handler::External && matches!(task.phase, Phase::Waiting)
        };
        let pending = self.state.tasks.iter().map(|(idx, _)| idx).filter(is_pending).collect();
        self.in_turn(pending).into_iter().map(|task| self.view(task)).collect()
    }

    /// These waiting tasks in the order in which they would start one by one: by level, then by fair-share tag, then by
    /// arrival. Each start moves the tag of its key on.
    fn in_turn(&self, mut waiting: Vec<TaskIdx>) -> Vec<TaskIdx> {
        waiting.sort_by_key(|task| self.state.tasks[*task].rank());
        let (mut clock, mut tags) = (self.state.fair.clock, BTreeMap::new());
        let mut ordered = Vec::with_capacity(waiting.len());
        for level in waiting.chunk_by(|a, b| self.state.tasks[*a].level() == self.state.tasks[*b].level()) {
            let mut lines: BTreeMap<FairKeyIdx, VecDeque<TaskIdx>> = BTreeMap::new();
            for task in level {
                let leaf = self.state.tasks[*task].leaf;
                let Some(key) = leaf.and_then(|leaf| self.indexes.ready.key_of(leaf)) else { continue };
                lines.entry(key).or_default().push_back(*task);
            }
            let rank = |key: FairKeyIdx, line: &VecDeque<TaskIdx>, tags: &BTreeMap<FairKeyIdx, u64>| {
                let tag = tags.get(&key).copied().unwrap_or(self.state.fair.keys[key].tag);
                line.front().map(|task| (tag, self.state.tasks[*task].arrival, key))
            };
            let mut heads: BTreeSet<_> =
                lines.iter().filter_map(|(key, line)| rank(*key, line, &tags)).collect();
            while let Some((tag, _, key)) = heads.pop_first() {
                clock = tag.max(clock);
                tags.insert(key, clock + self.state.fair.keys[key].cost());
                let Some(line) = lines.get_mut(&key) else { continue };
                ordered.extend(line.pop_front());
                heads.extend(rank(key, line, &tags));
            }
        }
        ordered
    }
}
