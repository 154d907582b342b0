//! Opening a queue and shutting it down.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use laneway_core::{LaneSettings, Pattern};
use laneway_store::{Durability, Log, Store};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::driver::engine::Engine;
use crate::driver::mailbox::{Call, Mailbox};
use crate::driver::spawner::Spawner;
use crate::error::Error;
use crate::handle::{Handle, Resources, Shared};
use crate::journal::Journal;
use crate::options::Options;
use crate::replica::store_clock::StoreClock;

impl Handle {
    /// A queue that forgets everything with the process.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime, like [`tokio::spawn`]. The runtime needs its timer.
    pub fn in_memory(options: Options) -> Handle {
        let journal = Journal::in_memory(options.history_max, options.history_for);
        let (engine, handle) = Engine::new(journal, options, Durability::Memory);
        if let Some(driver) = handle.0.in_memory() {
            driver.adopt(engine, Arc::downgrade(&handle.0));
        }
        handle
    }

    /// The queue in this store. What was accepted there goes on; attempts that a former process left behind are
    /// over, since only one process has the store: the lane's rule decides whether they are retried or `lost`.
    ///
    /// Tasks that are there start at once, so their handlers must be among the [`Options`]: a kind that has none is an
    /// error, unless [`Options::unknown_kinds`] says otherwise.
    pub async fn open(store: Arc<dyn Store>, mut options: Options) -> Result<Handle, Error> {
        if store.is_shared() {
            // Other engines may run its tasks already, and recovery would end those runs.
            return Handle::join(store, options).await;
        }
        let durability = store.durability();
        let settings = options.settings.take();
        let (mut engine, handle) = Engine::new(Journal::Kept(Log::new(store)), options, durability);
        handle.keep_found(engine.recover(settings).await?);
        let tasks = engine.spawner.clone();
        tasks.spawn(engine.run());
        Ok(handle)
    }

    /// The queue in a store that other engines share: all of them together keep to each limit. Any of them can be asked
    /// anything; what was accepted by one that dies goes on at the others.
    ///
    /// A slot or closure runs here. A task of a named handler runs wherever a slot becomes free for it, so all engines
    /// should have the same handlers. The time is that of the store.
    pub async fn join(store: Arc<dyn Store>, mut options: Options) -> Result<Handle, Error> {
        let durability = store.durability();
        if let Some(clock) = StoreClock::ask(&*store).await? {
            let tasks = Spawner::new(options.spawner.clone());
            tasks.spawn(clock.clone().keep_right(Arc::downgrade(&store)));
            options.clock = Box::new(clock);
        }
        options.shares = Some(Arc::clone(&store));
        let settings = options.settings.take();
        let (mut engine, handle) = Engine::new(Journal::Kept(Log::new(store)), options, durability);
        handle.keep_found(engine.join(settings).await?);
        let tasks = engine.spawner.clone();
        tasks.spawn(engine.run());
        Ok(handle)
    }

    pub(crate) fn new(mailbox: Mailbox, resources: Resources, durability: Durability) -> Handle {
        Handle(Arc::new(Shared { mailbox, resources, durability, found: OnceLock::new() }))
    }

    fn keep_found(&self, found: Option<Vec<(Pattern, LaneSettings)>>) {
        if let Some(found) = found {
            self.0.found.get_or_init(|| found);
        }
    }

    /// The blocks of settings that the store held when this engine began with [others](Options::settings); `None` where it
    /// began with those, or with none, or in memory.
    pub fn blocks_found(&self) -> Option<&[(Pattern, LaneSettings)]> {
        self.0.found.get().map(Vec::as_slice)
    }

    /// Takes nothing new, lets what runs here finish for as long as `patience`, then stops it. What waits is kept
    /// where the store keeps it; else its callers get [`Error::Closed`]. Returns when everything has
    /// ended and the store is closed.
    pub async fn shutdown(&self, patience: Duration) {
        let (done, closed) = oneshot::channel();
        let deadline = Instant::now() + patience;
        if self.call(Call::Shutdown { deadline, done }).await.is_ok() {
            // An answer that never comes means that the loop has ended too.
            drop(closed.await);
        }
    }
}
