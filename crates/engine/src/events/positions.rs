//! Where watched tasks stand in line. Computed for those that somebody watches, at most once a second each, and kept
//! nowhere: a place in line changes with every task before it.

use std::collections::HashMap;
use std::time::Duration;

use laneway_core::TaskId;
use tokio::time::Instant;

use crate::driver::engine::Engine;
use crate::events::watch::Update;

/// So often at most is one task's place looked at.
const QUIET: Duration = Duration::from_secs(1);

/// What was told of watched tasks.
#[derive(Default)]
pub(crate) struct Positions {
    by_task: HashMap<TaskId, Known>,
    /// When to look again, because something has changed since the last look.
    pub(crate) due: Option<Instant>,
    /// Whether whoever keeps the time knows of that.
    pub(crate) is_alarm_set: bool,
}

#[derive(Default)]
struct Known {
    position: Option<usize>,
    looked: Option<Instant>,
    is_stale: bool,
}

impl Positions {
    /// Nobody watches any more.
    pub(crate) fn forget(&mut self) {
        if self.due.is_some() || !self.by_task.is_empty() {
            *self = Positions::default();
        }
    }

    /// Whether it is time for a look that nobody has been told to wake for.
    pub(crate) fn wants_alarm(&self) -> bool {
        self.due.is_some() && !self.is_alarm_set
    }
}

impl Engine {
    /// Looks at the places of watched tasks, if something happened or a look is due.
    pub(crate) fn tell_positions(&mut self, has_changed: bool) {
        let watched = self.resources.watchers.watched_tasks();
        if watched.is_empty() {
            return self.positions.forget();
        }
        let now = Instant::now();
        self.positions.by_task.retain(|task, _| watched.contains(task));
        for task in watched {
            self.tell_position(task, now, has_changed);
        }
        let stale = self.positions.by_task.values().filter(|known| known.is_stale);
        let due = stale.filter_map(|known| known.looked).min().map(|looked| looked + QUIET);
        let is_same = due == self.positions.due;
        (self.positions.due, self.positions.is_alarm_set) = (due, is_same && self.positions.is_alarm_set);
    }

    fn tell_position(&mut self, task: TaskId, now: Instant, has_changed: bool) {
        let known = self.positions.by_task.entry(task).or_default();
        known.is_stale |= has_changed;
        let is_quiet = known.looked.is_some_and(|looked| now < looked + QUIET);
        if !known.is_stale || is_quiet {
            return;
        }
        known.is_stale = false;
        let Some(position) = self.scheduler.position(task) else {
            // It runs, or is over. Should it wait again, that is news.
            *known = Known::default();
            return;
        };
        known.looked = Some(now);
        if known.position.replace(position) != Some(position) {
            let starts_in = self.scheduler.estimated_start(task);
            let lanes = self.scheduler.task(task).map(|view| view.lanes).unwrap_or_default();
            let update = Update::Position { task, position, starts_in };
            self.resources.watchers.tell(&update, |lane| lanes.contains(lane));
        }
    }
}
