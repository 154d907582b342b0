//! How tasks that share a label stand.

use std::collections::HashMap;

use laneway_core::Name;
use laneway_protocol::GroupView;

/// How many groups are counted at once; beyond that those without live tasks are forgotten and counted anew from the
/// history when somebody asks.
const GROUPS_MAX: usize = 10_000;

#[derive(Default)]
pub(crate) struct Groups(HashMap<Name, GroupView>);

impl Groups {
    pub(crate) fn get(&self, group: &Name) -> Option<GroupView> {
        self.0.get(group).copied()
    }

    /// Says what was counted elsewhere.
    pub(crate) fn set(&mut self, group: Name, view: GroupView) {
        self.0.insert(group, view);
    }

    pub(crate) fn accepted(&mut self, group: &Name) -> GroupView {
        if self.0.len() >= GROUPS_MAX && !self.0.contains_key(group) {
            self.0.retain(|_, view| view.done < view.total);
        }
        let view = self.0.entry(group.clone()).or_default();
        view.total += 1;
        *view
    }

    pub(crate) fn ended(&mut self, group: &Name, succeeded: bool) -> GroupView {
        let view = self.0.entry(group.clone()).or_default();
        view.done += 1;
        view.total = view.total.max(view.done);
        view.failed += u64::from(!succeeded);
        *view
    }
}
