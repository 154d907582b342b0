//! What must hold of any stream of events, checked from the events alone.

use std::collections::BTreeMap;

use laneway_core::{
    Block, Event, Fence, Handler, LaneName, LaneSettings, Name, Order, Pattern, Settings, TaskId, TaskSpec,
};

/// A task as its events describe it.
struct TaskState {
    lanes: Vec<LaneName>,
    kind: Name,
    fair_key: Option<LaneName>,
    parent: Option<TaskId>,
    handler: Handler,
    arrival: u64,
    priority: u8,
    aged: u8,
    boosted: u8,
    in_line: bool,
    attempt: Option<Attempt>,
    attempts: u32,
    joined: u32,
    /// Slots were reserved for the task since it last joined the line.
    reserved: bool,
}

struct Attempt {
    fence: Fence,
    stopping: bool,
    /// Lanes whose slot belongs to another task.
    borrowed: Vec<(LaneName, TaskId)>,
}

#[derive(Default)]
pub(crate) struct Checker {
    blocks: BTreeMap<Pattern, LaneSettings>,
    tasks: BTreeMap<TaskId, TaskState>,
    arrivals: u64,
    last_fence: u64,
    ended: BTreeMap<TaskId, ()>,
    dead_letters: Vec<TaskId>,
    closed: Vec<LaneName>,
    pub(crate) counts: BTreeMap<&'static str, u64>,
}

impl Checker {
    pub(crate) fn live(&self) -> usize {
        self.tasks.len()
    }

    pub(crate) fn live_tasks(&self) -> Vec<TaskId> {
        self.tasks.keys().copied().collect()
    }

    /// The tasks that several callers wait for.
    pub(crate) fn joined_tasks(&self) -> Vec<TaskId> {
        self.tasks.iter().filter(|(_, seen)| seen.joined > 0).map(|(task, _)| *task).collect()
    }

    pub(crate) fn running(&self) -> Vec<(TaskId, Fence)> {
        let attempts = self.tasks.iter().map(|(task, seen)| (task, seen.attempt.as_ref()));
        attempts.filter_map(|(task, attempt)| Some((*task, attempt?.fence))).collect()
    }

    pub(crate) fn last_fence(&self) -> u64 {
        self.last_fence
    }

    pub(crate) fn dead_letters(&self) -> Vec<TaskId> {
        self.dead_letters.clone()
    }

    /// The lanes that are paused or draining.
    pub(crate) fn closed_lanes(&self) -> Vec<LaneName> {
        self.closed.clone()
    }

    pub(crate) fn check(&mut self, event: &Event) {
        *self.counts.entry(kind(event)).or_default() += 1;
        match event {
            Event::Configured { blocks } => self.on_configured(blocks),
            Event::Submitted { task, spec, priority, handler, .. } => {
                self.on_submitted(*task, spec, *priority, *handler);
            }
            Event::Granted { task, attempt, fence, borrowed, .. } => {
                self.on_granted(*task, *attempt, *fence, borrowed);
            }
            Event::Renewed { task, fence, .. } => self.running_under(*task, *fence),
            Event::Stopping { task, fence, .. } => {
                self.running_under(*task, *fence);
                let attempt = self.seen(*task).attempt.as_mut();
                attempt.expect("checked above").stopping = true;
            }
            Event::Retrying { task, fence, .. } => {
                self.running_under(*task, *fence);
                self.give_back(*task);
            }
            Event::Redelivered { task, fence } => {
                self.running_under(*task, *fence);
                self.give_back(*task);
                self.seen(*task).in_line = true;
            }
            Event::Ended { task, .. } => {
                self.give_back(*task);
                self.tasks.remove(task).expect("the end of a task that is not live");
                self.ended.insert(*task, ());
            }
            Event::DeadLettered { task, .. } => {
                self.seen(*task);
                self.dead_letters.push(*task);
            }
            Event::DeadLetterRemoved { dead_letter: letter, .. } => {
                assert!(self.dead_letters.contains(letter), "{letter} was no dead letter");
                self.dead_letters.retain(|other| other != letter);
            }
            _ => self.on_waiting(event),
        }
    }

    /// Events that happen to a task without an attempt, or to no task.
    fn on_waiting(&mut self, event: &Event) {
        match event {
            Event::Ready { task } => {
                let seen = self.seen(*task);
                assert!(!seen.in_line && seen.attempt.is_none(), "{task} became ready twice");
                seen.in_line = true;
            }
            Event::Aged { task, levels } => {
                let seen = self.in_line(*task);
                assert!(*levels > seen.aged, "{task} lost levels of ageing");
                seen.aged = *levels;
            }
            Event::Boosted { task, levels } => {
                let seen = self.in_line(*task);
                assert!(*levels > seen.boosted, "{task} lost its boost");
                seen.boosted = *levels;
            }
            Event::Reprioritised { task, priority } => {
                let seen = self.seen(*task);
                (seen.priority, seen.aged) = (*priority, 0);
            }
            Event::Noticed { task, .. } => {
                self.in_line(*task);
            }
            Event::Reserved { task } => self.in_line(*task).reserved = true,
            Event::Joined { task } => self.seen(*task).joined += 1,
            Event::Left { task } => {
                let seen = self.seen(*task);
                assert!(seen.joined > 0, "more left {task} than had joined");
                seen.joined -= 1;
            }
            Event::Paused { lane } | Event::Draining { lane } => self.closed.push(lane.clone()),
            Event::Resumed { lane } => self.closed.retain(|other| other != lane),
            _ => {}
        }
    }

