//! Clients: they ask for work, change their minds, and ask again.

use std::sync::Arc;

use laneway_core::{LaneName, MessageId, Mode, QueueOverrides, TaskId};
use laneway_engine::{Error, Handle, NewMessage, Task};
use serde_json::json;

use crate::checks::ledger::Run;
use crate::kind::Kind;
use crate::machines::replica::block;
use crate::network::calls::Silence;
use crate::network::link::pass;
use crate::plan::PlanStep;
use crate::world::{CLIENTS, Sim, World};
use crate::{LEASE_MS, SESSIONS};

/// The mode of a message that is sent.
fn mode(kind: Kind) -> Option<Mode> {
    Some(match kind {
        Kind::SendCollect => Mode::Collect,
        Kind::SendFollowup => Mode::Followup,
        Kind::SendSteer => Mode::Steer,
        Kind::SendSteerBacklog => Mode::SteerBacklog,
        Kind::SendInterrupt => Mode::Interrupt,
        Kind::SendReject => Mode::Reject,
        Kind::SendLatest => Mode::Latest,
        _ => return None,
    })
}

impl Sim {
    /// Lets a client ask.
    pub(crate) fn ask(&self, step: PlanStep) {
        let client = step.who as usize % CLIENTS;
        let (host, dies_in) = {
            let place = &mut self.world().clients[client];
            (Arc::clone(&place.host), place.dies_in.take())
        };
        let sim = self.clone();
        host.start(async move { ask(&sim, step).await });
        if let Some(after_ms) = dies_in {
            self.crash_client(client, after_ms);
        }
    }
}

async fn ask(sim: &Sim, step: PlanStep) {
    let PlanStep { kind, who, much, .. } = step;
    let replica = (who >> 8) as usize;
    let session = much % SESSIONS;
    if let Some(mode) = mode(kind) {
        let message = NewMessage::new(format!("talk-{session}"), "bot", format!("{much:x}")).mode(mode);
        let message = message.debounce(std::time::Duration::from_millis(much % 400));
        return send(sim, kind, replica, message).await;
    }
    match kind {
        Kind::Submit => submit(sim, kind, replica, Task::new("work"), much, 1).await,
        Kind::SubmitTurn => {
            let turn = Task::new("work").session(format!("turn-{session}"));
            submit(sim, kind, replica, turn, much, 1).await;
        }
        Kind::SubmitExternal => submit(sim, kind, replica, Task::new("ext"), much, 1).await,
        Kind::Resent => {
            let task = Task::new("work").idempotency(format!("{much:x}"), 1);
            submit(sim, kind, replica, task, much, 3).await;
        }
        Kind::RunSlot => run_slot(sim, replica, much).await,
        _ => change(sim, kind, replica, much).await,
    }
}

/// How long something runs: now and then for longer than a lease.
fn run_ms(much: u64) -> u64 {
    match (much >> 24) % 6 {
        0 => LEASE_MS + much % 3000,
        _ => much % 1200,
    }
}

/// Submits a task at least this often, and until an answer has arrived.
async fn submit(sim: &Sim, kind: Kind, replica: usize, task: Task, much: u64, times: usize) {
    let payload = json!({ "ms": run_ms(much), "fate": (much >> 16) % 8 });
    let task = task.kind("work").payload(payload);
    let mut answers: Vec<TaskId> = Vec::new();
    for time in 0..times {
        let (book, task) = (sim.clone(), task.clone());
        let asked = sim.call(replica + time, move |handle| async move {
            // Some of them for a caller who stays connected.
            let task = if (much >> 32).is_multiple_of(3) { task.caller_at(handle.here()) } else { task };
            let accepted = handle.submit(task).await?;
            book.world().answered_accepted(accepted.id());
            Ok(accepted.id())
        });
        let Ok(told) = asked.await else { continue };
        if let Some(first) = answers.first() {
            sim.world().answered_repeat(*first, told);
        }
        answers.push(told);
        // A request under one key counts as repeated when two answers have arrived.
        if times == 1 || answers.len() > 1 {
            sim.world().count(kind);
        }
    }
}

async fn send(sim: &Sim, kind: Kind, replica: usize, message: NewMessage) {
    let book = sim.clone();
    let sent = sim.call(replica, move |handle| async move {
        let reply = handle.send_message(message).await?;
        book.world().answered_message(reply.message);
        Ok(())
    });
    match sent.await {
        Ok(()) | Err(Silence::Refused(Some(Error::Rejected(_)))) => sim.world().count(kind),
        Err(_) => {}
    }
}

