//! What each event does to the state. Nothing here decides.

use std::sync::Arc;

use crate::event::{AlertLevel, End, Event, LaneChange};
use crate::grant::{gate_of, slot_of};
use crate::id::TaskId;
use crate::lane::Gate;
use crate::letters::DeadLetter;
use crate::line::{EXTERNAL, INTERNAL, Line, NONE, Step};
use crate::name::LaneName;
use crate::scheduler::{RememberedKey, Scheduler};
use crate::settings::{Block, Handler, Settings};
use crate::spec::TaskSpec;
use crate::submit::KEY_WINDOW;
use crate::task::{Attempt, Passed, Phase, Rare, Task};
use crate::time::{Millis, Timestamp};

/// Of how many tasks that ended while they ran the ids are remembered.
const ENDED_RUNS_MAX: usize = 1024;

impl Scheduler {
    pub(crate) fn change(&mut self, at: Timestamp, event: &Event) {
        self.now = self.now.max(at);
        match event {
            Event::Configured { blocks } => self.on_configured(blocks),
            Event::Submitted { .. } => self.on_submitted(event),
            Event::Granted { .. } => self.on_granted(event),
            Event::Ended { task, end } => self.with(*task, |this, slot| this.on_ended(slot, end)),
            Event::Paused { lane } => self.on_gate(lane, Gate::Paused),
            Event::Resumed { lane } => self.on_gate(lane, Gate::Open),
            Event::Draining { lane } => self.on_gate(lane, Gate::Draining),
            Event::LetterGone { letter, .. } => self.on_letter_gone(*letter),
            Event::Drained { lane } => self.with_lane(lane, |lane| lane.drained = true),
            Event::Pressure { lane, .. } => self.with_lane(lane, |lane| lane.under_pressure = true),
            Event::Idle { lane } => self.with_lane(lane, |lane| lane.under_pressure = false),
            Event::Alert { lane, level, .. } => self.on_alert(lane, *level, true),
            Event::AlertOver { lane, level } => self.on_alert(lane, *level, false),
            _ => self.on_task_event(event),
        }
    }

    fn on_task_event(&mut self, event: &Event) {
        match event {
            Event::Joined { task } => self.with(*task, |this, slot| this.tasks[slot].rare().joined += 1),
            Event::Left { task } => self.with(*task, |this, slot| {
                let joined = &mut this.tasks[slot].rare().joined;
                *joined = joined.saturating_sub(1);
            }),
            Event::Ready { task } => self.with(*task, Scheduler::on_ready),
            Event::Aged { task, levels } => {
                self.with(*task, |this, slot| this.relevel(slot, |task| task.aged = *levels));
            }
            Event::Boosted { task, levels } => {
                self.with(*task, |this, slot| this.relevel(slot, |task| task.boosted = *levels));
            }
            Event::Reprioritised { task, priority } => {
                self.with(*task, |this, slot| this.relevel(slot, |task| task.priority = *priority));
            }
            Event::Noticed { task, .. } => {
                self.with(*task, |this, slot| {
                    this.tasks[slot].noticed = true;
                    this.plan_look(slot);
                });
            }
            Event::Reserved { task } => self.with(*task, Scheduler::on_reserved),
            Event::Renewed { task, lease_until, .. } => self.with(*task, |this, slot| {
                if let Some(attempt) = this.tasks[slot].attempt_mut() {
                    attempt.lease_until = *lease_until;
                }
                this.plan(slot);
            }),
            Event::Stopping { task, reason, until, .. } => self.with(*task, |this, slot| {
                if let Some(attempt) = this.tasks[slot].attempt_mut() {
                    attempt.stopping = Some((*reason, *until));
                }
                this.plan(slot);
            }),
            Event::Retrying { task, at, .. } => self.with(*task, |this, slot| this.on_retrying(slot, *at)),
            Event::Redelivered { task, .. } => self.with(*task, Scheduler::on_redelivered),
            Event::DeadLettered { task, error, attempts } => {
                self.with(*task, |this, slot| this.on_dead_lettered(slot, error, *attempts));
            }
            _ => debug_assert!(false, "an event that nothing happens at: {event:?}"),
        }
    }

