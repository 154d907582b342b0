//! Why does it wait, and for how long? Questions that change nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::id::{BlobId, Fence, TaskId};
use crate::lane::Gate;
use crate::letters::DeadLetter;
use crate::line::NONE;
use crate::name::{LaneName, Name};
use crate::ordered::Place;
use crate::scheduler::Scheduler;
use crate::settings::{Handler, Settings, Source};
use crate::stats::LaneStats;
use crate::task::Phase;
use crate::time::{Millis, Timestamp};

/// What somebody is told who was refused by a lane that has measured nothing yet.
const RETRY_AFTER_UNKNOWN: Millis = Millis::from_secs(5);
const RETRY_AFTER_MIN: Millis = Millis::from_secs(1);
const RETRY_AFTER_MAX: Millis = Millis::from_secs(300);

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
pub struct TaskView {
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
    /// How many callers wait for it beside the first.
    pub joined: u32,
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
    /// When it has taken too long.
    pub timeout_at: Option<Timestamp>,
    /// It was told to stop.
    pub stopping: bool,
    /// Who claimed it.
    pub worker: Option<Name>,
}

/// Why a task waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// What holds it up, the most certain first. Empty when it runs.
    pub blockers: Vec<Blocker>,
    /// Its place in the line of its home lane, counted from one.
    pub position: Option<usize>,
    /// When it will probably start; `None` when there is nothing to judge by.
    pub starts_in: Option<Millis>,
}

/// One thing that holds a task up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Blocker {
    /// Its time has not come.
    NotYet {
        /// When it will.
        until: Timestamp,
    },
    /// It starts when another task has ended.
    After {
        /// Which one.
        task: TaskId,
    },
    /// Its next attempt waits for its time.
    BackingOff {
        /// When it comes.
        until: Timestamp,
    },
    /// A lane is paused.
    Paused {
        /// Which lane.
        lane: LaneName,
    },
    /// A lane's rate limit is used up.
    RateLimited {
        /// Which lane.
        lane: LaneName,
        /// Until when.
        until: Timestamp,
    },
    /// Its conversation has a turn that runs.
    SessionBusy {
        /// The conversation's lane.
        lane: LaneName,
        /// The turn.
        turn: TaskId,
        /// Since when it runs.
        since: Timestamp,
    },
    /// All slots of a lane are taken.
    LaneFull {
        /// Which lane.
        lane: LaneName,
        /// How many slots it has.
        max_concurrency: u32,
        /// By whom and since when, the longest first; the first few.
        holders: Vec<(TaskId, Timestamp)>,
    },
    /// The free slot of a lane is kept for a task that was passed over too often.
    Reserved {
        /// Which lane.
        lane: LaneName,
        /// For which task.
        task: TaskId,
    },
    /// No worker has claimed it.
    Unclaimed,
    /// Others in its home lane come first.
    Behind {
        /// How many.
        tasks: usize,
    },
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
    /// What the lanes of its block have seen together.
    pub stats: &'a LaneStats,
}

/// How many holders of a full lane are named.
const HOLDERS_TOLD_MAX: usize = 10;

impl Scheduler {
    /// Why a task waits; `None` if it is not live.
    pub fn explain(&self, task: TaskId) -> Option<Explanation> {
        let slot = self.tasks.find(task)?;
        let task = &self.tasks[slot];
        let mut blockers = Vec::new();
        match &task.phase {
            Phase::Running(_) => {
                return Some(Explanation { blockers, position: None, starts_in: None });
            }
            Phase::Delayed(until) => blockers.push(Blocker::NotYet { until: *until }),
            Phase::Held => {
                let after = task.rare.as_ref().and_then(|rare| rare.after);
                blockers.extend(after.map(|task| Blocker::After { task }));
            }
            Phase::BackingOff(until) => blockers.push(Blocker::BackingOff { until: *until }),
            Phase::Waiting => {}
        }
        let parent = self.parent_of(slot);
        for lane in &*self.lanes.route(task.route).lanes {
            self.explain_lane(*lane, self.lender(parent, *lane).is_some(), slot, &mut blockers);
        }
        let in_line = matches!(task.phase, Phase::Waiting);
        if in_line && blockers.is_empty() && task.handler == Handler::External {
            blockers.push(Blocker::Unclaimed);
        }
        let ahead = in_line.then(|| self.ahead(slot));
        blockers.extend(ahead.filter(|tasks| *tasks > 0).map(|tasks| Blocker::Behind { tasks }));
        let starts_in = ahead.and_then(|ahead| self.starts_in(slot, ahead));
        Some(Explanation { blockers, position: ahead.map(|ahead| ahead + 1), starts_in })
    }

