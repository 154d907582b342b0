//! The way to the end: what runs has its time, then the store is closed and everybody is told.

use std::sync::PoisonError;
use std::time::Duration;

use laneway_core::Command;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::driver::engine_loop::Engine;
use crate::driver::mailbox::{Ask, Wants};
use crate::runs::stop::Stopped;

/// What a shutdown waits for, and who waits for it.
pub(crate) struct Closing {
    deadline: Instant,
    /// When runs that were told to stop have had their time.
    give_up: Option<Instant>,
    done: Vec<oneshot::Sender<()>>,
}

impl Closing {
    /// When its patience is over.
    pub(crate) fn alarm(&self) -> Instant {
        self.give_up.unwrap_or(self.deadline)
    }
}

impl Engine {
    /// Begins to close, or closes earlier than was said before.
    pub(crate) fn close(&mut self, deadline: Instant, done: oneshot::Sender<()>) {
        self.scheduler.stop_granting();
        if let (None, Some(home)) = (&self.closing, &self.tools.runner) {
            // What waits for us may be run by others, and goes on.
            let command = Command::Unbind { home: home.clone() };
            self.kept.push(Ask::new(command, Wants::Nothing));
        }
        let closing = self.closing.get_or_insert(Closing { deadline, give_up: None, done: Vec::new() });
        closing.deadline = closing.deadline.min(deadline);
        closing.done.push(done);
    }

    /// Whether everything has ended that a shutdown waits for; tells what runs for too long to stop.
    pub(crate) fn is_done(&mut self) -> bool {
        let Some(closing) = &mut self.closing else { return false };
        let now = Instant::now();
        if self.runs.is_quiet() || closing.give_up.is_some_and(|at| at <= now) {
            return true;
        }
        if closing.give_up.is_none() && closing.deadline <= now {
            // The runs have their grace, and their reports a moment to be kept.
            let grace = self.tools.handlers.longest_grace(self.stop_grace);
            closing.give_up = Some(now + grace + Duration::from_secs(1));
            self.runs.tell_all(Stopped::Shutdown);
        }
        false
    }

    /// Closes the store and tells everybody that it is over: who waits hears that from its dropped sender.
    pub(crate) async fn end(mut self) {
        std::mem::take(&mut self.outbox).send();
        // Workers that wait for an offer hear that there is none any more.
        self.tools.offers.notify_waiters();
        self.runs.tell_all(Stopped::Shutdown);
        let is_sound = self.outage.is_none() && self.broken.is_none();
        let last = if is_sound { self.saver.last(&self.journal, &self.scheduler) } else { None };
        self.saver.finish(&self.journal, self.head, last, self.scheduler.now()).await;
        self.tools.watchers.close();
        drop(self.tools.journal.lock().unwrap_or_else(PoisonError::into_inner).take());
        let done = self.closing.take().map(|closing| closing.done).unwrap_or_default();
        // Closing a store may wait for its threads, which must not hold up other tasks. The join only fails when
        // the runtime ends, and the store with it.
        let tasks = self.tasks.clone();
        let _over = tasks.blocking(move || drop(self)).await;
        for done in done {
            // Whoever does not listen any more need not be told.
            let _gone = done.send(());
        }
    }
}
