//! What an acceptance does to the state: the new task, and what it is tied to.

use std::sync::Arc;

use crate::api::event::{End, Event};
use crate::api::ids::TaskId;
use crate::api::owner::{Owner, ReplicaId};
use crate::api::retry::Retry;
use crate::api::task_spec::{Idempotency, TaskSpec};
use crate::api::time::{Millis, Timestamp};
use crate::decide::submit::KEY_WINDOW;
use crate::scheduler::Scheduler;
use crate::state::stats::Count;
use crate::state::table::Mark;
use crate::state::task::{LiveTask, Phase, Rare, TaskIdx};
use crate::state::{RememberedKey, StepScratch};

impl Scheduler {
    pub(super) fn on_submitted(&mut self, event: &Event) {
        let Event::Submitted { task, spec, priority, handler, wait_until, deadline } = event else { return };
        let route = self.state.lanes.join_route(&spec.lanes, &mut self.state.lane_config);
        let run_after = spec.run_after.filter(|length| *length > Millis(0));
        let before = spec.after.and_then(|after| self.state.tasks.find(after));
        let phase = match (before, run_after) {
            (Some(_), _) => Phase::Held,
            (None, Some(length)) => Phase::Delayed(self.state.now + length),
            (None, None) => Phase::Waiting,
        };
        let waits_in_line = matches!(phase, Phase::Waiting);
        let idx = self.state.tasks.insert(LiveTask {
            id: *task,
            payload: spec.payload,
            submitted: self.state.now,
            since: self.state.now,
            arrival: self.state.arrivals,
            wait_until: wait_until.unwrap_or(Timestamp::NEVER),
            due: Timestamp::NEVER,
            check_at: Timestamp::NEVER,
            phase,
            rare: self.rare(spec, *deadline),
            route,
            kind: self.state.kinds.join(&spec.kind, spec.owner.as_ref().and_then(Owner::replica)),
            leaf: None,
            attempts: 0,
            priority: *priority,
            aged: 0,
            boosted: 0,
            source: spec.source,
            handler: *handler,
            noticed: false,
            mark: Mark::Used,
            is_once: spec.retry == Some(Retry::NONE),
        });
        self.state.arrivals += 1;
        self.link(idx, *task, spec);
        self.count_in(idx);
        if waits_in_line {
            self.enter_ready_tree(idx);
        }
        self.plan(idx);
    }

    /// Counts a new task in each of its lanes, where it waits.
    fn count_in(&mut self, task: TaskIdx) {
        self.scratch.accepted.push(task);
        let lane_config = &mut self.state.lane_config;
        let StepScratch { touched, counted, .. } = &mut self.scratch;
        self.state.lanes.change_each(touched, self.state.tasks[task].route, |_, lane| {
            lane.waiting += 1;
            lane_config.class_mut(lane.class).count(counted, Count::Accepted);
        });
    }

    pub(crate) fn rare(&self, spec: &TaskSpec, deadline: Option<Timestamp>) -> Option<Box<Rare>> {
        let worker = spec.owner.as_ref().and_then(Owner::worker);
        let is_plain = spec.timeout.is_none()
            && deadline.is_none()
            && spec.wait_timeout.is_none()
            && spec.retry.is_none_or(|retry| retry == Retry::NONE)
            && spec.fair_key.is_none()
            && spec.parent.is_none()
            && spec.after.is_none()
            && spec.group.is_none()
            && spec.caller_at.is_none()
            && worker.is_none()
            && spec.lease.is_none()
            && spec.caller.is_none()
            && spec.trace.is_none()
            && spec.label.is_none()
            && spec.idempotency.is_none();
        if is_plain {
            return None;
        }
        Some(Box::new(Rare {
            timeout: spec.timeout,
            deadline,
            wait_timeout: spec.wait_timeout,
            retry: spec.retry.filter(|retry| *retry != Retry::NONE),
            fair_key: spec.fair_key.clone(),
            parent: spec.parent,
            depth: spec
                .parent
                .filter(|parent| !parent.detached)
                .and_then(|parent| self.state.tasks.find(parent.task))
                .map_or(1, |parent| self.state.tasks[parent].depth() + 1),
            after: spec.after,
            run_at: spec.after.and(spec.run_after).map(|length| self.state.now + length),
            group: spec.group.clone(),
            caller_at: spec.caller_at,
            worker: worker.cloned(),
            lease: spec.lease,
            caller: spec.caller.clone(),
            trace: spec.trace.clone(),
            label: spec.label.clone(),
            key: spec.idempotency.as_ref().map(|asked| Arc::clone(&asked.key)),
            ..Rare::default()
        }))
    }

