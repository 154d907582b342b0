//! The store as one replica sees it: everything takes time, and some of it goes wrong.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bytes::Bytes;
use laneway_core::{BlobId, TaskId, Timestamp};
use laneway_store::testing::in_format;
use laneway_store::{
    Answer, Append, Author, BATCH_FORMAT, BatchId, Durability, Head, HistoryQuery, Record, Retention, Store,
    StoreError, StoredBatch, StoredFinished, StoredSnapshot, Version,
};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::Bug;
use crate::EPOCH_MS;
use crate::kind::Kind;
use crate::network::shared_log::now;
use crate::network::wire::{ANSWER_MS, Fate, Sort};
use crate::world::{Sim, World};

/// How long the log may have grown before a replica that heard nothing looks itself.
const LOOK: Duration = Duration::from_secs(1);

/// How long an engine waits at most before it tries a store again that was away: the longest of its `OUTAGE_BACKOFF`.
const PAUSE_MAX_MS: u64 = 2000;

/// The store as one replica sees it, in one of its lives.
pub(crate) struct Link {
    pub(crate) sim: Sim,
    pub(crate) replica: usize,
    pub(crate) life: u32,
}

pub(crate) fn unavailable(reason: &str) -> StoreError {
    StoreError::Unavailable { store: "simulated".into(), reason: reason.into() }
}

/// Lets time pass, if there is any to pass.
pub(crate) async fn pass(millis: u64) {
    if millis > 0 {
        sleep(Duration::from_millis(millis)).await;
    }
}

impl Link {
    /// Asks the store. A sent request stays on its way even if its sender stalls or dies.
    fn ask<T: Send + 'static>(
        &self,
        sort: Sort,
        act: impl FnOnce(&mut World) -> Result<T, StoreError> + Send + 'static,
    ) -> Answer<'_, T> {
        Box::pin(async move {
            let (sim, replica) = (self.sim.clone(), self.replica);
            let fate = sim.world().fate(replica, sort);
            if matches!(fate.kind, Some(Kind::AppendRefused | Kind::ReadRefused)) {
                pass(fate.there_ms).await;
                return Err(unavailable("it refuses"));
            }
            let (answer, told) = oneshot::channel();
            tokio::spawn(async move {
                pass(fate.there_ms).await;
                if fate.kind == Some(Kind::RequestLost) {
                    return;
                }
                // A planted bug may append what the scheduler's assertions refuse.
                let reached = catch_unwind(AssertUnwindSafe(|| sim.world().reach(replica, fate, act)));
                let done = reached.unwrap_or_else(|_| {
                    sim.world().wrong("what was appended cannot be applied".to_owned());
                    Err(unavailable("its log is broken"))
                });
                pass(fate.back_ms).await;
                if fate.kind != Some(Kind::ReplyLost) {
                    // A caller that has given up does not listen.
                    drop(answer.send(done));
                }
            });
            match timeout(Duration::from_millis(ANSWER_MS), told).await {
                Ok(Ok(answer)) => answer,
                // The connection broke, which its sender hears at once.
                Ok(Err(_)) if fate.kind == Some(Kind::ReplyLost) => Err(unavailable("no connection")),
                Ok(Err(_)) => {
                    // A lost request has no answer; its sender notices by waiting.
                    pass(ANSWER_MS).await;
                    Err(unavailable("no answer"))
                }
                Err(_) => Err(unavailable("no answer in time")),
            }
        })
    }
}

impl Link {
    /// Notes how far the log was heard to go, if that is where it ends: older batches say nothing about the append turn.
    fn noting<'a, T: Send + 'a>(
        &'a self,
        answer: Answer<'a, T>,
        version: impl FnOnce(&T) -> Option<Version> + Send + 'a,
    ) -> Answer<'a, T> {
        Box::pin(async move {
            let answer = answer.await?;
            if let Some(version) = version(&answer) {
                let mut world = self.sim.world();
                let newest = world.shared.memory.newest().filter(|(newest, _)| *newest == version);
                world.wires[self.replica].newest = newest;
            }
            Ok(answer)
        })
    }
}

impl World {
    fn fate(&mut self, replica: usize, sort: Sort) -> Fate {
        let fate = self.wires[replica].fate(sort);
        if let Some(kind) = fate.kind {
            self.count(kind);
            let now = self.now();
            self.note(|| format!("{} at replica {replica} ({} ms)", kind.name(), fate.there_ms));
            // What goes wrong goes wrong three times at most, and then the store is tried again.
            // After an outage the next try may be a while away.
            let pause = if now < self.trouble_until + PAUSE_MAX_MS { PAUSE_MAX_MS } else { 0 };
            self.trouble(replica, now + fate.there_ms + fate.back_ms + 3 * ANSWER_MS + pause);
        }
        fate
    }

    fn reach<T>(
        &mut self,
        replica: usize,
        fate: Fate,
        act: impl FnOnce(&mut World) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if fate.kind == Some(Kind::AppendTorn) {
            self.store_away(300);
            return Err(unavailable("it fell over"));
        }
        if self.reaches(replica) { act(self) } else { Err(unavailable("it is away")) }
    }

    /// What a replica reads: in a format that it does not know where a newer one wrote it.
    fn read(&mut self, replica: usize, life: u32, after: Version) -> Result<Vec<StoredBatch>, StoreError> {
        let mut batches = now(self.shared.memory.read(after))?;
        self.tamper_with_read((replica, life), &mut batches);
        if let Some(since) = self.wires[replica].old_since {
            for batch in batches.iter_mut().filter(|batch| batch.version > since) {
                let record = Record::Batch(batch.version);
                batch.record = in_format(record, BATCH_FORMAT + 1, &batch.record);
            }
            if let Some(newer) = batches.iter().find(|batch| batch.version > since) {
                let wire = &mut self.wires[replica];
                let first = wire.met_newer.filter(|(reader, _)| *reader == life);
                wire.met_newer = first.or(Some((life, newer.version)));
            }
        }
        Ok(batches)
    }

