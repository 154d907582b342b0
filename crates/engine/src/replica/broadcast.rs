//! Sends the output of attempts (text and progress) to subscriptions on other replicas. It is not stored: only a replica
//! that subscribes at the time gets it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use laneway_core::{LaneName, TaskId};
use laneway_store::Store;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::events::hub::Hub;
use crate::events::update::Update;
use crate::replica::output::{self, Output};

/// The pause between two messages. Output that comes meanwhile goes out together.
const PAUSE: Duration = Duration::from_millis(10);
/// How much output may wait to go out. More than that is dropped.
const WAITING_MAX: usize = 1024;
/// How long the end of an attempt waits at most for its output to go out.
const FLUSH_WITHIN: Duration = Duration::from_millis(500);
/// How long to wait before subscribing again after a failure.
const SUBSCRIBE_AGAIN: Duration = Duration::from_secs(1);

/// Where one replica hands in the output of its attempts.
#[derive(Clone)]
pub(crate) struct Broadcast(Arc<Shared>);

struct Shared {
    queue: mpsc::Sender<Item>,
    /// Ends the pause early: an attempt waits for its output to go out.
    hurry: Arc<Notify>,
    /// The attempts here that have produced output.
    publishers: Mutex<HashSet<TaskId>>,
}

enum Item {
    Output(Output),
    Flush(oneshot::Sender<()>),
}

/// Carries output between the store's channel and the hub. It must run for a [`Broadcast`] to have an effect.
pub(crate) struct Relay {
    replica: u64,
    store: Weak<dyn Store>,
    queue: mpsc::Receiver<Item>,
    hurry: Arc<Notify>,
    hub: Hub,
}

impl Broadcast {
    pub(crate) fn new(replica: u64, store: &Arc<dyn Store>, hub: Hub) -> (Broadcast, Relay) {
        let (sender, queue) = mpsc::channel(WAITING_MAX);
        let hurry = Arc::new(Notify::new());
        let relay = Relay { replica, store: Arc::downgrade(store), queue, hurry: Arc::clone(&hurry), hub };
        (Broadcast(Arc::new(Shared { queue: sender, hurry, publishers: Mutex::default() })), relay)
    }

    fn publishers(&self) -> MutexGuard<'_, HashSet<TaskId>> {
        self.0.publishers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Publishes the output of an attempt here, which [`flush`](Broadcast::flush) ends.
    pub(crate) fn publish_of_run(&self, update: &Update, lanes: &[LaneName]) {
        if let Update::Delta { task, .. } | Update::Progress { task, .. } = update {
            self.publishers().insert(*task);
        }
        self.publish(update, lanes);
    }

    /// Publishes the output of an attempt.
    pub(crate) fn publish(&self, update: &Update, lanes: &[LaneName]) {
        if let Some(output) = Output::of(update, lanes) {
            // Dropped if the channel of the store is too slow: output is not stored anyway.
            drop(self.0.queue.try_send(Item::Output(output)));
        }
    }

    /// Waits until the output of an attempt has gone out, so that other replicas see its end after that.
    pub(crate) async fn flush(&self, task: TaskId) {
        if !self.publishers().remove(&task) {
            return;
        }
        let (done, flushed) = oneshot::channel();
        self.0.hurry.notify_one();
        let flush = async {
            if self.0.queue.send(Item::Flush(done)).await.is_ok() {
                drop(flushed.await);
            }
        };
        drop(tokio::time::timeout(FLUSH_WITHIN, flush).await);
    }
}

impl Relay {
    pub(crate) async fn run(self) {
        let Relay { replica, store, queue, hurry, hub } = self;
        tokio::join!(publish(replica, store.clone(), queue, hurry), subscribe(replica, store, hub));
    }
}

async fn publish(replica: u64, store: Weak<dyn Store>, mut queue: mpsc::Receiver<Item>, hurry: Arc<Notify>) {
    let mut taken = Vec::new();
    while queue.recv_many(&mut taken, WAITING_MAX).await > 0 {
        let (mut outputs, mut flushes) = (Vec::new(), Vec::new());
        for item in taken.drain(..) {
            match item {
                Item::Output(output) => outputs.push(output),
                Item::Flush(done) => flushes.push(done),
            }
        }
        for message in output::messages(replica, outputs) {
            let Some(store) = store.upgrade() else { return };
            // Not stored, so not retried either.
            drop(store.publish(message.into()).await);
        }
        let is_hurried = !flushes.is_empty();
        flushes.into_iter().for_each(|done| done.send(()).unwrap_or_default());
        if !is_hurried {
            drop(tokio::time::timeout(PAUSE, hurry.notified()).await);
        }
    }
}

/// Passes the output of other replicas to the hub while a subscription there wants it.
async fn subscribe(replica: u64, store: Weak<dyn Store>, hub: Hub) {
    let mut wanted = hub.wants_remote();
    while wanted.wait_for(|wanted| *wanted).await.is_ok() {
        let Some(open) = store.upgrade() else { return };
        let subscribed = open.subscribe().await;
        drop(open);
        match subscribed {
            Ok(Some(mut messages)) => loop {
                tokio::select! {
                    message = messages.recv() => match message {
                        Some(message) => receive(replica, &message, &hub),
                        None => break,
                    },
                    _ = wanted.wait_for(|wanted| !*wanted) => break,
                }
            },
            // The store passes on nothing.
            Ok(None) => return,
            Err(_) => {}
        }
        if *wanted.borrow() {
            tokio::time::sleep(SUBSCRIBE_AGAIN).await;
        }
    }
}

fn receive(replica: u64, message: &str, hub: &Hub) {
    for (update, lanes) in output::updates(message, replica) {
        hub.publish_output(&update, &lanes);
    }
}
