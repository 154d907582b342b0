//! Describes events, replies and refusals.

use std::collections::BTreeMap;

use laneway_core::{
    AlertLevel, CancelReason, DeadLetterRemoval, End, Event, Fence, LaneChange, LaneName, Reply, StopReason,
    TaskId,
};

use crate::line::Tone;
use crate::names::Names;

/// Describes events; remembers of each task what later descriptions need.
pub(crate) struct Describer {
    pub(crate) names: Names,
    tasks: BTreeMap<TaskId, Known>,
}

#[derive(Default)]
struct Known {
    lanes: Vec<LaneName>,
    priority: u8,
    aged: u8,
    boosted: u8,
    fence: Option<Fence>,
}

/// The description of an event: the word under which it is counted, and the rest of the sentence.
pub(crate) struct Description {
    pub(crate) verb: &'static str,
    pub(crate) rest: String,
    pub(crate) tone: Tone,
}

pub(crate) fn describe(verb: &'static str, rest: impl Into<String>, tone: Tone) -> Description {
    Description { verb, rest: rest.into(), tone }
}

impl Describer {
    pub(crate) fn new(names: Names) -> Describer {
        Describer { names, tasks: BTreeMap::new() }
    }

    pub(crate) fn name(&self, task: TaskId) -> String {
        self.names.name(task)
    }

    /// The fence of a task's last attempt.
    pub(crate) fn fence(&self, task: TaskId) -> Fence {
        self.tasks.get(&task).and_then(|known| known.fence).unwrap_or(Fence(0))
    }

