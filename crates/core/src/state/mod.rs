//! The data of the scheduler. Nothing here decides.

pub(crate) mod dead_letters;
pub(crate) mod hash_index;
pub(crate) mod interner;
pub(crate) mod lane;
pub(crate) mod lane_config;
pub(crate) mod lanes;
pub(crate) mod lazy_box;
pub(crate) mod notes;
pub(crate) mod ready_tree;
pub(crate) mod routes;
pub(crate) mod snapshot;
pub(crate) mod stats;
pub(crate) mod table;
pub(crate) mod task;
pub(crate) mod timers;
pub(crate) mod token_bucket;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::api::event::LaneChange;
use crate::api::ids::TaskId;
use crate::api::lane_settings::LEVEL_MAX;
use crate::api::owner::ReplicaId;
use crate::api::time::Timestamp;
use crate::api::views::LiveTaskView;
use crate::sessions::table::{SessionIdx, Sessions};
use crate::state::dead_letters::DeadLetters;
use crate::state::interner::Kinds;
use crate::state::lane_config::LaneConfig;
use crate::state::lanes::{Lanes, Touched};
use crate::state::notes::Notes;
use crate::state::ready_tree::ReadyTree;
use crate::state::ready_tree::fair_share::FairShare;
use crate::state::task::{TaskIdx, Tasks};
use crate::state::timers::Timers;

/// What the log says. Only `apply` changes it.
pub(crate) struct State {
    /// The time of the last step or event.
    pub(crate) now: Timestamp,
    pub(crate) tasks: Tasks,
    pub(crate) lanes: Lanes,
    pub(crate) fair: FairShare,
    pub(crate) kinds: Kinds,
    pub(crate) lane_config: LaneConfig,
    pub(crate) dead_letters: DeadLetters,
    pub(crate) sessions: Sessions,
    pub(crate) notes: Notes,
    pub(crate) keys: BTreeMap<Arc<str>, RememberedKey>,
    /// Tasks for which slots are kept free.
    pub(crate) reservations: BTreeSet<TaskIdx>,
    /// How many tasks were accepted; each one's number is its arrival.
    pub(crate) arrivals: u64,
    pub(crate) ended: u64,
    /// The last tasks that ended while they ran, so that a late report is refused as stale.
    pub(crate) ended_runs: VecDeque<TaskId>,
    /// The last fence that was given out.
    pub(crate) fences: u64,
}

/// What follows from the state: rebuilt from it when the settings change and after a restart.
pub(crate) struct Indexes {
    pub(crate) ready: ReadyTree,
    pub(crate) timers: Timers,
    /// When the remembered keys may be forgotten, the earliest first.
    pub(crate) key_ends: BTreeSet<(Timestamp, Arc<str>)>,
    /// How many tasks stand in the line, by their level without what waiting has added.
    pub(crate) ready_by_level: [u32; LEVEL_MAX as usize + 1],
    /// How many stand in the line, all together.
    pub(crate) ready_count: u32,
    /// A change may let a task start: a lane opened, or a task joined the line behind open lanes.
    pub(crate) may_grant: bool,
}

/// Notes of one step or replayed event, for its own end and for queries after it.
#[derive(Default)]
pub(crate) struct StepScratch {
    pub(crate) touched: Touched,
    /// The lanes that were removed.
    pub(crate) gone: Vec<LaneChange>,
    /// The tasks that ended, if [`collect_ended`](crate::Scheduler::collect_ended) was called.
    pub(crate) ended: Vec<LiveTaskView>,
    /// The tasks that were accepted.
    pub(crate) accepted: Vec<TaskIdx>,
    /// The tasks that the last grant passed over.
    pub(crate) passed_over: SmallVec<[TaskIdx; 2]>,
    /// What lanes have counted, if [`collect_counts`](crate::Scheduler::collect_counts) was called.
    pub(crate) counted: stats::Counted,
    /// The sessions that changed and were not checked since.
    pub(crate) changed_sessions: Vec<SessionIdx>,
    /// The first grant or acceptance above a limit or out of turn, which is a bug.
    pub(crate) overrun: Option<String>,
}

/// What concerns this process alone and ends with it.
pub(crate) struct LocalOptions {
    pub(crate) seed: u64,
    pub(crate) collects_ended: bool,
    pub(crate) collects_slots: bool,
    /// Grants have stopped, see [`stop_granting`](crate::Scheduler::stop_granting).
    pub(crate) is_stopped: bool,
    /// The owner of what is granted here, see [`run_as`](crate::Scheduler::run_as).
    pub(crate) replica: ReplicaId,
}

/// What is remembered of a request under an idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct RememberedKey {
    pub(crate) task: TaskId,
    pub(crate) fingerprint: u64,
    pub(crate) until: Timestamp,
    /// Any end of the task frees the key.
    #[serde(default)]
    pub(crate) until_end: bool,
}

impl State {
    pub(crate) fn new(seed: u64) -> State {
        State {
            now: Timestamp::default(),
            tasks: Tasks::new(seed),
            lanes: Lanes::new(seed),
            fair: FairShare::new(seed),
            kinds: Kinds::new(seed),
            lane_config: LaneConfig::default(),
            dead_letters: DeadLetters::default(),
            sessions: Sessions::new(seed),
            notes: Notes::default(),
            keys: BTreeMap::new(),
            reservations: BTreeSet::new(),
            arrivals: 0,
            ended: 0,
            ended_runs: VecDeque::new(),
            fences: 0,
        }
    }
}

impl Indexes {
    pub(crate) fn new(seed: u64) -> Indexes {
        Indexes {
            ready: ReadyTree::new(seed),
            timers: Timers::default(),
            key_ends: BTreeSet::new(),
            ready_by_level: [0; LEVEL_MAX as usize + 1],
            ready_count: 0,
            may_grant: false,
        }
    }
}

impl StepScratch {
    /// Forgets the last step. A field that is not named here does not compile.
    pub(crate) fn reset(&mut self) {
        let StepScratch {
            touched,
            gone,
            ended,
            accepted,
            passed_over,
            changed_sessions,
            overrun: _,
            counted: _,
        } = self;
        touched.reset();
        gone.clear();
        ended.clear();
        accepted.clear();
        passed_over.clear();
        changed_sessions.clear();
    }
}