    /// What there is to tell a replica that knows the log up to `after`; `Err(())`: it is not told now.
    fn hint(&mut self, replica: usize, after: Version) -> Result<Option<(u64, Version)>, StoreError> {
        if !self.reaches(replica) {
            return Err(unavailable("it is away"));
        }
        let head = self.shared.head();
        if head.version < after {
            let expected = Head { version: after, batch: BatchId(0) };
            return Err(StoreError::Conflict { expected, current: head });
        }
        if let Some(again) = self.wires[replica].again.take() {
            self.count(Kind::HintTwice);
            return Ok(Some((1, again)));
        }
        if head.version == after {
            return Ok(None);
        }
        let (delay, kind) = self.wires[replica].hint(after.next() < head.version);
        let told = match kind {
            Some(Kind::HintLost) => {
                self.count(Kind::HintLost);
                let until = self.now() + LOOK.as_millis() as u64;
                self.trouble(replica, until);
                return Ok(None);
            }
            Some(Kind::HintStale) => {
                self.count(Kind::HintStale);
                after.next()
            }
            Some(Kind::HintTwice) => {
                self.wires[replica].again = Some(head.version);
                head.version
            }
            _ => head.version,
        };
        Ok(Some((delay, told)))
    }
}

impl Store for Link {
    fn name(&self) -> &str {
        "simulated"
    }

    fn durability(&self) -> Durability {
        Durability::Backend
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn time(&self) -> Answer<'_, Option<Timestamp>> {
        self.ask(Sort::Other, |world| {
            let now = (EPOCH_MS + world.now()).saturating_add_signed(world.shared.ahead);
            Ok(world.has_clock.then_some(Timestamp(now)))
        })
    }

    fn head(&self) -> Answer<'_, Head> {
        self.ask(Sort::Read, |world| Ok(world.shared.head()))
    }

    fn append(&self, append: Append) -> Answer<'_, Head> {
        let (replica, life) = (self.replica, self.life);
        if self.sim.world().bug == Some(Bug::AnswerBeforeAppend) {
            let (head, sim) = (append.outcome(), self.sim.clone());
            tokio::spawn(async move {
                pass(2).await;
                drop(sim.world().append(replica, life, append));
            });
            return Box::pin(std::future::ready(Ok(head)));
        }
        let appended = self.ask(Sort::Append, move |world| world.append(replica, life, append));
        let answered = self.noting(appended, |head| Some(head.version));
        Box::pin(async move {
            let answer = answered.await;
            self.sim.world().note_answer(replica, &answer);
            answer
        })
    }

    fn request_append_turn(&self, author: Author) -> Answer<'_, ()> {
        self.ask(Sort::Other, move |world| now(world.shared.memory.request_append_turn(author)))
    }

    fn newest(&self) -> Option<(Version, Option<Author>)> {
        self.sim.world().wires[self.replica].newest
    }

    fn read(&self, after: Version) -> Answer<'_, Vec<StoredBatch>> {
        let (replica, life) = (self.replica, self.life);
        let read = self.ask(Sort::Read, move |world| world.read(replica, life, after));
        self.noting(read, |batches| batches.last().map(|last| last.version))
    }

    fn tail(&self, after: Version) -> Answer<'_, Version> {
        Box::pin(async move {
            loop {
                let told = std::sync::Arc::clone(&self.sim.world().wires[self.replica].told);
                let told = told.notified();
                tokio::pin!(told);
                told.as_mut().enable();
                let hint = self.sim.world().hint(self.replica, after)?;
                if let Some((delay, version)) = hint {
                    pass(delay).await;
                    return Ok(version);
                }
                // Whether it was told or has waited for long enough: it looks.
                drop(timeout(LOOK, told).await);
            }
        })
    }

    fn snapshot(&self) -> Answer<'_, Option<StoredSnapshot>> {
        self.ask(Sort::Read, |world| now(world.shared.memory.snapshot()))
    }

    fn save_snapshot(&self, snapshot: StoredSnapshot) -> Answer<'_, ()> {
        let replica = self.replica;
        self.ask(Sort::Other, move |world| world.save(replica, snapshot))
    }

    fn trim(&self, through: Version) -> Answer<'_, ()> {
        self.ask(Sort::Other, move |world| now(world.shared.memory.trim(through)))
    }

    fn blob(&self, id: BlobId) -> Answer<'_, Option<Bytes>> {
        self.ask(Sort::Read, move |world| now(world.shared.memory.blob(id)))
    }

    fn remove_blobs(&self, ids: Vec<BlobId>) -> Answer<'_, ()> {
        self.ask(Sort::Other, move |world| now(world.shared.memory.remove_blobs(ids)))
    }

    fn finished(&self, task: TaskId) -> Answer<'_, Option<StoredFinished>> {
        self.ask(Sort::Read, move |world| now(world.shared.memory.finished(task)))
    }

    fn history(&self, asked: HistoryQuery) -> Answer<'_, Vec<StoredFinished>> {
        self.ask(Sort::Read, move |world| now(world.shared.memory.history(asked)))
    }

    fn trim_history(&self, keep: Retention) -> Answer<'_, u64> {
        self.ask(Sort::Other, move |world| now(world.shared.memory.trim_history(keep)))
    }
}
