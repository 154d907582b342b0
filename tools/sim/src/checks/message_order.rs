//! The order of conversations: their messages are taken up as they came, each by one turn at a time.

use std::collections::BTreeMap;

use laneway_core::{LaneName, MessageId, SessionDelta, SessionEvent, TaskId};

/// What is known of the messages of all conversations.
#[derive(Default)]
pub(crate) struct MessageOrder {
    /// Those that no turn has had, by conversation and number.
    waiting: BTreeMap<(LaneName, u64), MessageId>,
    /// The number of each that has not ended.
    numbers: BTreeMap<MessageId, u64>,
    /// Those that a turn has.
    turns: BTreeMap<TaskId, Vec<MessageId>>,
}

impl MessageOrder {
    /// Takes up one more event; says what about it must not be. What was dropped, interrupted or replaced has ended, so
    /// it is passed over in every mode.
    pub(crate) fn take(&mut self, event: &SessionEvent) -> Option<String> {
        let SessionEvent { session, change } = event;
        match change {
            SessionDelta::Accepted { message, .. } => self.accept(session, message.id, message.number),
            SessionDelta::Ended { message, .. } => {
                let number = self.numbers.remove(message)?;
                self.waiting.remove(&(session.clone(), number));
            }
            SessionDelta::TurnBegan { turn, messages, .. } => return self.begin(session, *turn, messages),
            SessionDelta::Taken { turn, messages, .. } => self.enter(session, *turn, messages),
            // While messages of a failed turn back off, others may pass them over.
            SessionDelta::Retrying { turn, .. } | SessionDelta::TurnOver { turn } => {
                drop(self.turns.remove(turn))
            }
            _ => {}
        }
        None
    }

    fn accept(&mut self, session: &LaneName, message: MessageId, number: u64) {
        self.numbers.insert(message, number);
        self.waiting.insert((session.clone(), number), message);
    }

    fn enter(&mut self, session: &LaneName, turn: TaskId, messages: &[MessageId]) {
        for message in messages {
            if let Some(number) = self.numbers.get(message) {
                self.waiting.remove(&(session.clone(), *number));
            }
        }
        self.turns.entry(turn).or_default().extend(messages);
    }

    fn begin(&mut self, session: &LaneName, turn: TaskId, messages: &[MessageId]) -> Option<String> {
        let held = messages.iter().find(|message| self.turns.values().any(|has| has.contains(message)));
        if let Some(message) = held {
            return Some(format!("message {message} of {session} is in two turns at once"));
        }
        let numbers: Vec<u64> =
            messages.iter().filter_map(|message| self.numbers.get(message)).copied().collect();
        self.enter(session, turn, messages);
        if !numbers.is_sorted() {
            return Some(format!("turn {turn} of {session} has its messages in the order {numbers:?}"));
        }
        let first = self.waiting.range((session.clone(), 0)..).next();
        let passed =
            first.filter(|((of, number), _)| of == session && numbers.iter().any(|taken| taken > number));
        passed.map(|((_, number), _)| {
            format!("turn {turn} of {session} began and passed over message {number}")
        })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use laneway_core::{CancelReason, MessageEnd, Timestamp};

    use super::*;

    const SESSION: &str = "session:talk-0";

    /// What the last of these turns shows, after three messages; each has failed when the next one begins.
    fn shown(turns: &[&[u128]]) -> Option<String> {
        let (mut talks, session) = (MessageOrder::default(), LaneName::new(SESSION).unwrap());
        (1..=3).for_each(|number| talks.accept(&session, MessageId(number), number as u64));
        let mut last = None;
        for (turn, messages) in turns.iter().enumerate() {
            let turn = TaskId(turn as u128);
            let messages = messages.iter().map(|number| MessageId(*number)).collect();
            let began = SessionDelta::TurnBegan { turn, messages, summary: None };
            last = talks.take(&SessionEvent { session: session.clone(), change: began });
            let change = SessionDelta::Retrying {
                turn,
                at: Timestamp(0),
                alone: false,
                redelivered: false,
                yields: false,
            };
            assert_eq!(talks.take(&SessionEvent { session: session.clone(), change }), None);
        }
        last
    }

    #[test]
    fn turns_take_messages_as_they_came() {
        for turns in [&[&[1][..]][..], &[&[1, 2, 3]], &[&[1, 2], &[1]], &[&[1], &[2], &[1]]] {
            assert_eq!(shown(turns), None, "{turns:?}");
        }
    }

    #[test]
    fn a_turn_that_passes_over_a_message_or_turns_two_around_is_seen() {
        for (turns, wrong) in [
            (&[&[2][..]][..], "passed over message 1"),
            (&[&[1, 3]], "passed over message 2"),
            (&[&[1], &[3]], "passed over message 2"),
            (&[&[2, 1]], "in the order [2, 1]"),
        ] {
            assert!(shown(turns).is_some_and(|text| text.ends_with(wrong)), "{turns:?}: {:?}", shown(turns));
        }
    }

    #[test]
    fn a_message_in_two_turns_is_seen_and_one_that_ended_may_be_passed_over() {
        let (mut talks, session) = (MessageOrder::default(), LaneName::new(SESSION).unwrap());
        (1..=2).for_each(|number| talks.accept(&session, MessageId(number), number as u64));
        assert_eq!(talks.begin(&session, TaskId(1), &[MessageId(1)]), None);
        let again = talks.begin(&session, TaskId(2), &[MessageId(1)]);
        assert!(again.is_some_and(|text| text.ends_with("in two turns at once")));
        let (message, end) = (MessageId(1), MessageEnd::Cancelled { reason: CancelReason::Caller });
        talks.take(&SessionEvent { session: session.clone(), change: SessionDelta::Ended { message, end } });
        assert_eq!(talks.begin(&session, TaskId(3), &[MessageId(2)]), None);
    }
}
