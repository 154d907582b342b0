//! Work for replicas, and how long it takes them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use laneway_core::{Block, LaneSettings, Pattern};
use laneway_engine::{Context, Handle, Options, Task};
use laneway_store::Store;
use laneway_test_services::Redis;
use redis::cmd;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::counts::commands;

/// How much work there is at a time.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    /// How many slots the lane has.
    pub(crate) slots: u32,
    /// How many callers each wait for their task before they bring the next.
    pub(crate) callers: usize,
}

impl Load {
    /// What keeps one replica busy.
    pub(crate) const ONE: Load = Load { slots: 50, callers: 256 };

    /// What keeps this many busy. Each needs slots of its own, and as many again for each of the others, because a slot is held
    /// until its replica has its next turn.
    pub(crate) fn of(replicas: usize) -> Load {
        let turns = replicas as u32;
        Load { slots: Load::ONE.slots * turns * turns, callers: Load::ONE.callers * replicas }
    }
}

pub(crate) fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// An engine with a lane that has slots for one replica.
pub(crate) async fn replica(store: Arc<dyn Store>) -> Handle {
    let options = Options::default().handler("noop", |_: Context, (): ()| async { Ok(()) }).unwrap();
    let lanes = Handle::join(store, options).await.unwrap();
    set_slots(&lanes, Load::ONE.slots).await;
    lanes
}

async fn set_slots(lanes: &Handle, slots: u32) {
    let mut settings = LaneSettings::default();
    settings.set("max_concurrency", &slots.to_string()).unwrap();
    settings.set("max_queued", "100000").unwrap();
    let block = Block { lanes: Pattern::new("work").unwrap(), settings: Some(settings) };
    lanes.configure(vec![block]).await.unwrap();
}

/// Tasks a second, submitted, run and finished.
pub(crate) async fn throughput(replicas: &[Handle], load: Load, tasks: usize) -> f64 {
    set_slots(&replicas[0], load.slots).await;
    let start = Instant::now();
    let mut callers = JoinSet::new();
    for caller in 0..load.callers {
        let lanes = replicas[caller % replicas.len()].clone();
        let share = tasks / load.callers + usize::from(caller < tasks % load.callers);
        callers.spawn(async move {
            for _ in 0..share {
                let task = lanes.submit(Task::new("work").kind("noop")).await.unwrap();
                task.wait().await.unwrap();
            }
        });
    }
    while let Some(done) = callers.join_next().await {
        done.unwrap();
    }
    tasks as f64 / start.elapsed().as_secs_f64()
}

/// The 99th percentile of the time that a submit takes, at this many a second over all replicas; and how many
/// there were. The time begins in the thread that brings them, before anything of ours is woken.
pub(crate) async fn open_loop(replicas: &[Handle], a_second: u32, seconds: u32) -> (Duration, usize) {
    let (told, mut times) = mpsc::unbounded_channel();
    let count = a_second * seconds;
    let replicas = replicas.to_vec();
    let runtime = tokio::runtime::Handle::current();
    // A thread of its own: the timer of the runtime would bring them in bursts, one each millisecond.
    let load = std::thread::spawn(move || {
        let start = Instant::now();
        for number in 0..count {
            let due = start + Duration::from_secs(1) * number / a_second;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let (lanes, told) = (replicas[number as usize % replicas.len()].clone(), told.clone());
            let began = Instant::now();
            runtime.spawn(async move {
                lanes.submit(Task::new("work").kind("noop")).await.unwrap().detach();
                told.send(began.elapsed()).unwrap();
            });
        }
    });
    let mut all = Vec::new();
    while let Some(time) = times.recv().await {
        all.push(time);
    }
    load.join().unwrap();
    assert_eq!(all.len(), count as usize);
    all.sort();
    (all[all.len() * 99 / 100], all.len())
}

/// The median times from submit to start when nothing else happens, each with that of a round trip just before.
pub(crate) async fn idle_latencies(
    lanes: &Handle,
    redis: &Redis,
    rounds: usize,
) -> Vec<(Duration, Duration)> {
    let (told, mut started) = mpsc::unbounded_channel();
    let handler = move |_: Context, (): ()| {
        let told = told.clone();
        async move {
            told.send(Instant::now())?;
            Ok(())
        }
    };
    lanes.handler("told", handler).unwrap();
    let mut pairs = Vec::new();
    for _ in 0..rounds {
        let trip = round_trip(redis).await;
        let mut times = Vec::new();
        for _ in 0..100 {
            let began = Instant::now();
            let task = lanes.submit(Task::new("work").kind("told")).await.unwrap();
            times.push(started.recv().await.unwrap().duration_since(began));
            task.wait().await.unwrap();
        }
        times.sort();
        pairs.push((times[times.len() / 2], trip));
    }
    pairs
}

/// The median time of a question and its answer.
pub(crate) async fn round_trip(redis: &Redis) -> Duration {
    let client = redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut times = Vec::new();
    for _ in 0..1000 {
        let began = Instant::now();
        cmd("PING").query_async::<redis::Value>(&mut connection).await.unwrap();
        times.push(began.elapsed());
    }
    times.sort();
    times[times.len() / 2]
}

/// How many commands a second one of these replicas costs when nothing happens.
pub(crate) async fn idle_commands(redis: &Redis, replicas: &[Handle]) -> f64 {
    // What is still to be done is done in this time.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = commands(redis).await;
    let length = Duration::from_secs(10);
    tokio::time::sleep(length).await;
    // Asking is counted too, so this is an upper bound.
    (commands(redis).await - before) as f64 / length.as_secs_f64() / replicas.len() as f64
}
