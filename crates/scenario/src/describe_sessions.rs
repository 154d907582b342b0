//! Describes events, replies and views of sessions.

use laneway_core::{
    EffectiveQueue, Message, MessageEnd, MessageId, MessageReply, MessageStatus, QueueOverrides, Scheduler,
    SendOutcome, SessionDelta, SessionEvent, SessionView, TaskId, TurnMessage, Way,
};

use crate::describe::{Describer, Description, cancel_reason, count, describe};
use crate::line::Tone;

impl Describer {
    fn message(&self, message: MessageId) -> String {
        self.name(TaskId(message.0))
    }

    fn messages(&self, messages: &[MessageId]) -> String {
        messages.iter().map(|message| self.message(*message)).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn session_event(&self, event: &SessionEvent) -> Description {
        let session = &event.session;
        match &event.change {
            SessionDelta::Accepted { message, way } => {
                let way = match way {
                    Way::Line => String::new(),
                    Way::Steer { turn } => format!(" for {}", self.name(*turn)),
                    Way::Both { turn } => format!(" for {} and in line", self.name(*turn)),
                };
                describe("accepted", format!("{} in {session}{way}", self.message(message.id)), Tone::Waiting)
            }
            SessionDelta::TurnBegan { turn, messages, summary } => {
                let mut parts = vec![];
                if summary.is_some() {
                    parts.push("what was dropped".to_owned());
                }
                if !messages.is_empty() {
                    parts.push(self.messages(messages));
                }
                describe("turn", format!("{} answers {}", self.name(*turn), parts.join(", ")), Tone::Waiting)
            }
            SessionDelta::SteeringSet { turn, open, .. } => {
                let takes = if *open { "takes" } else { "takes no" };
                describe("steering", format!("{} {takes} steering", self.name(*turn)), Tone::Waiting)
            }
            SessionDelta::Taken { turn, messages, .. } => {
                describe("taken", format!("{} by {}", self.messages(messages), self.name(*turn)), Tone::Start)
            }
            SessionDelta::Returned { turn, messages } => describe(
                "returned",
                format!("{} from {}", self.messages(messages), self.name(*turn)),
                Tone::Waiting,
            ),
            SessionDelta::Retrying { turn, at, alone, redelivered, yields } => {
                let alone = if *alone { ", each alone" } else { "" };
                let again = if *redelivered { ", marked as redelivered" } else { "" };
                let after = if *yields { ", after all others" } else { "" };
                let rest = format!("the messages of {} at {at}{alone}{again}{after}", self.name(*turn));
                describe("trying again", rest, Tone::Trouble)
            }
            SessionDelta::GaveUp { turn } => {
                describe("gave up", format!("on the messages of {}", self.name(*turn)), Tone::Trouble)
            }
            SessionDelta::Ended { message, end } => self.message_end(*message, end),
            SessionDelta::TurnOver { turn } => describe("over", self.name(*turn), Tone::Waiting),
            SessionDelta::Configured { queue } => {
                describe("queue", format!("of {session}: {}", overrides(queue)), Tone::Lane)
            }
            SessionDelta::Moved { message, before } => {
                let before =
                    before.map_or("to the end".to_owned(), |id| format!("before {}", self.message(id)));
                describe("moved", format!("{} {before}", self.message(*message)), Tone::Waiting)
            }
            SessionDelta::Hastened { message } => describe("hastened", self.message(*message), Tone::Waiting),
            SessionDelta::Promoted { message, turn } => describe(
                "promoted",
                format!("{} into {}", self.message(*message), self.name(*turn)),
                Tone::Waiting,
            ),
            SessionDelta::SummaryDropped => {
                describe("forgot", format!("what was dropped in {session}"), Tone::Lane)
            }
            SessionDelta::Renewed => describe("fresh", format!("start of {session}"), Tone::Lane),
            SessionDelta::Answered { message, .. } => {
                describe("answered", format!("{} in {session}", self.message(*message)), Tone::Lane)
            }
            SessionDelta::TakenUp { message, again: Some(again) } => describe(
                "taken up",
                format!("{} as {}", self.message(*message), self.message(*again)),
                Tone::Lane,
            ),
            SessionDelta::TakenUp { message, again: None } => {
                describe("thrown away", self.message(*message), Tone::Lane)
            }
        }
    }

    fn message_end(&self, message: MessageId, end: &MessageEnd) -> Description {
        let (verb, tone) = match end {
            MessageEnd::Delivered { .. } => ("delivered", Tone::Success),
            MessageEnd::Steered { .. } => ("steered", Tone::Success),
            MessageEnd::Dropped { .. } => ("dropped", Tone::Trouble),
            MessageEnd::Cancelled { .. } => ("cancelled", Tone::Trouble),
            MessageEnd::Parked { .. } => ("parked", Tone::Trouble),
        };
        let name = self.message(message);
        describe(
            verb,
            format!("{}{}", if verb == "cancelled" { "message " } else { "" }, self.end(&name, end)),
            tone,
        )
    }

    fn end(&self, name: &str, end: &MessageEnd) -> String {
        match end {
            MessageEnd::Delivered { turn } | MessageEnd::Steered { turn } => {
                format!("{name} in {}", self.name(*turn))
            }
            MessageEnd::Dropped { rule } => format!("{name}: {}", rule.as_str()),
            MessageEnd::Cancelled { reason } => format!("{name}: {}", cancel_reason(*reason)),
            MessageEnd::Parked { error, tries } => {
                format!("{name} after {}: {error}", count(u64::from(*tries), "failed turn"))
            }
        }
    }

    pub(crate) fn message_reply(&self, reply: &MessageReply) -> String {
        let name = self.message(reply.message);
        match (&reply.reply, reply.outcome) {
            (Some(text), SendOutcome::Duplicate(of)) => {
                return format!(
                    "answer: {name} duplicate of {}, which was answered: {text}",
                    self.message(of)
                );
            }
            (Some(text), _) => return format!("answer: {text}"),
            (None, _) => {}
        }
        let mut text = format!("answer: {name} {}", reply.outcome.as_str());
        match reply.outcome {
            SendOutcome::Duplicate(of) => text.push_str(&format!(" of {}", self.message(of))),
            SendOutcome::Dropped(rule) => text.push_str(&format!(", by the rule {}", rule.as_str())),
            _ => {}
        }
        if let Some(turn) = reply.turn {
            text.push_str(&format!(" in {}", self.name(turn)));
        }
        if let Some(position) = reply.position {
            text.push_str(&format!(", number {position}"));
        }
        if reply.typing {
            text.push_str(", typing");
        }
        text
    }

    pub(crate) fn steering_reply(&self, taken: &[TurnMessage]) -> String {
        let told: Vec<String> = taken
            .iter()
            .map(|message| format!("{} {:?}", self.message(message.id), &*message.text))
            .collect();
        if told.is_empty() {
            "answer: nothing to take".to_owned()
        } else {
            format!("answer: {}", told.join(", "))
        }
    }

    pub(crate) fn session(&self, key: &str, view: Option<SessionView>) -> String {
        let Some(view) = view else { return format!("session {key}: nothing there") };
        let waiting: Vec<String> = view.waiting.iter().map(|message| self.waiting(message)).collect();
        let turns: Vec<String> = view
            .turns
            .iter()
            .map(|turn| format!("{} of [{}]", self.name(turn.task), self.messages(&turn.messages)))
            .collect();
        let busy = if view.busy { "busy" } else { "idle" };
        let mut text = format!("session {key}: {busy}, waiting [{}]", waiting.join(", "));
        if !turns.is_empty() {
            text.push_str(&format!(", turns {}", turns.join(", ")));
        }
        if view.dropped > 0 {
            text.push_str(&format!(", {} dropped", view.dropped));
        }
        if !view.parked.is_empty() {
            let parked: Vec<String> = view.parked.iter().map(|one| self.message(one.message.id)).collect();
            text.push_str(&format!(", parked [{}]", parked.join(", ")));
        }
        format!("{text}; {}", effective(&view.queue))
    }

    fn waiting(&self, message: &Message) -> String {
        let again = if message.redelivered { " (redelivered)" } else { "" };
        format!("{}{again}", self.message(message.id))
    }

    pub(crate) fn message_status(&self, message: MessageId, status: Option<MessageStatus>) -> String {
        let name = self.message(message);
        match status {
            None => format!("message {name} is not known"),
            Some(MessageStatus::Waiting { position }) => format!("message {name} waits, number {position}"),
            Some(MessageStatus::Steering { turn }) => {
                format!("message {name} was accepted for {}", self.name(turn))
            }
            Some(MessageStatus::Steered { turn, .. }) => {
                format!("message {name} was taken by {}", self.name(turn))
            }
            Some(MessageStatus::InTurn { turn }) => format!("message {name} is in {}", self.name(turn)),
            Some(MessageStatus::Ended { end, at }) => {
                let told = self.message_end(message, &end);
                format!("message {name} ended at {at}: {} {}", told.verb, told.rest)
            }
        }
    }

    /// What a turn's agent is prompted with, line by line.
    pub(crate) fn content(&self, scheduler: &Scheduler, turn: TaskId) -> Vec<String> {
        let Some(content) = scheduler.turn_content(turn) else {
            return vec![format!("{} is no turn of messages", self.name(turn))];
        };
        let place = &content.address.place;
        let parts = [&place.channel, &place.to, &place.account, &place.thread];
        let parts: Vec<&str> = parts.into_iter().map(|part| part.as_deref().unwrap_or("-")).collect();
        let place = if place.is_empty() { "nowhere".to_owned() } else { parts.join(" ") };
        let again = if content.redelivered { ", redelivered" } else { "" };
        let fresh = if content.fresh { ", fresh" } else { "" };
        let permissions: Vec<&str> = content.address.permissions.iter().map(|name| name.as_str()).collect();
        let may =
            if permissions.is_empty() { String::new() } else { format!(", may {}", permissions.join(" ")) };
        let mut lines = vec![format!("{} to {place}{may}{again}{fresh}:", self.name(turn))];
        lines.extend(content.text.split('\n').map(|line| format!("| {line}").trim_end().to_owned()));
        lines
    }
}

fn overrides(queue: &QueueOverrides) -> String {
    let words = [
        queue.mode.map(|mode| format!("mode {}", mode.as_str())),
        queue.debounce.map(|length| format!("debounce {length}")),
        queue.max_wait.map(|length| format!("max_wait {length}")),
        queue.cap.map(|cap| format!("cap {cap}")),
        queue.drop.map(|drop| format!("drop {}", drop.as_str())),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    if words.is_empty() { "nothing of its own".to_owned() } else { words.join(", ") }
}

pub(crate) fn effective(queue: &EffectiveQueue) -> String {
    format!(
        "mode {} ({}), debounce {} ({}), max_wait {} ({}), cap {} ({}), drop {} ({})",
        queue.mode.value.as_str(),
        queue.mode.origin.as_str(),
        queue.debounce.value,
        queue.debounce.origin.as_str(),
        queue.max_wait.value,
        queue.max_wait.origin.as_str(),
        queue.cap.value,
        queue.cap.origin.as_str(),
        queue.drop.value.as_str(),
        queue.drop.origin.as_str(),
    )
}