    fn explain_lane(&self, number: u32, is_lent: bool, slot: u32, blockers: &mut Vec<Blocker>) {
        let lane = &self.lanes[number];
        let settings = self.settings(number);
        let name = || lane.name.clone();
        if lane.gate == Gate::Paused {
            blockers.push(Blocker::Paused { lane: name() });
        }
        if let Some(rate) = settings.rate_limit
            && lane.bucket.ready_at(rate) > self.now
        {
            blockers.push(Blocker::RateLimited { lane: name(), until: lane.bucket.ready_at(rate) });
        }
        let Some(slots) = settings.max_concurrency.filter(|_| !is_lent) else { return };
        if lane.running >= slots {
            let mut holders = self.holders_of(number);
            match holders.first().copied() {
                Some((turn, since)) if slots == 1 && lane.name.is_conversation() => {
                    blockers.push(Blocker::SessionBusy { lane: name(), turn, since });
                }
                _ => {
                    holders.truncate(HOLDERS_TOLD_MAX);
                    blockers.push(Blocker::LaneFull { lane: name(), max_concurrency: slots, holders });
                }
            }
        } else if lane.reserved != NONE && lane.reserved != slot && lane.running + 1 >= slots {
            blockers.push(Blocker::Reserved { lane: name(), task: self.tasks[lane.reserved].id });
        }
    }

    /// Who runs in a lane and since when, the longest first.
    fn holders_of(&self, lane: u32) -> Vec<(TaskId, Timestamp)> {
        let running = self.tasks.running.iter().map(|(_, slot)| &self.tasks[slot]);
        let in_lane = running.filter(|task| self.lanes.route(task.route).lanes.contains(&lane));
        in_lane.filter_map(|task| task.attempt().map(|attempt| (task.id, attempt.started))).collect()
    }

    pub(crate) fn longest_running_in(&self, lane: u32) -> Option<TaskId> {
        let mut running = self.tasks.running.iter().map(|(_, slot)| &self.tasks[slot]);
        running.find(|task| self.lanes.route(task.route).lanes.contains(&lane)).map(|task| task.id)
    }

    /// A waiting task's place in the line of its home lane, by level and arrival, counted from one.
    pub fn position(&self, task: TaskId) -> Option<usize> {
        let slot = self.tasks.find(task)?;
        matches!(self.tasks[slot].phase, Phase::Waiting).then(|| self.ahead(slot) + 1)
    }

    pub(crate) fn ahead(&self, slot: u32) -> usize {
        let task = &self.tasks[slot];
        self.line.position(self.lanes.route(task.route).home(), task.place())
    }

    /// How many tasks would stand before a new task of this priority in a home lane.
    pub(crate) fn ahead_of_newcomer(&self, home: u32, priority: u8) -> usize {
        self.line.position(home, Place::new(priority, self.arrivals))
    }

    /// When a waiting task will probably start; `None` when there is nothing to judge by.
    pub fn estimated_start(&self, task: TaskId) -> Option<Millis> {
        let slot = self.tasks.find(task)?;
        matches!(self.tasks[slot].phase, Phase::Waiting).then(|| self.starts_in(slot, self.ahead(slot)))?
    }

    /// The latest of what each lane that has no slot says.
    fn starts_in(&self, slot: u32, ahead: usize) -> Option<Millis> {
        let route = self.lanes.route(self.tasks[slot].route);
        let closed = route.lanes.iter().filter(|lane| !self.lanes[**lane].open);
        let estimates =
            closed.map(|lane| self.estimate(*lane, if *lane == route.home() { ahead } else { 0 }));
        estimates.max().flatten()
    }

    /// When a lane will probably have a slot for a task with `ahead` others before it: from the moving average
    /// of its run times, and its rate limit. `None` when it has measured nothing, or is paused.
    pub(crate) fn estimate(&self, number: u32, ahead: usize) -> Option<Millis> {
        let lane = &self.lanes[number];
        let settings = self.settings(number);
        if lane.gate == Gate::Paused {
            return None;
        }
        let by_rate = settings.rate_limit.map(|rate| {
            let one = rate.per.millis().0 / u64::from(rate.max);
            let ready = lane.bucket.ready_at(rate).since(self.now).0;
            Millis(ready.saturating_add(one.saturating_mul(ahead as u64)))
        });
        let Some(slots) = settings.max_concurrency.filter(|slots| lane.running >= *slots) else {
            return by_rate;
        };
        let measured = lane.run_time.millis().or(self.book.class(lane.class).stats.run_time.millis());
        let between_ends = measured? / u64::from(slots);
        let next_end = (lane.last_change + Millis(between_ends)).since(self.now);
        let by_slots = Millis(next_end.0.saturating_add(between_ends.saturating_mul(ahead as u64)));
        by_rate.max(Some(by_slots))
    }

    /// What to tell somebody whom this lane refuses.
    pub(crate) fn retry_after(&self, lane: u32) -> Millis {
        let estimate = if lane == NONE { None } else { self.estimate(lane, 0) };
        estimate.unwrap_or(RETRY_AFTER_UNKNOWN).clamp(RETRY_AFTER_MIN, RETRY_AFTER_MAX)
    }

    /// A live task.
    pub fn task(&self, task: TaskId) -> Option<TaskView> {
        self.tasks.find(task).map(|slot| self.view(slot))
    }