    pub(crate) fn list(&self, tasks: &[TaskId]) -> String {
        tasks.iter().map(|task| self.name(*task)).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn event(&mut self, event: &Event) -> Description {
        match event {
            Event::Configured { blocks } => {
                let block = |block: &laneway_core::Block| match block.settings {
                    Some(_) => block.lanes.to_string(),
                    None => format!("{} (block removed)", block.lanes),
                };
                describe("configured", blocks.iter().map(block).collect::<Vec<_>>().join(", "), Tone::Lane)
            }
            Event::Session(event) => self.session_event(event),
            Event::MessagesConfigured { .. } => describe("configured", "messages", Tone::Lane),
            Event::Unbound { replica } => describe("unbound", replica.to_string(), Tone::Lane),
            Event::Noted { changes } => {
                let keys: Vec<&str> = changes.iter().map(|(key, _)| &**key).collect();
                describe("noted", keys.join(", "), Tone::Lane)
            }
            Event::FencesRaised { to } => describe("fences", format!("above {}", to.0), Tone::Lane),
            Event::Submitted { .. } => self.submitted(event),
            Event::Granted { .. } => self.granted(event),
            Event::Ended { task, end } => self.ended(*task, end),
            Event::Paused { lane } => describe("paused", lane.as_str(), Tone::Lane),
            Event::Resumed { lane } => describe("resumed", lane.as_str(), Tone::Lane),
            Event::Draining { lane } => describe("draining", lane.as_str(), Tone::Lane),
            Event::Drained { lane } => describe("drained", lane.as_str(), Tone::Lane),
            Event::Pressure { lane, waiting } => {
                describe("pressure", format!("in {lane}: {waiting} waiting"), Tone::Lane)
            }
            Event::Idle { lane } => describe("idle", lane.as_str(), Tone::Lane),
            Event::Alert { lane, level, waiting } => describe(
                "alert",
                format!("in {lane}: {}, {waiting} waiting", with_names(*level)),
                Tone::Trouble,
            ),
            Event::AlertOver { lane, level } => {
                describe("alert over", format!("in {lane}: {}", with_names(*level)), Tone::Lane)
            }
            Event::DeadLetterRemoved { dead_letter, why } => {
                let why = match why {
                    DeadLetterRemoval::Overflow => "it was the oldest".to_owned(),
                    DeadLetterRemoval::Redriven(task) => format!("redriven as {}", self.name(*task)),
                    DeadLetterRemoval::Discarded => "discarded".to_owned(),
                };
                describe("letter gone", format!("{}: {why}", self.name(*dead_letter)), Tone::Waiting)
            }
            _ => self.task_event(event),
        }
    }

    fn submitted(&mut self, event: &Event) -> Description {
        let Event::Submitted { task, spec, priority, wait_until, deadline, .. } = event else {
            return describe("", "", Tone::Waiting);
        };
        let lanes = if spec.lanes.is_empty() { vec![LaneName::main()] } else { spec.lanes.clone() };
        let names: Vec<&str> = lanes.iter().map(LaneName::as_str).collect();
        let mut rest = format!("{} in {}", self.name(*task), names.join(" + "));
        if let Some(until) = wait_until {
            rest.push_str(&format!(", waits until {until}"));
        }
        if let Some(until) = deadline {
            rest.push_str(&format!(", must start before {until}"));
        }
        if let Some(after) = spec.after {
            rest.push_str(&format!(", after {}", self.name(after)));
        }
        self.tasks.insert(*task, Known { lanes, priority: *priority, ..Known::default() });
        describe("queued", rest, Tone::Waiting)
    }

    fn granted(&mut self, event: &Event) -> Description {
        let Event::Granted { task, attempt, fence, lease_until, timeout_at, owner, borrowed, .. } = event
        else {
            return describe("", "", Tone::Start);
        };
        let mut rest = format!("{} {fence}", self.name(*task));
        if let Some(worker) = owner.worker() {
            rest.push_str(&format!(" to {worker}"));
        }
        rest.push_str(&format!(" until {lease_until}"));
        if *attempt > 1 {
            rest.push_str(&format!(", attempt {attempt}"));
        }
        if let Some(until) = timeout_at {
            rest.push_str(&format!(", must end by {until}"));
        }
        let known = self.tasks.entry(*task).or_default();
        known.fence = Some(*fence);
        let lent = |index: &u8| known.lanes.get(usize::from(*index)).map_or("global", LaneName::as_str);
        if !borrowed.is_empty() {
            let lanes: Vec<&str> = borrowed.iter().map(lent).collect();
            rest.push_str(&format!(", with a lent slot of {}", lanes.join(" and ")));
        }
        describe("granted", rest, Tone::Start)
    }

    fn ended(&mut self, task: TaskId, end: &End) -> Description {
        let name = self.name(task);
        match end {
            End::Completed => describe("completed", name, Tone::Success),
            End::Failed { error } => describe("failed", format!("{name}: {error}"), Tone::Trouble),
            End::TimedOut => describe("timed out", name, Tone::Trouble),
            End::Cancelled { reason } => {
                describe("cancelled", format!("{name}: {}", cancel_reason(*reason)), Tone::Trouble)
            }
            End::Expired => describe("expired", name, Tone::Trouble),
            End::WaitTimeout => describe("wait timeout", name, Tone::Trouble),
            End::Lost => describe("lost", name, Tone::Trouble),
        }
    }

    fn task_event(&mut self, event: &Event) -> Description {
        match event {
            Event::Joined { task } => describe("joined", self.name(*task), Tone::Waiting),
            Event::Left { task } => describe("left", self.name(*task), Tone::Waiting),
            Event::Ready { task } => describe("ready", self.name(*task), Tone::Waiting),
            Event::Aged { task, levels } => self.level_changed("aged", *task, |known| known.aged = *levels),
            Event::Boosted { task, levels } => {
                self.level_changed("boosted", *task, |known| known.boosted = *levels)
            }
            Event::Reprioritised { task, priority } => self.level_changed("reprioritised", *task, |known| {
                (known.priority, known.aged) = (*priority, 0);
            }),
            Event::Noticed { task, waited, ahead } => {
                let rest = format!("{}: queued for {waited}, {ahead} ahead", self.name(*task));
                describe("noticed", rest, Tone::Waiting)
            }
            Event::Reserved { task } => {
                describe("reserved", format!("slots for {}", self.name(*task)), Tone::Lane)
            }
            Event::Renewed { task, fence, lease_until } => describe(
                "renewed",
                format!("{} {fence} until {lease_until}", self.name(*task)),
                Tone::Waiting,
            ),
            Event::Stopping { task, fence, reason, until } => {
                let rest = format!("{} {fence}: {}, until {until}", self.name(*task), stop_reason(*reason));
                describe("stopping", rest, Tone::Trouble)
            }
            Event::Retrying { task, error, at, .. } => {
                describe("retrying", format!("{} at {at}: {error}", self.name(*task)), Tone::Trouble)
            }
            Event::Redelivered { task, fence } => {
                describe("offered again", format!("{}: {fence} lapsed", self.name(*task)), Tone::Trouble)
            }
            Event::DeadLettered { task, error, attempts } => {
                let rest =
                    format!("{} after {}: {error}", self.name(*task), count(u64::from(*attempts), "attempt"));
                describe("dead letter", rest, Tone::Trouble)
            }
            // An event without a description of its own is still shown.
            other => describe("event", self.names.with_names(&format!("{other:?}")), Tone::Waiting),
        }
    }

    /// An event that changed a task's level: shows its own priority and what was added.
    fn level_changed(
        &mut self,
        verb: &'static str,
        task: TaskId,
        change: impl FnOnce(&mut Known),
    ) -> Description {
        let known = self.tasks.entry(task).or_default();
        change(known);
        let added = known.aged + known.boosted;
        let level = match added {
            0 => format!("to {}", known.priority),
            _ => format!("to {} = {} + {added}", known.priority + added, known.priority),
        };
        describe(verb, format!("{} {level}", self.name(task)), Tone::Waiting)
    }

    /// What a reply adds to the events.
    pub(crate) fn reply(&self, asked: Option<TaskId>, reply: &Reply) -> Option<String> {
        match reply {
            Reply::Accepted { task, joined: true } => {
                let asked = asked.map_or("it".to_owned(), |asked| self.name(asked));
                Some(format!("answer: {asked} is the same as {}", self.name(*task)))
            }
            Reply::Message(reply) => Some(self.message_reply(reply)),
            Reply::Steering(taken) => Some(self.steering_reply(taken)),
            Reply::Cancelled(tasks) => Some(format!("answer: {} cancelled", count(*tasks as u64, "task"))),
            Reply::Claimed(tasks) if tasks.is_empty() => Some("answer: nothing to claim".to_owned()),
            Reply::Released(tasks) if tasks.is_empty() => Some("answer: nothing ran there".to_owned()),
            Reply::Released(tasks) => {
                Some(format!("answer: released {}, which may still be going", self.list(tasks)))
            }
            Reply::Renewed { until, stopping: Some(reason) } => {
                Some(format!("answer: it must stop by {until}: {}", stop_reason(*reason)))
            }
            _ => None,
        }
    }
}

pub(crate) fn lane_change(change: &LaneChange) -> String {
    let limit = limit(change.max_concurrency);
    format!("lane {}: {} running, {} waiting, {limit}", change.lane, change.running, change.waiting)
}

pub(crate) fn limit(slots: Option<u32>) -> String {
    slots.map_or("no limit".to_owned(), |slots| format!("limit {slots}"))
}

pub(crate) fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

fn with_names(level: AlertLevel) -> &'static str {
    match level {
        AlertLevel::Warning => "warning",
        AlertLevel::Critical => "critical",
    }
}

pub(crate) fn cancel_reason(reason: CancelReason) -> &'static str {
    match reason {
        CancelReason::Caller => "by its caller",
        CancelReason::Cleared => "cleared",
        CancelReason::Released => "released",
        CancelReason::Parent => "its parent ended",
        CancelReason::Interrupted => "interrupted",
        CancelReason::Steered => "a message came first",
        CancelReason::AgentRemoved => "its agent was removed",
    }
}

fn stop_reason(reason: StopReason) -> String {
    match reason {
        StopReason::Timeout => "it took too long".to_owned(),
        StopReason::Cancelled(reason) => format!("cancelled, {}", cancel_reason(reason)),
    }
}
