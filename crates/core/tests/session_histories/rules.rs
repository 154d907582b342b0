//! The rules, checked from the events alone: how long messages wait, how many wait, and which ones one turn answers.

use laneway_core::{
    BACK_OFFS, Command, DropRule, MessageEnd, MessageId, MessageQueue, MessageStatus, Millis, Mode,
    QueueOverrides, Scheduler, SessionView, TaskId, Timestamp,
};

use crate::ledger::{KnownMessage, Ledger, MessageState};

impl Ledger {
    /// The settings of a message: its own, otherwise those of its session, its channel, or all sessions.
    pub(crate) fn queue(&self, own: &QueueOverrides, session: &str, channel: Option<&str>) -> MessageQueue {
        let silent = QueueOverrides::default();
        let session = self.sessions.get(session).map_or(silent, |session| session.queue);
        let channel = channel.and_then(|name| self.settings.by_channel.get(name)).copied().unwrap_or(silent);
        let levels = [*own, session, channel, self.settings.global];
        let default = MessageQueue::default();
        let policy = self.settings.policy;
        let debounce = levels.iter().find_map(|level| level.debounce).unwrap_or(default.debounce);
        let max_wait = levels.iter().find_map(|level| level.max_wait).unwrap_or(default.max_wait);
        let debounce = debounce.min(policy.wait_max);
        MessageQueue {
            mode: levels.iter().find_map(|level| level.mode).unwrap_or(default.mode),
            debounce,
            max_wait: max_wait.min(policy.wait_max).max(debounce),
            cap: levels.iter().find_map(|level| level.cap).unwrap_or(default.cap).clamp(1, policy.cap_max),
            drop: levels.iter().find_map(|level| level.drop).unwrap_or(default.drop),
        }
    }

    pub(crate) fn queue_of(&self, known: &KnownMessage) -> MessageQueue {
        let channel = known.message.address.place.channel.as_deref();
        self.queue(&known.message.queue(), &known.session, channel)
    }

    pub(crate) fn waiting<'a>(&'a self, session: &'a str) -> impl Iterator<Item = &'a KnownMessage> {
        self.messages
            .values()
            .filter(move |known| known.state == MessageState::Waiting && known.session == session)
    }

