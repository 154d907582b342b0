//! What each event of a session does to it. Nothing here decides.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::api::event::End;
use crate::api::ids::{Fence, TaskId};
use crate::api::session_command::{SessionDelta, SessionEvent, Way};
use crate::api::time::Timestamp;
use crate::scheduler::Scheduler;
use crate::sessions::message::{Address, Dropped, Message, MessageEnd, MessageId};
use crate::sessions::queue_mode::MessageSettings;
use crate::sessions::session::{DEDUPE_WINDOW, Dropping, OVERFLOWS_MAX, Seen, Session, Steered, Turn};
use crate::sessions::table::SessionIdx;
use crate::sessions::turn_text::summary_line;

impl Scheduler {
    pub(crate) fn on_messages_configured(&mut self, settings: &MessageSettings) {
        self.state.sessions.settings = settings.clone();
        let with_work = |(_, session): &(SessionIdx, &Session)| !session.waiting.is_empty();
        let mut changed: Vec<SessionIdx> =
            self.state.sessions.iter().filter(with_work).map(|(idx, _)| idx).collect();
        changed.sort_unstable_by_key(|idx| self.state.sessions[*idx].birth);
        for idx in &changed {
            self.plan_session(*idx);
        }
        self.scratch.changed_sessions.extend(changed);
    }

    pub(super) fn on_session(&mut self, event: &SessionEvent) {
        let idx = self.state.sessions.enter(&event.session);
        match &event.change {
            SessionDelta::Accepted { message, way } => self.on_accepted(idx, message, *way),
            SessionDelta::TurnBegan { turn, messages, summary } => {
                self.on_turn_began(idx, *turn, messages, summary.as_ref());
            }
            SessionDelta::SteeringSet { turn, fence, open } => {
                let turn = self.turn_entry(idx, *turn);
                turn.extras.steering = open.then_some(*fence);
            }
            SessionDelta::Taken { turn, fence, messages } => self.on_taken(idx, *turn, *fence, messages),
            SessionDelta::Returned { turn, messages } => self.on_returned(idx, *turn, messages),
            SessionDelta::Retrying { .. } => self.on_turn_retrying(idx, &event.change),
            SessionDelta::GaveUp { turn } => self.turn_entry(idx, *turn).extras.gave_up = true,
            SessionDelta::Ended { message, end } => self.on_message_ended(idx, *message, end),
            SessionDelta::TurnOver { turn } => {
                self.state.sessions[idx].turns.retain(|other| other.task != *turn);
            }
            SessionDelta::Configured { queue } => self.state.sessions[idx].extras.queue = *queue,
            SessionDelta::Moved { message, before } => {
                let session = &mut self.state.sessions[idx];
                if let Some(mut moved) = session.place_of(*message).and_then(|at| session.waiting.remove(at))
                {
                    moved.moved = true;
                    let before = before.and_then(|before| session.place_of(before));
                    session.waiting.insert(before.unwrap_or(session.waiting.len()), moved);
                }
            }
            SessionDelta::Hastened { message } => {
                let session = &mut self.state.sessions[idx];
                if let Some(mut next) = session.place_of(*message).and_then(|at| session.waiting.remove(at)) {
                    (next.hastened, next.moved) = (true, true);
                    (next.retry_at, next.yields) = (Timestamp(0), false);
                    session.waiting.push_front(next);
                }
            }
            SessionDelta::Promoted { message, turn } => {
                let session = &mut self.state.sessions[idx];
                if let Some(message) = session.place_of(*message).and_then(|at| session.waiting.remove(at)) {
                    let steered = Steered { message, is_copy: false, fence: None };
                    self.turn_entry(idx, *turn).extras.pending.push(steered);
                }
            }
            SessionDelta::SummaryDropped => self.state.sessions[idx].extras.overflows.clear(),
            SessionDelta::Renewed => self.state.sessions[idx].extras.fresh = true,
            SessionDelta::Answered { message, message_id, place, reply } => {
                let until = self.state.now + DEDUPE_WINDOW;
                let (message_id, place) = (Arc::clone(message_id), place.clone());
                let reply = Some(Arc::clone(reply));
                self.remember_seen(idx, Seen { message_id, place, message: *message, until, reply });
            }
            SessionDelta::TakenUp { message, .. } => self.state.sessions.receipts.take_up(*message),
        }
        let is_plain = matches!(event.change, SessionDelta::Accepted { way: Way::Line, .. });
        if is_plain && self.is_busy(idx) {
            // One more in the line of a busy session: nothing follows.
            return;
        }
        self.state.sessions[idx].tidy();
        self.plan_session(idx);
        self.scratch.changed_sessions.push(idx);
        if self.state.sessions[idx].is_idle() {
            self.state.sessions.remove(idx);
        }
    }

