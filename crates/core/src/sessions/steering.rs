//! Messages into a running turn: accepted for it, then taken by it at a boundary or returned to the line.

use crate::api::command::Reply;
use crate::api::event::{CancelReason, Event};
use crate::api::ids::{Fence, TaskId};
use crate::api::name::LaneName;
use crate::api::rejection::Rejection;
use crate::api::session_command::{SendOutcome, SessionDelta, SessionEvent, TurnMessage, Way};
use crate::scheduler::Scheduler;
use crate::sessions::message::{Address, BadMessage, Incoming, MessageId};
use crate::sessions::queue_mode::Mode;
use crate::sessions::send::{address, reply};
use crate::sessions::table::SessionIdx;
use crate::state::lane::LaneIdx;
use crate::state::task::{Phase, TaskIdx};
use crate::step::Step;

impl Step<'_> {
    pub(super) fn steer_into(
        &mut self,
        lane: &LaneName,
        incoming: &Incoming,
        mode: Mode,
        turn: Option<TaskId>,
    ) -> Result<Reply, Rejection> {
        let Some(turn) = turn else { return Err(Rejection::SessionBusy { session: lane.clone(), turn }) };
        let (way, outcome) = match mode {
            Mode::SteerBacklog => (Way::Both { turn }, SendOutcome::SteeredAndQueued),
            _ => (Way::Steer { turn }, SendOutcome::Steered),
        };
        let accepted_in = self.accept_message(lane, incoming, way);
        self.skip_calls(turn);
        let position = accepted_in.and_then(|session| {
            self.keep_to_cap(session);
            self.state.sessions[session].place_of(incoming.id).map(|at| at as u32 + 1)
        });
        Ok(reply(incoming.id, outcome, Some(turn), position))
    }

    /// Passes a message that waits into the running turn.
    pub(super) fn promote(&mut self, message: MessageId) -> Result<Reply, Rejection> {
        let idx = self.waiting_message(message)?;
        let turn = self.turn_for(idx, message).ok_or(Rejection::BadMessage(BadMessage::NotSteerable))?;
        self.session_changed(idx, SessionDelta::Promoted { message, turn });
        self.skip_calls(turn);
        Ok(reply(message, SendOutcome::Steered, Some(turn), None))
    }

    /// Cancels the tool calls of a steered turn that have not started, so that the model sees the message first.
    fn skip_calls(&mut self, turn: TaskId) {
        let Some(idx) = self.state.tasks.find(turn) else { return };
        let is_waiting_call = |child: &TaskIdx| {
            let task = &self.state.tasks[*child];
            let home = self.state.lanes.route(task.route).first_lane();
            let is_call =
                self.state.lanes[home].name.is_session_family() && !self.state.lanes[home].name.is_session();
            is_call && task.attempts == 0 && !matches!(task.phase, Phase::Running(_))
        };
        let mut calls: Vec<TaskIdx> =
            self.state.tasks[idx].children().iter().copied().filter(is_waiting_call).collect();
        // The last one first, so that the end of a call lets no later one start.
        calls.sort_unstable_by_key(|call| std::cmp::Reverse(self.state.tasks[*call].arrival));
        for call in calls {
            self.cancel_slot(call, CancelReason::Steered);
        }
    }

    pub(super) fn set_steering(
        &mut self,
        turn: TaskId,
        fence: Fence,
        open: bool,
    ) -> Result<Reply, Rejection> {
        let Some(session) = self.session_of_turn(turn, fence)? else {
            let refused = Err(Rejection::BadMessage(BadMessage::NoSession));
            return if open { refused } else { Ok(Reply::Done) };
        };
        let known = self.state.sessions.find(&session).and_then(|idx| self.state.sessions[idx].turn(turn));
        let is_open = known.is_some_and(|turn| turn.extras.steering == Some(fence));
        if is_open == open {
            return Ok(Reply::Done);
        }
        let pending: Vec<MessageId> = known
            .filter(|_| !open)
            .map_or(vec![], |turn| turn.extras.pending.iter().map(|steered| steered.message.id).collect());
        let set = SessionDelta::SteeringSet { turn, fence, open };
        self.emit(Event::Session(Box::new(SessionEvent { session: session.clone(), change: set })));
        if !pending.is_empty() {
            let change = SessionDelta::Returned { turn, messages: pending };
            self.emit(Event::Session(Box::new(SessionEvent { session, change })));
        }
        Ok(Reply::Done)
    }

    pub(super) fn heartbeat_of_turn(
        &mut self,
        turn: TaskId,
        fence: Fence,
        takes_steering: Option<bool>,
        taken: Option<&[MessageId]>,
    ) -> Result<Reply, Rejection> {
        let has_session = self.session_of_turn(turn, fence)?.is_some();
        if takes_steering == Some(true) && !has_session {
            return Err(Rejection::BadMessage(BadMessage::NoSession));
        }
        let (until, stopping) = self.renew_lease(turn, fence)?;
        // Messages are taken before steering closes, which returns the others to the line.
        let steering = match (taken, takes_steering) {
            (None, None) | (Some([]), _) => vec![],
            (None, Some(_)) => self.take_messages(turn, fence, None)?,
            (Some(taken), _) => {
                self.take_messages(turn, fence, Some(taken))?;
                vec![]
            }
        };
        if let Some(open) = takes_steering {
            self.set_steering(turn, fence, open)?;
        }
        let offers = taken.is_some() && takes_steering == Some(true);
        let steering = if offers { self.offered_steering(turn, fence) } else { steering };
        Ok(Reply::TurnRenewed { until, stopping, steering })
    }

    pub(super) fn take_steering(
        &mut self,
        turn: TaskId,
        fence: Fence,
        only: Option<&[MessageId]>,
    ) -> Result<Reply, Rejection> {
        self.take_messages(turn, fence, only).map(Reply::Steering)
    }

    pub(crate) fn take_messages(
        &mut self,
        turn: TaskId,
        fence: Fence,
        only: Option<&[MessageId]>,
    ) -> Result<Vec<TurnMessage>, Rejection> {
        let Some(session) = self.session_of_turn(turn, fence)? else { return Ok(vec![]) };
        let mut taken = self.news_for(&session, turn, fence);
        // A message that was taken before, or went back to the line, is not on offer.
        taken.retain(|message| only.is_none_or(|only| only.contains(&message.id)));
        if !taken.is_empty() {
            let messages = taken.iter().map(|message| message.id).collect();
            let change = SessionDelta::Taken { turn, fence, messages };
            self.emit(Event::Session(Box::new(SessionEvent { session, change })));
        }
        Ok(taken)
    }
}