    /// All live tasks, in the order of their arrival.
    pub fn tasks(&self) -> impl Iterator<Item = TaskView> {
        self.tasks.by_arrival().into_iter().map(|slot| self.view(slot))
    }

    /// How many tasks are live.
    pub fn live_tasks(&self) -> usize {
        self.tasks.len()
    }

    fn view(&self, slot: u32) -> TaskView {
        let task = &self.tasks[slot];
        let is_set = |at: Timestamp| (at != Timestamp::NEVER).then_some(at);
        let own_timeout = task.rare.as_ref().and_then(|rare| rare.timeout);
        TaskView {
            id: task.id,
            status: match task.phase {
                Phase::Running(_) => TaskStatus::Running,
                Phase::BackingOff(_) => TaskStatus::Retrying,
                Phase::Delayed(_) | Phase::Held | Phase::Waiting => TaskStatus::Queued,
            },
            kind: self.kinds.name(task.kind).clone(),
            lanes: self.names_of(slot),
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
                timeout_at: is_set(attempt.timeout_at),
                stopping: attempt.stopping.is_some(),
                worker: attempt.worker.clone(),
            }),
            wait_until: is_set(task.wait_until),
            timeout: own_timeout.or(self.settings(self.lanes.route(task.route).home()).timeout),
            deadline: is_set(task.deadline()),
            joined: task.rare.as_ref().map_or(0, |rare| rare.joined),
        }
    }

    /// A lane that exists now: something is in it, or there is something to remember of it.
    pub fn lane(&self, name: &LaneName) -> Option<LaneView<'_>> {
        self.lanes.find(name).map(|lane| self.lane_view(lane))
    }

    /// All lanes that exist now, by name.
    pub fn lanes(&self) -> Vec<LaneView<'_>> {
        let mut lanes: Vec<LaneView<'_>> = self.lanes.iter().map(|(lane, _)| self.lane_view(lane)).collect();
        lanes.sort_by(|a, b| a.name.cmp(&b.name));
        lanes
    }

    /// What holds for a lane of this name, whether it exists or not.
    pub fn settings_for(&self, name: &LaneName) -> Settings {
        self.book.settings(name)
    }

    fn lane_view(&self, number: u32) -> LaneView<'_> {
        let lane = &self.lanes[number];
        let class = self.book.class(lane.class);
        LaneView {
            name: lane.name.clone(),
            label: &class.label,
            settings: &class.settings,
            gate: lane.gate,
            running: lane.running,
            waiting: lane.waiting,
            retrying: lane.retrying,
            stats: &class.stats,
        }
    }

    /// What the lanes of each block of settings have seen, by the block's name or pattern.
    pub fn stats(&self) -> impl Iterator<Item = (&str, &LaneStats)> {
        self.book.classes().map(|class| (&*class.label, &class.stats))
    }

    /// The dead letters, the oldest first.
    pub fn dead_letters(&self) -> impl Iterator<Item = &DeadLetter> {
        self.letters.iter()
    }

    /// The tasks that a worker could claim now or later, in the order in which they would be handed out.
    pub fn pending_external(&self) -> Vec<TaskView> {
        let is_pending = |slot: &u32| {
            let task = &self.tasks[*slot];
            task.handler == Handler::External && matches!(task.phase, Phase::Waiting)
        };
        let slots = self.tasks.iter().map(|(slot, _)| slot).filter(is_pending).collect();
        self.in_turn(slots).into_iter().map(|slot| self.view(slot)).collect()
    }

    /// These waiting tasks in the order in which they would start one by one: by level, then in turns between
    /// fair keys, as grants would move their tags on, then by arrival.
    fn in_turn(&self, mut slots: Vec<u32>) -> Vec<u32> {
        slots.sort_by_key(|slot| self.tasks[*slot].place());
        let (mut clock, mut tags) = (self.fair.clock, BTreeMap::new());
        let mut ordered = Vec::with_capacity(slots.len());
        for level in slots.chunk_by(|a, b| self.tasks[*a].level() == self.tasks[*b].level()) {
            let mut lines: BTreeMap<u32, VecDeque<u32>> = BTreeMap::new();
            for slot in level {
                lines.entry(self.tasks[*slot].key).or_default().push_back(*slot);
            }
            let rank = |key: u32, line: &VecDeque<u32>, tags: &BTreeMap<u32, u64>| {
                let tag = tags.get(&key).copied().unwrap_or(self.fair.keys[key as usize].tag);
                line.front().map(|slot| (tag, self.tasks[*slot].arrival, key))
            };
            let mut heads: BTreeSet<_> =
                lines.iter().filter_map(|(key, line)| rank(*key, line, &tags)).collect();
            while let Some((tag, _, key)) = heads.pop_first() {
                clock = tag.max(clock);
                tags.insert(key, clock + self.fair.keys[key as usize].cost());
                let Some(line) = lines.get_mut(&key) else { continue };
                ordered.extend(line.pop_front());
                heads.extend(rank(key, line, &tags));
            }
        }
        ordered
    }
}
