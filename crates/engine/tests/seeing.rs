//! Subscriptions, explanations, statistics, and settings that change while tasks run.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

mod common;

use std::sync::Arc;

use common::{block, lane, lanes, numbers, secs};
use laneway_core::{Blocker, Event};
use laneway_engine::{Context, Filter, Handle, Options, Stopped, Subscription, Task, Update};
use serde_json::{Value, json};

/// The updates so far, as short words.
fn updates_so_far(updates: &mut Subscription) -> Vec<String> {
    std::iter::from_fn(|| updates.try_next()).map(|update| word(&update)).collect()
}

fn word(update: &Update) -> String {
    match update {
        Update::Event { event, .. } => {
            let text = format!("{event:?}");
            text.split([' ', '{', '(']).next().unwrap_or_default().to_lowercase()
        }
        Update::Lane { change, .. } => {
            let limit = change.max_concurrency.map_or("-".to_owned(), |limit| limit.to_string());
            format!("{} {}/{}/{limit}", change.lane, change.running, change.waiting)
        }
        Update::Progress { value, .. } => format!("progress {value}"),
        Update::Delta { text, .. } => format!("delta {text}"),
        Update::Gap { missed } => format!("gap {missed:?}"),
        other => format!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_gets_all_updates_in_order_up_to_the_last_release() {
    let lanes = lanes();
    lanes
        .handler("work", |context: Context, _: Value| async move {
            tokio::time::sleep(secs(1)).await;
            context.progress(json!(50));
            context.delta("hel");
            context.delta("lo");
            Ok(())
        })
        .unwrap();
    let mut all = lanes.subscribe(Filter::lane(lane("cron")));
    let task = lanes.submit(Task::new("cron").kind("work")).await.unwrap();
    let mut own = lanes.subscribe(Filter::task(task.id()));
    task.wait().await.unwrap();
    assert_eq!(
        updates_so_far(&mut all),
        ["submitted", "granted", "cron 1/0/1", "progress 50", "delta hel", "delta lo", "ended", "cron 0/0/1"]
    );
    assert_eq!(updates_so_far(&mut own), ["progress 50", "delta hel", "delta lo", "ended"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_comes_only_after_the_start_of_its_attempt() {
    let lanes = lanes();
    let eager = |context: Context, _: Value| async move {
        context.delta("at once");
        Ok(())
    };
    lanes.handler("eager", eager).unwrap();
    let mut all = lanes.subscribe(Filter::lane(lane("cron")));
    for round in 0..2000 {
        lanes.submit(Task::new("cron").kind("eager")).await.unwrap().wait().await.unwrap();
        let heard = updates_so_far(&mut all);
        let place = |what: &str| heard.iter().position(|word| word == what);
        assert!(place("granted") < place("delta at once"), "in round {round}: {heard:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_subscriber_gets_the_number_of_missed_updates() {
    let mut options = Options::default();
    options.updates_max = 4;
    let lanes = Handle::in_memory(options);
    let mut updates = lanes.subscribe(Filter::default());
    let (mut read, mut missed) = (0, 0);
    for _ in 0..10 {
        lanes.pause(lane("cron")).await.unwrap();
        lanes.resume(lane("cron")).await.unwrap();
    }
    let mut first = Vec::new();
    while let Some(update) = updates.try_next() {
        match update {
            Update::Gap { missed: count } => missed += count.unwrap(),
            _ => {
                read += 1;
                first.push(missed);
            }
        }
    }
    assert_eq!(first, [0, 0, 0, 0], "the gap comes after what was not missed");
    // Each of the 20 commands causes one event and one change of the lane.
    assert_eq!((read, missed), (4, 36));
    lanes.pause(lane("cron")).await.unwrap();
    assert_eq!(updates_so_far(&mut updates)[0], "paused");
    lanes.shutdown(secs(0)).await;
    assert_eq!(updates.next().await.map(|update| word(&update)), None);
}

#[tokio::test(start_paused = true)]
async fn explain_names_the_blockers_of_a_task() {
    let lanes = lanes();
    lanes.handler("work", |_: Context, _: Value| async { Ok(()) }).unwrap();
    let held = lanes.take(Task::new("main").session("ann")).await.unwrap();
    let task = lanes.submit(Task::new("main").session("ann").kind("work")).await.unwrap();
    let explanation = lanes.explain(task.id()).await.unwrap().unwrap();
    assert_eq!(lanes.position(task.id()).await, Ok(Some(1)));
    let Some(Blocker::SessionBusy { turn, .. }) = explanation.blockers.first() else {
        panic!("{explanation:?}");
    };
    assert_eq!(*turn, held.task());
    drop(held);
    let id = task.id();
    task.wait().await.unwrap();
    assert_eq!(lanes.explain(id).await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn a_limit_may_change_while_tasks_run_and_a_pause_starts_none() {
    let lanes = lanes();
    lanes
        .handler("work", |context: Context, _: Value| async move {
            context.stop().wait().await;
            Ok(())
        })
        .unwrap();
    for _ in 0..4 {
        lanes.submit(Task::new("cron").kind("work")).await.unwrap().detach();
    }
    assert_eq!(numbers(&lanes, "cron").await, (1, 3));
    lanes.configure(vec![block("cron", "max_concurrency=3")]).await.unwrap();
    assert_eq!(numbers(&lanes, "cron").await, (3, 1));
    lanes.configure(vec![block("cron", "max_concurrency=1")]).await.unwrap();
    assert_eq!(numbers(&lanes, "cron").await, (3, 1), "lowering kills nothing");
    lanes.pause(lane("cron")).await.unwrap();
    assert_eq!(lanes.force_release(lane("cron")).await.unwrap().len(), 3);
    assert_eq!(numbers(&lanes, "cron").await, (0, 1));
    let snapshot = lanes.snapshot().await.unwrap();
    assert!(snapshot.iter().any(|at| at.lane == lane("cron") && at.gate.paused));
    lanes.resume(lane("cron")).await.unwrap();
    assert_eq!(numbers(&lanes, "cron").await, (1, 0));
}

#[tokio::test(start_paused = true)]
async fn counters_and_histograms_count_everything() {
    let lanes = lanes();
    for _ in 0..20 {
        lanes.run(Task::new("cron"), tokio::time::sleep(secs(1))).await.unwrap();
    }
    let stats = lanes.stats().await.unwrap();
    let cron = &stats.iter().find(|(_, stats)| stats.accepted == 20).unwrap().1;
    assert_eq!((cron.completed, cron.run.samples(), cron.wait.samples()), (20, 20, 20));
    assert!(cron.run.percentile(50).unwrap().0 >= 800);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_task_causes_a_notice() {
    let lanes = lanes();
    let held = lanes.slot(["cron"]).await.unwrap();
    let mut updates = lanes.subscribe(Filter::default());
    let waiting = tokio::spawn({
        let lanes = lanes.clone();
        async move { lanes.slot(["cron"]).await.map(drop) }
    });
    let noticed: Arc<Event> = loop {
        if let Some(Update::Event { event, .. }) = updates.next().await
            && matches!(*event, Event::Noticed { .. })
        {
            break event;
        }
    };
    let Event::Noticed { waited, ahead, .. } = &*noticed else { unreachable!() };
    assert!(waited.0 >= 2000 && *ahead == 0);
    drop(held);
    waiting.await.unwrap().unwrap();
}

/// The times and the values of the position updates of a task.
async fn places(lanes: &Handle, task: laneway_core::TaskId, length: u64) -> Vec<(u128, usize)> {
    let mut updates = lanes.subscribe(Filter::task(task));
    let start = tokio::time::Instant::now();
    let mut places = Vec::new();
    while let Ok(Some(update)) = tokio::time::timeout_at(start + secs(length), updates.next()).await {
        if let Update::Position { position, .. } = update {
            places.push((start.elapsed().as_millis(), position));
        }
    }
    places
}

#[tokio::test(start_paused = true)]
async fn a_watched_task_gets_its_position_at_most_once_a_second() {
    let kept = Handle::open(Arc::new(laneway_store::MemoryStore::new()), Options::default()).await.unwrap();
    for lanes in [lanes(), kept] {
        let nap = std::time::Duration::from_millis(300);
        let work = move |_: Context, _: Value| async move {
            tokio::time::sleep(nap).await;
            Ok(())
        };
        lanes.handler("work", work).unwrap();
        let mut last = None;
        for _ in 0..9 {
            last = Some(lanes.submit(Task::new("cron").kind("work")).await.unwrap());
        }
        // Eight tasks of 0.3 s each are ahead, so its position changes more often than once a second.
        let last = last.unwrap();
        let positions = places(&lanes, last.id(), 60).await;
        assert_eq!(positions, [(300, 7), (1300, 4), (2300, 1)]);
    }
}

#[tokio::test(start_paused = true)]
async fn only_watched_tasks_get_positions_and_only_once_while_no_position_changes() {
    let lanes = lanes();
    let forever = |_: Context, _: Value| std::future::pending::<Result<(), laneway_engine::Failure>>();
    lanes.handler("work", forever).unwrap();
    let mut all = lanes.subscribe(Filter::default());
    for _ in 0..3 {
        lanes.submit(Task::new("cron").kind("work")).await.unwrap().detach();
    }
    let fourth = lanes.submit(Task::new("cron").kind("work")).await.unwrap();
    // Only leases are renewed, and no position changes. The one update comes with the notice.
    assert_eq!(places(&lanes, fourth.id(), 600).await, [(2_000, 3)]);
    let words = updates_so_far(&mut all);
    assert_eq!(words.iter().filter(|word| word.contains("Position")).count(), 1, "{words:?}");
}

#[tokio::test(start_paused = true)]
async fn slots_in_an_idle_lane_are_visible_and_counted_like_all_others() {
    let lanes = lanes();
    lanes.configure(vec![block("two", "max_concurrency=2")]).await.unwrap();
    for _ in 0..10 {
        drop(lanes.slot(["two"]).await.unwrap());
    }
    let (first, second) = (lanes.slot(["two"]).await.unwrap(), lanes.slot(["two"]).await.unwrap());
    assert!(second.fence() > first.fence());
    assert_eq!(numbers(&lanes, "two").await, (2, 0));
    let view = lanes.task(first.task()).await.unwrap().unwrap();
    assert_eq!((view.lanes, view.attempts), (vec![lane("two")], 1));
    // The third caller waits and gets the first free slot. A listener gets the end of its slot.
    let third = tokio::spawn({
        let lanes = lanes.clone();
        async move { lanes.slot(["two"]).await.unwrap().fence() }
    });
    tokio::task::yield_now().await;
    assert_eq!(numbers(&lanes, "two").await, (2, 1));
    let (stop, fence) = (second.stop().clone(), second.fence());
    drop(first);
    assert!(third.await.unwrap() > fence);
    drop(second);
    assert_eq!(stop.wait().await, Stopped::Revoked);
    assert_eq!(numbers(&lanes, "two").await, (0, 0));
    let (_, stats) = lanes.stats().await.unwrap().into_iter().find(|(lane, _)| lane == "two").unwrap();
    assert_eq!((stats.accepted, stats.started, stats.completed), (13, 13, 13));
    assert_eq!((stats.wait.samples(), stats.run.samples()), (13, 13));
}
