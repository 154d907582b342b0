//! The append turn: replicas that all have something to append take turns.
//!
//! ```text
//!   A appends, passes to B ──▶ B reads A's batch, decides, appends, passes to C ──▶ C …
//!   A has more: stands in line ──────────────────────────────────────────────────▶ … passes to A
//! ```
//!
//! A replica that loses a race, or has something to append while another has the append turn, queues itself in the store.
//! Each batch passes the append turn to the first in that queue. A replica that waits for the append turn collects
//! requests, reads what the others append, and decides when it has the append turn. A replica that expects more to append
//! re-queues itself as part of its append, if it has met others lately. While the queue is empty, every replica appends
//! at once.
//!
//! The turn is advisory, not a lock: a batch counts if the log ends where it was decided. A replica that dies with the
//! append turn, or in the queue, costs the others [`SILENCE_MAX`] and nothing else.

use std::time::Duration;

use laneway_core::Event;
use laneway_store::{Author, ErrorKind, Head, StoreError};
use tokio::time::{Instant, timeout_at};

use crate::driver::batch::Batch;
use crate::driver::engine::Engine;
use crate::replica::apply_remote::news;

/// How long the replica that has the append turn may append nothing before the others go on without it. One that is only
/// slow would make its own batch and one of theirs vain.
const SILENCE_MAX: Duration = Duration::from_millis(50);
/// How long to wait for the append turn at most while the others append: the store may have lost the place in the queue.
const WAIT_MAX: Duration = Duration::from_millis(250);

/// How long after a conflict to expect another.
const CROWDED_FOR: Duration = Duration::from_millis(10);

/// Where a replica stands among those that append.
#[derive(Default)]
pub(crate) struct Place {
    /// It is queued, unless the store has lost that.
    is_in_line: bool,
    /// When another replica was last in the way.
    met: Option<Instant>,
}

impl Engine {
    /// Whether the others wait for us, because we have the append turn.
    pub(crate) fn has_append_turn(&self) -> bool {
        self.replica.as_ref().is_some_and(|replica| self.append_turn() == Some(Author(replica.id.0)))
    }

    /// The replica that got the append turn with the newest batch that we have read.
    fn append_turn(&self) -> Option<Author> {
        let (version, append_turn) = self.storage.journal.log()?.store().newest()?;
        append_turn.filter(|_| version == self.storage.head.version)
    }

    /// Reads what the store has heard of already, so that no decision is made in vain.
    async fn read_newest(&mut self) {
        let newest = self.storage.journal.log().and_then(|log| log.store().newest());
        if let Some((version, _)) = newest.filter(|(version, _)| *version > self.storage.head.version)
            && self.replica.is_some()
            && self.store_trouble().is_none()
            && let Err(error) = self.catch_up(Some(version)).await
        {
            self.give_up(error, Vec::new());
        }
    }

    /// Until when to let another replica append first.
    fn yield_until(&self) -> Option<Instant> {
        let replica = self.replica.as_ref()?;
        let is_anothers = self.append_turn().is_some_and(|author| author != Author(replica.id.0));
        // Not all replicas at the same time.
        let jitter = Duration::from_millis(self.jitter().0);
        let until = replica.log_grew + SILENCE_MAX + jitter;
        (is_anothers && self.store_trouble().is_none() && until > Instant::now()).then_some(until)
    }

    /// Waits until no other replica has the append turn, or that one has been silent for too long.
    pub(crate) async fn await_append_turn(&mut self) {
        self.read_newest().await;
        let must_wait = self.yield_until().is_some();
        let Some(replica) = self.replica.as_mut().filter(|_| must_wait) else { return };
        let author = Author(replica.id.0);
        replica.place.met = Some(Instant::now());
        let is_in_line = std::mem::replace(&mut replica.place.is_in_line, true);
        self.resources.appends.waits.add();
        if let Some(log) = self.storage.journal.log().cloned()
            && !is_in_line
            && log.store().request_append_turn(author).await.is_err()
        {
            // If the store is away, the append will say so.
            return;
        }
        let give_up = Instant::now() + WAIT_MAX;
        while let Some(until) = self.yield_until() {
            let Ok(news) = timeout_at(until.min(give_up), news(&mut self.replica)).await else {
                return self.resources.appends.overdue.add();
            };
            self.on_news(news).await;
            self.read_newest().await;
            std::mem::take(&mut self.callers.outbox).send();
        }
    }

    /// Whether there will be more to append after this batch, while other replicas append too.
    pub(crate) fn will_append_again(&self, batch: &Batch) -> bool {
        let is_crowded = |met: Instant| met.elapsed() < CROWDED_FOR;
        let met = self.replica.as_ref().and_then(|replica| replica.place.met);
        let is_ours = |event: &Event| matches!(event, Event::Granted { owner, .. } if *owner == self.owner());
        met.is_some_and(is_crowded) && (self.has_more() || batch.events.iter().any(is_ours))
    }

    /// Notes whether this replica is in the queue after an append.
    pub(crate) fn note_place(&mut self, is_in_line_again: bool, done: &Result<Head, StoreError>) {
        let Some(replica) = &mut self.replica else { return };
        replica.place.is_in_line = match done {
            Ok(_) => is_in_line_again,
            Err(error) => error.kind() == ErrorKind::Conflict,
        };
        if replica.place.is_in_line && done.is_err() {
            replica.place.met = Some(Instant::now());
        }
    }
}