    /// Ties a new task to its parent, to the task it is held behind, and to its key.
    pub(crate) fn link(&mut self, idx: TaskIdx, task: TaskId, spec: &TaskSpec) {
        if let Some(parent) = self.parent_of(idx) {
            self.state.tasks[parent].rare().children.push(idx);
        }
        if let Some(after) = spec.after.and_then(|after| self.state.tasks.find(after)) {
            self.state.tasks[after].rare().followers.push(idx);
        }
        if let Some(asked) = &spec.idempotency {
            let until = self.state.now + KEY_WINDOW;
            let Idempotency { fingerprint, until_end, .. } = *asked;
            let known = RememberedKey { task, fingerprint, until, until_end };
            if let Some(old) = self.state.keys.insert(Arc::clone(&asked.key), known) {
                self.indexes.key_ends.remove(&(old.until, Arc::clone(&asked.key)));
            }
            // With `until_end`, only the end of the task frees the key.
            if !until_end {
                self.indexes.key_ends.insert((until, Arc::clone(&asked.key)));
                self.indexes.timers.expect(until);
            }
        }
    }

    /// Frees the key of a task that was cancelled, so that the caller may ask again, or whose key lasts until its end.
    pub(crate) fn free_key(&mut self, idx: TaskIdx, end: &End) {
        let Some(key) = self.state.tasks[idx].rare.as_ref().and_then(|rare| rare.key.clone()) else {
            return;
        };
        // A newer task has the key if the old request was forgotten, or was being cancelled when it came.
        let task = self.state.tasks[idx].id;
        if let Some(known) = self.state.keys.get(&key).copied().filter(|known| known.task == task)
            && (known.until_end || matches!(end, End::Cancelled { .. }))
        {
            self.state.keys.remove(&key);
            self.indexes.key_ends.remove(&(known.until, key));
        }
    }

    /// Unties a task that ends from its parent and from the task it was held behind.
    pub(crate) fn unlink(&mut self, task: TaskIdx) {
        if self.state.tasks[task].rare.is_none() {
            return;
        }
        if let Some(parent) = self.parent_of(task) {
            self.state.tasks[parent].rare().children.retain(|child| *child != task);
        }
        let after = self.state.tasks[task].rare.as_ref().and_then(|rare| rare.after);
        if let Some(after) = after.and_then(|after| self.state.tasks.find(after)) {
            self.state.tasks[after].rare().followers.retain(|held| *held != task);
        }
        for held in self.state.tasks[task].rare.as_ref().map_or(vec![], |rare| rare.followers.clone()) {
            self.let_go(held);
        }
    }

    /// What a task was held behind has ended. Its own time to join the line may still lie ahead.
    fn let_go(&mut self, task: TaskIdx) {
        let now = self.state.now;
        let rare = self.state.tasks[task].rare();
        if let Some(at) = rare.run_at.take().filter(|at| *at > now) {
            rare.after = None;
            self.state.tasks[task].phase = Phase::Delayed(at);
            self.time_wait(task, at);
            self.plan(task);
        }
    }

    pub(super) fn on_unbound(&mut self, replica: ReplicaId) {
        let tasks = self.state.tasks.iter();
        let bound = tasks.filter(|(_, task)| task.caller_at() == Some(replica)).map(|(idx, _)| idx);
        for idx in bound.collect::<Vec<TaskIdx>>() {
            self.state.tasks[idx].rare().caller_at = None;
        }
    }
}
