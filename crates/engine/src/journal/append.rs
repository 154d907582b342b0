//! Storing a batch before anything follows from it.

use std::mem::take;
use std::pin::pin;
use std::time::Duration;

use laneway_store::{Append, ErrorKind, Head, Log, StoreError};
use tokio::time::Instant;

use crate::driver::batch::Batch;
use crate::driver::engine::Engine;
use crate::driver::mailbox::Request;
use crate::replica::author_of;

/// The pauses after which an append is repeated whose outcome is unknown.
const REPEAT_AFTER: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(100)];
/// A store that took longer to fail does not answer. Callers are told at once.
const REPEAT_WITHIN: Duration = Duration::from_millis(300);

impl Engine {
    /// Decides, stores and publishes. After a conflict it decides again; when the store is away, callers get an error, and reports
    /// are deferred.
    pub(crate) async fn decide_and_store(&mut self, requests: &mut Vec<Request>) {
        loop {
            let now = self.clock.now();
            let mut batch = self.decide(now, requests);
            match self.store(&mut batch).await {
                Ok(head) if head == self.storage.head && self.refuses(&batch) => {
                    // Other replicas may have ended what it was refused for.
                    match self.catch_up(None).await {
                        Ok(true) => {}
                        Ok(false) => return self.publish(requests, batch),
                        Err(error) => return self.give_up(error, take(requests)),
                    }
                }
                Ok(head) => {
                    if head != self.storage.head {
                        self.storage.head = head;
                        self.resources.appends.kept.add();
                        self.resources.appends.count(self.scheduler.take_counts());
                        self.note(author_of(head.batch), &batch);
                        if let Some(replica) = &mut self.replica {
                            replica.recent.note(head, requests, &batch);
                        }
                    }
                    let events = batch.events.len() as u64;
                    self.publish(requests, batch);
                    self.storage.snapshotter.count(
                        events,
                        &self.storage.journal,
                        self.storage.head,
                        &self.scheduler,
                    );
                    return;
                }
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    self.resources.appends.lost.add();
                    if let Err(error) = self.on_conflict(&error).await {
                        return self.give_up(error, take(requests));
                    }
                    self.spare_the_living(requests);
                    self.await_append_turn().await;
                    if let Some(error) = self.store_trouble() {
                        return self.give_up(error, take(requests));
                    }
                }
                Err(error) => return self.give_up(error, take(requests)),
            }
        }
    }

    /// Stores a batch. An append of unknown outcome is repeated as it is, which is always safe.
    async fn store(&mut self, batch: &mut Batch) -> Result<Head, StoreError> {
        // A replica that has the append turn must pass it on.
        let is_idle = !self.is_sign_due(batch.at) && !self.has_append_turn();
        if batch.events.is_empty() && is_idle {
            return Ok(self.storage.head);
        }
        let Some(log) = self.storage.journal.log().cloned() else { return Ok(self.storage.head) };
        self.read_ended_payloads(batch).await?;
        let append = self.seal(&log, batch)?;
        let (mut pauses, begun) = (REPEAT_AFTER.iter(), Instant::now());
        loop {
            let asked = Instant::now();
            let appended = self.append(&log, append.clone()).await;
            self.resources.appends.took(asked.elapsed());
            match (appended, pauses.next().filter(|_| begun.elapsed() < REPEAT_WITHIN)) {
                (Err(error), Some(pause)) if error.kind() == ErrorKind::Unavailable => {
                    tokio::time::sleep(*pause).await;
                }
                (done, _) => {
                    self.note_place(append.requeue, &done);
                    return done;
                }
            }
        }
    }

    /// Appends a batch. Meanwhile it refuses submissions that find no room; all other calls wait for the next batch.
    async fn append(&mut self, log: &Log, append: Append) -> Result<Head, StoreError> {
        let mut appending = pin!(log.store().append(append));
        // Another replica may have made room.
        let Some(mut mail) = self.mail.take_if(|_| self.replica.is_none()) else {
            return appending.await;
        };
        let done = loop {
            tokio::select! {
                biased;
                done = appending.as_mut() => break done,
                call = mail.next_call() => {
                    if let Some(call) = self.refuse_if_full(call) {
                        mail.hold(call);
                    }
                }
            }
        };
        self.mail = Some(mail);
        done
    }

    /// Encodes a batch for the store.
    fn seal(&mut self, log: &Log, batch: &mut Batch) -> Result<Append, StoreError> {
        let requeue = self.will_append_again(batch);
        let mut entry = self.entry(batch);
        // Lent, because there may be many.
        entry.batch.events = take(&mut batch.events);
        let sealed = log.seal(self.storage.head, &entry);
        batch.events = entry.batch.events;
        sealed.map(|append| Append { requeue, ..append })
    }
}