    /// A live task. No event may concern another task.
    fn seen(&mut self, task: TaskId) -> &mut TaskState {
        let after_its_end = self.ended.contains_key(&task);
        assert!(!after_its_end, "an event of {task} after its end");
        self.tasks.get_mut(&task).expect("an event of an unknown task")
    }

    fn in_line(&mut self, task: TaskId) -> &mut TaskState {
        let seen = self.seen(task);
        assert!(seen.in_line, "{task} does not wait in the line");
        seen
    }

    fn running_under(&mut self, task: TaskId, fence: Fence) {
        let running = self.seen(task).attempt.as_ref().map(|attempt| attempt.fence);
        assert_eq!(running, Some(fence), "the fence of {task}");
    }

    fn on_configured(&mut self, blocks: &[Block]) {
        for block in blocks {
            match &block.settings {
                Some(settings) => self.blocks.insert(block.lanes.clone(), settings.clone()),
                None => self.blocks.remove(&block.lanes),
            };
        }
    }

    fn settings(&self, name: &LaneName) -> Settings {
        let exact = self.blocks.iter().find(|(pattern, _)| pattern.as_str() == name.as_str());
        let mut fitting: Vec<_> = self.blocks.iter().filter(|(pattern, _)| pattern.matches(name)).collect();
        fitting.sort_by_key(|(pattern, _)| std::cmp::Reverse(pattern.as_str().len()));
        let Some((block, asked)) = exact.or(fitting.first().copied()) else {
            return Settings::for_lane(&LaneSettings::default(), name);
        };
        let mut asked = asked.clone();
        for (pattern, general) in fitting.into_iter().filter(|(pattern, _)| pattern.covers(block)) {
            if pattern != block && !pattern.is_exact() {
                asked.fill_from(general);
            }
        }
        Settings::for_lane(&asked, name)
    }

    fn on_submitted(&mut self, task: TaskId, spec: &TaskSpec, priority: u8, handler: Handler) {
        let mut lanes: Vec<LaneName> = vec![];
        let main = (spec.lanes.is_empty()).then(LaneName::main);
        for lane in spec.lanes.iter().cloned().chain(main) {
            if !lanes.contains(&lane) && (lanes.is_empty() || lane != LaneName::global()) {
                lanes.push(lane);
            }
        }
        if lanes[0] != LaneName::global() {
            lanes.push(LaneName::global());
        }
        let waits = spec.run_after.is_some_and(|length| length.0 > 0) || spec.after.is_some();
        let seen = TaskState {
            lanes,
            kind: spec.kind.clone(),
            fair_key: spec.fair_key.clone(),
            parent: spec.parent.filter(|parent| !parent.detached).map(|parent| parent.task),
            handler,
            arrival: self.arrivals,
            priority,
            aged: 0,
            boosted: 0,
            in_line: !waits,
            attempt: None,
            attempts: 0,
            joined: 0,
            reserved: false,
        };
        self.arrivals += 1;
        assert!(!self.ended.contains_key(&task), "{task} was accepted again");
        assert!(self.tasks.insert(task, seen).is_none(), "{task} was accepted twice");
    }

    fn on_granted(&mut self, task: TaskId, attempt: u32, fence: Fence, borrowed: &[u8]) {
        assert!(fence.0 > self.last_fence, "fence {fence} after {}", self.last_fence);
        self.last_fence = fence.0;
        self.check_arrival_order(task);
        let seen = self.in_line(task);
        assert_eq!(attempt, seen.attempts + 1, "the attempts of {task}");
        let lanes: Vec<LaneName> = borrowed.iter().map(|index| seen.lanes[*index as usize].clone()).collect();
        let borrowed = lanes.into_iter().map(|lane| (lane.clone(), self.lender(task, &lane))).collect();
        let seen = self.seen(task);
        seen.attempts += 1;
        seen.in_line = false;
        seen.reserved = false;
        seen.attempt = Some(Attempt { fence, stopping: false, borrowed });
        for lane in self.tasks[&task].lanes.clone() {
            let taken = self.slots_taken(&lane);
            let slots = self.settings(&lane).max_concurrency;
            let grew = self.owns(task, &lane);
            assert!(!grew || slots.is_none_or(|slots| taken <= slots), "{taken} of {slots:?} run in {lane}");
        }
    }

