//! Who is next?

use smallvec::SmallVec;

use crate::api::command::Reply;
use crate::api::event::Event;
use crate::api::ids::{Fence, TaskId};
use crate::api::lane_settings::Handler;
use crate::api::name::{Name, Pattern};
use crate::api::owner::Owner;
use crate::api::rejection::{BadTask, Rejection};
use crate::api::time::Millis;
use crate::scheduler::Scheduler;
use crate::state::lane::LaneIdx;
use crate::state::ready_tree::node::NodeIdx;
use crate::state::ready_tree::{EXTERNAL, INTERNAL};
use crate::state::task::{Phase, TaskIdx};
use crate::step::Step;

/// A task that was passed over so often, because it needs several lanes, has its slots kept free for it.
const PASSED_OVER_MAX: u32 = 64;
/// The most tasks that one claim can take.
pub(crate) const CLAIM_MAX: u32 = 1000;

fn check_lease(lease: Option<Millis>) -> Result<(), Rejection> {
    match lease {
        Some(Millis(0)) => Err(Rejection::BadTask(BadTask::Zero("lease"))),
        Some(length) if length > Millis::MAX => Err(Rejection::BadTask(BadTask::TooLong("lease"))),
        _ => Ok(()),
    }
}

impl Step<'_> {
    /// Starts everything that may run, best first.
    pub(super) fn grant(&mut self) {
        if self.local.is_stopped || !self.indexes.may_grant && self.state.reservations.is_empty() {
            return;
        }
        while let Some(task) = self.next_to_start() {
            let owner = self.owner_of(task);
            self.start(task, owner, None);
        }
        self.granted_all();
    }

    /// Hands the best external tasks that fit to a worker.
    pub(super) fn claim(
        &mut self,
        worker: &Name,
        lanes: &[Pattern],
        kinds: &[Name],
        max: u32,
        lease: Option<Millis>,
    ) -> Result<Reply, Rejection> {
        if lanes.is_empty() || max == 0 {
            return Err(Rejection::BadTask(BadTask::EmptyClaim));
        }
        check_lease(lease)?;
        let mut claimed = Vec::new();
        while claimed.len() < max.min(CLAIM_MAX) as usize {
            let fits = |leaf: NodeIdx| {
                self.indexes.ready.home_and_kind(leaf).is_some_and(|(home, kind)| {
                    lanes.iter().any(|pattern| pattern.matches(&self.state.lanes[home].name))
                        && (kinds.is_empty() || kinds.contains(self.state.kinds.name(kind)))
                })
            };
            let kept_waiting = |task: TaskIdx| {
                let task = &self.state.tasks[task];
                task.handler == Handler::External && task.leaf.is_some_and(fits)
            };
            let mut offered = self.indexes.ready.best_first(EXTERNAL);
            let best = offered.find(|(leaf, _)| fits(*leaf)).map(|(_, task)| task);
            let Some(task) = best.or_else(|| self.child_kept_waiting(kept_waiting)) else { break };
            claimed.push(self.state.tasks[task].id);
            self.start(task, Owner::Worker(worker.clone()), lease);
        }
        Ok(Reply::Claimed(claimed))
    }

    /// Hands those of these external tasks that may run now to a worker.
    pub(super) fn claim_these(
        &mut self,
        worker: &Name,
        tasks: &[TaskId],
        lease: Option<Millis>,
    ) -> Result<Reply, Rejection> {
        if tasks.is_empty() {
            return Err(Rejection::BadTask(BadTask::EmptyClaim));
        }
        if tasks.len() > CLAIM_MAX as usize {
            return Err(Rejection::BadTask(BadTask::TooManyClaimed(tasks.len())));
        }
        check_lease(lease)?;
        let mut claimed = Vec::new();
        for id in tasks {
            let Some(idx) = self.state.tasks.find(*id) else { continue };
            let task = &self.state.tasks[idx];
            let is_offered = task.handler == Handler::External && matches!(task.phase, Phase::Waiting);
            if is_offered && self.may_run(idx) {
                claimed.push(*id);
                self.start(idx, Owner::Worker(worker.clone()), lease);
            }
        }
        Ok(Reply::Claimed(claimed))
    }

    fn start(&mut self, idx: TaskIdx, owner: Owner, lease: Option<Millis>) {
        let task = &self.state.tasks[idx];
        let home = self.settings(self.state.lanes.route(task.route).first_lane());
        let own = task.rare.as_ref();
        let lease = lease.or(own.and_then(|rare| rare.lease)).unwrap_or(home.lease);
        let timeout = own.and_then(|rare| rare.timeout).or(home.timeout);
        let granted = Event::Granted {
            task: task.id,
            attempt: task.attempts + 1,
            fence: Fence(self.state.fences + 1),
            lease_until: self.state.now + lease,
            lease,
            timeout_at: timeout.map(|length| self.state.now + length),
            owner,
            borrowed: self.borrowed_lanes(idx),
        };
        self.emit(granted);
        for passed in self.scratch.passed_over.clone() {
            self.reserve_for(passed);
        }
    }

    /// Keeps slots free for a task that was passed over too often, if none of its lanes is reserved already.
    ///
    /// A busy session alone does not starve its tasks. A task might wait for ever only if later tasks took slots
    /// of a lane that held it up.
    fn reserve_for(&mut self, idx: TaskIdx) {
        let Some(task) = self.state.tasks.get(idx) else { return };
        let passed = task.rare.as_ref().map(|rare| rare.passed).unwrap_or_default();
        if passed.times < PASSED_OVER_MAX || passed.blocked & passed.taken == 0 {
            return;
        }
        let lanes = &self.state.lanes.route(task.route).lanes;
        let is_free =
            |lane: &LaneIdx| self.state.lanes[*lane].reserved.is_none() && self.state.lanes[*lane].passable;
        if task.handler != Handler::External && lanes.iter().all(is_free) {
            let task = task.id;
            self.emit(Event::Reserved { task });
        }
    }
}

