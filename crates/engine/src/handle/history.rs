//! Finished tasks and the attempts of every task. No decision reads them.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use laneway_core::{Fence, LaneName, LiveTaskView, Name, TaskId, Timestamp};
use laneway_store::{
    Entry, Finished, HistoryPosition, HistoryQuery, StoreError, Try, Version, decode_tries, encode_tries,
    label, tries_blob,
};

use crate::driver::engine::Engine;
use crate::error::Error;
use crate::handle::Handle;

/// The most finished tasks that one page lists.
const PAGE_MAX: u32 = 1000;
/// The most attempts of a task that are listed, the newest ones.
const TRIES_MAX: usize = 100;

/// Which finished tasks to list: those that fit everything that is given, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryFilter {
    /// They ended so.
    pub state: Option<EndState>,
    /// They named this lane.
    pub lane: Option<LaneName>,
    /// They were of this kind.
    pub kind: Option<Name>,
    /// They were turns or tool calls of this session, by its key.
    pub session: Option<String>,
    /// They carried this label.
    pub group: Option<Name>,
    /// This task asked for them.
    pub parent: Option<TaskId>,
    /// They come after this place of an earlier list. Default: from the newest on.
    pub after: Option<Cursor>,
    /// How many at most, 1 to 1000. Default 0, which means 100.
    pub max: u32,
}

/// A part of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryPage {
    /// The tasks, the newest first.
    pub items: Vec<Finished>,
    /// Where the next page begins; `None`: there is none.
    pub next: Option<Cursor>,
}

/// A place in the history; its text is for handing round, not for reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor(HistoryPosition);

/// A text that is none of the expected words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be {expected}")]
pub struct UnknownWord {
    expected: &'static str,
}

/// How a task ended, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndState {
    /// `completed`.
    Completed,
    /// `failed`.
    Failed,
    /// `timed_out`.
    TimedOut,
    /// `cancelled`.
    Cancelled,
    /// `expired`.
    Expired,
    /// `wait_timeout`.
    WaitTimeout,
    /// `lost`.
    Lost,
}

/// All that is known of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRecord {
    /// As long as it is live.
    pub live: Option<LiveTaskView>,
    /// When it is over.
    pub finished: Option<Finished>,
    /// The attempts after which another followed, in order; the newest hundred.
    pub tries: Vec<Try>,
    /// What it was to do, as JSON: as long as it is live, and after that as
    /// [`Options::payloads_kept_max`](crate::Options::payloads_kept_max) says.
    pub payload: Option<Bytes>,
    /// What it produced, as JSON.
    pub result: Option<Bytes>,
}

impl Handle {
    /// Finished tasks of named handlers and workers, as far as they are remembered.
    pub async fn history(&self, filter: HistoryFilter) -> Result<HistoryPage, Error> {
        let max = if filter.max == 0 { 100 } else { filter.max.min(PAGE_MAX) };
        let mut labels = Vec::new();
        labels.extend(filter.state.map(|state| label("state", state.as_str())));
        labels.extend(filter.lane.map(|lane| label("lane", lane.as_str())));
        labels.extend(filter.kind.map(|kind| label("kind", kind.as_str())));
        labels.extend(filter.group.map(|group| label("group", group.as_str())));
        labels.extend(filter.parent.map(|parent| label("parent", &parent.to_string())));
        if let Some(key) = &filter.session {
            // As it stands in the names of lanes.
            let lane = LaneName::session(key)?;
            labels.extend(lane.as_str().strip_prefix("session:").map(|key| label("session", key)));
        }
        let before = filter.after.map(|cursor| cursor.0);
        // One more than is listed shows whether there is another page.
        let asked = HistoryQuery { before, labels, max: max + 1 };
        let mut found = self.journal()?.history(asked).await?;
        let is_more = found.len() > max as usize;
        found.truncate(max as usize);
        let next = found.last().filter(|_| is_more).map(|(place, _)| Cursor(*place));
        Ok(HistoryPage { items: found.into_iter().map(|(_, finished)| finished).collect(), next })
    }

