//! Events of sessions, made from a seed.

use std::sync::Arc;

use laneway_core::{
    Address, Agent, DropRule, Dropped, Extras, Fence, Message, MessageEnd, MessageId, MessagePolicy,
    MessageSettings, Mode, Place, QueueOverrides, Sender, SessionDelta, SessionEvent, Way,
};

use super::Dice;

impl Dice {
    fn message_id(&mut self) -> MessageId {
        MessageId(self.task().0)
    }

    fn message_ids(&mut self) -> Vec<MessageId> {
        (0..self.number() % 4).map(|_| self.message_id()).collect()
    }

    fn overrides(&mut self) -> QueueOverrides {
        use Mode::{Collect, Followup, Interrupt, Latest, Reject, Steer, SteerBacklog};
        let modes = [Collect, Followup, Steer, SteerBacklog, Interrupt, Reject, Latest];
        QueueOverrides {
            mode: self.maybe(|dice| dice.pick(&modes)),
            debounce: self.maybe(Dice::length),
            max_wait: self.maybe(Dice::length),
            cap: self.maybe(Dice::small),
            drop: self.maybe(|dice| dice.pick(&[DropRule::Old, DropRule::New, DropRule::Summarize])),
        }
    }

    pub(crate) fn message_settings(&mut self) -> MessageSettings {
        MessageSettings {
            global: self.overrides(),
            by_channel: (0..self.number() % 3).map(|_| (self.text(), self.overrides())).collect(),
            policy: MessagePolicy { cap_max: self.small(), wait_max: self.length() },
            redeliver: self.byte().is_multiple_of(2),
            attempts: self.byte(),
        }
    }

    fn address(&mut self) -> Address {
        Address {
            agent: Arc::new(Agent {
                name: self.name(),
                kind: self.name(),
                lanes: (0..self.number() % 3).map(|_| self.lane()).collect(),
            }),
            place: Place {
                channel: self.maybe(Dice::text),
                to: self.maybe(Dice::text),
                account: self.maybe(Dice::text),
                thread: self.maybe(Dice::text),
            },
            permissions: (0..self.number() % 3).map(|_| self.name()).collect(),
            source: self.source(),
            priority: self.maybe(Dice::byte),
        }
    }

    fn message(&mut self) -> Message {
        Message {
            id: self.message_id(),
            text: self.text(),
            address: Arc::new(self.address()),
            from: self
                .maybe(|dice| Box::new(Sender { id: dice.maybe(Dice::text), name: dice.maybe(Dice::text) })),
            at: self.at(),
            number: self.number(),
            extras: self.maybe(|dice| {
                Box::new(Extras {
                    message_id: dice.maybe(Dice::text),
                    queue: dice.overrides(),
                    asker: dice.maybe(Dice::lane),
                    metadata: dice.maybe(Dice::text),
                    attachments: dice.maybe(Dice::text),
                })
            }),
            tries: self.byte(),
            turns: self.byte(),
            retry_at: self.at(),
            yields: self.byte().is_multiple_of(2),
            alone: self.byte().is_multiple_of(2),
            redelivered: self.byte().is_multiple_of(2),
            moved: self.byte().is_multiple_of(2),
            hastened: self.byte().is_multiple_of(2),
        }
    }

    fn message_end(&mut self) -> MessageEnd {
        use Dropped::{Heartbeat, Late, Latest, New, Old, Summarize};
        match self.number() % 5 {
            0 => MessageEnd::Delivered { turn: self.task() },
            1 => MessageEnd::Steered { turn: self.task() },
            2 => MessageEnd::Dropped { rule: self.pick(&[Old, New, Summarize, Latest, Heartbeat, Late]) },
            3 => MessageEnd::Cancelled { reason: self.reason() },
            _ => MessageEnd::Parked { error: self.text(), tries: self.byte() },
        }
    }

    fn way(&mut self) -> Way {
        let turn = self.task();
        self.pick(&[Way::Line, Way::Steer { turn }, Way::Both { turn }])
    }

    pub(crate) fn session_event(&mut self) -> SessionEvent {
        let (turn, fence, message) = (self.task(), Fence(self.number()), self.message_id());
        let open = self.byte().is_multiple_of(2);
        let change = match self.number() % 17 {
            0 => SessionDelta::Accepted { message: self.message(), way: self.way() },
            1 => SessionDelta::TurnBegan {
                turn,
                messages: self.message_ids(),
                summary: self.maybe(|dice| Arc::new(dice.address())),
            },
            2 => SessionDelta::SteeringSet { turn, fence, open },
            3 => SessionDelta::Taken { turn, fence, messages: self.message_ids() },
            4 => SessionDelta::Returned { turn, messages: self.message_ids() },
            5 => SessionDelta::Retrying {
                turn,
                at: self.at(),
                alone: open,
                redelivered: !open,
                yields: self.byte().is_multiple_of(2),
            },
            6 => SessionDelta::Ended { message, end: self.message_end() },
            7 => SessionDelta::TurnOver { turn },
            8 => SessionDelta::Configured { queue: self.overrides() },
            9 => SessionDelta::Moved { message, before: self.maybe(Dice::message_id) },
            10 => SessionDelta::Hastened { message },
            11 => SessionDelta::Renewed,
            12 => SessionDelta::Answered {
                message,
                message_id: self.text(),
                place: self.address().place,
                reply: self.text(),
            },
            14 => SessionDelta::Promoted { message, turn },
            15 => SessionDelta::GaveUp { turn },
            13 => SessionDelta::TakenUp { message, again: self.maybe(Dice::message_id) },
            _ => SessionDelta::SummaryDropped,
        };
        SessionEvent { session: self.lane(), change }
    }
}