impl Scheduler {
    fn next_to_start(&self) -> Option<TaskIdx> {
        if self.state.reservations.is_empty() {
            return self.indexes.ready.best(INTERNAL);
        }
        let best = self.ready_reservation().or_else(|| self.indexes.ready.best(INTERNAL));
        best.or_else(|| self.child_kept_waiting(|task| self.state.tasks[task].handler != Handler::External))
    }

    /// Whether each lane of a waiting task has a slot for it.
    pub(crate) fn may_run(&self, task: TaskIdx) -> bool {
        let parent = self.parent_of(task);
        self.state.lanes.route(self.state.tasks[task].route).lanes.iter().all(|lane| {
            self.state.lanes[*lane].open
                || self.state.lanes[*lane].passable && self.lender(parent, *lane).is_some()
        })
    }

    /// A task for which slots were kept free and that now has all of them.
    fn ready_reservation(&self) -> Option<TaskIdx> {
        let mut reservations: SmallVec<[TaskIdx; 2]> = self.state.reservations.iter().copied().collect();
        reservations.sort_unstable_by_key(|task| self.state.tasks[*task].arrival);
        reservations.into_iter().find(|task| self.has_slots(*task))
    }

    /// A child of running work that only waits for slots that are kept for another. It may have them: its
    /// parent may hold what the other waits for, and all three would be stuck.
    fn child_kept_waiting(&self, is_wanted: impl Fn(TaskIdx) -> bool) -> Option<TaskIdx> {
        if self.state.reservations.is_empty() {
            return None;
        }
        let children =
            self.state.tasks.running.iter().flat_map(|(_, task)| self.state.tasks[task].children());
        let waiting =
            children.copied().filter(|child| matches!(self.state.tasks[*child].phase, Phase::Waiting));
        waiting
            .filter(|child| is_wanted(*child) && self.has_slots(*child))
            .min_by_key(|child| self.state.tasks[*child].rank())
    }

    /// Whether each lane of a waiting task has a slot for it, kept ones included.
    fn has_slots(&self, task: TaskIdx) -> bool {
        let parent = self.parent_of(task);
        self.state.lanes.route(self.state.tasks[task].route).lanes.iter().all(|lane| {
            let slots = self.settings(*lane).max_concurrency;
            let has_slot = slots.is_none_or(|slots| self.state.lanes[*lane].running < slots);
            self.state.lanes[*lane].passable && (has_slot || self.lender(parent, *lane).is_some())
        })
    }
}
