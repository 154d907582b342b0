//! What goes wrong, when its time has come.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::LEASE_MS;
use crate::kind::Kind;
use crate::machines::machine::Host;
use crate::network::link::pass;
use crate::plan::PlanStep;
use crate::world::{CLIENTS, Sim, WORKERS, World};

/// A replica asks the store for the time so often, and knows of a jump only then.
const CLOCK_ASKED_MS: u64 = 6000;

impl Sim {
    /// Lets a step of the plan happen.
    pub(crate) fn strike(&self, step: PlanStep) {
        let PlanStep { kind, who, much, .. } = step;
        let replica = who as usize % self.world().replicas.len();
        match kind {
            Kind::ReplicaCrash => self.crash_replica(replica, 50 + much % 3000),
            Kind::ReplicaPause => self.pause_replica(replica, LEASE_MS + 500 + much % 2500),
            Kind::ReplicaLeave => self.leave(replica, much % 1500),
            Kind::OldProgram => self.be_old(replica),
            Kind::WorkerCrash => self.crash_worker(who as usize % WORKERS, 50 + much % 2000),
            Kind::WorkerPause => self.pause_worker(who as usize % WORKERS, LEASE_MS + 300 + much % 2000),
            Kind::ClientCrash => self.world().clients[who as usize % CLIENTS].dies_in = Some(much % 8),
            _ if self.world().strike(kind, replica, much) => {}
            _ => self.ask(step),
        }
    }

    /// Ends the life of a replica at once.
    fn kill_replica(&self, replica: usize, back_ms: u64) {
        let handle = {
            let mut world = self.world();
            let until = world.now() + back_ms + 500;
            world.trouble(replica, until);
            let place = &mut world.replicas[replica];
            place.host.crash();
            place.life += 1;
            let handle = place.handle.take();
            world.reap_dead(replica);
            handle
        };
        drop(handle);
    }

    fn crash_replica(&self, replica: usize, back_ms: u64) {
        {
            let mut world = self.world();
            if world.replicas[replica].host.is_dead() {
                return;
            }
            world.count(Kind::ReplicaCrash);
            world.note(|| format!("replica {replica} crashes"));
            world.request_append_turn(replica);
        }
        self.kill_replica(replica, back_ms);
        let sim = self.clone();
        tokio::spawn(async move {
            pass(back_ms).await;
            sim.start_replica(replica);
        });
    }

    fn pause_replica(&self, replica: usize, length: u64) {
        let host = {
            let mut world = self.world();
            let host = Arc::clone(&world.replicas[replica].host);
            if host.is_dead() || host.is_paused() {
                return;
            }
            world.count(Kind::ReplicaPause);
            let until = world.now() + length + 500;
            world.trouble(replica, until);
            world.note(|| format!("replica {replica} stands still for {length} ms"));
            world.request_append_turn(replica);
            host
        };
        host.pause();
        resume_later(host, length);
    }

    fn leave(&self, replica: usize, patience_ms: u64) {
        let (handle, host) = {
            let mut world = self.world();
            let place = &world.replicas[replica];
            let host = Arc::clone(&place.host);
            let Some(handle) = place.handle.clone() else { return };
            if host.is_paused() {
                return;
            }
            world.count(Kind::ReplicaLeave);
            let until = world.now() + patience_ms + 5000;
            world.leaving_until = world.leaving_until.max(until + LEASE_MS);
            world.trouble(replica, until);
            world.note(|| format!("replica {replica} shuts down"));
            (handle, host)
        };
        let sim = self.clone();
        let life = self.world().replicas[replica].life;
        let asked = Arc::clone(&host);
        asked.start(async move { handle.shutdown(Duration::from_millis(patience_ms)).await });
        tokio::spawn(async move {
            pass(patience_ms + 4000).await;
            let is_same = sim.world().replicas[replica].life == life;
            if is_same {
                sim.kill_replica(replica, 0);
                sim.start_replica(replica);
            }
        });
    }

    /// The others are upgraded first; after a while this one is too.
    fn be_old(&self, replica: usize) {
        {
            let mut world = self.world();
            if world.replicas[replica].handle.is_none() {
                return;
            }
            world.wires[replica].old_since = Some(world.shared.head().version);
            let until = world.now() + 3500;
            world.trouble(replica, until);
            world.note(|| format!("replica {replica} is of an older version than the others"));
        }
        let sim = self.clone();
        tokio::spawn(async move {
            pass(3000).await;
            sim.world().wires[replica].old_since = None;
            if !sim.world().replicas[replica].host.is_dead() {
                sim.kill_replica(replica, 100);
                pass(100).await;
                sim.start_replica(replica);
            }
        });
    }

    /// A client dies so soon, if it still waits for an answer then.
    pub(crate) fn crash_client(&self, client: usize, after_ms: u64) {
        let sim = self.clone();
        tokio::spawn(async move {
            pass(after_ms).await;
            let mut world = sim.world();
            if world.clients[client].host.is_busy() {
                world.count(Kind::ClientCrash);
                world.note(|| format!("client {client} crashes"));
                std::mem::take(&mut world.clients[client].host).crash();
            }
        });
    }