    /// Does something to a live task. An event about any other cannot come from a log of ours.
    fn with(&mut self, task: TaskId, change: impl FnOnce(&mut Scheduler, u32)) {
        match self.tasks.find(task) {
            Some(slot) => change(self, slot),
            None => debug_assert!(false, "an event about {task}, which is not live"),
        }
    }

    fn with_lane(&mut self, name: &LaneName, change: impl FnOnce(&mut crate::lane::Lane)) {
        if let Some(lane) = self.lanes.find(name) {
            change(&mut self.lanes[lane]);
            self.drop_if_idle(lane);
        }
    }

    fn on_alert(&mut self, lane: &LaneName, level: AlertLevel, is_on: bool) {
        self.with_lane(lane, |lane| match level {
            AlertLevel::Warning => lane.warned = is_on,
            AlertLevel::Critical => lane.critical = is_on,
        });
    }

    pub(crate) fn settings(&self, lane: u32) -> &Settings {
        &self.book.class(self.lanes[lane].class).settings
    }

    fn on_configured(&mut self, blocks: &[Block]) {
        self.book.configure(blocks);
        self.lanes.reclassify(&mut self.book);
        let book = &mut self.book;
        self.letters
            .reclassify(|letter| book.class_of(letter.spec.lanes.first().unwrap_or(&LaneName::main())));
        self.book.recount_letters(self.letters.classes());
        let used: Vec<u32> = self.lanes.iter().map(|(_, lane)| lane.class).collect();
        self.book.sweep(|class| used.contains(&class));
        self.rebuild();
        // By name: the order in which things are told must not depend on how a lane is numbered here.
        let mut lanes: Vec<u32> = self.lanes.iter().map(|(lane, _)| lane).collect();
        lanes.sort_by(|a, b| self.lanes[*a].name.cmp(&self.lanes[*b].name));
        for lane in lanes {
            self.touch(lane);
            self.drop_if_idle(lane);
        }
    }

    /// Makes everything that follows from tasks and lanes anew: the line, whose turn it is, the timers.
    pub(crate) fn rebuild(&mut self) {
        self.line = Line::new(self.seed);
        self.may_grant = true;
        self.fair.suspend();
        self.timers.clear();
        self.in_line = Default::default();
        self.waiting_in_line = 0;
        for lane in self.lanes.iter().map(|(lane, _)| lane).collect::<Vec<_>>() {
            self.refresh_lane(lane);
            self.watch_bucket(lane);
        }
        for slot in self.tasks.by_arrival() {
            self.tasks[slot].due = Timestamp::NEVER;
            self.tasks[slot].look_at = Timestamp::NEVER;
            if matches!(self.tasks[slot].phase, Phase::Waiting) {
                self.join_line(slot);
            }
            self.plan(slot);
        }
        self.fair.resume();
    }

    fn on_submitted(&mut self, event: &Event) {
        let Event::Submitted { task, spec, priority, handler, wait_until, deadline } = event else { return };
        let route = self.lanes.join_route(&spec.lanes, &mut self.book);
        let run_after = spec.run_after.filter(|length| *length > Millis(0));
        let phase = match (spec.after.and_then(|after| self.tasks.find(after)), run_after) {
            (Some(_), _) => Phase::Held,
            (None, Some(length)) => Phase::Delayed(self.now + length),
            (None, None) => Phase::Waiting,
        };
        let waits_in_line = matches!(phase, Phase::Waiting);
        let slot = self.tasks.insert(Task {
            id: *task,
            payload: spec.payload,
            submitted: self.now,
            since: self.now,
            arrival: self.arrivals,
            wait_until: wait_until.unwrap_or(Timestamp::NEVER),
            due: Timestamp::NEVER,
            look_at: Timestamp::NEVER,
            phase,
            rare: self.rare(spec, *deadline),
            route,
            kind: self.kinds.join(&spec.kind),
            leaf: NONE,
            key: NONE,
            attempts: 0,
            retries: 0,
            redeliveries: 0,
            priority: *priority,
            aged: 0,
            boosted: 0,
            source: spec.source,
            handler: *handler,
            noticed: false,
        });
        self.arrivals += 1;
        self.link(slot, *task, spec);
        self.each_lane(slot, |this, lane| {
            this.lanes[lane].waiting += 1;
            this.seen(lane).accepted += 1;
        });
        if waits_in_line {
            self.join_line(slot);
        }
        self.plan(slot);
    }

