//! Events, replies and refusals in words.

use std::collections::BTreeMap;

use laneway_core::{
    AlertLevel, CancelReason, End, Event, Fence, LaneChange, LaneName, LetterGone, Reply, StopReason, TaskId,
};

use crate::line::Tone;
use crate::names::Names;

/// Puts what happens into words; remembers of each task what later words need.
pub(crate) struct Teller {
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

/// What is said of an event: the word that it is counted under, and the rest of the sentence.
pub(crate) struct Told {
    pub(crate) verb: &'static str,
    pub(crate) rest: String,
    pub(crate) tone: Tone,
}

pub(crate) fn told(verb: &'static str, rest: impl Into<String>, tone: Tone) -> Told {
    Told { verb, rest: rest.into(), tone }
}

impl Teller {
    pub(crate) fn new(names: Names) -> Teller {
        Teller { names, tasks: BTreeMap::new() }
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

    pub(crate) fn tell(&mut self, event: &Event) -> Told {
        match event {
            Event::Configured { blocks } => {
                let block = |block: &laneway_core::Block| match block.settings {
                    Some(_) => block.lanes.to_string(),
                    None => format!("{} (block removed)", block.lanes),
                };
                told("configured", blocks.iter().map(block).collect::<Vec<_>>().join(", "), Tone::Lane)
            }
            Event::Session(event) => self.tell_session(event),
            Event::MessagesConfigured { .. } => told("configured", "messages", Tone::Lane),
            Event::Unbound { home } => told("unbound", home.to_string(), Tone::Lane),
            Event::Noted { changes } => {
                let keys: Vec<&str> = changes.iter().map(|(key, _)| &**key).collect();
                told("noted", keys.join(", "), Tone::Lane)
            }
            Event::FencesRaised { to } => told("fences", format!("above {}", to.0), Tone::Lane),
            Event::Submitted { .. } => self.tell_submitted(event),
            Event::Granted { .. } => self.tell_granted(event),
            Event::Ended { task, end } => self.tell_end(*task, end),
            Event::Paused { lane } => told("paused", lane.as_str(), Tone::Lane),
            Event::Resumed { lane } => told("resumed", lane.as_str(), Tone::Lane),
            Event::Draining { lane } => told("draining", lane.as_str(), Tone::Lane),
            Event::Drained { lane } => told("drained", lane.as_str(), Tone::Lane),
            Event::Pressure { lane, waiting } => {
                told("pressure", format!("in {lane}: {waiting} waiting"), Tone::Lane)
            }
            Event::Idle { lane } => told("idle", lane.as_str(), Tone::Lane),
            Event::Alert { lane, level, waiting } => {
                told("alert", format!("in {lane}: {}, {waiting} waiting", in_words(*level)), Tone::Trouble)
            }
            Event::AlertOver { lane, level } => {
                told("alert over", format!("in {lane}: {}", in_words(*level)), Tone::Lane)
            }
            Event::LetterGone { letter, why } => {
                let why = match why {
                    LetterGone::Overflow => "it was the oldest".to_owned(),
                    LetterGone::Redriven(task) => format!("redriven as {}", self.name(*task)),
                    LetterGone::Discarded => "discarded".to_owned(),
                };
                told("letter gone", format!("{}: {why}", self.name(*letter)), Tone::Waiting)
            }
            _ => self.tell_progress(event),
        }
    }

    fn tell_submitted(&mut self, event: &Event) -> Told {
        let Event::Submitted { task, spec, priority, wait_until, deadline, .. } = event else {
            return told("", "", Tone::Waiting);
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
        told("queued", rest, Tone::Waiting)
    }

    fn tell_granted(&mut self, event: &Event) -> Told {
        let Event::Granted { task, attempt, fence, lease_until, timeout_at, worker, borrowed, .. } = event
        else {
            return told("", "", Tone::Start);
        };
        let mut rest = format!("{} {fence}", self.name(*task));
        if let Some(worker) = worker {
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
        told("granted", rest, Tone::Start)
    }

    fn tell_end(&mut self, task: TaskId, end: &End) -> Told {
        let name = self.name(task);
        match end {
            End::Completed => told("completed", name, Tone::Success),
            End::Failed { error } => told("failed", format!("{name}: {error}"), Tone::Trouble),
            End::TimedOut => told("timed out", name, Tone::Trouble),
            End::Cancelled { reason } => {
                told("cancelled", format!("{name}: {}", cancel_reason(*reason)), Tone::Trouble)
            }
            End::Expired => told("expired", name, Tone::Trouble),
            End::WaitTimeout => told("wait timeout", name, Tone::Trouble),
            End::Lost => told("lost", name, Tone::Trouble),
        }
    }

    fn tell_progress(&mut self, event: &Event) -> Told {
        match event {
            Event::Joined { task } => told("joined", self.name(*task), Tone::Waiting),
            Event::Left { task } => told("left", self.name(*task), Tone::Waiting),
            Event::Ready { task } => told("ready", self.name(*task), Tone::Waiting),
            Event::Aged { task, levels } => self.tell_level("aged", *task, |known| known.aged = *levels),
            Event::Boosted { task, levels } => {
                self.tell_level("boosted", *task, |known| known.boosted = *levels)
            }
            Event::Reprioritised { task, priority } => self.tell_level("reprioritised", *task, |known| {
                (known.priority, known.aged) = (*priority, 0);
            }),
            Event::Noticed { task, waited, ahead } => {
                let rest = format!("{}: queued for {waited}, {ahead} ahead", self.name(*task));
                told("noticed", rest, Tone::Waiting)
            }
            Event::Reserved { task } => {
                told("reserved", format!("slots for {}", self.name(*task)), Tone::Lane)
            }
            Event::Renewed { task, fence, lease_until } => {
                told("renewed", format!("{} {fence} until {lease_until}", self.name(*task)), Tone::Waiting)
            }
            Event::Stopping { task, fence, reason, until } => {
                let rest = format!("{} {fence}: {}, until {until}", self.name(*task), stop_reason(*reason));
                told("stopping", rest, Tone::Trouble)
            }
            Event::Retrying { task, error, at, .. } => {
                told("retrying", format!("{} at {at}: {error}", self.name(*task)), Tone::Trouble)
            }
            Event::Redelivered { task, fence } => {
                told("offered again", format!("{}: {fence} lapsed", self.name(*task)), Tone::Trouble)
            }
            Event::DeadLettered { task, error, attempts } => {
                let rest =
                    format!("{} after {}: {error}", self.name(*task), count(u64::from(*attempts), "attempt"));
                told("dead letter", rest, Tone::Trouble)
            }
            // Whatever comes later is at least not hidden.
            other => told("event", self.names.in_words(&format!("{other:?}")), Tone::Waiting),
        }
    }

    /// An event that changed a task's level: both its own priority and what was added are told.
    fn tell_level(&mut self, verb: &'static str, task: TaskId, change: impl FnOnce(&mut Known)) -> Told {
        let known = self.tasks.entry(task).or_default();
        change(known);
        let added = known.aged + known.boosted;
        let level = match added {
            0 => format!("to {}", known.priority),
            _ => format!("to {} = {} + {added}", known.priority + added, known.priority),
        };
        told(verb, format!("{} {level}", self.name(task)), Tone::Waiting)
    }

    /// What a reply says that no event did.
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

fn in_words(level: AlertLevel) -> &'static str {
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
    }
}

fn stop_reason(reason: StopReason) -> String {
    match reason {
        StopReason::Timeout => "it took too long".to_owned(),
        StopReason::Cancelled(reason) => format!("cancelled, {}", cancel_reason(reason)),
    }
}
