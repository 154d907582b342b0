//! What follows in a session: which messages become the next turn, when, and what comes of a turn that ended.

use std::sync::Arc;

use crate::api::event::{End, Event};
use crate::api::ids::{Fence, TaskId};
use crate::api::name::LaneName;
use crate::api::session_command::{SessionDelta, SessionEvent};
use crate::api::task_spec::TaskSpec;
use crate::api::time::{Millis, Timestamp};
use crate::scheduler::Scheduler;
use crate::sessions::message::{Address, Dropped, Message, MessageEnd, MessageId};
use crate::sessions::queue_mode::{DropRule, EffectiveQueue, Mode};
use crate::sessions::session::Turn;
use crate::sessions::table::SessionIdx;
use crate::state::task::TaskIdx;
use crate::step::Step;

/// How long messages wait before a turn that failed is tried again, by how often it has.
pub const BACK_OFFS: [Millis; 6] =
    [Millis(500), Millis(1000), Millis(2000), Millis(4000), Millis(8000), Millis(10_000)];

/// What the next turn of a session is made of.
struct NextTurn {
    address: Arc<Address>,
    messages: Vec<MessageId>,
    /// The address whose dropped messages the turn reports.
    summary: Option<Arc<Address>>,
}

impl Step<'_> {
    /// Updates the sessions in which something happened.
    pub(crate) fn update_changed_sessions(&mut self) {
        while !self.scratch.changed_sessions.is_empty() {
            for session in self.take_changed_sessions() {
                if self.state.sessions.get(session).is_some() {
                    self.update_session(session);
                }
            }
        }
    }

    /// Begins the turns whose time has come.
    pub(crate) fn start_due_turns(&mut self) {
        while let Some(session) = self.state.sessions.due_start(self.state.now) {
            self.replan_session(session);
            self.update_session(session);
        }
    }

    /// Does what follows in a session: deals with turns that ended, keeps to the cap, begins the next turn.
    pub(super) fn update_session(&mut self, idx: SessionIdx) {
        let ended = |session: &crate::sessions::session::Session| {
            session.turns.iter().find_map(|turn| turn.extras.end.clone().map(|end| (turn.task, end)))
        };
        let lane = self.state.sessions[idx].lane.clone();
        while let Some((turn, (end, fence))) = self.state.sessions.get(idx).and_then(ended) {
            self.conclude(idx, turn, &end, fence);
            if self.state.sessions.find(&lane) != Some(idx) {
                return;
            }
        }
        self.keep_to_cap(idx);
        if !self.is_busy(idx) && self.ready_at(idx) <= self.state.now {
            self.begin_turn(idx);
        }
    }

    /// A session has one line: messages that wait become turns before one that is asked for directly.
    pub(crate) fn begin_turns_before(&mut self, submitted: &Event) {
        let Event::Submitted { spec, .. } = submitted else { return };
        while let Some(session) = self.session_before(&spec.lanes)
            && self.begin_turn(session).is_some()
        {}
    }

    pub(super) fn session_changed(&mut self, idx: SessionIdx, change: SessionDelta) {
        let session = self.state.sessions[idx].lane.clone();
        self.emit(Event::Session(Box::new(SessionEvent { session, change })));
    }

    /// Drops messages above the cap, after a message came or a setting was changed. The rule `new` drops no accepted
    /// message.
    pub(super) fn keep_to_cap(&mut self, session: SessionIdx) {
        let Some(newest) = self.state.sessions[session].newest() else { return };
        let queue = self.queue_of(session, newest).values();
        let rule = match (queue.mode, queue.drop) {
            (Mode::Latest, _) => return self.keep_latest(session),
            (_, DropRule::New) => return,
            (_, DropRule::Old) => Dropped::Old,
            (_, DropRule::Summarize) => Dropped::Summarize,
        };
        while self.state.sessions[session].is_above(queue.cap as usize)
            && let Some(oldest) = self.state.sessions[session].oldest_capped()
        {
            self.end_message(session, oldest, MessageEnd::Dropped { rule });
        }
    }

    /// Drops messages under `latest` that are older than the newest message. Messages under other modes stay.
    fn keep_latest(&mut self, idx: SessionIdx) {
        let session = &self.state.sessions[idx];
        let newest = session.newest().map_or(0, |newest| newest.number);
        let is_older = |message: &&Message| {
            message.number < newest && self.queue_of(idx, message).mode.value == Mode::Latest
        };
        let older: Vec<MessageId> = session.capped().filter(is_older).map(|message| message.id).collect();
        for message in older {
            self.end_message(idx, message, MessageEnd::Dropped { rule: Dropped::Latest });
        }
    }

    pub(crate) fn end_message(&mut self, session: SessionIdx, message: MessageId, end: MessageEnd) {
        self.session_changed(session, SessionDelta::Ended { message, end });
    }

    /// Submits the next turn of a session.
    pub(super) fn begin_turn(&mut self, idx: SessionIdx) -> Option<TaskId> {
        let NextTurn { address, messages, summary } = self.next_turn(idx)?;
        let session = &self.state.sessions[idx];
        let first = messages.first().and_then(|id| session.place_of(*id)).map(|at| &session.waiting[at]);
        let dropping =
            session.extras.overflows.iter().find(|dropping| Some(&dropping.address) == summary.as_ref());
        let (leader, turns) = match (first, dropping) {
            (Some(first), _) => (first.id, first.turns),
            (None, Some(dropping)) => (dropping.last, dropping.tries),
            (None, None) => return None,
        };
        let turn = self.free_turn_id(leader, u32::from(turns) + 1);
        let asker = first.and_then(Message::asker);
        let spec = self.turn_spec(&address, asker, &session.lane);
        let submitted = self.accept_unasked(turn, Box::new(spec));
        self.emit(submitted);
        self.session_changed(idx, SessionDelta::TurnBegan { turn, messages, summary });
        Some(turn)
    }

    /// Deals with a turn whose task has ended: its messages end with it, or wait again.
    fn conclude(&mut self, idx: SessionIdx, task: TaskId, end: &End, fence: Option<Fence>) {
        let Some(turn) = self.state.sessions[idx].turn(task) else { return };
        let given: Vec<MessageId> = turn.messages.iter().map(|message| message.id).collect();
        let ids = |list: &[crate::sessions::session::Steered]| -> Vec<MessageId> {
            list.iter().filter(|steered| !steered.is_copy).map(|steered| steered.message.id).collect()
        };
        // What an earlier attempt took never reached the one that counts.
        let reached = turn.extras.steered.iter().filter(|steered| !steered.is_copy && steered.fence == fence);
        let steered: Vec<MessageId> = reached.map(|steered| steered.message.id).collect();
        let mut back: Vec<MessageId> = ids(&turn.extras.pending);
        back.extend(ids(&turn.extras.steered).into_iter().filter(|id| !steered.contains(id)));
        match end {
            End::Completed => {
                for message in given {
                    self.end_message(idx, message, MessageEnd::Delivered { turn: task });
                }
                for message in steered {
                    self.end_message(idx, message, MessageEnd::Steered { turn: task });
                }
            }
            End::Cancelled { reason } => {
                for message in given.into_iter().chain(steered) {
                    self.end_message(idx, message, MessageEnd::Cancelled { reason: *reason });
                }
            }
            _ => self.conclude_failed(idx, task, end),
        }
        let is_there = |id: &MessageId| {
            let turn = self.state.sessions.get(idx).and_then(|session| session.turn(task));
            turn.is_some_and(|turn| turn.own().any(|message| message.id == *id))
        };
        back.retain(is_there);
        if !back.is_empty() {
            self.session_changed(idx, SessionDelta::Returned { turn: task, messages: back });
        }
        if self.state.sessions.get(idx).is_some_and(|session| session.turn(task).is_some()) {
            self.session_changed(idx, SessionDelta::TurnOver { turn: task });
        }
    }

    /// A turn did not succeed. Its messages are tried again with growing pauses, at last each alone. Only messages that
    /// fail alone are parked, and those whose turn says that no other attempt helps.
    fn conclude_failed(&mut self, session: SessionIdx, task: TaskId, end: &End) {
        let Some(turn) = self.state.sessions[session].turn(task) else { return };
        let is_lost = *end == End::Lost;
        let steered = turn.extras.steered.iter().filter(|steered| !steered.is_copy);
        let own = turn.messages.iter().chain(steered.map(|steered| &steered.message));
        let own: Vec<(MessageId, u8)> = own.map(|message| (message.id, message.tries)).collect();
        let tries = tries_of(turn);
        if own.is_empty() && turn.extras.summary.is_none() {
            return;
        }
        let settings = &self.state.sessions.settings;
        let may_retry = (!is_lost || settings.redeliver) && !turn.extras.gave_up && settings.attempts > 1;
        let is_last = u32::from(tries) + 1 >= u32::from(settings.attempts);
        let alone = is_last && own.len() > 1;
        if may_retry && (!is_last || alone) {
            let back_off = BACK_OFFS[usize::from(tries).min(BACK_OFFS.len() - 1)];
            // The first loss is no fault of the messages, so they keep their order.
            let is_first_loss = is_lost && tries == 0;
            let at = self.state.now + if is_first_loss { Millis(0) } else { back_off };
            let yields = *end == End::TimedOut;
            let retrying = SessionDelta::Retrying { turn: task, at, alone, redelivered: is_lost, yields };
            return self.session_changed(session, retrying);
        }
        let error = in_words(end);
        for (message, tries) in own {
            let tries = tries.saturating_add(1);
            let end = MessageEnd::Parked { error: Arc::clone(&error), tries };
            self.end_message(session, message, end);
        }
    }
}

