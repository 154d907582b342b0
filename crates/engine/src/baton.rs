//! The baton: replicas that all have something to append do so one after another.
//!
//! ```text
//!   A appends, passes to B ──▶ B reads A's batch, decides, appends, passes to C ──▶ C …
//!   A has more: stands in line ──────────────────────────────────────────────────▶ … passes to A
//! ```
//!
//! Whoever loses a race, or has something to append while another has the baton, stands in line in the store; each
//! batch passes the baton to the first in line. Whoever waits for it gathers what it is asked meanwhile, reads what the
//! others append, and decides when it has the baton, on the state that it then appends to. While nobody stands in line,
//! everybody appends at once.
//!
//! It is a courtesy, and nothing but speed rests on it: a batch counts if the log ends where it was decided, whoever has
//! the baton. So one that dies with it, or in line, costs the others [`SILENCE_MAX`], and nothing else.

use std::time::Duration;

use laneway_store::Author;
use tokio::time::{Instant, timeout_at};

use crate::engine::Engine;
use crate::others::news;
use crate::outbox::Told;

/// For how long whoever has the baton may append nothing before the others go on without it. The time also has to
/// pass for one that is only slow: its batch would be in vain then, and so would be one of the others'.
const SILENCE_MAX: Duration = Duration::from_millis(50);
/// For how long to wait for the baton at most while the others append: the place in line may have been lost.
const WAIT_MAX: Duration = Duration::from_millis(250);

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
    pub(crate) async fn await_baton(&mut self, is_in_line: bool) {
        let Some(replica) = &self.replica else { return };
        let author = Author(replica.id.0);
        self.take_up_news().await;
        if self.courteous_until().is_none() {
            return;
        }
        if let Some(log) = self.journal.log().cloned()
            && !is_in_line
            && log.store().want_baton(author).await.is_err()
        {
            // If the store is away, the append will say so.
            return;
        }
        let give_up = Instant::now() + WAIT_MAX;
        while let Some(until) = self.courteous_until() {
            let Ok(news) = timeout_at(until.min(give_up), news(&mut self.replica)).await else { return };
            self.hear(news).await;
            self.take_up_news().await;
            self.outbox.drain(..).for_each(Told::tell);
        }
    }
}
