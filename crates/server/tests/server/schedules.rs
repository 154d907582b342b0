//! What the clock asks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use laneway_servers::Redis;
use laneway_store_redis::RedisStore;
use serde_json::json;

use crate::common::{Gate, Running, serve, serve_in};

#[tokio::test]
async fn a_schedule_fires_once_for_each_moment_and_a_full_lane_is_recorded_as_failed() {
    let gate = Gate::open().await;
    let config = format!(
        "agent \"coder\" {{\n url = \"{}\"\n max_queued = 0\n}}\nschedule \"tick\" {{ cron = \"* * * * * *\"  agent = \"coder\"  message = \"go\" }}",
        gate.url
    );
    let server = serve(&config).await;
    let mut events = server.events("/api/events").await;
    let first = events.next_named("schedule_fired").await;
    assert_eq!((&first.data["status"], &first.data["schedule"]), (&json!("running"), &json!("tick")));
    assert_eq!(gate.arrival().await["message"], "go");
    let second = events.next_named("schedule_fired").await;
    assert_eq!(second.data["status"], "failed");
    assert!(second.data["error"].as_str().unwrap().starts_with("AT_CAPACITY"), "{second:?}");
    gate.let_go(1);
    let third = loop {
        let fired = events.next_named("schedule_fired").await;
        if fired.data["status"] == "running" {
            break fired;
        }
    };
    let runs = server.get("/api/schedules/tick/runs").await.json();
    let mut due: Vec<&str> =
        runs["items"].as_array().unwrap().iter().map(|run| run["due_at"].as_str().unwrap()).collect();
    let count = due.len();
    due.dedup();
    assert_eq!(due.len(), count, "a moment fired twice: {runs}");
    assert!(third.data["due_at"].as_str().unwrap() > second.data["due_at"].as_str().unwrap());
    let off = server.send("PATCH", "/api/schedules/tick", json!({"enabled": false})).await;
    assert_eq!((off.status, &off.json()["next_runs"]), (200, &json!([])));
    gate.let_go(10);
}

#[tokio::test]
async fn schedules_are_made_checked_run_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let state = Some(dir.path().to_owned());
    let mut server = serve_in("", None, state.clone()).await;
    for bad in [
        json!({"name": "x", "cron": "0 0 31 2 *", "agent": "echo", "message": "m"}),
        json!({"name": "x", "cron": "often", "agent": "echo", "message": "m"}),
        json!({"name": "x", "cron": "@daily", "timezone": "Mars/One", "agent": "echo", "message": "m"}),
        json!({"name": "x", "cron": "@daily", "agent": "nobody", "message": "m"}),
        json!({"name": "x", "cron": "@daily", "agent": "echo", "message": ""}),
        json!({"name": "x", "cron": "@daily", "agent": "echo", "message": "m", "catch_up": "all"}),
        json!({"name": "x", "cron": "@daily", "agent": "echo", "message": "m", "session": ""}),
    ] {
        let answer = server.post("/api/schedules", bad.clone()).await;
        assert_eq!(answer.status, 400, "{bad}: {answer:?}");
    }
    let new = json!({"name": "nightly", "cron": "30 2 * * *", "timezone": "Europe/Berlin", "agent": "echo", "message": "m"});
    let made = server.post("/api/schedules", new.clone()).await;
    assert_eq!((made.status, made.json()["next_runs"].as_array().unwrap().len()), (201, 3));
    assert_eq!(server.post("/api/schedules", new.clone()).await.status, 409);
    let no_session = json!({"session": ""});
    assert_eq!(server.send("PATCH", "/api/schedules/nightly", no_session).await.status, 400);
    let mut events = server.events("/api/events").await;
    let run = server.post("/api/schedules/nightly/run", json!(null)).await;
    assert_eq!((run.status, &run.json()["trigger"]), (202, &json!("manual")));
    events.next_named("done").await;
    server.stop();
    server.stopped().await;

    let server = serve_in("", None, state).await;
    let kept = server.get("/api/schedules").await.json();
    assert_eq!((&kept["items"][0]["name"], &kept["items"][0]["origin"]), (&json!("nightly"), &json!("api")));
    assert_eq!(kept["items"][0]["last_run"]["trigger"], "manual");
    assert_eq!(server.send("DELETE", "/api/schedules/nightly", json!(null)).await.status, 204);
    assert_eq!(server.send("DELETE", "/api/schedules/nightly", json!(null)).await.status, 404);
    // One that is made again under the same name is another.
    assert_eq!(server.post("/api/schedules", new).await.json()["last_run"], json!(null));
    assert_eq!(server.get("/api/schedules/nightly/runs").await.json()["items"], json!([]));
}

