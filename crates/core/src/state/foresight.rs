//! What will be needed soon is asked for in time.
//!
//! Where many tasks wait, the next one to start lies in no cache, nor do its lanes. But who that is is known before a slot
//! is free for it, and nothing here decides anything: a wrong guess costs a line of the cache.

use std::cell::Cell;

use prefetch_index::prefetch_index;

use crate::api::ids::TaskId;
use crate::api::task_spec::TaskSpec;
use crate::scheduler::Scheduler;
use crate::state::ready_tree::INTERNAL;

/// The state of fewer tasks than this lies in the caches anyway.
const FEW: u32 = 1024;

/// How far it was looked ahead for the next grant.
#[derive(Default)]
pub(crate) struct Foresight {
    /// How much was asked for.
    asked: Cell<u8>,
    /// The nodes of the line where the next task to start stands, and the one after it.
    leaves: Cell<[u32; 2]>,
}

impl Foresight {
    /// What was foreseen has come: the next one is to be asked for.
    pub(crate) fn begin_anew(&self) {
        self.asked.set(0);
    }
}

impl Scheduler {
    /// Asks for what the next grant will need: each time for what the last answer points to. Called twice in each step, which
    /// leaves time between.
    pub(crate) fn look_ahead(&self) {
        let Foresight { asked, leaves } = &self.foresight;
        if self.waiting_in_line < FEW || asked.get() > 3 {
            return;
        }
        let stage = asked.replace(asked.get() + 1);
        if stage == 0 {
            leaves.set(self.line.front(INTERNAL));
            self.line.nodes.foresee(leaves.get()[0]);
            self.line.nodes.foresee(leaves.get()[1]);
            return;
        }
        let [leaf, after] = leaves.get();
        let Some(node) = self.line.nodes.get(leaf as usize) else { return };
        match (stage, node.tasks.first_chunk()) {
            (1, tasks) => {
                prefetch_index(std::slice::from_ref(&node.children), 0);
                prefetch_index(tasks, 0);
                self.lanes.foresee(node.step.lane() >> 1, node.route);
                self.fair.keys.foresee(node.step.key());
            }
            (2, [(_, first), ..]) => {
                self.tasks.foresee(*first);
                self.lanes.foresee_rest(node.step.lane() >> 1);
                if let Some(after) = self.line.nodes.get(after as usize) {
                    prefetch_index(std::slice::from_ref(&after.children), 0);
                }
            }
            (_, [(_, first), ..]) => self.tasks.foresee_rest(*first),
            _ => {}
        }
    }

    /// Asks for where the id of a task is noted, which takes its time.
    pub(crate) fn foresee_id(&self, task: TaskId) {
        if self.waiting_in_line >= FEW {
            self.tasks.foresee_id(task);
        }
    }

    /// The route of a new task, if there is one; meanwhile the place in the line where it will stand is on its way.
    pub(crate) fn foreseen_route(&self, spec: &TaskSpec) -> Option<u32> {
        self.lanes.find_route_and(&spec.lanes, |leaf| self.line.nodes.foresee(leaf))
    }

    /// Asks for the end of the line of a conversation, behind which a new task will stand.
    pub(crate) fn foresee_end(&self, leaf: u32) {
        if self.waiting_in_line >= FEW {
            self.line.foresee_end(leaf);
        }
    }
}
