//! Workers: they claim work through any replica, show that they live, and report, some of them badly.

use std::sync::Arc;
use std::time::Duration;

use laneway_engine::{Claim, ClaimRequest, Error};

use crate::LEASE_MS;
use crate::checks::ledger::Run;
use crate::kind::Kind;
use crate::machines::machine::Host;
use crate::network::calls::Silence;
use crate::network::link::pass;
use crate::world::Sim;

/// How often a report is repeated whose fate is unknown.
const REPORTS_MAX: usize = 60;

impl Sim {
    /// Begins the next life of a worker.
    pub(crate) fn start_worker(&self, worker: usize) {
        let (host, life) = {
            let mut world = self.world();
            let place = &mut world.workers[worker];
            place.host = Arc::<Host>::default();
            place.life += 1;
            (Arc::clone(&place.host), place.life)
        };
        host.start(work(self.clone(), format!("worker-{worker}-{life}")));
    }

    /// Some replica.
    pub(crate) fn any_replica(&self) -> usize {
        let mut world = self.world();
        let replicas = world.replicas.len() as u64;
        world.random.below(replicas) as usize
    }
}

async fn work(sim: Sim, name: String) {
    loop {
        let request = ClaimRequest::new(name.as_str(), ["ext"]).lease(Duration::from_millis(LEASE_MS));
        let claimed =
            sim.call(sim.any_replica(), move |handle| async move { handle.claim(request).await }).await;
        for claim in claimed.unwrap_or_default() {
            do_claimed(&sim, &name, claim).await;
        }
        let pause = sim.world().random.between(40, 160);
        pass(pause).await;
    }
}

async fn do_claimed(sim: &Sim, name: &str, claim: Claim) {
    let run = Run::begin(sim, claim.task, claim.fence, name);
    let payload: serde_json::Value =
        claim.payload.as_ref().and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default();
    let mut left = payload["ms"].as_u64().unwrap_or(10);
    let misdeed = sim.world().misdeeds.pop_front();
    if misdeed == Some(Kind::StaleReport) {
        // It says nothing for longer than its lease, and then reports as if nothing had happened.
        {
            let mut world = sim.world();
            let until = world.now() + LEASE_MS + 800;
            world.calls_until = world.calls_until.max(until);
            world.fault_end = world.fault_end.max(until);
        }
        pass(LEASE_MS + 600).await;
        left = 0;
    }
    while left > 0 {
        let step = left.min(LEASE_MS / 3);
        pass(step).await;
        left -= step;
        if left > 0 && !shows_life(sim, &claim).await {
            return;
        }
    }
    drop(run);
    report(sim, &claim).await;
    if let Some(kind) = misdeed {
        sim.world().count(kind);
        if kind == Kind::DoubleReport {
            report(sim, &claim).await;
        }
    }
}

/// Whether to go on.
async fn shows_life(sim: &Sim, claim: &Claim) -> bool {
    let (task, fence) = (claim.task, claim.fence);
    for _ in 0..3 {
        let beat =
            sim.call(sim.any_replica(), move |handle| async move { handle.heartbeat(task, fence).await });
        match beat.await {
            Ok((_, stopping)) => return stopping.is_none(),
            Err(Silence::Refused(Some(Error::Rejected(_)))) => return false,
            Err(_) => pass(100).await,
        }
    }
    true
}

/// Reports the completion until an answer arrives.
async fn report(sim: &Sim, claim: &Claim) {
    let (task, fence) = (claim.task, claim.fence);
    for _ in 0..REPORTS_MAX {
        let book = sim.clone();
        let told = sim.call(sim.any_replica(), move |handle| async move {
            let done = handle.complete(task, fence, Some("1".into())).await;
            if done.is_ok() {
                book.world().answered_completed(task, fence);
            }
            done
        });
        match told.await {
            Ok(()) | Err(Silence::Refused(Some(Error::Rejected(_)))) => return,
            Err(_) => pass(150).await,
        }
    }
}