impl Scheduler {
    /// The session that a task is a turn of, if there is something to remember of it, and the task's attempt.
    pub(crate) fn session_of_task(&self, task: TaskIdx) -> Option<(SessionIdx, Option<Fence>)> {
        if self.state.sessions.is_empty() {
            return None;
        }
        let lane = self.session_lane_of(task)?;
        let session = self.state.sessions.find(&self.state.lanes[lane].name)?;
        Some((session, self.state.tasks[task].attempt().map(|attempt| attempt.fence)))
    }

    /// Whether a task answers messages.
    pub(crate) fn is_message_turn(&self, idx: TaskIdx) -> bool {
        let task = self.state.tasks[idx].id;
        let session = self.session_of_task(idx).map(|(session, _)| &self.state.sessions[session]);
        session.and_then(|session| session.turn(task)).is_some_and(|turn| !turn.is_direct)
    }

    /// The session whose waiting messages become a turn before a task through these lanes.
    pub(crate) fn session_before(&self, lanes: &[LaneName]) -> Option<SessionIdx> {
        if self.state.sessions.is_empty() {
            return None;
        }
        let lane = lanes.iter().find(|lane| lane.is_session())?;
        let idx = self.state.sessions.find(lane)?;
        let session = &self.state.sessions[idx];
        session.ready(self.state.now).next().map(|_| idx)
    }