/// Waits until the schedule `name` has fired: then everything that is due has been looked at.
async fn until_fired(server: &Running, name: &str) {
    let mut events = server.events("/api/events").await;
    while events.next_named("schedule_fired").await.data["schedule"] != name {}
}

#[tokio::test]
async fn what_was_missed_while_it_was_down_is_skipped_or_made_up_for_once() {
    let dir = tempfile::tempdir().unwrap();
    let gate = Gate::open().await;
    let schedule = |name: &str, catch_up: &str| {
        format!(
            "schedule \"{name}\" {{ cron = \"0 0 1 * *\"  agent = \"coder\"  message = \"{name}\"  catch_up = \"{catch_up}\" }}\n"
        )
    };
    let every_second = "schedule \"z\" { cron = \"* * * * * *\"  agent = \"echo\"  message = \"z\" }\n";
    let config = format!(
        "agent \"coder\" {{ url = \"{}\" }}\nagent \"echo\" {{ echo = true }}\n{}{}{every_second}",
        gate.url,
        schedule("a-skip", "skip"),
        schedule("b-one", "one"),
    );
    // It was last there a hundred days ago, so that each has missed three firings or four.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let then = (now.as_millis() - 100 * 86_400_000) as u64;
    let state = json!({"version": 1, "made": {}, "last": {"a-skip": then, "b-one": then}});
    std::fs::write(dir.path().join("schedules.json"), state.to_string()).unwrap();
    let mut server = serve_in(&config, None, Some(dir.path().to_owned())).await;
    assert_eq!(gate.arrival().await["message"], "b-one");
    gate.let_go(1);
    until_fired(&server, "z").await;
    let runs = async |server: &Running, name: &str| {
        let runs = server.get(&format!("/api/schedules/{name}/runs")).await.json();
        runs["items"].as_array().unwrap().clone()
    };
    assert_eq!(runs(&server, "a-skip").await, Vec::<serde_json::Value>::new());
    let made_up = runs(&server, "b-one").await;
    assert_eq!((made_up.len(), &made_up[0]["trigger"]), (1, &json!("catch_up")), "{made_up:?}");
    server.stop();
    server.stopped().await;
    drop(server);

    let server = serve_in(&config, None, Some(dir.path().to_owned())).await;
    until_fired(&server, "z").await;
    assert_eq!((runs(&server, "a-skip").await.len(), runs(&server, "b-one").await.len()), (0, 1));
}

#[tokio::test]
async fn two_servers_on_one_redis_never_fire_one_moment_twice() {
    let redis = Redis::start();
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let config = "agent \"echo\" { echo = true }\nschedule \"tick\" { cron = \"* * * * * *\"  agent = \"echo\"  message = \"go\" }";
    let mut servers = Vec::new();
    for dir in &dirs {
        let store = Arc::new(RedisStore::open(&redis.url()).await.unwrap());
        servers.push(serve_in(config, Some(store), Some(dir.path().to_owned())).await);
    }
    let mut events = [servers[0].events("/api/events").await, servers[1].events("/api/events").await];
    for events in &mut events {
        for _ in 0..4 {
            events.next_named("schedule_fired").await;
        }
    }
    let mut tasks_of: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut seen_by: BTreeMap<String, usize> = BTreeMap::new();
    for server in &servers {
        let runs = server.get("/api/schedules/tick/runs").await.json();
        for run in runs["items"].as_array().unwrap() {
            let (due, task) = (run["due_at"].as_str().unwrap(), run["task_id"].as_str());
            tasks_of.entry(due.to_owned()).or_default().insert(task.expect("it was refused").to_owned());
            *seen_by.entry(due.to_owned()).or_default() += 1;
        }
    }
    assert!(seen_by.values().filter(|servers| **servers == 2).count() >= 2, "{seen_by:?}");
    assert!(tasks_of.values().all(|tasks| tasks.len() == 1), "{tasks_of:?}");
}