    /// The waiting messages that do not back off. Those whose turn timed out count only if there are no others.
    pub(crate) fn ready<'a>(
        &'a self,
        session: &'a str,
        now: Timestamp,
    ) -> impl Iterator<Item = &'a KnownMessage> {
        self.waiting(session).filter(move |known| known.retry_at <= now)
    }

    /// When the next turn of an idle session is due: after the debounce, but no later than the `max_wait` of any message, or
    /// when the next back-off is over.
    fn due(&self, session: &str, now: Timestamp, front_is_hastened: bool) -> Option<Timestamp> {
        let unreported = self.sessions.get(session).map_or(&[][..], |note| &note.unreported);
        let retries = self.waiting(session).map(|known| known.retry_at);
        let retries = retries.chain(unreported.iter().map(|unreported| unreported.retry_at));
        let next_retry = retries.filter(|at| *at > now).min();
        let Some(newest) = self.ready(session, now).max_by_key(|known| known.message.number) else {
            let is_due = unreported.iter().any(|unreported| unreported.retry_at <= now);
            return is_due.then_some(Timestamp(0)).or(next_retry);
        };
        if front_is_hastened {
            return Some(Timestamp(0));
        }
        let queue = self.queue_of(newest);
        let quiet = if matches!(queue.mode, Mode::Latest | Mode::Interrupt) {
            newest.message.at
        } else {
            let own_bound = |known: &KnownMessage| known.message.at + self.queue_of(known).max_wait;
            let bound = self.ready(session, now).map(own_bound).min()?;
            (newest.message.at + queue.debounce).min(bound)
        };
        Some(next_retry.map_or(quiet, |retry| quiet.min(retry)))
    }

    /// Checks that a turn was due when time or the end of another turn began it.
    pub(crate) fn check_due(&self, now: Timestamp, asked: &Command, session: &str) -> Result<(), String> {
        let by_itself = matches!(asked, Command::Tick | Command::Finish { .. } | Command::Lapse { .. });
        let any_hastened = self.waiting(session).any(|known| known.hastened);
        match self.due(session, now, any_hastened) {
            Some(due) if by_itself && due > now => Err(format!("{session} was not due before {due}")),
            _ => Ok(()),
        }
    }

    /// Checks that a turn overtakes no earlier message, and answers only messages that belong together.
    pub(crate) fn check_turn(
        &self,
        now: Timestamp,
        session: &str,
        messages: &[MessageId],
    ) -> Result<(), String> {
        let Some(first) = messages.first().and_then(|id| self.messages.get(id)) else { return Ok(()) };
        let mut place = &first.message.address.place;
        for id in messages {
            let Some(known) = self.messages.get(id) else { return Err(format!("{id:?} is not known")) };
            let (one, two) = (&first.message.address, &known.message.address);
            let is_compatible = one.permissions == two.permissions
                && one.agent == two.agent
                && (one.source, one.priority) == (two.source, two.priority);
            let fits_place = place.is_empty() || two.place.is_empty() || *place == two.place;
            if !is_compatible || !fits_place {
                return Err(format!("{id:?} is answered with {:?}", first.message.id));
            }
            if place.is_empty() {
                place = &two.place;
            }
            let collects = self.queue_of(known).mode == Mode::Collect && !known.alone;
            if messages.len() > 1 && !collects {
                return Err(format!("{id:?} is not to be collected"));
            }
            if known.retry_at > now {
                return Err(format!("{id:?} backs off until {}", known.retry_at));
            }
            let overtakes = |other: &&KnownMessage| {
                !other.moved
                    && !messages.contains(&other.message.id)
                    && (other.yields, other.message.number) < (known.yields, known.message.number)
            };
            if let Some(other) = self.ready(session, now).find(overtakes)
                && !known.moved
            {
                return Err(format!("{id:?} overtook {:?}", other.message.id));
            }
        }
        Ok(())
    }

    /// Checks that back-offs grow with each failure of the same messages, and that their number is bounded.
    pub(crate) fn check_back_off(
        &self,
        now: Timestamp,
        turn: TaskId,
        at: Timestamp,
        alone: bool,
        redelivered: bool,
    ) -> Result<(), String> {
        let tries = self.tries_of(turn);
        let is_last = tries + 1 >= self.settings.attempts;
        let back_off = BACK_OFFS[usize::from(tries).min(BACK_OFFS.len() - 1)];
        let back_off = if redelivered && tries == 0 { Millis(0) } else { back_off };
        if self.turns.get(&turn).is_some_and(|note| note.gave_up) {
            return Err(format!("{turn:?} gave up and is tried again"));
        }
        let own = self.messages.values().filter(|known| is_in(known, turn)).count();
        if at != now + back_off || alone != is_last || (is_last && own < 2) {
            return Err(format!("after {tries} failures a back-off until {at}"));
        }
        Ok(())
    }

    fn tries_of(&self, turn: TaskId) -> u8 {
        let own = self.messages.values().filter(|known| is_in(known, turn)).map(|known| known.tries);
        let summary = self.turns.get(&turn).and_then(|note| note.summary.as_ref());
        own.chain(summary.map(|summary| summary.tries)).max().unwrap_or_default()
    }

    /// Checks that a message in its state may have this end.
    pub(crate) fn check_end(&self, id: MessageId, end: &MessageEnd) -> Result<(), String> {
        let Some(known) = self.messages.get(&id) else { return Err(format!("{id:?} was never accepted")) };
        let right = match end {
            MessageEnd::Delivered { turn } => known.state == MessageState::Turn(*turn),
            MessageEnd::Steered { turn } => known.state == MessageState::Steered(*turn),
            MessageEnd::Dropped { .. } => known.state == MessageState::Waiting && known.tries == 0,
            MessageEnd::Parked { tries, .. } => match known.state {
                MessageState::Turn(turn) | MessageState::Steered(turn) => {
                    let gave_up = self.turns.get(&turn).is_some_and(|note| note.gave_up);
                    // The other messages of the turn may have been tried more often.
                    let is_last = self.tries_of(turn) + 1 >= self.settings.attempts;
                    *tries == known.tries + 1 && (is_last || gave_up || !self.settings.redeliver)
                }
                _ => false,
            },
            MessageEnd::Cancelled { .. } => known.state != MessageState::Ended,
        };
        if right { Ok(()) } else { Err(format!("{id:?} ended as {end:?} from {:?}", known.state)) }
    }

    /// Compares each message and session of the scheduler with the events. No message waits too long, and no session
    /// exceeds its cap.
    pub(crate) fn compare(&self, scheduler: &Scheduler, with_ended: bool) -> Result<(), String> {
        let is_compared = |known: &KnownMessage| with_ended || known.state != MessageState::Ended;
        for (id, known) in self.messages.iter().filter(|(_, known)| is_compared(known)) {
            let status = scheduler.message(*id);
            let right = match (&status, known.state) {
                (Some(MessageStatus::Waiting { .. }), MessageState::Waiting) => true,
                (Some(MessageStatus::Steering { turn }), MessageState::Pending(known)) => *turn == known,
                (Some(MessageStatus::Steered { turn, fence }), MessageState::Steered(of)) => {
                    *turn == of && known.fence == Some(*fence)
                }
                (Some(MessageStatus::InTurn { turn }), MessageState::Turn(known)) => *turn == known,
                (Some(MessageStatus::Ended { end, at }), MessageState::Ended) => {
                    known.end.as_ref() == Some(&(end.clone(), *at))
                }
                _ => false,
            };
            if !right {
                return Err(format!("{id:?} is {status:?}, the events say {:?}", known.state));
            }
        }
        for view in scheduler.sessions() {
            self.compare_session(scheduler, &view)?;
        }
        Ok(())
    }

    fn compare_session(&self, scheduler: &Scheduler, view: &SessionView) -> Result<(), String> {
        let session = view.lane.as_str();
        let note = self.sessions.get(session);
        let unreported: u64 =
            note.map_or(0, |note| note.unreported.iter().map(|unreported| unreported.count).sum());
        if view.dropped != unreported {
            return Err(format!(
                "{session} will report {} dropped, the events say {unreported}",
                view.dropped
            ));
        }
        if !view.waiting.is_empty() && !view.typing {
            return Err(format!("{session} has work and shows no typing"));
        }
        let parked: Vec<MessageId> = view.parked.iter().map(|parked| parked.message.id).collect();
        let here = |id: &&MessageId| self.messages.get(id).is_some_and(|known| known.session == session);
        if !self.parked.iter().filter(here).eq(&parked) {
            return Err(format!("{session} has {parked:?} parked, the events say {:?}", self.parked));
        }
        let waiting = view.waiting.iter().filter_map(|waiting| self.messages.get(&waiting.id));
        let mut ready = waiting.filter(|known| known.retry_at <= scheduler.now());
        let front = ready.next();
        if let Some(due) = self.due(session, scheduler.now(), front.is_some_and(|front| front.hastened))
            && !view.busy
            && due <= scheduler.now()
        {
            return Err(format!("{session} waits at {}, due at {due}", scheduler.now()));
        }
        self.check_cap(session)?;
        for turn in &view.turns {
            let Some(known) = self.turns.get(&turn.task) else {
                return Err(format!("{:?} is a turn that no event began", turn.task));
            };
            let Some(content) = scheduler.turn_content(turn.task) else { continue };
            let dropped = known.summary.as_ref().map_or(0, |summary| summary.count);
            if (content.fresh, content.dropped) != (known.fresh, dropped) {
                return Err(format!(
                    "{:?} says fresh {}, {} dropped",
                    turn.task, content.fresh, content.dropped
                ));
            }
            if turn.messages.is_empty() && known.summary.is_none() && !known.is_direct {
                return Err(format!("{:?} answers no message", turn.task));
            }
        }
        Ok(())
    }

    /// Checks the cap in the settings of the newest message. Messages that were in a turn do not count.
    fn check_cap(&self, session: &str) -> Result<(), String> {
        let Some(newest) = self.waiting(session).max_by_key(|known| known.message.number) else {
            return Ok(());
        };
        let queue = self.queue_of(newest);
        let counted: Vec<&KnownMessage> = self.waiting(session).filter(|known| known.tries == 0).collect();
        let is_right = match (queue.mode, queue.drop) {
            (Mode::Latest, _) => counted.iter().all(|known| {
                known.message.id == newest.message.id || self.queue_of(known).mode != Mode::Latest
            }),
            (_, DropRule::New) => true,
            _ => counted.len() <= queue.cap as usize,
        };
        let cap = queue.cap;
        if is_right { Ok(()) } else { Err(format!("{} wait in {session}, {cap} may", counted.len())) }
    }
}

/// Whether a turn answers or took a message.
fn is_in(known: &KnownMessage, turn: TaskId) -> bool {
    [MessageState::Turn(turn), MessageState::Steered(turn)].contains(&known.state)
}

/// How long the scheduler remembers a message with a message id.
pub(crate) const WINDOW: Millis = Millis(300_000);
