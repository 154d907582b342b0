//! How many tasks of each group are done.

use std::collections::{BTreeSet, HashMap};

use laneway_core::{End, Event, LiveTaskView, Name, Selector};

use crate::error::Error;
use crate::handle::Handle;
use crate::handle::history::HistoryFilter;

/// How many groups are counted at once. Beyond that, groups without live tasks are dropped; the history still counts them.
const GROUPS_MAX: usize = 10_000;

/// How many ended tasks are read from the history at a time.
const PAGE_MAX: u32 = 1000;

/// How the tasks of a group stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCounts {
    /// All tasks, live and ended.
    pub total: u64,
    /// Those that have ended.
    pub done: u64,
    /// Those of `done` that did not succeed.
    pub failed: u64,
}

/// The group that an event moves: it accepts a task, or ends the one in `ended`.
pub(super) fn moved_group<'a>(event: &'a Event, ended: Option<&'a LiveTaskView>) -> Option<&'a Name> {
    match event {
        Event::Submitted { spec, .. } => spec.group.as_ref(),
        Event::Ended { .. } => ended?.group.as_ref(),
        _ => None,
    }
}

/// The groups that this replica has counted.
#[derive(Default)]
pub(super) struct Groups(HashMap<Name, GroupCounts>);

impl Groups {
    pub(super) fn get(&self, group: &Name) -> Option<GroupCounts> {
        self.0.get(group).copied()
    }

    pub(super) fn set(&mut self, group: Name, counts: GroupCounts) {
        self.0.insert(group, counts);
    }

    /// Counts a task of the group that was accepted or has ended.
    pub(super) fn count(&mut self, group: &Name, event: &Event) -> GroupCounts {
        match event {
            Event::Ended { end, .. } => self.ended(group, *end == End::Completed),
            _ => self.accepted(group),
        }
    }

    fn accepted(&mut self, group: &Name) -> GroupCounts {
        if self.0.len() >= GROUPS_MAX && !self.0.contains_key(group) {
            self.0.retain(|_, counts| counts.done < counts.total);
        }
        let counts = self.0.entry(group.clone()).or_default();
        counts.total += 1;
        *counts
    }

    fn ended(&mut self, group: &Name, succeeded: bool) -> GroupCounts {
        let counts = self.0.entry(group.clone()).or_default();
        counts.done += 1;
        counts.total = counts.total.max(counts.done);
        counts.failed += u64::from(!succeeded);
        *counts
    }
}

impl Handle {
    /// How the tasks of a group stand; all zero if there are none.
    pub async fn group(&self, group: &Name) -> Result<GroupCounts, Error> {
        match self.hub().group(group) {
            Some(counts) => Ok(counts),
            None => self.read_group(group).await,
        }
    }

    /// Counts the groups of live tasks from the history. From then on the hub counts them.
    pub async fn restore_groups(&self) -> Result<(), Error> {
        let groups: BTreeSet<Name> = self.tasks().await?.into_iter().filter_map(|task| task.group).collect();
        for group in groups {
            let counts = self.read_group(&group).await?;
            self.hub().set_group(group, counts);
        }
        Ok(())
    }

    async fn read_group(&self, group: &Name) -> Result<GroupCounts, Error> {
        let selector = Selector { group: Some(group.clone()), ..Selector::default() };
        let live = self.read(move |state| state.page(&selector, None, 0, usize::MAX).0.len()).await?;
        let mut counts = GroupCounts { total: live as u64, ..GroupCounts::default() };
        let mut filter =
            HistoryFilter { group: Some(group.clone()), max: PAGE_MAX, ..HistoryFilter::default() };
        loop {
            let page = self.history(filter.clone()).await?;
            let ended = page.items.len() as u64;
            let failed = page.items.iter().filter(|task| task.end != End::Completed).count() as u64;
            counts.total += ended;
            counts.done += ended;
            counts.failed += failed;
            filter.after = page.next;
            if filter.after.is_none() {
                return Ok(counts);
            }
        }
    }
}