    /// Whether a task of the session is live: from its acceptance to its end, also while it waits.
    pub(crate) fn is_busy(&self, session: SessionIdx) -> bool {
        self.is_lane_busy(&self.state.sessions[session].lane)
    }

    pub(crate) fn is_lane_busy(&self, lane: &LaneName) -> bool {
        self.state.lanes.find(lane).is_some_and(|lane| {
            let lane = &self.state.lanes[lane];
            lane.running + lane.waiting + lane.retrying > 0
        })
    }

    /// What holds for a message of a session.
    pub(crate) fn queue_of(&self, session: SessionIdx, message: &Message) -> EffectiveQueue {
        let channel = message.address.place.channel.as_deref();
        self.state.sessions.settings.effective(
            &message.queue(),
            &self.state.sessions[session].extras.queue,
            channel,
        )
    }

    /// When the next turn of a session may begin, if it is not busy: after some quiet, but not too late. What backs off
    /// after a failed turn does not hold up the rest.
    pub(crate) fn ready_at(&self, idx: SessionIdx) -> Timestamp {
        let (session, now) = (&self.state.sessions[idx], self.state.now);
        let next_retry = session.next_retry(now).unwrap_or(Timestamp::NEVER);
        let Some(first) = session.ready(now).next() else {
            return if session.ready_summary(now).is_some() { Timestamp(0) } else { next_retry };
        };
        if first.hastened {
            return Timestamp(0);
        }
        let newest = session.ready(now).max_by_key(|message| message.number).unwrap_or(first);
        // The earliest bound counts, so that no message makes another wait longer.
        let patience = |message: &Message| message.at + self.queue_of(idx, message).max_wait.value;
        let latest = session.ready(now).map(patience).min().unwrap_or(Timestamp::NEVER);
        let queue = self.queue_of(idx, newest).values();
        let quiet = match queue.mode {
            Mode::Latest | Mode::Interrupt => newest.at,
            _ => (newest.at + queue.debounce).min(latest),
        };
        quiet.min(next_retry)
    }