/// Runs something where it was asked for: it lives and dies with its replica.
async fn run_slot(sim: &Sim, replica: usize, much: u64) {
    let place = {
        let world = sim.world();
        let place = &world.replicas[replica % world.replicas.len()];
        place.handle.clone().map(|handle| (handle, Arc::clone(&place.host)))
    };
    let Some((handle, host)) = place else { return };
    for number in 0..1 + much % 3 {
        let (sim, handle) = (sim.clone(), handle.clone());
        host.start(async move {
            let Ok(slot) = handle.take(Task::new("slots")).await else { return };
            sim.world().count(Kind::RunSlot);
            let run = Run::begin(&sim, slot.task(), slot.fence(), "a slot");
            tokio::select! {
                biased;
                _ = slot.stop().wait() => {}
                () = pass(run_ms(much.rotate_left(number as u32 * 8))) => {}
            }
            drop(run);
            drop(slot);
        });
    }
}

/// One of the newest.
fn one_of<T: Copy>(all: impl Iterator<Item = T>, much: u64) -> Option<T> {
    let all: Vec<T> = all.collect();
    all.get(all.len().saturating_sub(1 + (much % 6) as usize)).copied()
}

/// What to change: mostly something that has not ended, as far as one can know.
fn targets(world: &World, much: u64) -> (Option<TaskId>, Option<MessageId>) {
    let any = (much >> 32).is_multiple_of(4);
    let (tasks, messages) = (world.ledger.recent.iter(), world.ledger.recent_messages.iter());
    let tasks = tasks.filter(|task| any || world.checker.live.contains_key(task));
    let messages = messages.filter(|message| any || world.checker.messages.get(message) == Some(&false));
    (one_of(tasks.copied(), much), one_of(messages.copied(), much))
}

/// Changes something of what is there. It counts if there was something to change.
async fn change(sim: &Sim, kind: Kind, replica: usize, much: u64) {
    let (task, message) = targets(&sim.world(), much);
    let session: Arc<str> = format!("talk-{}", much % SESSIONS).into();
    let book = sim.clone();
    let done = sim.call(replica, move |handle| async move {
        match (kind, task, message) {
            (Kind::Cancel, Some(task), _) => handle.cancel(task).await.map(|_| true),
            (Kind::Withdraw, _, Some(message)) => handle.withdraw(message).await.map(|()| true),
            (Kind::Cancel | Kind::Withdraw, ..) => Ok(false),
            (Kind::Interrupt, ..) => handle.interrupt(session).await.map(|()| true),
            (Kind::Redrive, ..) => redrive(&book, &handle).await,
            (Kind::ModeChanged, ..) => {
                let modes = [Mode::Followup, Mode::Collect, Mode::Steer, Mode::Latest];
                let mode = modes[(much >> 8) as usize % 4];
                let before = book.world().checker.scheduler.queue_for(&session, None).mode.value;
                let queue = QueueOverrides { mode: Some(mode), ..QueueOverrides::default() };
                handle.configure_session(session, queue).await.map(|()| before != mode)
            }
            (Kind::LimitRaised, ..) => limit(&book, &handle, much, 4).await,
            (Kind::LimitLowered, ..) => limit(&book, &handle, much, 1).await,
            _ => change_lane(&handle, kind, much).await,
        }
    });
    if matches!(done.await, Ok(true)) {
        sim.world().count(kind);
    }
    if kind == Kind::PauseLane {
        pass(much % 2000).await;
        let resumed = sim.call(replica, move |handle| async move { handle.resume(lane(much)?).await });
        drop(resumed.await);
    }
}

fn lane(much: u64) -> Result<LaneName, Error> {
    Ok(LaneName::new(["work", "slots", "ext"][(much >> 4) as usize % 3])?)
}

/// Whether there was something to change.
async fn change_lane(handle: &Handle, kind: Kind, much: u64) -> Result<bool, Error> {
    match kind {
        Kind::Clear => handle.clear(lane(much)?).await.map(|cancelled| cancelled > 0),
        Kind::ForceRelease => handle.force_release(lane(much)?).await.map(|released| !released.is_empty()),
        Kind::PauseLane => handle.pause(lane(much)?).await.map(|()| true),
        _ => Ok(false),
    }
}

/// Whether there was something to change.
async fn limit(sim: &Sim, handle: &Handle, much: u64, slots: u32) -> Result<bool, Error> {
    let name = lane(much)?;
    let before = sim.world().checker.scheduler.settings_for(&name).max_concurrency;
    let extra = match name.as_str() {
        "ext" => "handler=external",
        "work" => "retry=fixed",
        _ => "",
    };
    let words = format!("max_concurrency={slots} max_queued=50 lease={LEASE_MS}ms {extra}");
    match block(name.as_str(), &words) {
        Some(block) => handle.configure(vec![block]).await.map(|()| before != Some(slots)),
        None => Ok(false),
    }
}

/// Whether there was a dead letter to run again. The task that it became is held to account like any other.
async fn redrive(sim: &Sim, handle: &Handle) -> Result<bool, Error> {
    let Some(dead_letter) = handle.dead_letters().await?.first().map(|dead_letter| dead_letter.task) else {
        return Ok(false);
    };
    let accepted = handle.redrive(dead_letter).await?;
    sim.world().answered_accepted(accepted.id());
    Ok(true)
}
