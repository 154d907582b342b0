//! One history from its beginning to its end.

use std::collections::BTreeMap;
use std::time::Duration;

use laneway_core::{LaneName, Timestamp};
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep_until};

use crate::kind::Kind;
use crate::machines::replica::settings;
use crate::network::link::pass;
use crate::plan::{HORIZON_MS, Plan};
use crate::world::{Sim, WORKERS, World};
use crate::{Bug, LEASE_MS};

/// How long it may take after the last fault until everything has ended.
const DRAIN_MS: u64 = 90_000;
/// How late something may be noticed.
const LATE_MS: u64 = 1000;

/// How to run a history.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// Whether to write down what happens.
    pub has_timeline: bool,
    /// What is wrong with the store or with every engine.
    pub bug: Option<Bug>,
}

/// What a history showed.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Everything that must not be.
    pub violations: Vec<String>,
    /// How often each kind of thing happened.
    pub counts: BTreeMap<Kind, u64>,
    /// The same for the same history.
    pub digest: u64,
    /// The timeline, if the caller wanted one.
    pub timeline: Vec<String>,
    /// How long it took, in milliseconds of its own time.
    pub millis: u64,
    /// How many batches the log had.
    pub batches: u64,
    /// For how long work of a dead replica was left, in milliseconds; also where another machine had a fault.
    pub left_ms: (u64, u64),
    /// How often the append turn was passed to a replica, and how often to one that had died.
    pub append_turns: (u64, u64),
}

/// Runs a history.
///
/// # Panics
///
/// Where the operating system has no room for a runtime.
pub fn run(plan: &Plan, wanted: Wanted) -> History {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    #[expect(clippy::expect_used, reason = "without a runtime nothing can be simulated")]
    let runtime = runtime.expect("a runtime needs no more than memory");
    runtime.block_on(async {
        let sim = Sim::new(plan, wanted.has_timeline, wanted.bug);
        drive(&sim, plan).await;
        end(&sim).await
    })
}

async fn drive(sim: &Sim, plan: &Plan) {
    let start = Instant::now();
    sim.start_replica(0);
    begin(sim).await;
    (1..plan.replicas).for_each(|replica| sim.start_replica(replica));
    if plan.steps.iter().any(|step| step.kind == Kind::SubmitExternal) {
        // Each claim makes a replica look at the time, so idle workers would hide a replica that does not.
        (0..WORKERS).for_each(|worker| sim.start_worker(worker));
    }
    for step in &plan.steps {
        sleep_until(start + Duration::from_millis(step.at)).await;
        if !sim.world().violations.is_empty() {
            return;
        }
        sim.world().note(|| {
            format!("{} (who {:x}, much {:x})", step.kind.name(), step.who & 0xfff, step.much & 0xffff)
        });
        sim.strike(*step);
    }
    sleep_until(start + Duration::from_millis(HORIZON_MS)).await;
    heal(sim).await;
    settle(sim).await;
    drain(sim).await;
}

/// The first replica brings the settings.
async fn begin(sim: &Sim) {
    loop {
        let configured = sim.call(0, |handle| async move { handle.configure(settings()).await }).await;
        if configured.is_ok() {
            return;
        }
        pass(10).await;
    }
}

/// Ends all faults.
async fn heal(sim: &Sim) {
    {
        let mut world = sim.world();
        world.note(|| "from here on nothing goes wrong".to_owned());
        world.is_healed = true;
        world.calls.clear();
        world.misdeeds.clear();
        world.wires.iter_mut().for_each(|wire| wire.heal());
        let now = world.now();
        world.shared.away_until = world.shared.away_until.min(now);
        world.fault_end = world.fault_end.max(now);
    }
    for lane in ["work", "slots", "ext"] {
        while sim.world().violations.is_empty() {
            let resumed = sim.call(sim.any_replica(), move |handle| async move {
                handle.resume(LaneName::new(lane)?).await
            });
            if resumed.await.is_ok() {
                break;
            }
            pass(100).await;
        }
    }
}

/// A lease and a second after the last fault everything is queued, live or over.
async fn settle(sim: &Sim) {
    loop {
        let wait = {
            let world = sim.world();
            // While the log is ahead of the clock, time stands still for everybody.
            let ahead = world.checker.scheduler.now().0.saturating_sub(world.log_time());
            let until = world.fault_end + LEASE_MS + LATE_MS;
            if !world.violations.is_empty() {
                return;
            }
            match ahead {
                0..100 => until.saturating_sub(world.now()),
                _ => ahead + LEASE_MS + LATE_MS,
            }
        };
        if wait == 0 {
            break;
        }
        pass(wait).await;
    }
    sim.world().check_settled();
}