    fn rare(&self, spec: &TaskSpec, deadline: Option<Timestamp>) -> Option<Box<Rare>> {
        let is_plain = spec.timeout.is_none()
            && deadline.is_none()
            && spec.wait_timeout.is_none()
            && spec.retry.is_none()
            && spec.fair_key.is_none()
            && spec.parent.is_none()
            && spec.after.is_none()
            && spec.group.is_none()
            && spec.idempotency.is_none();
        if is_plain {
            return None;
        }
        Some(Box::new(Rare {
            timeout: spec.timeout,
            deadline,
            wait_timeout: spec.wait_timeout,
            retry: spec.retry,
            fair_key: spec.fair_key.clone(),
            parent: spec.parent,
            depth: spec
                .parent
                .and_then(|parent| self.tasks.find(parent.task))
                .map_or(1, |parent| self.tasks[parent].depth() + 1),
            after: spec.after,
            run_at: spec.after.and(spec.run_after).map(|length| self.now + length),
            group: spec.group.clone(),
            key: spec.idempotency.as_ref().map(|asked| Arc::clone(&asked.key)),
            ..Rare::default()
        }))
    }

    /// Ties a new task to its parent, to the task it is held behind, and to its key.
    fn link(&mut self, slot: u32, task: TaskId, spec: &TaskSpec) {
        if let Some(parent) = self.parent_of(slot) {
            self.tasks[parent].rare().children.push(slot);
        }
        if let Some(after) = spec.after.and_then(|after| self.tasks.find(after)) {
            self.tasks[after].rare().followers.push(slot);
        }
        if let Some(asked) = &spec.idempotency {
            let until = self.now + KEY_WINDOW;
            let known = RememberedKey { task, fingerprint: asked.fingerprint, until };
            if let Some(old) = self.keys.insert(Arc::clone(&asked.key), known) {
                self.key_ends.remove(&(old.until, Arc::clone(&asked.key)));
            }
            self.key_ends.insert((until, Arc::clone(&asked.key)));
            self.timers.expect(until);
        }
    }

    fn each_lane(&mut self, slot: u32, mut change: impl FnMut(&mut Scheduler, u32)) {
        let lanes = self.lanes.route(self.tasks[slot].route).lanes.clone();
        for lane in lanes {
            change(self, lane);
            self.touch(lane);
        }
    }

    fn seen(&mut self, lane: u32) -> &mut crate::stats::LaneStats {
        &mut self.book.class_mut(self.lanes[lane].class).stats
    }

    /// Puts a task into the line, at the place that its level and arrival give it.
    fn join_line(&mut self, slot: u32) {
        let task = &self.tasks[slot];
        self.in_line[task.priority as usize] += 1;
        self.waiting_in_line += 1;
        let (number, route) = (task.route, self.lanes.route(task.route));
        let is_plain = task.rare.is_none() && task.handler != Handler::External;
        let known = if is_plain { self.line.leaf_of(number, route.leaf) } else { None };
        if let Some(key) = known {
            let leaf = route.leaf;
            self.fair.keys[key as usize].waiting += 1;
            self.tasks[slot].key = key;
            self.tasks[slot].leaf = leaf;
            self.line.insert(leaf, self.tasks[slot].place(), slot);
        } else {
            let own = task.rare.as_ref().and_then(|rare| rare.fair_key.as_ref());
            let name = self.lanes.fair_key(route, own, &self.book);
            let key = self.fair.join(name, || self.book.weight(name));
            self.tasks[slot].key = key;
            let leaf = self.enter_leaf(slot);
            if is_plain && self.line.set_route(leaf, number) {
                self.lanes.set_leaf(number, leaf);
            }
        }
        self.may_grant = self.may_grant || self.line.is_open(self.tasks[slot].leaf);
        self.plan_look(slot);
    }

    fn enter_leaf(&mut self, slot: u32) -> u32 {
        let leaf = self.leaf_for(slot);
        self.tasks[slot].leaf = leaf;
        self.line.insert(leaf, self.tasks[slot].place(), slot);
        leaf
    }

