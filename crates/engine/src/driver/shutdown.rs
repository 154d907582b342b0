//! Shutdown: runs get time to end, then the store is closed and callers get their answers.

use std::time::Duration;

use laneway_core::{Command, Owner};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::driver::engine::Engine;
use crate::driver::mailbox::{ReplyTo, Request};
use crate::error::Error;
use crate::runs::stop::Stopped;

/// A shutdown under way.
pub(crate) struct Closing {
    deadline: Instant,
    /// When runs that were stopped have had their grace.
    give_up: Option<Instant>,
    done: Vec<oneshot::Sender<()>>,
}

impl Closing {
    /// When it waits no longer.
    pub(super) fn alarm(&self) -> Instant {
        self.give_up.unwrap_or(self.deadline)
    }
}

impl Engine {
    /// Begins to close, or closes earlier than was said before.
    pub(super) fn close(&mut self, deadline: Instant, done: oneshot::Sender<()>) {
        self.scheduler.stop_granting();
        if self.closing.is_none() && self.resources.is_replica {
            // Tasks whose callers are connected here may run elsewhere from now on.
            let command = Command::Unbind { replica: self.resources.id };
            self.storage.deferred.push(Request::new(command, ReplyTo::NoCaller));
        }
        let closing = self.closing.get_or_insert(Closing { deadline, give_up: None, done: Vec::new() });
        closing.deadline = closing.deadline.min(deadline);
        closing.done.push(done);
    }

    /// Whether everything has ended that a shutdown waits for; stops runs that take too long.
    pub(super) fn is_done(&mut self) -> bool {
        let Some(closing) = &mut self.closing else { return false };
        let now = Instant::now();
        // What workers run ends with a queue in memory, so they get the same time.
        let is_forgetful = self.storage.journal.log().is_none();
        let is_at_worker = |owner: &Owner| owner.worker().is_some();
        let has_ended =
            self.runs.is_quiet() && !(is_forgetful && self.scheduler.running_owners().any(is_at_worker));
        if has_ended || closing.give_up.is_some_and(|at| at <= now) {
            return true;
        }
        if closing.give_up.is_none() && closing.deadline <= now {
            // The runs have their grace, and their reports a moment to be kept.
            let grace = self.resources.handlers.longest_grace(self.run_options.stop_grace);
            closing.give_up = Some(now + grace + Duration::from_secs(1));
            self.runs.tell_all(Stopped::Shutdown);
        }
        false
    }

    /// Closes the store. Callers that still wait get an error from their dropped senders.
    pub(super) async fn end(mut self) {
        std::mem::take(&mut self.callers.outbox).send();
        // Workers that wait for an offer find the queue closed.
        self.resources.offers.notify_waiters();
        self.runs.tell_all(Stopped::Shutdown);
        let is_sound = self.storage.outage.is_none() && self.storage.broken.is_none();
        let last = if is_sound {
            self.storage.snapshotter.last(&self.storage.journal, &self.scheduler)
        } else {
            None
        };
        self.storage
            .snapshotter
            .finish(&self.storage.journal, self.storage.head, last, self.scheduler.now())
            .await;
        self.resources.hub.close();
        // What a queue in memory remembers has nothing to close: callers still read the results of the last runs.
        if self.storage.journal.log().is_some() {
            self.resources.set_journal(Err(Error::Closed));
        }
        let done = self.closing.take().map(|closing| closing.done).unwrap_or_default();
        // Closing a store may block. The join fails only when the runtime ends, and the store with it.
        let tasks = self.spawner.clone();
        let _over = tasks.blocking(move || drop(self)).await;
        for done in done {
            // A caller that has gone needs no answer.
            let _gone = done.send(());
        }
    }
}