impl World {
    fn check_settled(&mut self) {
        self.note(|| "a lease and a second after the last fault".to_owned());
        self.checker.look();
        self.collect_violations();
        let time = self.log_time();
        let due = self.checker.due(Timestamp(time.saturating_sub(LATE_MS)));
        if !due.is_empty() {
            self.wrong(format!("no replica did what was due {LATE_MS} ms ago: {}", due.join(", ")));
        }
        let mut ghosts = Vec::new();
        for (task, seen) in &self.checker.live {
            if let Some(replica) = seen.slot_of()
                && !self.is_alive(replica.0)
            {
                ghosts.push(format!("{task} is a slot of a replica that is dead"));
            }
            // What was told to stop has its grace for it, however short its lease.
            let Some(run) = seen.run.as_ref().filter(|run| !run.is_stopping) else { continue };
            let view = self.checker.scheduler.task(*task).and_then(|view| view.running);
            let started = view.map_or(Timestamp(0), |running| running.started);
            let age = time.saturating_sub(started.0);
            match self.ledger.really.get(&(*task, run.fence)).map(|run| run.ended) {
                Some(None) => {}
                Some(Some(ended)) if self.now() <= ended + LATE_MS => {}
                Some(Some(ended)) => {
                    ghosts.push(format!("{task} #{} stopped running at {ended} and is live", run.fence));
                }
                None if age > LEASE_MS + LATE_MS => {
                    ghosts.push(format!("{task} #{} was granted {age} ms ago and never ran", run.fence));
                }
                None => {}
            }
        }
        ghosts.into_iter().for_each(|ghost| self.wrong(ghost));
    }

    /// What has not ended yet.
    fn left(&self) -> Vec<String> {
        let tasks = self.checker.live.iter().map(|(task, seen)| {
            let run = seen.run.as_ref().map(|run| format!("running #{} at {:?}", run.fence, run.owner));
            let lanes: Vec<&str> = seen.lanes.iter().map(LaneName::as_str).collect();
            format!("{task} in {lanes:?} {}", run.unwrap_or_else(|| "waiting".to_owned()))
        });
        let messages = self.checker.messages.iter().filter(|(_, has_ended)| !**has_ended);
        tasks.chain(messages.map(|(message, _)| format!("message {message}"))).collect()
    }
}

/// Everything comes to its end.
async fn drain(sim: &Sim) {
    let give_up = sim.world().now() + DRAIN_MS;
    loop {
        {
            let mut world = sim.world();
            let left = world.left();
            if !world.violations.is_empty() || left.is_empty() {
                break;
            }
            if world.now() > give_up {
                return world.wrong(format!("these have not ended: {}", left.join("; ")));
            }
        }
        pass(200).await;
    }
    sim.world().check_promises();
    let replicas = sim.world().replicas.len();
    for replica in 0..replicas {
        let answer = sim.call(replica, |handle| async move { handle.tasks().await }).await;
        let mut world = sim.world();
        if !world.violations.is_empty() {
            return;
        }
        match answer {
            Ok(tasks) if tasks.is_empty() => {}
            Ok(tasks) => world.wrong(format!("replica {replica} still has {} tasks", tasks.len())),
            Err(silence) => world.wrong(format!("replica {replica} does not answer: {silence:?}")),
        }
    }
}

impl World {
    /// Nothing that was called accepted is missing.
    fn check_promises(&mut self) {
        let is_there =
            |task: &laneway_core::TaskId| self.checker.knows(*task) || self.ledger.gone.contains(task);
        let lost: Vec<_> = self.ledger.accepted.iter().filter(|task| !is_there(task)).copied().collect();
        lost.into_iter().for_each(|task| self.wrong(format!("{task} was accepted and is lost")));
        let known = &self.checker.messages;
        let is_there = |message: &laneway_core::MessageId| {
            known.contains_key(message) || self.ledger.gone_messages.contains(message)
        };
        let lost: Vec<_> =
            self.ledger.messages.iter().filter(|message| !is_there(message)).copied().collect();
        lost.into_iter()
            .for_each(|message| self.wrong(format!("message {message} was accepted and is lost")));
        self.checker.look();
        self.collect_violations();
    }
}

/// Ends everybody, and says what was seen.
async fn end(sim: &Sim) -> History {
    let places = {
        let mut world = sim.world();
        let mut places = std::mem::take(&mut world.replicas);
        places.append(&mut world.workers);
        places.append(&mut world.clients);
        places
    };
    let millis = sim.world().now();
    places.iter().for_each(|place| place.host.crash());
    drop(places);
    let mut world = sim.world();
    History {
        violations: std::mem::take(&mut world.violations),
        counts: std::mem::take(&mut world.counts),
        digest: world.digest,
        timeline: world.timeline.take().unwrap_or_default(),
        millis,
        batches: world.checker.head.version.0,
        left_ms: world.left_ms,
        append_turns: world.append_turns,
    }
}