    /// The node of the line where a task belongs, by the lanes that it needs and its fair key.
    fn leaf_for(&mut self, slot: u32) -> u32 {
        let task = &self.tasks[slot];
        let parent = self.parent_of(slot);
        let is_external = task.handler == Handler::External;
        let mut node = if is_external { EXTERNAL } else { INTERNAL };
        let route = self.lanes.route(task.route);
        let tag = self.fair.keys[task.key as usize].tag;
        let kind = if is_external { task.kind } else { NONE };
        let mut key_step = Some(Step { lane: NONE, key: task.key, home: route.home(), kind });
        for lane in &*route.way {
            let this = &self.lanes[*lane];
            let (view, closed) = match parent.and_then(|parent| self.lender(Some(parent), *lane)) {
                Some(_) => (gate_of(*lane), !this.passable),
                None => (slot_of(*lane), !this.open),
            };
            let has_key = if this.width == 3 { key_step.take() } else { None };
            let (step, tag) = match has_key {
                Some(step) => (Step { lane: view, ..step }, tag),
                None => (Step { lane: view, key: NONE, home: NONE, kind: NONE }, 0),
            };
            node = self.line.child(node, step, tag, closed);
        }
        match key_step {
            Some(step) => self.line.child(node, step, tag, false),
            None => node,
        }
    }

    /// Moves a waiting task to where it belongs now.
    pub(crate) fn reroute(&mut self, slot: u32) {
        let (old, place) = (self.tasks[slot].leaf, self.tasks[slot].place());
        let new = self.leaf_for(slot);
        if new != old {
            self.line.insert(new, place, slot);
            self.line.remove(old, place);
            self.tasks[slot].leaf = new;
            self.may_grant = true;
        }
    }

    fn relevel(&mut self, slot: u32, change: impl FnOnce(&mut Task)) {
        let task = &mut self.tasks[slot];
        let (leaf, old_place, old_priority) = (task.leaf, task.place(), task.priority);
        change(task);
        let (place, priority) = (task.place(), task.priority);
        if matches!(self.tasks[slot].phase, Phase::Waiting) {
            if place != old_place {
                self.line.insert(leaf, place, slot);
                self.line.remove(leaf, old_place);
            }
            self.in_line[old_priority as usize] -= 1;
            self.in_line[priority as usize] += 1;
            self.plan_look(slot);
        }
        self.plan(slot);
    }

    fn leave_line(&mut self, slot: u32) {
        let task = &mut self.tasks[slot];
        let (leaf, place, key) = (task.leaf, task.place(), task.key);
        task.leaf = NONE;
        task.key = NONE;
        task.look_at = Timestamp::NEVER;
        if let Some(rare) = &mut task.rare {
            rare.passed = Passed::default();
        }
        self.in_line[task.priority as usize] -= 1;
        self.waiting_in_line -= 1;
        self.line.remove(leaf, place);
        self.fair.leave(key, self.waiting_in_line == 0);
        if self.reservations.contains(&slot) {
            self.unreserve(slot);
        }
    }

    fn on_reserved(&mut self, slot: u32) {
        self.reservations.insert(slot);
        self.each_lane(slot, |this, lane| {
            this.lanes[lane].reserved = slot;
            this.refresh_lane(lane);
        });
    }

    fn unreserve(&mut self, slot: u32) {
        self.reservations.remove(&slot);
        self.each_lane(slot, |this, lane| {
            if this.lanes[lane].reserved == slot {
                this.lanes[lane].reserved = NONE;
                this.refresh_lane(lane);
            }
        });
    }

    fn on_granted(&mut self, event: &Event) {
        let Event::Granted { task, fence, lease_until, lease, timeout_at, worker, borrowed, .. } = event
        else {
            return;
        };
        let Some(slot) = self.tasks.find(*task) else { return };
        self.count_passed_over(slot, borrowed);
        let (key, waited) = (self.tasks[slot].key, self.now.since(self.tasks[slot].since));
        let attempt = Attempt {
            fence: *fence,
            started: self.now,
            lease: *lease,
            lease_until: *lease_until,
            timeout_at: timeout_at.unwrap_or(Timestamp::NEVER),
            stopping: None,
            worker: worker.clone(),
            borrowed: self.borrow(slot, borrowed),
            lent: Default::default(),
        };
        let lenders: Vec<u32> = attempt.borrowed.iter().map(|(_, lender)| *lender).collect();
        let own = |lane: u32| lenders.is_empty() || attempt.borrowed.iter().all(|(other, _)| *other != lane);
        // Slots first: a leaf that its lane has closed has no seat to be moved about.
        self.each_lane(slot, |this, lane| this.take_slot(lane, own(lane), waited));
        let tag = self.fair.charge(key);
        self.line.set_tag(key, tag);
        self.leave_line(slot);
        self.tasks.running.insert(*fence, slot);
        self.fences = self.fences.max(fence.0);
        self.tasks[slot].attempts += 1;
        self.tasks[slot].phase = Phase::Running(self.tasks.boxed(attempt));
        self.plan(slot);
        for lender in lenders {
            self.reroute_family(lender);
        }
    }

