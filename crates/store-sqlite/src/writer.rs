//! The one thread that writes. Changes that arrive while it writes are written together next, with one flush.

use std::thread::JoinHandle;

use laneway_store::{Head, StoreError};
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{mpsc, oneshot, watch};

use crate::change::{Change, Done, Known};
use crate::error::from_sqlite;
use crate::open::find_head;

/// The most changes that wait to be written; a caller with another one waits.
const QUEUE_MAX: usize = 256;
/// The most changes in one transaction.
const GROUP_MAX: usize = 64;

type Reply = oneshot::Sender<Result<Done, StoreError>>;

/// The way to the writing thread.
pub(crate) struct Writer {
    name: String,
    queue: mpsc::Sender<(Change, Reply)>,
}

impl Writer {
    /// Starts the thread. It ends, and closes its connection, when the writer is dropped.
    pub(crate) fn start(
        name: String,
        connection: Connection,
        known: Known,
        head: watch::Sender<Head>,
    ) -> std::io::Result<(Writer, JoinHandle<()>)> {
        let (queue, changes) = mpsc::channel(QUEUE_MAX);
        let work = Work { name: name.clone(), connection, known, head };
        let thread =
            std::thread::Builder::new().name("laneway-write".into()).spawn(move || work.run(changes))?;
        Ok((Writer { name, queue }, thread))
    }

    /// Writes a change and waits until it is on the disk.
    pub(crate) async fn write(&self, change: Change) -> Result<Done, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.queue.send((change, reply)).await.map_err(|_| StoreError::closed(&self.name))?;
        answer.await.map_err(|_| StoreError::closed(&self.name))?
    }

    /// Repeats a change that removes some rows at a time until none is left; returns how many it removed.
    pub(crate) async fn remove_all(&self, change: impl Fn() -> Change) -> Result<u64, StoreError> {
        let mut all = 0;
        loop {
            match self.write(change()).await? {
                Done::Removed(rows) if rows > 0 => all += rows,
                _ => return Ok(all),
            }
        }
    }
}

struct Work {
    name: String,
    connection: Connection,
    known: Known,
    head: watch::Sender<Head>,
}

impl Work {
    fn run(mut self, mut changes: mpsc::Receiver<(Change, Reply)>) {
        let mut group = Vec::with_capacity(GROUP_MAX);
        while changes.blocking_recv_many(&mut group, GROUP_MAX) > 0 {
            let (changes, replies): (Vec<Change>, Vec<Reply>) = group.drain(..).unzip();
            let answers = match self.write(&changes) {
                Ok(answers) => answers,
                // A change that cannot be written must not fail the others.
                Err(_) if changes.len() > 1 => {
                    changes.iter().map(|change| self.write_alone(change)).collect()
                }
                Err(error) => vec![Err(error)],
            };
            self.head.send_if_modified(|head| std::mem::replace(head, self.known.head) != self.known.head);
            for (reply, answer) in replies.into_iter().zip(answers) {
                // The caller may be gone.
                drop(reply.send(answer));
            }
        }
    }

    fn write_alone(&mut self, change: &Change) -> Result<Done, StoreError> {
        self.write(std::slice::from_ref(change))?.pop().unwrap_or_else(|| Err(StoreError::closed(&self.name)))
    }

    /// Writes changes in one transaction and flushes it: all of them, except those that are refused, or none.
    fn write(&mut self, changes: &[Change]) -> Result<Vec<Result<Done, StoreError>>, StoreError> {
        let mut known = self.known;
        match self.transact(changes, &mut known) {
            Ok(answers) => {
                self.known = known;
                Ok(answers)
            }
            Err(error) => {
                self.look_again();
                Err(from_sqlite(&self.name, &error))
            }
        }
    }

    fn transact(
        &mut self,
        changes: &[Change],
        known: &mut Known,
    ) -> rusqlite::Result<Vec<Result<Done, StoreError>>> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let made = changes.iter().map(|change| change.make(&transaction, known));
        let answers = made.collect::<rusqlite::Result<Vec<_>>>()?;
        transaction.commit()?;
        Ok(answers)
    }

    /// Reads the end of the log after a failure: the commit may have happened before it.
    fn look_again(&mut self) {
        if let Ok(head) = find_head(&self.name, &self.connection) {
            self.known = Known { head, finished: None };
        }
    }
}

/// A thread cannot be started.
pub(crate) fn no_thread(name: &str, error: &std::io::Error) -> StoreError {
    StoreError::unavailable(name, format!("cannot start a thread: {error}"))
}