    /// All that is known of a task, live or remembered.
    pub async fn record(&self, task: TaskId) -> Result<Option<TaskRecord>, Error> {
        let journal = self.journal()?;
        let live = match self.task(task).await {
            // A queue in memory still has its records when it has ended.
            Err(Error::Closed) => None,
            live => live?,
        };
        if let Some(live) = live {
            let payload = match live.payload {
                Some(payload) => journal.payload(payload).await?,
                None => None,
            };
            let tries = if live.attempts > 0 { journal.payload(tries_blob(task)).await? } else { None };
            let tries = tries.and_then(|tries| decode_tries(&tries)).unwrap_or_default();
            return Ok(Some(TaskRecord { live: Some(live), finished: None, tries, payload, result: None }));
        }
        // It may have ended since, so the history is asked last.
        let over = |(mut finished, result): (Finished, Option<Bytes>)| {
            let (tries, payload) = (std::mem::take(&mut finished.tries), finished.payload.take());
            TaskRecord { live: None, finished: Some(finished), tries, payload, result }
        };
        Ok(journal.finished(task).await?.map(over))
    }
}

impl Engine {
    /// Writes down an attempt after which another follows. It is kept as a payload of the task's.
    pub(crate) fn note_try(
        &mut self,
        task: TaskId,
        fence: Fence,
        error: &Arc<str>,
        ended: Timestamp,
        entry: &mut Entry,
    ) {
        let start_of = self.runs.start_of(task, fence);
        let (started, worker) =
            start_of.map_or((None, None), |start_of| (Some(start_of.started), start_of.worker));
        let tries = self.storage.tries.entry(task).or_default();
        tries.push(Try { fence, started, ended, worker, error: Arc::clone(error) });
        tries.drain(..tries.len().saturating_sub(TRIES_MAX));
        entry.payloads.extend(encode_tries(tries).map(|bytes| (tries_blob(task), bytes)));
    }

    /// The attempts of a task that ends, but for the last.
    pub(crate) fn take_tries(&mut self, task: TaskId, entry: &mut Entry) -> Vec<Try> {
        if self.storage.tries.is_empty() {
            return Vec::new();
        }
        let tries = self.storage.tries.remove(&task).unwrap_or_default();
        if !tries.is_empty() {
            entry.dropped.push(tries_blob(task));
        }
        tries
    }

    /// Takes up what the store holds of these tasks.
    pub(crate) async fn recall_tries(&mut self, tasks: Vec<TaskId>) -> Result<(), StoreError> {
        self.storage.tries.clear();
        for task in tasks {
            let kept = self.storage.journal.payload(tries_blob(task)).await?;
            if let Some(tries) = kept.and_then(|bytes| decode_tries(&bytes)) {
                self.storage.tries.insert(task, tries);
            }
        }
        Ok(())
    }
}

impl EndState {
    const ALL: [EndState; 7] = [
        EndState::Completed,
        EndState::Failed,
        EndState::TimedOut,
        EndState::Cancelled,
        EndState::Expired,
        EndState::WaitTimeout,
        EndState::Lost,
    ];

    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            EndState::Completed => "completed",
            EndState::Failed => "failed",
            EndState::TimedOut => "timed_out",
            EndState::Cancelled => "cancelled",
            EndState::Expired => "expired",
            EndState::WaitTimeout => "wait_timeout",
            EndState::Lost => "lost",
        }
    }
}

impl FromStr for EndState {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<EndState, UnknownWord> {
        let expected = "one of completed, failed, timed_out, cancelled, expired, wait_timeout, lost";
        EndState::ALL.into_iter().find(|state| state.as_str() == text).ok_or(UnknownWord { expected })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0.version.0, self.0.index)
    }
}

impl FromStr for Cursor {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Cursor, UnknownWord> {
        let place = text.split_once('.').and_then(|(version, index)| {
            Some(HistoryPosition { version: Version(version.parse().ok()?), index: index.parse().ok()? })
        });
        place.map(Cursor).ok_or(UnknownWord { expected: "a cursor that an earlier list gave" })
    }
}
