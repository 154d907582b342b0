//! Following the log: one blocking read for all who wait.

use std::sync::Arc;
use std::time::Duration;

use laneway_store::{ErrorKind, Head, StoreError, Version};
use redis::cmd;
use tokio::sync::watch;

use crate::failure::closed;
use crate::keys::entry_id;
use crate::link::Link;
use crate::log::{batches_of_stream, too_far};
use crate::store::{Ended, Shared};

/// How long Redis holds a blocking read open when nothing comes. In between we look whether it still has what it had.
const BLOCK: Duration = Duration::from_secs(4);
/// Entries that come with one answer at most.
const ENTRIES_MAX: usize = 256;
/// How long to wait before Redis is tried again, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// How far the log is known to go; `None`: not known now.
pub(crate) type Known = Option<Result<Version, StoreError>>;

/// A connection of its own for a read that blocks: on the shared one it would hold up everybody else.
pub(crate) fn link_for(link: &Link, address: redis::ConnectionInfo, patience: Duration) -> Link {
    Link::new(link.name.clone(), address, BLOCK + patience)
}

impl Shared {
    /// Waits until the log has grown beyond a version.
    pub(crate) async fn tail(self: Arc<Self>, after: Version) -> Result<Version, StoreError> {
        let mut known = self.follower().subscribe();
        loop {
            let told = known.borrow_and_update().clone();
            match told {
                Some(Err(error)) => return Err(error),
                Some(Ok(version)) if version > after => return Ok(version),
                // The follower knows less than the caller, which may only be because it is late.
                Some(Ok(version)) if version < after => {
                    let head = self.reaching_apart(after).await?;
                    if head.version > after {
                        return Ok(head.version);
                    }
                }
                // It will tell.
                Some(Ok(_)) | None => {}
            }
            known.changed().await.map_err(|_| closed(&self.link.name))?;
        }
    }

    /// Whether the log reaches so far, asked by a task of its own: whoever waits for the log to grow may turn to something else and
    /// look again when that is done, and for that something the connection must not be in the hands of one who stands still.
    async fn reaching_apart(self: &Arc<Self>, after: Version) -> Result<Head, StoreError> {
        let shared = Arc::clone(self);
        let asked = Ended(self.runtime.spawn(async move { shared.reaching(after).await }));
        asked.await.unwrap_or_else(|| Err(closed(&self.link.name)))
    }

    /// The one who follows, started for the first who waits.
    fn follower(self: &Arc<Self>) -> watch::Sender<Known> {
        let mut follower = self.follower.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((known, task)) = &*follower
            && !task.is_finished()
        {
            return known.clone();
        }
        let known = watch::Sender::new(None);
        let task = self.runtime.spawn(follow(Arc::downgrade(self), known.clone()));
        *follower = Some((known.clone(), task));
        known
    }
}

/// Reads the log for as long as the store is open, and tells how far it goes.
async fn follow(shared: std::sync::Weak<Shared>, known: watch::Sender<Known>) {
    let mut pause = PAUSES.0;
    let mut last: Option<Head> = None;
    loop {
        let Some(shared) = shared.upgrade() else { return };
        match shared.next(last).await {
            Ok(head) => {
                (pause, last) = (PAUSES.0, Some(head));
                known.send_if_modified(|known| {
                    let news = Some(Ok(head.version));
                    let is_new = *known != news;
                    *known = news;
                    is_new
                });
            }
            Err(error) => {
                // It may come back as another one.
                last = None;
                let is_fatal = error.kind() == ErrorKind::Corrupt;
                known.send_replace(Some(Err(error)));
                if is_fatal {
                    return;
                }
                drop(shared);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSES.1);
            }
        }
    }
}

impl Shared {
    /// Where the log ends: at first as Redis says; then when something more has come, or nothing for a while.
    async fn next(&self, last: Option<Head>) -> Result<Head, StoreError> {
        let Some(last) = last else { return self.head().await };
        let mut command = cmd("XREAD");
        command.arg("COUNT").arg(ENTRIES_MAX).arg("BLOCK").arg(BLOCK.as_millis() as u64);
        command.arg("STREAMS").arg(&self.keys.log).arg(entry_id(last.version));
        let answer = self.tail_link.send(&self.keys, &self.recent, &command).await?;
        let read = batches_of_stream(answer).ok_or_else(|| self.nonsense("the log"))?;
        match read.batches.last().map(|newest| newest.version) {
            Some(version) => {
                self.recent.add(read);
                Ok(Head { version, ..last })
            }
            None => {
                let head = self.head().await?;
                match head.version < last.version {
                    true => Err(too_far(last.version, head)),
                    false => Ok(head),
                }
            }
        }
    }
}
