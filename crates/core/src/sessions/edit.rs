//! What is done to a session and to messages that wait: settings, withdrawing, moving, clearing, stopping.

use std::sync::Arc;

use crate::api::command::Reply;
use crate::api::event::{CancelReason, Event};
use crate::api::ids::TaskId;
use crate::api::name::LaneName;
use crate::api::rejection::Rejection;
use crate::api::session_command::{SessionCommand, SessionDelta, SessionEvent, Sweep};
use crate::scheduler::Scheduler;
use crate::sessions::directive::{Directive, beyond, cleared, renewed, set, shown, stopped};
use crate::sessions::message::{BadMessage, Incoming, MessageEnd, MessageId};
use crate::sessions::queue_mode::{MessageSettings, QueueOverrides};
use crate::sessions::send::session_lane;
use crate::sessions::session::Turn;
use crate::sessions::table::SessionIdx;
use crate::state::task::{LiveTask, TaskIdx};
use crate::step::Step;

impl Step<'_> {
    pub(crate) fn decide_session(&mut self, command: SessionCommand) -> Result<Reply, Rejection> {
        match command {
            SessionCommand::Send(incoming) => self.send(incoming),
            SessionCommand::ConfigureMessages(settings) => self.configure_messages(settings),
            SessionCommand::Configure { session, queue } => self.configure_session(&session, queue, false),
            SessionCommand::Amend { session, queue } => self.configure_session(&session, queue, true),
            SessionCommand::Withdraw { message } => self.withdraw(message),
            SessionCommand::Move { message, before } => self.move_message(message, before),
            SessionCommand::SendNow { message } => self.send_now(message),
            SessionCommand::Promote { message } => self.promote(message),
            SessionCommand::Resend { message, again } => self.resend(message, again),
            SessionCommand::Clear { session } => self.clear_session(&session),
            SessionCommand::Interrupt { session } => self.interrupt_session(&session),
            SessionCommand::Stop { session } => {
                let lane = session_lane(&session)?;
                let (tasks, messages) = self.sweep_session(&lane, Sweep::Stopped);
                Ok(Reply::Cancelled(tasks + messages))
            }
            SessionCommand::Steering { turn, fence, open } => self.set_steering(turn, fence, open),
            SessionCommand::TakeSteering { turn, fence, only } => {
                self.take_steering(turn, fence, only.as_deref())
            }
            SessionCommand::HeartbeatOfTurn { turn, fence, takes_steering, taken } => {
                self.heartbeat_of_turn(turn, fence, takes_steering, taken.as_deref())
            }
        }
    }

    fn configure_messages(&mut self, settings: Box<MessageSettings>) -> Result<Reply, Rejection> {
        for level in settings.by_channel.values().chain([&settings.global]) {
            level.check(&settings.policy).map_err(|error| Rejection::BadMessage(BadMessage::Queue(error)))?;
        }
        if *settings != self.state.sessions.settings {
            self.emit(Event::MessagesConfigured { settings });
        }
        Ok(Reply::Done)
    }

    fn configure_session(
        &mut self,
        session: &Arc<str>,
        queue: QueueOverrides,
        keeps_rest: bool,
    ) -> Result<Reply, Rejection> {
        let lane = session_lane(session)?;
        let policy = &self.state.sessions.settings.policy;
        queue.check(policy).map_err(|error| Rejection::BadMessage(BadMessage::Queue(error)))?;
        let rest = if keeps_rest { self.overrides_of(&lane) } else { QueueOverrides::default() };
        self.set_queue(&lane, queue.over(rest));
        Ok(Reply::Done)
    }

    fn set_queue(&mut self, lane: &LaneName, queue: QueueOverrides) {
        if queue != self.overrides_of(lane) {
            self.in_session(lane, SessionDelta::Configured { queue });
        }
    }

    pub(crate) fn in_session(&mut self, lane: &LaneName, change: SessionDelta) {
        self.emit(Event::Session(Box::new(SessionEvent { session: lane.clone(), change })));
    }

    /// Does what a message that is a directive as a whole says, and returns what to answer.
    pub(super) fn apply_directive(
        &mut self,
        lane: &LaneName,
        incoming: &Incoming,
        directive: Directive,
    ) -> String {
        let known = self.overrides_of(lane);
        let channel = incoming.place.channel.as_deref();
        match directive {
            Directive::Set(queue) => match queue.check(&self.state.sessions.settings.policy) {
                Err(too_much) => beyond(too_much),
                Ok(()) => {
                    self.set_queue(lane, queue.over(known));
                    set(&queue)
                }
            },
            Directive::Show => {
                let depth = self
                    .state
                    .sessions
                    .find(lane)
                    .map_or(0, |session| self.state.sessions[session].waiting.len());
                let settings = &self.state.sessions.settings;
                shown(&settings.effective(&QueueOverrides::default(), &known, channel), depth)
            }
            Directive::Reset => {
                self.set_queue(lane, QueueOverrides::default());
                let nothing = QueueOverrides::default();
                cleared(&self.state.sessions.settings.effective(&nothing, &nothing, channel))
            }
            Directive::Stop => {
                let (tasks, messages) = self.sweep_session(lane, Sweep::Stopped);
                stopped(tasks, messages)
            }
            Directive::New { .. } => {
                let (tasks, messages) = self.sweep_session(lane, Sweep::Interrupted);
                self.renew(lane);
                renewed(tasks, messages)
            }
        }
    }

    /// The next turn starts a fresh conversation.
    pub(crate) fn renew(&mut self, lane: &LaneName) {
        let is_fresh =
            self.state.sessions.find(lane).is_some_and(|session| self.state.sessions[session].extras.fresh);
        if !is_fresh {
            self.in_session(lane, SessionDelta::Renewed);
        }
    }

    /// Takes back a message that waits: alone, in a turn that has not started, or for a running turn to take it.
    fn withdraw(&mut self, message: MessageId) -> Result<Reply, Rejection> {
        let reason = CancelReason::Caller;
        let (session, turn) = match self.state.sessions.session_with(message) {
            None => return self.throw_away(message),
            Some(session) => (session, self.state.sessions[session].turn_of(message)),
        };
        let is_pending =
            |turn: &Turn| turn.extras.pending.iter().any(|steered| steered.message.id == message);
        match turn {
            Some(turn) if is_pending(turn) => {
                self.end_message(session, message, MessageEnd::Cancelled { reason });
            }
            Some(turn) if !self.has_not_started(turn) => return Err(Rejection::MessageInTurn { message }),
            // A turn with nothing left to answer does not run.
            Some(turn) if turn.own().count() == 1 && turn.extras.summary.is_none() => {
                let task = turn.task;
                self.cancel(task, reason)?;
            }
            _ => self.end_message(session, message, MessageEnd::Cancelled { reason }),
        }
        Ok(Reply::Cancelled(1))
    }

    fn move_message(&mut self, message: MessageId, before: Option<MessageId>) -> Result<Reply, Rejection> {
        let session = self.waiting_message(message)?;
        if let Some(before) = before
            && (before == message || self.state.sessions[session].place_of(before).is_none())
        {
            return Err(Rejection::BadMessage(BadMessage::Before));
        }
        self.session_changed(session, SessionDelta::Moved { message, before });
        Ok(Reply::Done)
    }

    fn send_now(&mut self, message: MessageId) -> Result<Reply, Rejection> {
        let session = self.waiting_message(message)?;
        self.session_changed(session, SessionDelta::Hastened { message });
        Ok(Reply::Done)
    }

    fn clear_session(&mut self, session: &Arc<str>) -> Result<Reply, Rejection> {
        let lane = session_lane(session)?;
        let Some(idx) = self.state.sessions.find(&lane) else { return Ok(Reply::Cancelled(0)) };
        let turns = self.state.sessions[idx].turns.iter().filter(|turn| self.has_not_started(turn));
        let turns: Vec<(TaskId, usize)> = turns.map(|turn| (turn.task, turn.own().count())).collect();
        let mut count = self.cancel_waiting_messages(idx, CancelReason::Cleared);
        for (task, messages) in turns {
            count += messages;
            if let Some(task) = self.state.tasks.find(task) {
                self.cancel_slot(task, CancelReason::Cleared);
            }
        }
        Ok(Reply::Cancelled(count))
    }

    /// Cancels what is under way, and leaves what waits.
    fn interrupt_session(&mut self, session: &Arc<str>) -> Result<Reply, Rejection> {
        let lane = session_lane(session)?;
        let task = self.current_turn(&lane).ok_or(Rejection::SessionIdle { session: lane })?;
        self.cancel(task, CancelReason::Interrupted)
    }

    /// Cancels everything in a session; says how many tasks and how many waiting messages that were.
    pub(crate) fn sweep_session(&mut self, lane: &LaneName, sweep: Sweep) -> (usize, usize) {
        let reason = sweep.reason();
        let tasks = self.tasks_of_session(lane);
        let mut messages = 0;
        if let Some(session) = self.state.sessions.find(lane) {
            let turns = self.state.sessions[session].turns.iter();
            let pending: Vec<MessageId> = turns
                .flat_map(|turn| turn.extras.pending.iter().filter(|steered| !steered.is_copy))
                .map(|steered| steered.message.id)
                .collect();
            messages += pending.len();
            for message in pending {
                self.end_message(session, message, MessageEnd::Cancelled { reason });
            }
            messages += self.cancel_waiting_messages(session, reason);
        }
        for task in &tasks {
            if let Some(task) = self.state.tasks.find(*task) {
                self.cancel_slot(task, reason);
            }
        }
        (tasks.len(), messages)
    }

    fn cancel_waiting_messages(&mut self, idx: SessionIdx, reason: CancelReason) -> usize {
        let Some(session) = self.state.sessions.get(idx) else { return 0 };
        let waiting: Vec<MessageId> = session.waiting.iter().map(|message| message.id).collect();
        if !session.extras.overflows.is_empty() {
            self.session_changed(idx, SessionDelta::SummaryDropped);
        }
        for message in &waiting {
            self.end_message(idx, *message, MessageEnd::Cancelled { reason });
        }
        waiting.len()
    }
}

