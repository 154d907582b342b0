//! A live task, as small as can be: a million of them wait in memory.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::api::event::StopReason;
use crate::api::ids::{BlobId, Fence, TaskId};
use crate::api::lane_settings::{Handler, Source};
use crate::api::name::{LaneName, Name};
use crate::api::owner::{Owner, ReplicaId};
use crate::api::retry::Retry;
use crate::api::task_spec::Parent;
use crate::api::time::{Millis, Timestamp};
use crate::state::hash_index::HashIndex;
use crate::state::interner::KindIdx;
use crate::state::lane::LaneIdx;
use crate::state::ready_tree::node::NodeIdx;
use crate::state::ready_tree::ranked_list::{ArrivalRank, RankedList};
use crate::state::routes::RouteIdx;
use crate::state::table::{Idx, Mark, Table};

/// Which live task.
pub type TaskIdx = Idx<LiveTask>;

/// Two lines of the cache: most tasks lie in none when their turn comes.
#[repr(C, align(64))]
pub struct LiveTask {
    pub(crate) id: TaskId,
    pub(crate) phase: Phase,
    pub(crate) rare: Option<Box<Rare>>,
    pub(crate) route: RouteIdx,
    pub(crate) kind: KindIdx,
    /// Where it stands in the line, while it does.
    pub(crate) leaf: Option<NodeIdx>,
    pub(crate) attempts: u32,
    pub(crate) priority: u8,
    pub(crate) aged: u8,
    pub(crate) boosted: u8,
    pub(crate) source: Source,
    pub(crate) handler: Handler,
    pub(crate) noticed: bool,
    /// It asked for one attempt only, whatever its lane says: as common as it is short.
    pub(crate) is_once: bool,
    pub(crate) mark: Mark,
    pub(crate) arrival: u64,
    /// When it joined the line, for the time that it has waited.
    pub(crate) since: Timestamp,
    /// When it has waited too long, or `NEVER`.
    pub(crate) wait_until: Timestamp,
    /// When something must happen to it, as the timers know, or `NEVER`.
    pub(crate) due: Timestamp,
    /// When its waiting is next checked, as the timers know, or `NEVER`.
    pub(crate) check_at: Timestamp,
    pub(crate) submitted: Timestamp,
    pub(crate) payload: Option<BlobId>,
}

/// What a task is doing.
pub(crate) enum Phase {
    /// It waits for its time to join the line.
    Delayed(Timestamp),
    /// It waits for another task to end before it joins the line.
    Held,
    /// It stands in the line.
    Waiting,
    /// It waits for its next attempt's time to join the line.
    BackingOff(Timestamp),
    /// An attempt runs.
    Running(Box<Attempt>),
}

/// One try at running a task.
pub(crate) struct Attempt {
    pub(crate) fence: Fence,
    pub(crate) started: Timestamp,
    pub(crate) lease: Millis,
    pub(crate) lease_until: Timestamp,
    pub(crate) timeout_at: Timestamp,
    pub(crate) stopping: Option<(StopReason, Timestamp)>,
    pub(crate) owner: Owner,
    /// Lanes whose slot belongs to an ancestor, and which one.
    pub(crate) borrowed: SmallVec<[(LaneIdx, TaskIdx); 2]>,
    /// Lanes whose slot a descendant uses, and which one.
    pub(crate) lent: SmallVec<[(LaneIdx, TaskIdx); 2]>,
}

impl Attempt {
    /// The lease of a worker's attempt also says how long it may take to stop.
    pub(crate) fn renew(&mut self, lease_until: Timestamp) {
        self.lease_until = lease_until;
        if let (Some((_, until)), Owner::Worker(_)) = (&mut self.stopping, &self.owner) {
            *until = lease_until;
        }
    }
}