    fn free_turn_id(&self, leader: MessageId, number: u32) -> TaskId {
        let is_free = |task: &TaskId| {
            self.state.tasks.find(*task).is_none() && self.state.dead_letters.get(*task).is_none()
        };
        let ids = (number..).map(|number| TaskId::of_turn(leader, number));
        // Ids are spread over 62 bits: the first one that is free is found at once.
        ids.take(1000).find(is_free).unwrap_or(TaskId::of_turn(leader, number))
    }

    pub(super) fn turn_spec(
        &self,
        address: &Address,
        asker: Option<&LaneName>,
        session: &LaneName,
    ) -> TaskSpec {
        // The names were checked when the message was accepted.
        let mut lanes = address.agent.turn_lanes(Some(session), address.source).unwrap_or_default();
        lanes.extend(asker.filter(|asker| !lanes.contains(asker)).cloned());
        let mut spec = TaskSpec::new(address.agent.kind.clone(), lanes);
        spec.source = address.source;
        spec.priority = address.priority;
        spec
    }

    /// The messages of the next turn, and whether it reports dropped ones. Messages that are answered together are
    /// neighbours in line, those that back off not counted, with one agent, one place and the same permissions.
    fn next_turn(&self, idx: SessionIdx) -> Option<NextTurn> {
        let session = &self.state.sessions[idx];
        let mode = |message: &Message| self.queue_of(idx, message).mode.value;
        let collects = |message: &Message| mode(message) == Mode::Collect && !message.alone;
        let now = self.state.now;
        let head = session.ready(now).next();
        let mut summary = None;
        if let Some(dropping) = session.ready_summary(now) {
            let joins = head.is_some_and(|head| {
                collects(head) && head.address == dropping.address && head.tries == dropping.tries
            });
            if !joins {
                let address = Arc::clone(&dropping.address);
                return Some(NextTurn { summary: Some(Arc::clone(&address)), messages: vec![], address });
            }
            summary = Some(Arc::clone(&dropping.address));
        }
        let head = head?;
        let mut address = &head.address;
        let mut messages = vec![head.id];
        if collects(head) && !head.hastened {
            for next in session.ready(now).skip(1) {
                let is_like_head = (next.tries, next.yields) == (head.tries, head.yields);
                if !(collects(next) && is_like_head && address.takes(&next.address)) {
                    break;
                }
                if address.place.is_empty() {
                    address = &next.address;
                }
                messages.push(next.id);
            }
        }
        Some(NextTurn { address: Arc::clone(address), messages, summary })
    }
}

/// How often the messages of a turn were tried before it.
fn tries_of(turn: &Turn) -> u8 {
    let summary = turn.extras.summary.as_ref().map(|dropping| dropping.tries);
    let steered = turn.extras.steered.iter().map(|steered| &steered.message);
    turn.messages.iter().chain(steered).map(|message| message.tries).chain(summary).max().unwrap_or_default()
}

fn in_words(end: &End) -> Arc<str> {
    match end {
        End::Failed { error } => Arc::clone(error),
        End::TimedOut => "the turn took too long".into(),
        End::Expired | End::WaitTimeout => "the turn waited too long".into(),
        End::Lost => "the replica that ran the turn was lost".into(),
        End::Completed | End::Cancelled { .. } => "".into(),
    }
}
