//! The whole state as plain data: to save it, to compare it, to start from it.

mod lanes;
mod links;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::api::event::StopReason;
use crate::api::ids::{BlobId, Fence, TaskId};
use crate::api::lane_settings::{Block, Family, Handler, LaneSettings, Source};
use crate::api::name::{LaneName, Name, Pattern};
use crate::api::owner::{Owner, ReplicaId};
use crate::api::retry::Retry;
use crate::api::task_spec::Parent;
use crate::api::time::{Millis, Timestamp};
use crate::scheduler::Scheduler;
use crate::sessions::snapshot::SavedSessions;
use crate::state::RememberedKey;
use crate::state::dead_letters::DeadLetter;
use crate::state::snapshot::lanes::SavedLane;
use crate::state::stats::LaneStats;
use crate::state::table::Mark;
use crate::state::task::{Attempt, LiveTask, Passed, Phase, Rare, TaskIdx};

/// A snapshot of a scheduler, without the indexes (the line, the timers), which are rebuilt from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    now: Timestamp,
    arrivals: u64,
    ended: u64,
    fences: u64,
    clock: u64,
    blocks: Vec<(Pattern, LaneSettings)>,
    classes: Vec<(Arc<str>, Family, LaneStats)>,
    lanes: Vec<SavedLane>,
    fair_keys: Vec<(LaneName, u64)>,
    tasks: Vec<SavedTask>,
    dead_letters: Vec<DeadLetter>,
    keys: Vec<(Arc<str>, RememberedKey)>,
    reservations: Vec<TaskId>,
    ended_runs: Vec<TaskId>,
    sessions: SavedSessions,
    #[serde(default)]
    notes: Vec<(Arc<str>, Arc<str>)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SavedTask {
    id: TaskId,
    kind: Name,
    lanes: Vec<LaneName>,
    payload: Option<BlobId>,
    submitted: Timestamp,
    since: Timestamp,
    arrival: u64,
    wait_until: Timestamp,
    phase: SavedPhase,
    attempts: u32,
    retries: u32,
    priority: u8,
    aged: u8,
    boosted: u8,
    source: Source,
    handler: Handler,
    noticed: bool,
    rare: Option<SavedRare>,
    /// The replica whose program it is a slot of.
    slot_of: Option<ReplicaId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum SavedPhase {
    Delayed(Timestamp),
    Held,
    Waiting,
    BackingOff(Timestamp),
    Running(SavedAttempt),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SavedAttempt {
    fence: Fence,
    started: Timestamp,
    lease: Millis,
    lease_until: Timestamp,
    timeout_at: Timestamp,
    stopping: Option<(StopReason, Timestamp)>,
    owner: Owner,
    borrowed: Vec<(LaneName, TaskId)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SavedRare {
    timeout: Option<Millis>,
    deadline: Option<Timestamp>,
    wait_timeout: Option<Millis>,
    retry: Option<Retry>,
    fair_key: Option<LaneName>,
    parent: Option<Parent>,
    depth: u8,
    after: Option<TaskId>,
    run_at: Option<Timestamp>,
    group: Option<Name>,
    key: Option<Arc<str>>,
    joined: u32,
    passed: (u32, u128, u128),
    #[serde(default)]
    caller_at: Option<ReplicaId>,
    #[serde(default)]
    worker: Option<Name>,
    #[serde(default)]
    lease: Option<Millis>,
    #[serde(default)]
    caller: Option<Name>,
    #[serde(default)]
    trace: Option<Arc<str>>,
    #[serde(default)]
    label: Option<Name>,
}

impl Scheduler {
    /// Everything there is to know, to be saved or compared.
    pub fn snapshot(&self) -> Snapshot {
        let mut lanes: Vec<SavedLane> =
            self.state.lanes.iter().map(|(lane, _)| self.save_lane(lane)).collect();
        lanes.sort_by(|a, b| a.name.cmp(&b.name));
        let fair_keys = self.state.fair.remembered();
        let mut fair_keys: Vec<_> = fair_keys.map(|fair| (fair.name.clone(), fair.tag)).collect();
        fair_keys.sort();
        let reservations = self.state.reservations.iter().map(|task| self.state.tasks[*task].id);
        let mut reservations: Vec<TaskId> = reservations.collect();
        reservations.sort();
        Snapshot {
            now: self.state.now,
            arrivals: self.state.arrivals,
            ended: self.state.ended,
            fences: self.state.fences,
            clock: self.state.fair.clock,
            blocks: self
                .state
                .lane_config
                .blocks()
                .map(|(lanes, asked)| (lanes.clone(), asked.clone()))
                .collect(),
            classes: self
                .state
                .lane_config
                .classes()
                .map(|class| (Arc::clone(&class.block), class.family, class.stats.clone()))
                .collect(),
            lanes,
            fair_keys,
            tasks: self.state.tasks.by_arrival().into_iter().map(|task| self.save_task(task)).collect(),
            dead_letters: self.state.dead_letters.iter().cloned().collect(),
            keys: self.state.keys.iter().map(|(key, known)| (Arc::clone(key), *known)).collect(),
            reservations,
            ended_runs: self.state.ended_runs.iter().copied().collect(),
            sessions: self.state.sessions.save(),
            notes: self.state.notes.save(),
        }
    }

    fn save_task(&self, idx: TaskIdx) -> SavedTask {
        let task = &self.state.tasks[idx];
        SavedTask {
            id: task.id,
            kind: self.state.kinds.name(task.kind).clone(),
            lanes: self.names_of(idx),
            payload: task.payload,
            submitted: task.submitted,
            since: task.since,
            arrival: task.arrival,
            wait_until: task.wait_until,
            phase: match &task.phase {
                Phase::Delayed(until) => SavedPhase::Delayed(*until),
                Phase::Held => SavedPhase::Held,
                Phase::Waiting => SavedPhase::Waiting,
                Phase::BackingOff(until) => SavedPhase::BackingOff(*until),
                Phase::Running(attempt) => SavedPhase::Running(self.save_attempt(attempt)),
            },
            attempts: task.attempts,
            retries: task.retries(),
            priority: task.priority,
            aged: task.aged,
            boosted: task.boosted,
            source: task.source,
            handler: task.handler,
            noticed: task.noticed,
            rare: save_rare(task),
            slot_of: self.slot_of(idx),
        }
    }

    fn save_attempt(&self, attempt: &Attempt) -> SavedAttempt {
        let mut borrowed: Vec<(LaneName, TaskId)> = attempt
            .borrowed
            .iter()
            .map(|(lane, lender)| (self.state.lanes[*lane].name.clone(), self.state.tasks[*lender].id))
            .collect();
        borrowed.sort();
        SavedAttempt {
            fence: attempt.fence,
            started: attempt.started,
            lease: attempt.lease,
            lease_until: attempt.lease_until,
            timeout_at: attempt.timeout_at,
            stopping: attempt.stopping,
            owner: attempt.owner.clone(),
            borrowed,
        }
    }

    /// A scheduler in this state.
    pub fn restore(seed: u64, state: &Snapshot) -> Scheduler {
        let mut this = Scheduler::new(seed);
        this.state.now = state.now;
        this.state.arrivals = state.arrivals;
        this.state.ended = state.ended;
        this.state.fences = state.fences;
        this.state.fair.clock = state.clock;
        this.state.ended_runs = state.ended_runs.iter().copied().collect();
        let block = |(lanes, asked): &(Pattern, LaneSettings)| Block {
            lanes: lanes.clone(),
            settings: Some(asked.clone()),
        };
        this.state.lane_config.configure(&state.blocks.iter().map(block).collect::<Vec<_>>());
        for (block, family, stats) in &state.classes {
            this.state.lane_config.restore(Arc::clone(block), *family, stats.clone());
        }
        for (name, tag) in &state.fair_keys {
            this.state.fair.restore(name.clone(), *tag);
        }
        state.lanes.iter().for_each(|lane| this.restore_lane(lane));
        state.tasks.iter().for_each(|task| this.restore_task(task));
        state.tasks.iter().for_each(|task| this.restore_links(task));
        for dead_letter in &state.dead_letters {
            let class =
                this.state.lane_config.class_of(dead_letter.spec.lanes.first().unwrap_or(&LaneName::main()));
            this.state.dead_letters.insert(dead_letter.clone(), class);
            this.state.lane_config.class_mut(class).dead_letters += 1;
        }
        for (key, known) in &state.keys {
            this.state.keys.insert(Arc::clone(key), *known);
            if !known.until_end {
                this.indexes.key_ends.insert((known.until, Arc::clone(key)));
            }
        }
        for idx in
            state.reservations.iter().filter_map(|task| this.state.tasks.find(*task)).collect::<Vec<_>>()
        {
            this.state.reservations.insert(idx);
            for lane in this.state.lanes.route(this.state.tasks[idx].route).lanes.clone() {
                if this.settings(lane).max_concurrency.is_some() {
                    this.state.lanes[lane].reserved = Some(idx);
                }
            }
        }
        this.state.notes = crate::state::notes::Notes::restore(&state.notes);
        this.rebuild();
        this.restore_sessions(&state.sessions);
        this
    }

    fn restore_task(&mut self, saved: &SavedTask) {
        let route = self.state.lanes.join_route(&saved.lanes, &mut self.state.lane_config);
        let phase = match &saved.phase {
            SavedPhase::Delayed(until) => Phase::Delayed(*until),
            SavedPhase::Held => Phase::Held,
            SavedPhase::Waiting => Phase::Waiting,
            SavedPhase::BackingOff(until) => Phase::BackingOff(*until),
            SavedPhase::Running(attempt) => Phase::Running(Box::new(Attempt {
                fence: attempt.fence,
                started: attempt.started,
                lease: attempt.lease,
                lease_until: attempt.lease_until,
                timeout_at: attempt.timeout_at,
                stopping: attempt.stopping,
                owner: attempt.owner.clone(),
                borrowed: Default::default(),
                lent: Default::default(),
            })),
        };
        let fence = match &saved.phase {
            SavedPhase::Running(attempt) => Some(attempt.fence),
            _ => None,
        };
        let kind = self.state.kinds.join(&saved.kind, saved.slot_of);
        let mut rare = saved.rare.as_ref().map(|rare| Box::new(restore_rare(rare)));
        if saved.retries > 0 {
            rare.get_or_insert_default().retries = saved.retries;
        }
        let task = self.state.tasks.insert(LiveTask {
            id: saved.id,
            payload: saved.payload,
            submitted: saved.submitted,
            since: saved.since,
            arrival: saved.arrival,
            wait_until: saved.wait_until,
            due: Timestamp::NEVER,
            check_at: Timestamp::NEVER,
            phase,
            rare,
            route,
            kind,
            leaf: None,
            attempts: saved.attempts,
            priority: saved.priority,
            aged: saved.aged,
            boosted: saved.boosted,
            source: saved.source,
            handler: saved.handler,
            noticed: saved.noticed,
            mark: Mark::Used,
            is_once: saved.rare.as_ref().is_some_and(|rare| rare.retry == Some(Retry::NONE)),
        });
        if let Some(fence) = fence {
            self.state.tasks.running.insert(fence, task);
        }
        for lane in self.state.lanes.route(route).lanes.clone() {
            let lane = &mut self.state.lanes[lane];
            match &saved.phase {
                SavedPhase::Running(attempt) => {
                    lane.running += u32::from(attempt.borrowed.iter().all(|(other, _)| *other != lane.name));
                }
                SavedPhase::BackingOff(_) => lane.retrying += 1,
                _ => lane.waiting += 1,
            }
        }
    }
}

fn save_rare(task: &LiveTask) -> Option<SavedRare> {
    let nothing = Rare::default();
    let saved = |rare: &Rare, retry: Option<Retry>| SavedRare {
        timeout: rare.timeout,
        deadline: rare.deadline,
        wait_timeout: rare.wait_timeout,
        retry,
        fair_key: rare.fair_key.clone(),
        parent: rare.parent,
        depth: rare.depth.max(1),
        after: rare.after,
        run_at: rare.run_at,
        group: rare.group.clone(),
        key: rare.key.clone(),
        joined: rare.joined,
        passed: (rare.passed.times, rare.passed.blocked, rare.passed.taken),
        caller_at: rare.caller_at,
        worker: rare.worker.clone(),
        lease: rare.lease,
        caller: rare.caller.clone(),
        label: rare.label.clone(),
        trace: rare.trace.clone(),
    };
    // What only ties a task to others (its children, its followers) follows from them.
    let own = saved(task.rare.as_deref().unwrap_or(&nothing), task.retry());
    Some(own).filter(|this| *this != saved(&nothing, None))
}

fn restore_rare(saved: &SavedRare) -> Rare {
    let (times, blocked, taken) = saved.passed;
    Rare {
        timeout: saved.timeout,
        deadline: saved.deadline,
        wait_timeout: saved.wait_timeout,
        retry: saved.retry.filter(|retry| *retry != Retry::NONE),
        fair_key: saved.fair_key.clone(),
        parent: saved.parent,
        depth: saved.depth,
        after: saved.after,
        run_at: saved.run_at,
        group: saved.group.clone(),
        key: saved.key.clone(),
        joined: saved.joined,
        passed: Passed { times, blocked, taken },
        caller_at: saved.caller_at,
        worker: saved.worker.clone(),
        lease: saved.lease,
        caller: saved.caller.clone(),
        label: saved.label.clone(),
        trace: saved.trace.clone(),
        ..Rare::default()
    }
}