    fn count_passed_over(&mut self, slot: u32, borrowed: &[u8]) {
        let task = &self.tasks[slot];
        self.passed_over.clear();
        let passed = self.line.passed_over(task.leaf, task.place());
        if passed.is_empty() {
            return;
        }
        let lanes = self.lanes.route(task.route).lanes.iter().enumerate();
        let taken = lanes.filter(|(index, _)| !borrowed.contains(&(*index as u8))).map(|(_, lane)| *lane);
        let taken: Vec<u32> = taken.collect();
        for passed in passed {
            self.pass_over(passed, &taken);
        }
    }

    fn take_slot(&mut self, lane: u32, own: bool, waited: Millis) {
        let now = self.now;
        let (slots, rate) = (self.settings(lane).max_concurrency, self.settings(lane).rate_limit);
        let this = &mut self.lanes[lane];
        this.waiting -= 1;
        if own {
            this.running += 1;
            this.last_change = now;
            if slots.is_some_and(|slots| this.running > slots) {
                self.overrun = Some(format!("{} runs {} of {slots:?}", this.name, this.running));
            }
        }
        if let Some(rate) = rate {
            if self.lanes[lane].bucket.ready_at(rate) > now {
                self.overrun = Some(format!("{} granted faster than {rate:?}", self.lanes[lane].name));
            }
            self.lanes[lane].bucket.pay(now, rate);
        }
        let stats = self.seen(lane);
        stats.started += 1;
        stats.wait.record(waited);
        self.refresh_lane(lane);
    }

    /// Ends the attempt of a running task, whatever follows. `ran_its_course` says that its length tells
    /// something about the next one's.
    fn end_attempt(&mut self, slot: u32, ran_its_course: bool) {
        let phase = std::mem::replace(&mut self.tasks[slot].phase, Phase::Held);
        let Phase::Running(attempt) = phase else {
            self.tasks[slot].phase = phase;
            return;
        };
        self.tasks.running.remove(attempt.fence);
        let is_shared = !attempt.borrowed.is_empty() || !attempt.lent.is_empty();
        let free = is_shared.then(|| self.give_back(slot, &attempt));
        let ran = self.now.since(attempt.started);
        self.each_lane(slot, |this, lane| {
            if ran_its_course {
                this.lanes[lane].run_time.record(ran);
                this.seen(lane).run_time.record(ran);
            }
            this.seen(lane).run.record(ran);
            if free.as_ref().is_none_or(|free| free.contains(&lane)) {
                this.lanes[lane].running -= 1;
                this.lanes[lane].last_change = this.now;
                this.refresh_lane(lane);
            }
        });
        for (_, lender) in &attempt.borrowed {
            self.reroute_family(*lender);
        }
        self.tasks.recycle(attempt);
    }

    fn on_ready(&mut self, slot: u32) {
        if matches!(self.tasks[slot].phase, Phase::BackingOff(_)) {
            self.each_lane(slot, |this, lane| {
                this.lanes[lane].retrying -= 1;
                this.lanes[lane].waiting += 1;
            });
        }
        if let Some(rare) = &mut self.tasks[slot].rare {
            rare.after = None;
        }
        self.wait_again(slot);
    }

    fn wait_again(&mut self, slot: u32) {
        self.tasks[slot].phase = Phase::Waiting;
        self.tasks[slot].since = self.now;
        self.join_line(slot);
        self.plan(slot);
    }

    fn on_retrying(&mut self, slot: u32, at: Timestamp) {
        self.end_attempt(slot, true);
        self.refund(slot);
        self.tasks[slot].retries += 1;
        self.tasks[slot].phase = Phase::BackingOff(at);
        // Time spent running was no waiting.
        self.tasks[slot].wait_until = Timestamp::NEVER;
        self.each_lane(slot, |this, lane| {
            this.lanes[lane].retrying += 1;
            this.seen(lane).retried += 1;
        });
        self.plan(slot);
    }

