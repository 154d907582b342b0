//! A replica: the real engine on a machine that can die, with handlers that take their time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use laneway_core::{Block, LaneSettings, Pattern, Timestamp};
use laneway_engine::{Clock, Context, Error, Failure, Faults, Handle, Options};
use laneway_store::Store;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::checks::ledger::Run;
use crate::machines::machine::{Host, Machine};
use crate::network::link::{Link, pass};
use crate::planted::Planted;
use crate::world::Sim;
use crate::{EPOCH_MS, LEASE_MS};

/// How many events there are between two snapshots: few, because each is compared with the log.
const SNAPSHOT_EVENTS: u64 = 60;

/// A replica's own clock, which may be wrong.
struct Skewed {
    start: Instant,
    ahead: Arc<AtomicI64>,
}

impl Clock for Skewed {
    fn now(&self) -> Timestamp {
        let now = EPOCH_MS + self.start.elapsed().as_millis() as u64;
        Timestamp(now.saturating_add_signed(self.ahead.load(Ordering::Relaxed)))
    }
}

/// A block of settings from `key=value` words; nothing but names that are known.
pub(crate) fn block(lanes: &str, words: &str) -> Option<Block> {
    let mut settings = LaneSettings::default();
    for word in words.split_whitespace() {
        let (key, value) = word.split_once('=')?;
        settings.set(key, value).ok()?;
    }
    Some(Block { lanes: Pattern::new(lanes).ok()?, settings: Some(settings) })
}

/// The lanes of all histories.
pub(crate) fn settings() -> Vec<Block> {
    let lease = format!("lease={LEASE_MS}ms");
    [
        block("work", &format!("max_concurrency=2 max_queued=50 retry=fixed {lease}")),
        block("slots", &format!("max_concurrency=2 max_queued=50 {lease}")),
        block("ext", &format!("max_concurrency=2 max_queued=50 handler=external {lease}")),
        block("agent:*", &format!("max_concurrency=2 max_queued=50 {lease}")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

impl Sim {
    /// Begins the next life of a replica.
    pub(crate) fn start_replica(&self, replica: usize) {
        let (old, host, life) = {
            let mut world = self.world();
            let place = &mut world.replicas[replica];
            place.host = Arc::<Host>::default();
            place.life += 1;
            let (old, host, life) = (place.handle.take(), Arc::clone(&place.host), place.life);
            world.note(|| format!("replica {replica} starts"));
            (old, host, life)
        };
        drop(old);
        host.start(join(self.clone(), replica, life, Arc::clone(&host)));
    }
}

impl Sim {
    /// Notes how it went; whether the replica is there.
    fn has_joined(&self, replica: usize, joined: Result<Handle, Error>) -> bool {
        let mut world = self.world();
        match joined {
            Ok(handle) => {
                world.note(|| format!("replica {replica} is there"));
                world.replicas[replica].handle = Some(handle);
                true
            }
            Err(error) => {
                world.note(|| format!("replica {replica} cannot join: {error}"));
                false
            }
        }
    }
}

async fn join(sim: Sim, replica: usize, life: u32, host: Arc<Host>) {
    let start = Instant::now() - Duration::from_millis(sim.world().now());
    loop {
        let (seed, ahead) = {
            let mut world = sim.world();
            (world.random.number(), Arc::clone(&world.replicas[replica].ahead))
        };
        let mut options = Options::default().simulated(seed, Arc::new(Machine(Arc::clone(&host))));
        options.clock = Box::new(Skewed { start, ahead });
        options.replica_lease = Duration::from_millis(LEASE_MS);
        options.snapshot_every = SNAPSHOT_EVENTS;
        options.faults =
            sim.world().bug.map(|bug| Planted::new(sim.clone(), replica, bug) as Arc<dyn Faults>);
        let store: Arc<dyn Store> = Arc::new(Link { sim: sim.clone(), replica, life });
        let joined = match with_handlers(options, &sim, replica) {
            Ok(options) => Handle::join(store, options).await,
            Err(error) => Err(error),
        };
        if sim.has_joined(replica, joined) {
            return;
        }
        pass(100).await;
    }
}

fn with_handlers(options: Options, sim: &Sim, replica: usize) -> Result<Options, Error> {
    let (work, bot) = (sim.clone(), sim.clone());
    options
        .handler("work", move |context, payload| run_work(work.clone(), replica, context, payload))?
        .handler("bot", move |context, payload| run_turn(bot.clone(), replica, context, payload))
}

/// A task that takes its time, and heeds a stop if it is polite.
async fn run_work(sim: Sim, replica: usize, context: Context, payload: Value) -> Result<Value, Failure> {
    let _run = Run::begin(&sim, context.task(), context.fence(), &format!("replica {replica}"));
    let millis = payload["ms"].as_u64().unwrap_or(10);
    match payload["fate"].as_u64().unwrap_or(0) {
        0 if context.attempt() == 1 => {
            pass(millis).await;
            Err(Failure::new("it went wrong"))
        }
        2 => {
            // Fails for good, and leaves a dead letter that can be run again.
            pass(millis).await;
            Err(Failure::fatal("it cannot be done"))
        }
        1 => {
            // Ignores every request to stop.
            pass(millis).await;
            Ok(json!(context.attempt()))
        }
        _ => {
            tokio::select! {
                biased;
                _ = context.stop().wait() => Err(Failure::new("it was stopped")),
                () = pass(millis) => Ok(json!(context.attempt())),
            }
        }
    }
}

/// A turn that takes steering for most of its time.
async fn run_turn(sim: Sim, replica: usize, context: Context, _: Value) -> Result<Value, Failure> {
    let _run = Run::begin(&sim, context.task(), context.fence(), &format!("replica {replica}"));
    let millis = (context.task().0 as u64).wrapping_mul(0x9e37_79b9) % 900;
    let steered = async {
        // A turn that cannot take steering goes on without.
        let takes = context.set_steering(true).await.is_ok();
        pass(millis).await;
        if takes { context.take_steering().await.map_or(0, |messages| messages.len()) } else { 0 }
    };
    tokio::select! {
        biased;
        _ = context.stop().wait() => Err(Failure::new("it was stopped")),
        steered = steered => Ok(json!(steered)),
    }
}
