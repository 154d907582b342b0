//! Sessions as plain data, and what must always hold of them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::api::time::Timestamp;
use crate::scheduler::Scheduler;
use crate::sessions::message::MessageId;
use crate::sessions::queue_mode::MessageSettings;
use crate::sessions::receipts::Receipts;
use crate::sessions::session::Session;
use crate::sessions::table::{SessionIdx, Sessions};

/// All sessions, to be saved or compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedSessions {
    settings: MessageSettings,
    births: u64,
    /// In the order of their birth.
    sessions: Vec<Session>,
    receipts: Receipts,
}

impl Sessions {
    pub(crate) fn save(&self) -> SavedSessions {
        let plain =
            |(_, session): (SessionIdx, &Session)| Session { due: Timestamp::NEVER, ..session.clone() };
        let mut sessions: Vec<Session> = self.iter().map(plain).collect();
        sessions.sort_unstable_by_key(|session| session.birth);
        SavedSessions {
            settings: self.settings.clone(),
            births: self.births,
            sessions,
            receipts: self.receipts.clone(),
        }
    }
}

impl Scheduler {
    pub(crate) fn restore_sessions(&mut self, saved: &SavedSessions) {
        self.state.sessions.settings = saved.settings.clone();
        self.state.sessions.births = saved.births;
        self.state.sessions.receipts = saved.receipts.clone();
        for session in &saved.sessions {
            let idx = self.state.sessions.restore(session.clone());
            self.plan_session(idx);
        }
    }

    /// Every message is in one place; every turn is live; nothing that may begin waits.
    pub(crate) fn wrong_session(&self) -> Option<String> {
        let mut found: BTreeMap<MessageId, SessionIdx> = BTreeMap::new();
        let mut text_bytes = 0;
        for (idx, session) in self.state.sessions.iter() {
            for message in session.messages() {
                text_bytes += message.bytes();
                if found.insert(message.id, idx).is_some() {
                    return Some(format!("{:?} is in two places", message.id));
                }
            }
            if let Some(wrong) = self.wrong_in_session(idx, session) {
                return Some(format!("{}: {wrong}", session.lane));
            }
        }
        let is_found =
            |(id, idx): (&MessageId, &SessionIdx)| self.state.sessions.session_with(*id) == Some(*idx);
        let all_found = found.len() == self.state.sessions.message_count() && found.iter().all(is_found);
        if !all_found || text_bytes != self.state.sessions.text_bytes {
            return Some("the list of messages disagrees with the sessions".to_owned());
        }
        let forgets: BTreeSet<(Timestamp, SessionIdx)> = self.state.sessions.forget_times().collect();
        let oldest = self
            .state
            .sessions
            .iter()
            .filter_map(|(idx, session)| Some((session.extras.seen.front()?.until, idx)));
        (forgets != oldest.collect()).then(|| "the list of deliveries to forget is wrong".to_owned())
    }

    fn wrong_in_session(&self, idx: SessionIdx, session: &Session) -> Option<String> {
        if session.is_idle() {
            return Some("kept for nothing".to_owned());
        }
        if let Some(turn) = session
            .turns
            .iter()
            .find(|turn| turn.extras.end.is_some() || self.state.tasks.find(turn.task).is_none())
        {
            return Some(format!("{:?} is over and still listed", turn.task));
        }
        let is_busy = self.is_busy(idx);
        let due = if is_busy { Timestamp::NEVER } else { self.ready_at(idx) };
        if !is_busy && due <= self.state.now {
            return Some("a turn could begin".to_owned());
        }
        let timer = self.state.sessions.start_times().find(|(_, timed)| *timed == idx).map(|(at, _)| at);
        // A turn that was asked for directly makes the session busy without touching its timer.
        let is_right = timer == Some(due).filter(|due| *due != Timestamp::NEVER) || is_busy;
        (!is_right).then(|| format!("due at {due}, the timers say {timer:?}"))
    }
}
