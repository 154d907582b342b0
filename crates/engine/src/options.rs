//! Options of an engine.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::{Block, Name, Scheduler};
use laneway_process::Program;
use laneway_store::Store;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::driver::clock::{Clock, SteadyClock};
use crate::driver::faults::Faults;
use crate::driver::spawner::Spawn;
use crate::error::{Error, Failure};
use crate::handle::Handle;
use crate::runs::context::Context;
use crate::runs::handler::{Handlers, typed};
use crate::runs::program_handler;

/// Gives the settings of all lanes for the state that the store holds, which includes the notes of the program. The engine
/// calls it before anything is granted, so it may also register handlers.
pub type SettingsOf = Box<dyn FnOnce(&Scheduler, &Handle) -> Vec<Block> + Send>;

/// How an engine is set up. The defaults suit a program that embeds it.
pub struct Options {
    /// How many calls may wait for the loop of a queue in a store; further callers wait for room. Default 1024, at least 1.
    pub calls_max: usize,
    /// After how many events the state is saved and the log trimmed; with more live tasks, after as many. Default 10 000, at
    /// least 1.
    pub snapshot_every: u64,
    /// How many finished tasks of named handlers and workers are remembered, with their results. Default 10 000.
    pub history_max: u64,
    /// How long they are remembered, if they are not too many. In a store what is older goes with the next snapshot.
    /// Default `None`: for any time.
    pub history_for: Option<Duration>,
    /// The longest payload in bytes that is remembered with a finished task. Of more than 128 tasks that end together
    /// without having run, the payloads are not remembered. Default 0: none is.
    pub payloads_kept_max: usize,
    /// How many updates a subscriber may be behind before it misses some. Default 1024, at least 1.
    pub updates_max: usize,
    /// How long a handler that was told to stop may go on before its future is dropped. Default 1 s; the scheduler
    /// gives its slot away after 5 s in any case.
    pub stop_grace: Duration,
    /// The settings of all lanes, in place of those that the store holds. Default `None`: as they were. A queue in memory is
    /// [configured](crate::Handle::configure) when it is there.
    pub settings: Option<SettingsOf>,
    /// What becomes of tasks in the store that nothing here can run. Default: the store is not opened.
    pub unknown_kinds: UnknownKinds,
    /// What tells the time. Where several engines share a store that has a clock, that one counts instead.
    pub clock: Box<dyn Clock>,
    /// Where several engines share a store: for how long one of them may be silent before the others take over what it ran, and
    /// cancel what its callers wait for. Default 3 s, at least 100 ms.
    pub replica_lease: Duration,
    /// Only for a simulation: what is wrong with the engine. Default `None`.
    #[doc(hidden)]
    pub faults: Option<Arc<dyn Faults>>,
    pub(crate) handlers: Arc<Handlers>,
    /// Where ids come from, if not from chance.
    pub(crate) seed: Option<u64>,
    /// What starts the engine's futures, if not the runtime.
    pub(crate) spawner: Option<Arc<dyn Spawn>>,
    /// The store, if others share it.
    pub(crate) shares: Option<Arc<dyn Store>>,
}

/// What becomes of tasks in a store whose kind has no handler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownKinds {
    /// The store is not opened, with an error that names the kinds: nothing is started, nothing changes.
    #[default]
    Refuse,
    /// They fail when their turn comes, without a second attempt. Their dead letters can be run again.
    Fail,
}

impl Options {
    /// Registers a handler before anything runs; see [`Handle::handler`](crate::Handle::handler).
    pub fn handler<P, R, F, Fut>(self, kind: impl Into<Arc<str>>, function: F) -> Result<Options, Error>
    where
        P: DeserializeOwned + Send + 'static,
        R: Serialize + Send + 'static,
        F: Fn(Context, P) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        self.handlers.insert(Name::new(kind)?, typed(function));
        Ok(self)
    }
}

impl Options {
    /// Registers a program before anything runs; see [`Handle::command`](crate::Handle::command).
    pub fn command(self, kind: impl Into<Arc<str>>, program: Program) -> Result<Options, Error> {
        self.handlers.insert(Name::new(kind)?, program_handler::handler(program));
        Ok(self)
    }

    /// For a simulation: all ids come from this seed, no two engines having the same, all futures are started by `spawner`,
    /// and nothing is done on another thread. With time that stands still until it is needed, one seed is one history.
    #[must_use]
    pub fn simulated(mut self, seed: u64, spawner: Arc<dyn Spawn>) -> Options {
        (self.seed, self.spawner) = (Some(seed), Some(spawner));
        self
    }

    /// Whether tasks of this kind have a handler already.
    pub fn has_handler(&self, kind: &Name) -> bool {
        self.handlers.get(kind).is_some()
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            calls_max: 1024,
            snapshot_every: 10_000,
            history_max: 10_000,
            history_for: None,
            payloads_kept_max: 0,
            updates_max: 1024,
            stop_grace: Duration::from_secs(1),
            settings: None,
            unknown_kinds: UnknownKinds::Refuse,
            clock: Box::new(SteadyClock::start()),
            replica_lease: Duration::from_secs(3),
            faults: None,
            shares: None,
            seed: None,
            spawner: None,
            handlers: Arc::default(),
        }
    }
}