impl Scheduler {
    /// The running turn that a message can steer: it can take messages of this address, and is the turn that the message
    /// means.
    pub(crate) fn steerable(&self, lane: &LaneName, incoming: &Incoming, cap: u32) -> Option<TaskId> {
        let turn = self.takes_from(self.state.sessions.find(lane)?, &address(incoming), cap)?;
        incoming.steer.is_none_or(|steer| steer.turn == turn).then_some(turn)
    }

    /// The running turn that can take a waiting message. One that has a copy of it cannot.
    fn turn_for(&self, session: SessionIdx, message: MessageId) -> Option<TaskId> {
        let this = &self.state.sessions[session];
        let waiting = this.waiting.get(this.place_of(message)?)?;
        let channel = waiting.address.place.channel.as_deref();
        let queue = self.state.sessions.settings.effective(&waiting.queue(), &this.extras.queue, channel);
        let turn = self.takes_from(session, &waiting.address, queue.values().cap)?;
        let known = &this.turn(turn)?.extras;
        let has_copy = known.pending.iter().chain(&known.steered).any(|copy| copy.message.id == message);
        (!has_copy).then_some(turn)
    }

    /// The running turn that takes steering, has room, and answers only this address. Place and permissions match too: a sender
    /// must see the answer and may not use the permissions of others.
    fn takes_from(&self, session: SessionIdx, address: &Address, cap: u32) -> Option<TaskId> {
        let session = &self.state.sessions[session];
        let takes = session.turns.iter().find(|turn| {
            let attempt = self.state.tasks.find(turn.task).and_then(|task| self.state.tasks[task].attempt());
            let is_open = attempt.is_some_and(|attempt| {
                attempt.stopping.is_none() && turn.extras.steering == Some(attempt.fence)
            });
            is_open && turn.extras.pending.len() < cap as usize
        })?;
        let told = takes.extras.summary.as_ref().map(|dropping| &dropping.address);
        let mut answered = takes.messages.iter().map(|message| &message.address).chain(told);
        answered.all(|answered| answered.takes(address)).then_some(takes.task)
    }

    /// The session of a running attempt, if its task is a turn of one.
    fn session_of_turn(&self, turn: TaskId, fence: Fence) -> Result<Option<LaneName>, Rejection> {
        let (session, _) = self.fenced(turn, fence)?;
        Ok(self.session_lane_of(session).map(|lane| self.state.lanes[lane].name.clone()))
    }

    /// The lane of the session that a task is a turn of.
    pub(crate) fn session_lane_of(&self, task: TaskIdx) -> Option<LaneIdx> {
        let lanes = &self.state.lanes.route(self.state.tasks[task].route).lanes;
        lanes.iter().copied().find(|lane| self.state.lanes[*lane].name.is_session())
    }

    /// The messages that a running attempt of a turn could take now. They stay on offer until
    /// [`TakeSteering`](crate::SessionCommand::TakeSteering) names them, so a lost answer loses no message.
    pub fn offered_steering(&self, turn: TaskId, fence: Fence) -> Vec<TurnMessage> {
        let session = self.session_of_turn(turn, fence).ok().flatten();
        session.map_or(vec![], |session| self.news_for(&session, turn, fence))
    }

    /// Whether the owner of a running attempt has something to hear: it must stop, or messages are on offer.
    pub fn wants_heartbeat(&self, task: TaskId) -> bool {
        let attempt = self.state.tasks.find(task).and_then(|idx| self.state.tasks[idx].attempt());
        attempt.is_some_and(|attempt| {
            attempt.stopping.is_some() || !self.offered_steering(task, attempt.fence).is_empty()
        })
    }

    /// The messages that a running attempt of a turn has taken.
    pub fn taken_steering(&self, turn: TaskId, fence: Fence) -> Vec<MessageId> {
        let session = self.session_of_turn(turn, fence).ok().flatten();
        let idx = session.and_then(|session| self.state.sessions.find(&session));
        let known = idx.and_then(|idx| self.state.sessions[idx].turn(turn));
        let steered = known.into_iter().flat_map(|turn| &turn.extras.steered);
        steered.filter(|steered| steered.fence == Some(fence)).map(|steered| steered.message.id).collect()
    }

    /// The messages for a turn that this attempt has not taken.
    fn news_for(&self, session: &LaneName, turn: TaskId, fence: Fence) -> Vec<TurnMessage> {
        let known = self.state.sessions.find(session).and_then(|idx| self.state.sessions[idx].turn(turn));
        let Some(known) = known else { return vec![] };
        // Messages that an earlier attempt took are offered again.
        let stale = known.extras.steered.iter().filter(|steered| steered.fence != Some(fence));
        stale.chain(&known.extras.pending).map(|steered| TurnMessage::from(&steered.message)).collect()
    }
}
