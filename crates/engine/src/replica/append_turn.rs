//! The baton: replicas that all have something to append do so one after another.
//!
//! ```text
//!   A appends, passes to B ──▶ B reads A's batch, decides, appends, passes to C ──▶ C …
//!   A has more: stands in line ──────────────────────────────────────────────────▶ … passes to A
//! ```
//!
//! Whoever loses a race, or has something to append while another has the baton, stands in line in the store; each
//! batch passes the baton to the first in line. Whoever waits for it gathers what it is asked meanwhile, reads what the
//! others append, and decides when it has the baton, on the state that it then appends to. Whoever knows while it appends
//! that it will have more stands in line again by that very append, if it has met others there lately. While nobody
//! stands in line, everybody appends at once.
//!
//! It is a courtesy, and nothing but speed rests on it: a batch counts if the log ends where it was decided, whoever has
//! the baton. So one that dies with it, or in line, costs the others [`SILENCE_MAX`], and nothing else.

use std::time::Duration;

use laneway_core::Event;
use laneway_store::{Author, ErrorKind, Head, StoreError};
use tokio::time::{Instant, timeout_at};

use crate::driver::batch::Turn;
use crate::driver::engine_loop::Engine;
use crate::replica::apply_remote::news;

/// For how long whoever has the baton may append nothing before the others go on without it. The time also has to
/// pass for one that is only slow: its batch would be in vain then, and so would be one of the others'.
const SILENCE_MAX: Duration = Duration::from_millis(50);
/// For how long to wait for the baton at most while the others append: the place in line may have been lost.
const WAIT_MAX: Duration = Duration::from_millis(250);

/// After another was in our way, for how long to count on that.
const CROWDED_FOR: Duration = Duration::from_millis(10);

/// Where a replica stands with those who append too.
#[derive(Default)]
pub(crate) struct Place {
    /// We stand in line, unless the store has lost that.
    is_in_line: bool,
    /// When another was in our way.
    met: Option<Instant>,
}

impl Engine {
    /// Whether we were passed the baton, so that the others wait for us.
    pub(crate) fn has_baton(&self) -> bool {
        self.replica.as_ref().is_some_and(|replica| self.baton() == Some(Author(replica.id.0)))
    }

    /// Who was passed the baton with the newest batch that we have read.
    fn baton(&self) -> Option<Author> {
        let (version, baton) = self.journal.log()?.store().newest()?;
        baton.filter(|_| version == self.head.version)
    }

    /// Reads what the store has heard of already, so that nothing is decided that cannot count.
    async fn take_up_news(&mut self) {
        let newest = self.journal.log().and_then(|log| log.store().newest());
        if let Some((version, _)) = newest.filter(|(version, _)| *version > self.head.version)
            && self.replica.is_some()
            && self.store_trouble().is_none()
            && let Err(error) = self.catch_up(Some(version)).await
        {
            self.give_up(error, Vec::new());
        }
    }

    /// Until when another may append before us.
    fn courteous_until(&self) -> Option<Instant> {
        let replica = self.replica.as_ref()?;
        let is_anothers = self.baton().is_some_and(|author| author != Author(replica.id.0));
        // Not all at the same time.
        let tardiness = Duration::from_millis(self.tardiness().0);
        let until = replica.grown + SILENCE_MAX + tardiness;
        (is_anothers && self.store_trouble().is_none() && until > Instant::now()).then_some(until)
    }

    /// Waits until nobody else has the baton, or whoever has it is silent for too long.
    pub(crate) async fn await_baton(&mut self) {
        self.take_up_news().await;
        let must_wait = self.courteous_until().is_some();
        let Some(replica) = self.replica.as_mut().filter(|_| must_wait) else { return };
        let author = Author(replica.id.0);
        replica.place.met = Some(Instant::now());
        let is_in_line = std::mem::replace(&mut replica.place.is_in_line, true);
        self.tools.appends.waits.add();
        if let Some(log) = self.journal.log().cloned()
            && !is_in_line
            && log.store().request_baton(author).await.is_err()
        {
            // If the store is away, the append will say so.
            return;
        }
        let give_up = Instant::now() + WAIT_MAX;
        while let Some(until) = self.courteous_until() {
            let Ok(news) = timeout_at(until.min(give_up), news(&mut self.replica)).await else {
                return self.tools.appends.overdue.add();
            };
            self.hear(news).await;
            self.take_up_news().await;
            std::mem::take(&mut self.outbox).send();
        }
    }

    /// Whether there will be more to append when this is in the log, while others append too.
    pub(crate) fn will_append_again(&self, turn: &Turn) -> bool {
        let is_crowded = |met: Instant| met.elapsed() < CROWDED_FOR;
        let met = self.replica.as_ref().and_then(|replica| replica.place.met);
        let is_ours =
            |event: &Event| matches!(event, Event::Granted { worker, .. } if *worker == self.runner);
        met.is_some_and(is_crowded) && (self.has_more() || turn.events.iter().any(is_ours))
    }

    /// Takes note of where an append has left us in line.
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