    /// The turn of a task, made for one that was asked for directly.
    fn turn_entry(&mut self, session: SessionIdx, task: TaskId) -> &mut Turn {
        let turns = &mut self.state.sessions[session].turns;
        let at = turns.iter().position(|turn| turn.task == task).unwrap_or_else(|| {
            turns.push(Turn::new(task, true));
            turns.len() - 1
        });
        &mut turns[at]
    }

    fn on_accepted(&mut self, session: SessionIdx, message: &Message, way: Way) {
        let mut message = message.clone();
        self.state.sessions[session].share(&mut message);
        if message.number == 1 {
            self.state.sessions.share_agent(&mut message);
        }
        self.state.sessions.note_message(&message, session);
        self.state.sessions[session].accepted = message.number;
        if let Way::Steer { turn } | Way::Both { turn } = way {
            let is_copy = matches!(way, Way::Both { .. });
            let steered = Steered { message: message.clone(), is_copy, fence: None };
            self.turn_entry(session, turn).extras.pending.push(steered);
        }
        if !matches!(way, Way::Steer { .. }) {
            self.state.sessions[session].make_room();
            self.state.sessions[session].waiting.push_back(message);
        }
    }

    fn on_turn_began(
        &mut self,
        idx: SessionIdx,
        task: TaskId,
        messages: &[MessageId],
        summary: Option<&Arc<Address>>,
    ) {
        let session = &mut self.state.sessions[idx];
        let mut turn = Turn::new(task, false);
        turn.messages.reserve_exact(messages.len());
        for id in messages {
            turn.messages.extend(session.place_of(*id).and_then(|at| session.waiting.remove(at)));
        }
        if let Some(first) = turn.messages.first_mut() {
            first.turns = first.turns.saturating_add(1);
        }
        if let Some(address) = summary
            && let Some(at) =
                session.extras.overflows.iter().position(|dropping| dropping.address == *address)
        {
            turn.extras.summary = Some(session.extras.overflows.remove(at));
        }
        if session.extras.fresh {
            (turn.extras.fresh, session.extras.fresh) = (true, false);
        }
        session.turns.reserve_exact(1);
        session.turns.push(turn);
    }

    fn on_taken(&mut self, session: SessionIdx, turn: TaskId, fence: Fence, messages: &[MessageId]) {
        let Some(turn) = self.state.sessions[session].turn_mut(turn) else { return };
        // What an attempt before this one took is taken again.
        for steered in turn.extras.steered.iter_mut().filter(|steered| messages.contains(&steered.message.id))
        {
            steered.fence = Some(fence);
        }
        let (taken, left) = std::mem::take(&mut turn.extras.pending)
            .into_iter()
            .partition(|steered| messages.contains(&steered.message.id));
        turn.extras.pending = left;
        let taken: Vec<Steered> = taken;
        turn.extras
            .steered
            .extend(taken.into_iter().map(|steered| Steered { fence: Some(fence), ..steered }));
    }

    fn on_returned(&mut self, idx: SessionIdx, turn: TaskId, messages: &[MessageId]) {
        let session = &mut self.state.sessions[idx];
        let Some(turn) = session.turn_mut(turn) else { return };
        let is_meant = |steered: &Steered| messages.contains(&steered.message.id);
        let mut returned: Vec<Steered> =
            turn.extras.pending.extract_if(.., |steered| is_meant(steered)).collect();
        returned.extend(turn.extras.steered.extract_if(.., |steered| is_meant(steered)));
        for steered in returned.into_iter().filter(|steered| !steered.is_copy) {
            session.put_back(steered.message);
        }
    }

    fn on_turn_retrying(&mut self, idx: SessionIdx, change: &SessionDelta) {
        let SessionDelta::Retrying { turn, at, alone, redelivered, yields } = change else { return };
        let session = &mut self.state.sessions[idx];
        let Some(turn) = session.turn_mut(*turn) else { return };
        let steered = turn.extras.steered.extract_if(.., |steered| !steered.is_copy);
        let mut messages: Vec<Message> = steered.map(|steered| steered.message).collect();
        messages.append(&mut turn.messages);
        let summary = turn.extras.summary.take();
        for mut message in messages {
            message.tries = message.tries.saturating_add(1);
            message.alone |= *alone;
            (message.hastened, message.moved) = (false, false);
            message.redelivered |= *redelivered;
            (message.retry_at, message.yields) = (*at, *yields);
            session.put_back(message);
        }
        if let Some(mut dropping) = summary {
            dropping.tries = dropping.tries.saturating_add(1);
            dropping.retry_at = *at;
            merge_before(&mut session.extras.overflows, dropping);
        }
    }