/// What most tasks do not have.
#[derive(Default)]
pub(crate) struct Rare {
    pub(crate) timeout: Option<Millis>,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) wait_timeout: Option<Millis>,
    /// What it asked for, unless that is one attempt only.
    pub(crate) retry: Option<Retry>,
    pub(crate) fair_key: Option<LaneName>,
    pub(crate) parent: Option<Parent>,
    pub(crate) depth: u8,
    /// Live tasks that were asked for by this one, detached ones not counted.
    pub(crate) children: Vec<TaskIdx>,
    pub(crate) after: Option<TaskId>,
    /// When it may join the line at the earliest, should the task that it is held behind end before.
    pub(crate) run_at: Option<Timestamp>,
    /// Live tasks that are held until this one ends.
    pub(crate) followers: Vec<TaskIdx>,
    pub(crate) group: Option<Name>,
    pub(crate) caller_at: Option<ReplicaId>,
    /// The worker to which it is granted directly.
    pub(crate) worker: Option<Name>,
    pub(crate) lease: Option<Millis>,
    pub(crate) caller: Option<Name>,
    pub(crate) trace: Option<Arc<str>>,
    pub(crate) label: Option<Name>,
    pub(crate) key: Option<Arc<str>>,
    /// Callers that wait for it in addition to the first.
    pub(crate) joined: u32,
    pub(crate) passed: Passed,
    /// How many of its attempts were followed by another after a failure.
    pub(crate) retries: u32,
}

/// How often a task was passed over, and on which of its lanes (as bits by index).
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Passed {
    pub(crate) times: u32,
    /// Lanes that held it up.
    pub(crate) blocked: u128,
    /// Lanes of which a later task took a slot meanwhile.
    pub(crate) taken: u128,
}

impl LiveTask {
    /// Its priority with what a deadline has added, but not what waiting has.
    pub(crate) fn urgency(&self) -> u8 {
        self.priority + self.boosted
    }

    /// Its priority with what waiting and a deadline have added.
    pub(crate) fn level(&self) -> u8 {
        self.priority + self.aged + self.boosted
    }

    pub(crate) fn rank(&self) -> ArrivalRank {
        ArrivalRank::new(self.level(), self.arrival)
    }

    /// The worker to which it is granted directly.
    pub(crate) fn worker(&self) -> Option<&Name> {
        self.rare.as_ref()?.worker.as_ref()
    }

    /// The replica that its caller is connected to.
    pub(crate) fn caller_at(&self) -> Option<ReplicaId> {
        self.rare.as_ref()?.caller_at
    }

    pub(crate) fn attempt(&self) -> Option<&Attempt> {
        match &self.phase {
            Phase::Running(attempt) => Some(attempt),
            _ => None,
        }
    }

    /// Whether its attempt has to stop and no other follows.
    pub(crate) fn is_being_cancelled(&self) -> bool {
        let stopping = self.attempt().and_then(|attempt| attempt.stopping);
        matches!(stopping, Some((StopReason::Cancelled(_), _)))
    }

    pub(crate) fn attempt_mut(&mut self) -> Option<&mut Attempt> {
        match &mut self.phase {
            Phase::Running(attempt) => Some(attempt),
            _ => None,
        }
    }

    pub(crate) fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Its own fair key, if it has one.
    pub(crate) fn fair_key(&self) -> Option<&LaneName> {
        self.rare.as_ref()?.fair_key.as_ref()
    }

    /// Its own retry rule, if it has one.
    pub(crate) fn retry(&self) -> Option<Retry> {
        if self.is_once { Some(Retry::NONE) } else { self.rare.as_ref()?.retry }
    }

    pub(crate) fn retries(&self) -> u32 {
        self.rare.as_ref().map_or(0, |rare| rare.retries)
    }

    /// How many of its attempts were followed by another because their worker was silent.
    pub(crate) fn redeliveries(&self) -> u32 {
        let over = self.attempts - u32::from(self.attempt().is_some());
        over - self.retries()
    }

    pub(crate) fn depth(&self) -> u8 {
        self.rare.as_ref().map_or(1, |rare| rare.depth.max(1))
    }

    /// The task that waits for this one.
    pub(crate) fn waiting_parent(&self) -> Option<TaskId> {
        let parent = self.rare.as_ref()?.parent?;
        (!parent.detached).then_some(parent.task)
    }