    fn on_redelivered(&mut self, slot: u32) {
        self.end_attempt(slot, false);
        self.refund(slot);
        self.tasks[slot].redeliveries += 1;
        let home = self.lanes.route(self.tasks[slot].route).home();
        let own = self.tasks[slot].rare.as_ref().and_then(|rare| rare.wait_timeout);
        let wait = own.or(self.settings(home).wait_timeout);
        self.tasks[slot].wait_until = wait.map_or(Timestamp::NEVER, |length| self.now + length);
        self.each_lane(slot, |this, lane| {
            this.lanes[lane].waiting += 1;
            this.seen(lane).retried += 1;
        });
        self.wait_again(slot);
    }

    /// What must be run again was no turn.
    fn refund(&mut self, slot: u32) {
        let task = &self.tasks[slot];
        let own = task.rare.as_ref().and_then(|rare| rare.fair_key.as_ref());
        let name = self.lanes.fair_key(self.lanes.route(task.route), own, &self.book).clone();
        if let Some((key, tag)) = self.fair.refund(&name, self.book.weight(&name)) {
            self.line.set_tag(key, tag);
        }
    }

    fn on_ended(&mut self, slot: u32, end: &End) {
        match self.tasks[slot].phase {
            Phase::Waiting => {
                self.leave_line(slot);
                self.each_lane(slot, |this, lane| this.lanes[lane].waiting -= 1);
            }
            Phase::Delayed(_) | Phase::Held => {
                self.each_lane(slot, |this, lane| this.lanes[lane].waiting -= 1);
            }
            Phase::BackingOff(_) => self.each_lane(slot, |this, lane| this.lanes[lane].retrying -= 1),
            Phase::Running(_) => {
                if self.ended_runs.len() == ENDED_RUNS_MAX {
                    self.ended_runs.pop_front();
                }
                self.ended_runs.push_back(self.tasks[slot].id);
                let ran_its_course = matches!(end, End::Completed | End::Failed { .. } | End::TimedOut);
                self.end_attempt(slot, ran_its_course);
            }
        }
        self.each_lane(slot, |this, lane| this.count_end(lane, end));
        self.unlink(slot);
        if matches!(end, End::Cancelled { .. }) {
            self.free_key(slot);
        }
        let task = self.tasks.remove(slot);
        self.ended += 1;
        self.timers.move_task(task.due, Timestamp::NEVER, task.arrival, slot);
        self.kinds.leave(task.kind);
        if let Some(lanes) = self.lanes.leave_route(task.route) {
            for lane in lanes {
                self.drop_if_idle(lane);
            }
        }
    }

    /// Nothing came of the task, so whoever asked may ask again under the same key.
    fn free_key(&mut self, slot: u32) {
        let Some(key) = self.tasks[slot].rare.as_ref().and_then(|rare| rare.key.clone()) else { return };
        if let Some(known) = self.keys.remove(&key) {
            self.key_ends.remove(&(known.until, key));
        }
    }

    fn count_end(&mut self, lane: u32, end: &End) {
        let stats = self.seen(lane);
        let counter = match end {
            End::Completed => &mut stats.completed,
            End::Failed { .. } | End::TimedOut => &mut stats.failed,
            End::Cancelled { .. } => &mut stats.cancelled,
            End::Expired | End::WaitTimeout => &mut stats.timed_out_waiting,
            End::Lost => &mut stats.lost,
        };
        *counter += 1;
    }

    /// Unties a task that ends from its parent and from the task it was held behind.
    fn unlink(&mut self, slot: u32) {
        if let Some(parent) = self.parent_of(slot) {
            self.tasks[parent].rare().children.retain(|child| *child != slot);
        }
        let after = self.tasks[slot].rare.as_ref().and_then(|rare| rare.after);
        if let Some(after) = after.and_then(|after| self.tasks.find(after)) {
            self.tasks[after].rare().followers.retain(|held| *held != slot);
        }
        for held in self.tasks[slot].rare.as_ref().map_or(vec![], |rare| rare.followers.clone()) {
            self.let_go(held);
        }
    }