    fn on_message_ended(&mut self, idx: SessionIdx, id: MessageId, end: &MessageEnd) {
        let settings = self.state.sessions.settings.clone();
        let session = &mut self.state.sessions[idx];
        let found = take_message(session, id);
        if let Some(message) = &found {
            if *end == (MessageEnd::Dropped { rule: Dropped::Summarize }) {
                let channel = message.address.place.channel.as_deref();
                let cap = settings.effective(&message.queue(), &session.extras.queue, channel).cap.value;
                note_dropped(&mut session.extras.overflows, message, cap as usize);
            }
            self.state.sessions.forget_message(message, idx);
        }
        self.state.sessions.receipts.keep(id, end.clone(), self.state.now);
        let Some(message) = found else { return };
        // No turn got a dropped, cancelled or parked message, so the same message may come again.
        let was_heard = matches!(end, MessageEnd::Delivered { .. } | MessageEnd::Steered { .. });
        if let Some(message_id) = message.message_id().filter(|_| was_heard) {
            let seen = Seen {
                message_id: Arc::clone(message_id),
                place: message.address.place.clone(),
                message: id,
                until: self.state.now + DEDUPE_WINDOW,
                reply: None,
            };
            self.remember_seen(idx, seen);
        }
        if matches!(end, MessageEnd::Parked { .. }) {
            let lane = self.state.sessions[idx].lane.clone();
            self.state.sessions.receipts.park(&lane, message);
        }
    }

    fn remember_seen(&mut self, session: SessionIdx, seen: Seen) {
        self.indexes.timers.expect(seen.until);
        self.state.sessions.remember(session, seen);
    }

    /// Notes that a task of a session has ended; what follows is decided before the step is over.
    pub(super) fn on_session_task_ended(
        &mut self,
        idx: SessionIdx,
        task: TaskId,
        end: &End,
        fence: Option<Fence>,
    ) {
        let session = &mut self.state.sessions[idx];
        if let Some(turn) = session.turn_mut(task) {
            turn.extras.end = Some((end.clone(), fence));
            let was_made = match end {
                End::Completed => true,
                End::Cancelled { .. } => fence.is_some(),
                _ => false,
            };
            // A fresh start that this turn did not make is left to the next one.
            if turn.extras.fresh && !was_made {
                turn.extras.fresh = false;
                session.extras.fresh = true;
            }
        }
        self.plan_session(idx);
        self.scratch.changed_sessions.push(idx);
    }

    /// Tells the clock when the next turn of a session may begin.
    pub(crate) fn plan_session(&mut self, session: SessionIdx) {
        let due = if self.is_busy(session) { Timestamp::NEVER } else { self.ready_at(session) };
        self.state.sessions.set_due(session, due);
        if due != Timestamp::NEVER {
            self.indexes.timers.expect(due);
        }
    }
}

/// Takes a message out of wherever it is, and its copies with it.
fn take_message(session: &mut Session, id: MessageId) -> Option<Message> {
    let mut found = session.place_of(id).and_then(|at| session.waiting.remove(at));
    for turn in &mut session.turns {
        if let Some(at) = turn.messages.iter().position(|message| message.id == id) {
            found = Some(turn.messages.remove(at));
        }
        if turn.extras.pending.is_empty() && turn.extras.steered.is_empty() {
            continue;
        }
        let more = &mut *turn.extras;
        for list in [&mut more.pending, &mut more.steered] {
            if let Some(at) = list.iter().position(|steered| steered.message.id == id) {
                let steered = list.remove(at);
                if !steered.is_copy {
                    found = Some(steered.message);
                }
            }
        }
    }
    found
}

/// Adds a line about a dropped message to the summary for its address.
fn note_dropped(overflows: &mut Vec<Dropping>, message: &Message, lines_max: usize) {
    let known = overflows.iter().position(|dropping| dropping.address == message.address);
    let at = match known {
        Some(at) => at,
        None if overflows.len() == OVERFLOWS_MAX => return,
        None => {
            overflows.push(Dropping {
                address: Arc::clone(&message.address),
                dropped: 0,
                lines: VecDeque::new(),
                last: message.id,
                tries: 0,
                retry_at: Timestamp(0),
            });
            overflows.len() - 1
        }
    };
    let dropping = &mut overflows[at];
    dropping.dropped += 1;
    dropping.last = message.id;
    dropping.lines.push_back(summary_line(&message.text).into());
    while dropping.lines.len() > lines_max {
        dropping.lines.pop_front();
    }
}

/// Gives back a summary that a turn did not succeed to tell, before whatever was dropped since.
fn merge_before(overflows: &mut Vec<Dropping>, mut older: Dropping) {
    match overflows.iter().position(|dropping| dropping.address == older.address) {
        None => overflows.insert(0, older),
        Some(at) => {
            let newer = overflows.remove(at);
            older.dropped += newer.dropped;
            let lines_max = older.lines.len().max(newer.lines.len());
            older.lines.extend(newer.lines);
            while older.lines.len() > lines_max {
                older.lines.pop_front();
            }
            older.last = newer.last;
            overflows.insert(at, older);
        }
    }
}