    pub(crate) fn children(&self) -> &[TaskIdx] {
        self.rare.as_ref().map_or(&[], |rare| &rare.children)
    }

    pub(crate) fn deadline(&self) -> Timestamp {
        self.rare.as_ref().and_then(|rare| rare.deadline).unwrap_or(Timestamp::NEVER)
    }

    /// When something must happen to it: the earliest of what it waits for or must not outlast.
    pub(crate) fn next_due(&self, next_boost: Timestamp) -> Timestamp {
        let too_late = self.wait_until.min(self.deadline());
        match &self.phase {
            Phase::Delayed(until) => (*until).min(too_late),
            Phase::Held => too_late,
            Phase::Waiting => too_late.min(next_boost),
            Phase::BackingOff(until) => (*until).min(self.deadline()),
            Phase::Running(attempt) => match attempt.stopping {
                Some((_, until)) => until,
                None => attempt.lease_until.min(attempt.timeout_at),
            },
        }
    }
}

/// How many boxes are kept for the next attempts.
const SPARE_MAX: usize = 64;

/// All live tasks.
pub(crate) struct Tasks {
    table: Table<LiveTask>,
    by_id: HashIndex<LiveTask>,
    /// Boxes of attempts that are over, to be used again.
    #[allow(clippy::vec_box)]
    spare: Vec<Box<Attempt>>,
    /// Those that run, in the order in which they were granted.
    pub(crate) running: RankedList<Fence>,
}

impl std::ops::Index<TaskIdx> for Tasks {
    type Output = LiveTask;

    fn index(&self, task: TaskIdx) -> &LiveTask {
        &self.table[task]
    }
}

impl std::ops::IndexMut<TaskIdx> for Tasks {
    fn index_mut(&mut self, task: TaskIdx) -> &mut LiveTask {
        &mut self.table[task]
    }
}

impl Tasks {
    pub(super) fn new(seed: u64) -> Tasks {
        Tasks {
            table: Table::default(),
            by_id: HashIndex::new(seed),
            spare: vec![],
            running: RankedList::default(),
        }
    }

    pub(crate) fn find(&self, id: TaskId) -> Option<TaskIdx> {
        self.by_id.find(self.by_id.hash(id), |task| self[task].id == id)
    }

    pub(crate) fn get(&self, task: TaskIdx) -> Option<&LiveTask> {
        self.table.get(task)
    }

    pub(crate) fn insert(&mut self, task: LiveTask) -> TaskIdx {
        let hash = self.by_id.hash(task.id);
        let index = self.table.insert(task);
        self.by_id.insert(hash, index);
        index
    }

    pub(crate) fn remove(&mut self, index: TaskIdx) -> LiveTask {
        let task = self.table.remove(index);
        self.by_id.remove(self.by_id.hash(task.id), index);
        task
    }

    /// How many tasks there is room for. The number of each index is smaller than this.
    pub(crate) fn room(&self) -> usize {
        self.table.capacity()
    }

    /// Gives back what an empty table has grown to.
    pub(crate) fn shrink(&mut self) {
        if self.table.is_empty() {
            self.table = Table::default();
            self.running = RankedList::default();
            self.by_id.shrink();
        }
    }

    /// Boxes an attempt, in a box that was used before if there is one.
    pub(crate) fn boxed(&mut self, attempt: Attempt) -> Box<Attempt> {
        match self.spare.pop() {
            Some(mut used) => {
                *used = attempt;
                used
            }
            None => Box::new(attempt),
        }
    }

    pub(crate) fn recycle(&mut self, used: Box<Attempt>) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(used);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (TaskIdx, &LiveTask)> {
        self.table.iter()
    }

    /// All of them, in the order of their arrival.
    pub(crate) fn by_arrival(&self) -> Vec<TaskIdx> {
        let mut tasks: Vec<TaskIdx> = self.iter().map(|(task, _)| task).collect();
        tasks.sort_unstable_by_key(|task| self[*task].arrival);
        tasks
    }
}