impl Scheduler {
    /// What was set for a session.
    fn overrides_of(&self, lane: &LaneName) -> QueueOverrides {
        self.state
            .sessions
            .find(lane)
            .map(|session| self.state.sessions[session].extras.queue)
            .unwrap_or_default()
    }

    /// The session and place of a message that waits.
    pub(super) fn waiting_message(&self, message: MessageId) -> Result<SessionIdx, Rejection> {
        match self.state.sessions.session_with(message) {
            None => Err(Rejection::NoSuchMessage { message }),
            Some(session) if self.state.sessions[session].place_of(message).is_none() => {
                Err(Rejection::MessageInTurn { message })
            }
            Some(session) => Ok(session),
        }
    }

    /// Whether a turn of messages waits for its slots, or to be tried again.
    fn has_not_started(&self, turn: &Turn) -> bool {
        let task = self.state.tasks.find(turn.task).map(|task| &self.state.tasks[task]);
        !turn.is_direct && task.is_some_and(|task| task.attempt().is_none())
    }

    /// The live tasks of a session, in the order of their arrival.
    fn tasks_of_session(&self, lane: &LaneName) -> Vec<TaskId> {
        let Some(number) = self.state.lanes.find(lane) else { return vec![] };
        let this = &self.state.lanes[number];
        let live = (this.running + this.waiting + this.retrying) as usize;
        let session = self.state.sessions.find(lane).map(|idx| &self.state.sessions[idx]);
        let turns: Vec<TaskId> =
            session.map_or(vec![], |session| session.turns.iter().map(|turn| turn.task).collect());
        if turns.len() == live {
            return turns;
        }
        // There is no list of tasks that were submitted directly.
        let names_it =
            |(_, task): &(TaskIdx, &LiveTask)| self.state.lanes.route(task.route).lanes.contains(&number);
        let mut tasks: Vec<&LiveTask> =
            self.state.tasks.iter().filter(names_it).map(|(_, task)| task).collect();
        tasks.sort_unstable_by_key(|task| task.arrival);
        tasks.into_iter().map(|task| task.id).collect()
    }

    /// The turn that is under way in a session: the one that runs, else the first that waits.
    pub(crate) fn current_turn(&self, lane: &LaneName) -> Option<TaskId> {
        let tasks = self.tasks_of_session(lane);
        let runs = |task: &&TaskId| {
            self.state.tasks.find(**task).is_some_and(|idx| self.state.tasks[idx].attempt().is_some())
        };
        tasks.iter().find(runs).or(tasks.first()).copied()
    }
}
