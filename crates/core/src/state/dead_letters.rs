//! Dead letters: tasks that could not be done, kept so that they can be run again.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::api::ids::TaskId;
use crate::api::task_spec::TaskSpec;
use crate::api::time::Timestamp;
use crate::state::lane_config::ClassIdx;

/// A task that could not be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// Its id.
    pub task: TaskId,
    /// What was asked; enough to ask again.
    pub spec: TaskSpec,
    /// What went wrong last.
    pub error: Arc<str>,
    /// How many attempts there were.
    pub attempts: u32,
    /// When it died.
    pub at: Timestamp,
}

/// All dead letters, by age.
#[derive(Default)]
pub(crate) struct DeadLetters {
    by_age: BTreeMap<u64, (DeadLetter, ClassIdx)>,
    by_task: BTreeMap<TaskId, u64>,
    next: u64,
}

impl DeadLetters {
    pub(crate) fn get(&self, task: TaskId) -> Option<&DeadLetter> {
        self.by_age.get(self.by_task.get(&task)?).map(|(dead_letter, _)| dead_letter)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &DeadLetter> {
        self.by_age.values().map(|(dead_letter, _)| dead_letter)
    }

    /// The oldest dead letter of a class.
    pub(crate) fn oldest(&self, class: ClassIdx) -> Option<TaskId> {
        self.by_age.values().find(|(_, other)| *other == class).map(|(dead_letter, _)| dead_letter.task)
    }

    pub(crate) fn insert(&mut self, dead_letter: DeadLetter, class: ClassIdx) {
        self.by_task.insert(dead_letter.task, self.next);
        self.by_age.insert(self.next, (dead_letter, class));
        self.next += 1;
    }

    /// Removes a dead letter and says which class it belonged to.
    pub(crate) fn remove(&mut self, task: TaskId) -> Option<ClassIdx> {
        let age = self.by_task.remove(&task)?;
        self.by_age.remove(&age).map(|(_, class)| class)
    }

    /// The class of each dead letter.
    pub(crate) fn classes(&self) -> impl Iterator<Item = ClassIdx> {
        self.by_age.values().map(|(_, class)| *class)
    }

    /// Asks again which class each dead letter belongs to.
    pub(crate) fn reclassify(&mut self, mut class_of: impl FnMut(&DeadLetter) -> ClassIdx) {
        for (dead_letter, class) in self.by_age.values_mut() {
            *class = class_of(dead_letter);
        }
    }
}