    /// The nearest running ancestor with a slot of `lane` that it has not lent.
    fn lender(&mut self, task: TaskId, lane: &LaneName) -> TaskId {
        let mut ancestor = self.tasks[&task].parent;
        while let Some(id) = ancestor {
            let Some(seen) = self.tasks.get(&id) else { break };
            let may_lend = seen.attempt.as_ref().is_some_and(|attempt| !attempt.stopping);
            let lent = self.tasks.values().any(|other| {
                let attempt = other.attempt.as_ref();
                attempt.is_some_and(|attempt| attempt.borrowed.contains(&(lane.clone(), id)))
            });
            if may_lend && !lent && seen.lanes.contains(lane) {
                *self.counts.entry("lent").or_default() += 1;
                return id;
            }
            ancestor = seen.parent;
        }
        panic!("{task} borrowed {lane} from no task");
    }

    fn owns(&self, task: TaskId, lane: &LaneName) -> bool {
        let seen = &self.tasks[&task];
        let attempt = seen.attempt.as_ref();
        seen.lanes.contains(lane)
            && attempt.is_some_and(|attempt| attempt.borrowed.iter().all(|(other, _)| other != lane))
    }

    fn slots_taken(&self, lane: &LaneName) -> u32 {
        self.tasks.keys().filter(|task| self.owns(**task, lane)).count() as u32
    }

    /// The attempt is over: a borrower of its slots now borrows from its lender, or owns the slot.
    fn give_back(&mut self, task: TaskId) {
        let Some(over) = self.seen(task).attempt.take() else { return };
        for attempt in self.tasks.values_mut().filter_map(|seen| seen.attempt.as_mut()) {
            let borrowed = std::mem::take(&mut attempt.borrowed);
            attempt.borrowed = borrowed
                .into_iter()
                .filter_map(|(lane, lender)| {
                    if lender != task {
                        return Some((lane, lender));
                    }
                    let next = over.borrowed.iter().find(|(other, _)| *other == lane);
                    next.map(|(_, lender)| (lane, *lender))
                })
                .collect();
        }
    }

    /// A granted task is before all similar waiting tasks, by level and arrival. Only a more urgent task that came after
    /// slots were reserved for the granted one waits longer.
    fn check_arrival_order(&self, task: TaskId) {
        let granted = &self.tasks[&task];
        let fifo = granted.lanes.iter().any(|lane| self.settings(lane).order == Order::Fifo);
        let rank = |seen: &TaskState| (u8::MAX - seen.priority - seen.aged - seen.boosted, seen.arrival);
        for (other, waiting) in &self.tasks {
            let is_similar = waiting.in_line
                && waiting.lanes == granted.lanes
                && (fifo || waiting.fair_key == granted.fair_key)
                && (waiting.handler == Handler::External) == (granted.handler == Handler::External)
                && (waiting.handler != Handler::External || waiting.kind == granted.kind)
                && waiting.parent.is_none()
                && granted.parent.is_none();
            let may_be_first =
                rank(granted) <= rank(waiting) || granted.reserved && granted.arrival < waiting.arrival;
            assert!(!is_similar || may_be_first, "{task} was granted before {other}");
        }
    }
}

pub(crate) fn kind(event: &Event) -> &'static str {
    match event {
        Event::Configured { .. } => "configured",
        Event::Submitted { .. } => "submitted",
        Event::Joined { .. } => "joined",
        Event::Left { .. } => "left",
        Event::Ready { .. } => "ready",
        Event::Aged { .. } => "aged",
        Event::Boosted { .. } => "boosted",
        Event::Reprioritised { .. } => "reprioritised",
        Event::Noticed { .. } => "noticed",
        Event::Reserved { .. } => "reserved",
        Event::Granted { .. } => "granted",
        Event::Renewed { .. } => "renewed",
        Event::Stopping { .. } => "stopping",
        Event::Retrying { .. } => "retrying",
        Event::Redelivered { .. } => "redelivered",
        Event::Ended { .. } => "ended",
        Event::DeadLettered { .. } => "dead-lettered",
        Event::DeadLetterRemoved { .. } => "dead letter gone",
        Event::Paused { .. } => "paused",
        Event::Resumed { .. } => "resumed",
        Event::Draining { .. } => "draining",
        Event::Drained { .. } => "drained",
        Event::Pressure { .. } => "pressure",
        Event::Idle { .. } => "idle",
        Event::Alert { .. } => "alert",
        Event::AlertOver { .. } => "alert over",
        Event::MessagesConfigured { .. } | Event::Session(_) => "of sessions",
        Event::FencesRaised { .. } => "fences raised",
        Event::Unbound { .. } => "unbound",
        Event::Noted { .. } => "noted",
    }
}