    /// What a task was held behind has ended. Its own time to join the line may still lie ahead.
    fn let_go(&mut self, slot: u32) {
        let now = self.now;
        let rare = self.tasks[slot].rare();
        if let Some(at) = rare.run_at.take().filter(|at| *at > now) {
            rare.after = None;
            self.tasks[slot].phase = Phase::Delayed(at);
            self.plan(slot);
        }
    }

    /// What was asked for a live task, enough to ask again.
    pub(crate) fn spec_of(&self, slot: u32) -> TaskSpec {
        let task = &self.tasks[slot];
        let mut spec = TaskSpec::new(self.kinds.name(task.kind).clone(), self.names_of(slot));
        spec.payload = task.payload;
        spec.source = task.source;
        spec.priority = Some(task.priority);
        if let Some(rare) = &task.rare {
            spec.timeout = rare.timeout;
            spec.wait_timeout = rare.wait_timeout;
            spec.retry = rare.retry;
            spec.fair_key = rare.fair_key.clone();
            spec.group = rare.group.clone();
        }
        spec
    }

    /// The lanes that a task named.
    pub(crate) fn names_of(&self, slot: u32) -> Vec<LaneName> {
        let lanes = &self.lanes.route(self.tasks[slot].route).lanes;
        let mut names: Vec<LaneName> = lanes.iter().map(|lane| self.lanes[*lane].name.clone()).collect();
        if names.len() > 1 && names.last() == Some(&LaneName::global()) {
            names.pop();
        }
        names
    }

    fn on_dead_lettered(&mut self, slot: u32, error: &Arc<str>, attempts: u32) {
        let class = self.lanes[self.lanes.route(self.tasks[slot].route).home()].class;
        let letter = DeadLetter {
            task: self.tasks[slot].id,
            spec: self.spec_of(slot),
            error: Arc::clone(error),
            attempts,
            at: self.now,
        };
        self.letters.insert(letter, class);
        self.book.class_mut(class).letters += 1;
    }

    fn on_letter_gone(&mut self, letter: TaskId) {
        if let Some(class) = self.letters.remove(letter) {
            self.book.class_mut(class).letters -= 1;
        }
    }

    fn on_gate(&mut self, name: &LaneName, gate: Gate) {
        let lane = self.lanes.lane(name, &mut self.book);
        self.lanes[lane].gate = gate;
        self.lanes[lane].drained = false;
        let reserved = self.lanes[lane].reserved;
        if gate == Gate::Paused && reserved != NONE {
            self.unreserve(reserved);
        }
        self.refresh_lane(lane);
        self.touch(lane);
        self.drop_if_idle(lane);
    }

    pub(crate) fn touch(&mut self, lane: u32) {
        if !std::mem::replace(&mut self.lanes[lane].touched, true) {
            self.touched.push(lane);
        }
    }

    pub(crate) fn forget_changes(&mut self) {
        for lane in self.touched.drain(..) {
            self.lanes[lane].touched = false;
        }
        self.gone.clear();
    }

    pub(crate) fn lane_change(&self, number: u32) -> LaneChange {
        let lane = &self.lanes[number];
        LaneChange {
            lane: lane.name.clone(),
            running: lane.running,
            waiting: lane.waiting,
            max_concurrency: self.settings(number).max_concurrency,
        }
    }

    /// Whether there is nothing to remember of a lane.
    pub(crate) fn is_idle(&self, lane: u32) -> bool {
        let this = &self.lanes[lane];
        this.routes == 0 && !this.is_remarkable() && this.bucket.full_at() <= self.now
    }

    /// Lets a lane go when there is nothing to remember of it.
    pub(crate) fn drop_if_idle(&mut self, lane: u32) {
        if !self.is_idle(lane) {
            self.watch_bucket(lane);
            return;
        }
        if self.lanes[lane].touched {
            self.gone.push(self.lane_change(lane));
            self.touched.retain(|other| *other != lane);
        }
        self.lanes.remove(lane);
    }

    /// Tells the clock when a lane that is empty but for its bucket can go.
    fn watch_bucket(&mut self, lane: u32) {
        let full_at = self.lanes[lane].bucket.full_at();
        if self.lanes[lane].routes == 0 && full_at > self.now {
            self.timers.add_lane(full_at, lane);
        }
    }
}
