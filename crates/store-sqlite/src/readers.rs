//! Threads that read, so that no thread of the runtime waits for the disk.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use laneway_store::StoreError;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::{mpsc, oneshot};

use crate::error::from_sqlite;
use crate::open::connect;
use crate::writer::no_thread;

/// How many threads: one long read (a snapshot) must not hold up all others.
const THREADS: usize = 2;
/// The most reads that wait for a thread; a caller with another one waits.
const QUEUE_MAX: usize = 256;

type Read = Box<dyn FnOnce(&mut Connection) + Send>;

/// The way to the reading threads.
pub(crate) struct Readers {
    name: String,
    queue: mpsc::Sender<Read>,
}

impl Readers {
    /// Starts the threads. They end, and close their connections, when the readers are dropped.
    pub(crate) fn start(name: &str, path: &Path) -> Result<(Readers, Vec<JoinHandle<()>>), StoreError> {
        let (queue, reads) = mpsc::channel::<Read>(QUEUE_MAX);
        let reads = Arc::new(Mutex::new(reads));
        let mut threads = Vec::new();
        for _ in 0..THREADS {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
            let connection = connect(path, flags).map_err(|error| from_sqlite(name, &error))?;
            let reads = Arc::clone(&reads);
            let thread = std::thread::Builder::new().name("laneway-read".into());
            let thread = thread.spawn(move || work(connection, &reads));
            threads.push(thread.map_err(|error| no_thread(name, &error))?);
        }
        Ok((Readers { name: name.to_owned(), queue }, threads))
    }

    /// Runs a query on one of the threads.
    pub(crate) async fn read<T, Q>(&self, query: Q) -> Result<T, StoreError>
    where
        T: Send + 'static,
        Q: FnOnce(&mut Connection) -> rusqlite::Result<Result<T, StoreError>> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let read: Read = Box::new(move |connection| {
            // The caller may be gone.
            drop(reply.send(query(connection)));
        });
        self.queue.send(read).await.map_err(|_| StoreError::closed(&self.name))?;
        match answer.await.map_err(|_| StoreError::closed(&self.name))? {
            Ok(answer) => answer,
            Err(error) => Err(from_sqlite(&self.name, &error)),
        }
    }
}

fn work(mut connection: Connection, reads: &Mutex<mpsc::Receiver<Read>>) {
    let next = || reads.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
    while let Some(read) = next() {
        read(&mut connection);
    }
}
