//! Following the log. A notification is only a hint: what was missed is found by looking from time to time.

use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use laneway_store::{ErrorKind, StoreError, Version};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::baton::author_of;
use crate::failure::closed;
use crate::link::{Hint, Link, hint_of};
use crate::log::{head_of, too_far};
use crate::store::Shared;

/// How often to look without a hint.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long to wait before Postgres is tried again, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// How far the log is known to go; `None`: not known now.
pub(crate) type Known = Option<Result<Version, StoreError>>;

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
                    let head = self.reaching(after).await?;
                    if head.version > after {
                        return Ok(head.version);
                    }
                }
                // It will tell.
                Some(Ok(_)) | None => {}
            }
            known.changed().await.map_err(|_| closed(&self.address.name))?;
        }
    }

    /// The one who follows, started for the first who waits.
    fn follower(self: &Arc<Self>) -> watch::Sender<Known> {
        let mut follower = self.follower.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, task)) = &*follower
            && !task.is_finished()
        {
            return known.clone();
        }
        let known = watch::Sender::new(None);
        let (hinted, hints) = watch::channel(Hint::default());
        let tell = move |payload: &str| {
            // The newest says all that those before it said.
            if let Some(hint) = hint_of(payload) {
                hinted.send_replace(hint);
            }
        };
        let (address, patience) = (&self.address, self.options.patience);
        let link = Link::listening(address, patience, address.schema.clone(), tell);
        let task = self.runtime.spawn(follow(Arc::downgrade(self), link, hints, known.clone()));
        *follower = Some((known.clone(), task));
        known
    }
}

/// Follows the log for as long as the store is open, and tells how far it goes.
async fn follow(
    shared: Weak<Shared>,
    link: Link,
    mut hints: watch::Receiver<Hint>,
    known: watch::Sender<Known>,
) {
    let mut pause = PAUSES.0;
    let mut last = None;
    while let Some(newest) = shared.upgrade().map(|shared| Arc::clone(&shared.newest)) {
        match look(&link, last).await {
            Ok((version, baton)) => {
                (pause, last) = (PAUSES.0, Some(version));
                newest.note(version, baton);
                tell(&known, Ok(version));
            }
            Err(error) => {
                // It may come back as another one.
                last = None;
                newest.forget();
                let is_fatal = error.kind() == ErrorKind::Corrupt;
                tell(&known, Err(error));
                if is_fatal {
                    return;
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSES.1);
                continue;
            }
        }
        // As long as hints come there is no need to look.
        while let Ok(Ok(())) = timeout(LOOK_EVERY, hints.changed()).await {
            let (version, baton) = *hints.borrow_and_update();
            if last.is_none_or(|last| last < version) {
                last = Some(version);
                newest.note(version, baton);
                tell(&known, Ok(version));
            }
        }
    }
}

fn tell(known: &watch::Sender<Known>, news: Result<Version, StoreError>) {
    known.send_if_modified(|known| {
        let news = Some(news);
        let is_new = *known != news;
        *known = news;
        is_new
    });
}

async fn look(link: &Link, last: Option<Version>) -> Result<Hint, StoreError> {
    let rows = link.query("SELECT version, batch, baton FROM head", &[]).await?;
    let row = rows.first();
    let head = row.and_then(|row| head_of(row.get(0), row.get(1))).unwrap_or_default();
    match last {
        Some(last) if head.version < last => Err(too_far(last, head)),
        _ => Ok((head.version, row.and_then(|row| author_of(row.get(2))))),
    }
}
