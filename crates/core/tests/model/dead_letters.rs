//! The naive scheduler's dead letters.

use std::sync::Arc;

use laneway_core::{DeadLetter, DeadLetterRemoval, Event, LaneName, Pattern, TaskId, TaskSpec};

use crate::naive::Naive;

impl Naive {
    /// The dead letters of the lanes of this block, the oldest first.
    fn dead_letters_of(&self, label: &Pattern) -> Vec<TaskId> {
        let of_block = |letter: &&DeadLetter| {
            self.block(&letter.spec.lanes[0]).is_some_and(|(pattern, _)| pattern == label)
        };
        self.dead_letters.iter().filter(of_block).map(|letter| letter.task).collect()
    }

    pub(crate) fn drop_dead_letters(&mut self, label: &Pattern, most: u32) {
        while self.dead_letters_of(label).len() > most as usize {
            let letter = self.dead_letters_of(label)[0];
            self.dead_letters.retain(|other| other.task != letter);
            self.emit(Event::DeadLetterRemoved { dead_letter: letter, why: DeadLetterRemoval::Overflow });
        }
    }

    pub(crate) fn keep_dead_letter(&mut self, index: usize, error: Arc<str>) {
        let home = self.tasks[index].home().clone();
        let most = self.settings(&home).dead_letters_max;
        if most == 0 {
            return;
        }
        if let Some((label, _)) = self.block(&home).cloned() {
            self.drop_dead_letters(&label, most - 1);
        }
        let task = &self.tasks[index];
        let mut lanes = task.lanes.clone();
        if lanes.len() > 1 {
            lanes.retain(|lane| *lane != LaneName::global() || task.lanes[0] == *lane);
        }
        let mut spec = TaskSpec::new(task.spec.kind.clone(), lanes);
        spec.payload = task.spec.payload;
        spec.source = task.spec.source;
        spec.priority = Some(task.priority);
        spec.timeout = task.spec.timeout;
        spec.wait_timeout = task.spec.wait_timeout;
        spec.retry = task.spec.retry;
        spec.fair_key = task.spec.fair_key.clone();
        spec.group = task.spec.group.clone();
        let (id, attempts) = (task.id, task.attempts);
        self.dead_letters.push(DeadLetter {
            task: id,
            spec,
            error: Arc::clone(&error),
            attempts,
            at: self.now,
        });
        self.emit(Event::DeadLettered { task: id, error, attempts });
    }
}