    fn crash_worker(&self, worker: usize, back_ms: u64) {
        {
            let mut world = self.world();
            if !world.workers[worker].is_running() {
                return;
            }
            world.count(Kind::WorkerCrash);
            world.workers[worker].host.crash();
            world.worker_trouble(worker, back_ms);
        }
        let sim = self.clone();
        tokio::spawn(async move {
            pass(back_ms).await;
            sim.start_worker(worker);
        });
    }

    fn pause_worker(&self, worker: usize, length: u64) {
        let host = {
            let mut world = self.world();
            let host = Arc::clone(&world.workers[worker].host);
            if !world.workers[worker].is_running() || host.is_paused() {
                return;
            }
            world.count(Kind::WorkerPause);
            world.worker_trouble(worker, length);
            host
        };
        host.pause();
        resume_later(host, length);
    }
}

fn resume_later(host: Arc<Host>, length: u64) {
    tokio::spawn(async move {
        pass(length).await;
        host.resume();
    });
}

impl World {
    fn worker_trouble(&mut self, worker: usize, length: u64) {
        let until = self.now() + length + 500;
        let place = &mut self.workers[worker];
        place.trouble_until = place.trouble_until.max(until);
        self.fault_end = self.fault_end.max(until);
    }

    /// No replica reaches the store for this long. Replicas try again at growing intervals, never longer than the outage.
    pub(crate) fn store_away(&mut self, length: u64) {
        let now = self.now();
        self.shared.away_until = self.shared.away_until.max(now + length);
        self.trouble_for_all(now + 2 * length + 1000);
        self.note(|| format!("the store is away for {length} ms"));
        self.tell_all();
    }

    /// Whether this is a fault of the store, of a clock, or of what is under way.
    fn strike(&mut self, kind: Kind, replica: usize, much: u64) -> bool {
        match kind {
            Kind::CallSlow | Kind::CallLost | Kind::AnswerLost => self.calls.push_back((kind, much)),
            Kind::StaleReport | Kind::DoubleReport => self.misdeeds.push_back(kind),
            Kind::SnapshotLost => self.wires[replica].loses_snapshot = true,
            Kind::SnapshotOlder => {
                if self.shared.lose_snapshot() {
                    self.count(kind);
                }
            }
            Kind::LogTrimmed => {
                if self.shared.trim() {
                    self.count(kind);
                }
            }
            Kind::StoreAway => {
                self.count(kind);
                self.store_away(200 + much % 2500);
            }
            Kind::LinkCut => self.cut(replica, 200 + much % 3500),
            Kind::TailLost => {
                let lost = self.lose_tail(1 + (much % 4) as usize);
                if lost > 0 {
                    self.count(kind);
                }
                let until = self.now() + LEASE_MS;
                self.trouble_for_all(until);
            }
            Kind::StoreClockAhead | Kind::StoreClockBack => self.jump_store(kind, much),
            Kind::ReplicaClockAhead | Kind::ReplicaClockBack => self.jump_replica(kind, replica, much),
            _ if (kind as usize) <= Kind::HintTwice as usize => self.wires[replica].plan(kind, much),
            _ => return false,
        }
        true
    }

    fn cut(&mut self, replica: usize, length: u64) {
        self.count(Kind::LinkCut);
        let now = self.now();
        let wire = &mut self.wires[replica];
        wire.cut_until = wire.cut_until.max(now + length);
        self.trouble(replica, now + 2 * length + 1000);
        self.note(|| format!("replica {replica} is cut off from the store for {length} ms"));
        self.tell_all();
    }

    fn jump_store(&mut self, kind: Kind, much: u64) {
        if !self.has_clock {
            return;
        }
        let jump = 50 + much % 4000;
        let (sign, now) = (if kind == Kind::StoreClockAhead { 1 } else { -1 }, self.now());
        self.shared.ahead += sign * jump as i64;
        self.count(kind);
        self.note(|| format!("{} by {jump} ms", kind.name()));
        // Time stands still until the clock has come to where the log is.
        let behind = self.checker.scheduler.now().0.saturating_sub(self.log_time());
        self.trouble_for_all(now + jump + behind + 2 * CLOCK_ASKED_MS);
    }

    fn jump_replica(&mut self, kind: Kind, replica: usize, much: u64) {
        if self.has_clock {
            return;
        }
        let jump = 50 + much % 4000;
        let (sign, now) = (if kind == Kind::ReplicaClockAhead { 1 } else { -1 }, self.now());
        self.replicas[replica].ahead.fetch_add(sign * jump as i64, Ordering::Relaxed);
        self.count(kind);
        self.note(|| format!("{} by {jump} ms at replica {replica}", kind.name()));
        let behind = self.checker.scheduler.now().0.saturating_sub(self.log_time());
        self.trouble_for_all(now + jump + behind);
    }
}
