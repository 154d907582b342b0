//! What was promised and what was really done, as those know who heard it and did it.

use std::collections::{BTreeMap, BTreeSet};

use laneway_core::{Fence, MessageId, TaskId};

use crate::world::{Sim, World};

/// What people and workers know.
#[derive(Default)]
pub(crate) struct Ledger {
    /// Tasks whose callers got the answer that they were accepted.
    pub(crate) accepted: Vec<TaskId>,
    /// Messages whose senders got the answer that they were accepted.
    pub(crate) messages: Vec<MessageId>,
    /// What the store lost after that.
    pub(crate) gone: BTreeSet<TaskId>,
    pub(crate) gone_messages: BTreeSet<MessageId>,
    /// How often the store lost something.
    pub(crate) log_losses: u32,
    /// What really ran.
    pub(crate) really: BTreeMap<(TaskId, u64), Really>,
    /// The tasks that an answer said to be completed.
    pub(crate) completed: BTreeSet<TaskId>,
    /// What may be cancelled, reprioritised and so on: what was asked for last.
    pub(crate) recent: Vec<TaskId>,
    pub(crate) recent_messages: Vec<MessageId>,
}

/// A run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Really {
    /// `None`: it still runs.
    pub(crate) ended: Option<u64>,
}

impl Ledger {
    /// The store lost these.
    pub(crate) fn lose_log(&mut self, tasks: BTreeSet<TaskId>, messages: BTreeSet<MessageId>) {
        self.gone.extend(tasks);
        self.gone_messages.extend(messages);
        self.log_losses += 1;
        self.completed.clear();
    }
}

impl World {
    /// A caller gets the answer that a task was accepted.
    pub(crate) fn answered_accepted(&mut self, task: TaskId) {
        if !self.checker.knows(task) && !self.ledger.gone.contains(&task) {
            self.wrong(format!("{task} was called accepted and is not in the log"));
        }
        self.stir(task.0 as u64);
        self.ledger.accepted.push(task);
        self.ledger.recent.push(task);
    }

    /// A caller that repeated a request under the same key gets the answer which task that is.
    pub(crate) fn answered_repeat(&mut self, first: TaskId, again: TaskId) {
        // A log that lost a task no longer knows its key.
        if first != again && self.ledger.log_losses == 0 {
            self.wrong(format!("{again} was accepted under the key of {first}"));
        }
    }

    /// A sender gets the answer that a message was accepted.
    pub(crate) fn answered_message(&mut self, message: MessageId) {
        if !self.checker.messages.contains_key(&message) && !self.ledger.gone_messages.contains(&message) {
            self.wrong(format!("message {message} was called accepted and is not in the log"));
        }
        self.ledger.messages.push(message);
        self.ledger.recent_messages.push(message);
    }

    /// A worker gets the answer that its report counts.
    pub(crate) fn answered_completed(&mut self, task: TaskId, fence: Fence) {
        self.stir(task.0 as u64 ^ fence.0);
        if !self.ledger.completed.insert(task) {
            self.wrong(format!("{task} was completed twice, the second time under fence {}", fence.0));
        }
        let under = self.checker.ended_under.get(&task).copied();
        if under.is_some_and(|under| under != fence.0) && self.ledger.log_losses == 0 {
            self.wrong(format!("{task} #{under:?} was ended under fence {}", fence.0));
        }
        if !self.checker.ended.contains_key(&task)
            && !self.ledger.gone.contains(&task)
            && self.ledger.log_losses == 0
        {
            self.wrong(format!("{task} was called completed and has not ended in the log"));
        }
    }

    fn begin(&mut self, task: TaskId, fence: Fence, who: &str) {
        self.note(|| format!("{who} runs {task} #{}", fence.0));
        self.stir(task.0 as u64 ^ fence.0);
        let was_lost = self.ledger.log_losses > 0;
        if !self.checker.grants.contains_key(&(task, fence.0)) && !was_lost {
            self.wrong(format!("{task} #{} runs at {who} and was never granted", fence.0));
        }
        let before = self.ledger.really.insert((task, fence.0), Really { ended: None });
        if before.is_some() && !was_lost {
            self.wrong(format!("{task} #{} was started twice", fence.0));
        }
    }
}

/// Is there for as long as something really runs, on a machine that is alive.
pub(crate) struct Run {
    sim: Sim,
    task: TaskId,
    fence: Fence,
}

impl Run {
    pub(crate) fn begin(sim: &Sim, task: TaskId, fence: Fence, who: &str) -> Run {
        sim.world().begin(task, fence, who);
        Run { sim: sim.clone(), task, fence }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let mut world = self.sim.world();
        let now = world.now();
        if let Some(run) = world.ledger.really.get_mut(&(self.task, self.fence.0)) {
            run.ended = Some(now);
        }
    }
}
