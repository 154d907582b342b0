//! Where tasks that are followed stand in line. Computed only for those, at most once a second each, and never stored: a
//! position changes with every task ahead.

use std::time::Duration;

use laneway_core::{TaskId, TaskStatus};
use tokio::time::Instant;

use crate::driver::engine::Engine;
use crate::events::hub::ByTask;
use crate::events::update::Update;
use crate::handle::submission::Standing;

/// The shortest time between two looks at the position of one task.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The shortest time between two passes over all followed tasks.
const PASS_EVERY: Duration = Duration::from_millis(50);

/// What was published about followed tasks that wait.
#[derive(Default)]
pub(crate) struct Positions {
    by_task: ByTask<Known>,
    passed: Option<Instant>,
    /// Whether something has changed since the last pass.
    has_changed: bool,
    /// When the next pass is due.
    pub(crate) due: Option<Instant>,
    /// Whether the engine's timer knows of that.
    pub(crate) is_alarm_set: bool,
}

#[derive(Default)]
struct Known {
    position: Option<usize>,
    looked: Option<Instant>,
    is_stale: bool,
}

impl Positions {
    /// Drops everything: no task is followed.
    pub(super) fn forget(&mut self) {
        if self.due.is_some() || !self.by_task.is_empty() {
            *self = Positions::default();
        }
    }

    /// Whether a pass is due that the engine's timer does not know of.
    pub(crate) fn wants_alarm(&self) -> bool {
        self.due.is_some() && !self.is_alarm_set
    }

    /// The task has left the line.
    pub(super) fn remove(&mut self, task: TaskId) {
        self.by_task.remove(&task);
    }

    fn set_due(&mut self, due: Option<Instant>) {
        self.is_alarm_set &= due == self.due;
        self.due = due;
    }
}

impl Engine {
    /// Publishes where a task stands that has just joined the line.
    pub(super) fn publish_queued(&mut self, task: TaskId) {
        let standing = Standing::of(&self.scheduler, task);
        if standing.status != Some(TaskStatus::Queued) {
            return;
        }
        let known = self.positions.by_task.entry(task).or_default();
        let is_news = known.looked.is_none() || known.position != standing.position;
        *known = Known { position: standing.position, looked: Some(Instant::now()), is_stale: false };
        if is_news {
            let Standing { position, starts_in, .. } = standing;
            self.publish_of_task(task, Update::Queued { task, position, starts_in });
        }
    }

    /// Publishes the positions that have changed, of tasks for which a look is due.
    pub(super) fn publish_positions(&mut self, has_changed: bool) {
        if self.positions.by_task.is_empty() && !self.resources.hub.names_tasks() {
            return self.positions.forget();
        }
        let now = Instant::now();
        let positions = &mut self.positions;
        positions.has_changed |= has_changed;
        if !positions.has_changed && positions.due.is_none_or(|due| now < due) {
            return;
        }
        let next_pass = positions.passed.map(|passed| passed + PASS_EVERY);
        if let Some(next) = next_pass.filter(|next| now < *next) {
            return positions.set_due(Some(positions.due.map_or(next, |due| due.min(next))));
        }
        positions.passed = Some(now);
        let has_changed = std::mem::take(&mut positions.has_changed);
        let (named, follows_all) = self.resources.hub.followed();
        positions.by_task.retain(|task, _| follows_all || named.contains(task));
        for task in named {
            positions.by_task.entry(task).or_default();
        }
        let tasks: Vec<TaskId> = positions.by_task.keys().copied().collect();
        tasks.into_iter().for_each(|task| self.publish_position(task, now, has_changed));
        let stale = self.positions.by_task.values().filter(|known| known.is_stale);
        let due = stale.filter_map(|known| known.looked).min().map(|looked| looked + LOOK_EVERY);
        self.positions.set_due(due);
    }

    fn publish_position(&mut self, task: TaskId, now: Instant, has_changed: bool) {
        let Some(known) = self.positions.by_task.get_mut(&task) else { return };
        known.is_stale |= has_changed;
        let is_early = known.looked.is_some_and(|looked| now < looked + LOOK_EVERY);
        if !known.is_stale || is_early {
            return;
        }
        known.is_stale = false;
        let Some((position, starts_in)) = self.scheduler.prospect(task) else {
            // It runs or has ended. If it waits again, that is news.
            *known = Known::default();
            return;
        };
        known.looked = Some(now);
        if known.position.replace(position) != Some(position) {
            self.publish_of_task(task, Update::Position { task, position, starts_in });
        }
    }
}
