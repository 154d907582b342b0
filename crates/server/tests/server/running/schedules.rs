//! Schedules.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use laneway_core::NoteChange;
use laneway_engine::Handle;
use laneway_store::Store;
use laneway_store_redis::RedisStore;
use laneway_store_sqlite::SqliteStore;
use laneway_test_services::Redis;
use serde_json::{Value, json};

use crate::common::{Gate, Running, serve, serve_in, until};

/// Opens the store in a directory.
fn disk(dir: &std::path::Path) -> Option<Arc<dyn Store>> {
    Some(Arc::new(SqliteStore::open(dir.join("laneway.db")).unwrap()))
}

/// Writes the notes of an earlier server into a log.
async fn note(store: Arc<dyn Store>, changes: &[(&str, &str)]) {
    let queue = Handle::open(store, laneway_engine::Options::default()).await.unwrap();
    let changes = changes.iter().map(|(key, text)| ((*key).into(), Some((*text).into()))).collect();
    queue.note(NoteChange { expected: vec![], changes }).await.unwrap();
    queue.shutdown(std::time::Duration::ZERO).await;
}

fn millis_ago(length: u128) -> u128 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    now.as_millis() - length
}

async fn runs(server: &Running, name: &str) -> Vec<Value> {
    let runs = server.get(&format!("/api/schedules/{name}/runs")).await.json();
    runs["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_schedule_fires_once_for_each_moment_and_a_full_lane_is_recorded_as_failed() {
    let gate = Gate::open().await;
    let config = format!(
        "agent \"coder\" {{\n url = \"{}\"\n max_queued = 0\n}}\nschedule \"tick\" {{\ncron = \"* * * * * *\"\nagent = \"coder\"\nmessage = \"go\"\n}}",
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
async fn schedules_are_created_checked_fired_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let state = Some(dir.path().to_owned());
    let mut server = serve_in("", disk(dir.path()), state.clone()).await;
    for bad in [
        json!({"name": "x", "cron": "0 0 31 2 *", "agent": "echo", "message": "m"}),
        json!({"name": "x", "cron": "often", "agent": "echo", "message": "m"}),
        json!({"name": "x", "cron": "@daily", "timezone": "Mars/One", "agent": "echo", "message": "m"}),
        json!({"name": "x", "cron": "@daily", "agent": "unknown", "message": "m"}),
        json!({"name": "x", "cron": "@daily", "agent": "echo", "message": ""}),
        json!({"name": "x", "cron": "@daily", "agent": "echo", "message": "m", "catch_up": "all"}),
        json!({"name": "x", "cron": "@daily", "agent": "echo", "message": "m", "session": ""}),
        json!({"name": "x", "cron": "* * * * * * *", "agent": "echo", "message": "m"}),
    ] {
        let answer = server.post("/api/schedules", bad.clone()).await;
        assert_eq!(answer.status, 400, "{bad}: {answer:?}");
    }
    let long = json!({"name": "x", "cron": "@daily", "agent": "echo", "message": "m".repeat(40_000)});
    let answer = server.post("/api/schedules", long).await;
    assert_eq!((answer.status, &answer.json()["retryable"]), (413, &json!(false)), "{answer:?}");
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
    assert_eq!(server.post("/api/schedules/nightly/run", json!(null)).await.status, 202);
    events.next_named("done").await;
    let page =
        async |rest: &str| server.get(&format!("/api/schedules/nightly/runs?limit=1{rest}")).await.json();
    let first = page("").await;
    let second = page(&format!("&cursor={}", first["next_cursor"].as_str().unwrap())).await;
    let length = |page: &Value| page["items"].as_array().unwrap().len();
    assert_eq!((length(&first), length(&second), &second["next_cursor"]), (1, 1, &json!(null)));
    assert_ne!(first["items"], second["items"]);
    server.stop();
    server.stopped().await;
    drop(server);

    let server = serve_in("", disk(dir.path()), state).await;
    let kept = server.get("/api/schedules").await.json();
    assert_eq!((&kept["items"][0]["name"], &kept["items"][0]["origin"]), (&json!("nightly"), &json!("api")));
    assert_eq!(kept["items"][0]["last_run"]["trigger"], "manual");
    assert_eq!(server.send("DELETE", "/api/schedules/nightly", json!(null)).await.status, 204);
    assert_eq!(server.send("DELETE", "/api/schedules/nightly", json!(null)).await.status, 404);
    // A schedule created again with the same name has no runs.
    assert_eq!(server.post("/api/schedules", new).await.json()["last_run"], json!(null));
    assert_eq!(server.get("/api/schedules/nightly/runs").await.json()["items"], json!([]));
}

/// Waits until the schedule `name` has fired. The server has then checked all due schedules.
async fn until_fired(server: &Running, name: &str) {
    let mut events = server.events("/api/events").await;
    while events.next_named("schedule_fired").await.data["schedule"] != name {}
}

#[tokio::test]
async fn firings_missed_by_one_server_are_skipped_or_caught_up_once() {
    let dir = tempfile::tempdir().unwrap();
    missed(async || disk(dir.path()).unwrap()).await;
}

#[tokio::test]
async fn firings_missed_by_all_servers_are_skipped_or_caught_up_once() {
    let redis = Redis::start();
    missed(async || Arc::new(RedisStore::open(&redis.url()).await.unwrap()) as Arc<dyn Store>).await;
}

async fn missed(open: impl AsyncFn() -> Arc<dyn Store>) {
    let gate = Gate::open().await;
    let schedule = |name: &str, catch_up: &str| {
        format!(
            "schedule \"{name}\" {{\ncron = \"0 0 1 * *\"\nagent = \"coder\"\nmessage = \"{name}\"\ncatch_up = \"{catch_up}\"\n}}\n"
        )
    };
    let every_second = "schedule \"z\" {\ncron = \"* * * * * *\"\nagent = \"echo\"\nmessage = \"z\"\ncatch_up = \"one\"\n}\n";
    let config = format!(
        "agent \"coder\" {{ url = \"{}\" }}\nagent \"echo\" {{ echo = true }}\n{}{}{every_second}",
        gate.url,
        schedule("a-skip", "skip"),
        schedule("b-one", "one"),
    );
    // The last server stopped a hundred days ago, so each schedule has missed three or four firings.
    let then = millis_ago(100 * 86_400_000).to_string();
    let last = ["a-skip", "b-one", "z"].map(|name| format!("schedule last\n{name}"));
    note(open().await, &last.each_ref().map(|key| (&**key, &*then))).await;
    let mut server = serve_in(&config, Some(open().await), None).await;
    let up = millis_ago(0);
    assert_eq!(gate.arrival().await["message"], "b-one");
    gate.let_go(1);
    until_fired(&server, "z").await;
    assert_eq!(runs(&server, "a-skip").await, Vec::<Value>::new());
    let made_up = runs(&server, "b-one").await;
    assert_eq!((made_up.len(), &made_up[0]["trigger"]), (1, &json!("catch_up")), "{made_up:?}");
    // A firing after the start neither waits for missed firings nor replaces them.
    let triggered = async |trigger: &str| {
        let mut runs = runs(&server, "z").await;
        runs.retain(|run| run["trigger"] == trigger);
        runs
    };
    until("it was made up for once", async || triggered("catch_up").await.len() == 1).await;
    until("the clock has fired", async || !triggered("clock").await.is_empty()).await;
    let clock = triggered("clock").await;
    let first: jiff::Timestamp = clock.last().unwrap()["due_at"].as_str().unwrap().parse().unwrap();
    assert!(first.as_millisecond() as u128 <= up + 4000, "{clock:?}");
    server.stop();
    server.stopped().await;
    drop(server);

    let server = serve_in(&config, Some(open().await), None).await;
    until_fired(&server, "z").await;
    assert_eq!((runs(&server, "a-skip").await.len(), runs(&server, "b-one").await.len()), (0, 1));
}

#[tokio::test]
async fn another_server_completes_an_unfinished_firing() {
    let dir = tempfile::tempdir().unwrap();
    let gate = Gate::open().await;
    let config = format!(
        "server {{ drain_grace = \"100ms\" }}\nagent \"coder\" {{ url = \"{}\" }}\nschedule \"yearly\" {{\ncron = \"@yearly\"\nagent = \"coder\"\nmessage = \"go\"\n}}",
        gate.url
    );
    // The replica that took this moment died before it submitted a task.
    let (due, key) = (millis_ago(60_000), "schedule run\nyearly\n");
    let at = jiff::Timestamp::from_millisecond(i64::try_from(due).unwrap()).unwrap().to_string();
    let run = json!({"due_at": at, "fired_at": at, "trigger": "clock", "status": "running"}).to_string();
    let (key, last) = (format!("{key}{due:016}"), due.to_string());
    note(disk(dir.path()).unwrap(), &[(&key, &run), ("schedule last\nyearly", &last)]).await;
    let mut server = serve_in(&config, disk(dir.path()), None).await;
    assert_eq!(gate.arrival().await["message"], "go");
    let begun = runs(&server, "yearly").await;
    assert_eq!((begun.len(), &begun[0]["due_at"]), (1, &json!(at)), "{begun:?}");
    server.stop();
    server.stopped().await;
    drop(server);

    // No replica was running when the task ended.
    let server = serve_in(&config, disk(dir.path()), None).await;
    gate.let_go(2);
    until("it is over", async || runs(&server, "yearly").await[0]["status"] != "running").await;
    let over = runs(&server, "yearly").await;
    assert_eq!((over.len(), &over[0]["task_id"]), (1, &begun[0]["task_id"]), "{over:?}");
}

async fn two_on(redis: &Redis, config: &str) -> [Running; 2] {
    let open = async || Arc::new(RedisStore::open(&redis.url()).await.unwrap()) as Arc<dyn Store>;
    [serve_in(config, Some(open().await), None).await, serve_in(config, Some(open().await), None).await]
}

#[tokio::test]
async fn two_servers_on_one_redis_fire_each_moment_once_and_list_the_same_runs() {
    let redis = Redis::start();
    let gate = Gate::open().await;
    let config = format!(
        "agent \"coder\" {{\n url = \"{}\"\n max_queued = 0\n}}\nschedule \"tick\" {{\ncron = \"* * * * * *\"\nagent = \"coder\"\nmessage = \"go\"\n}}",
        gate.url
    );
    let servers = two_on(&redis, &config).await;
    let mut events = [servers[0].events("/api/events").await, servers[1].events("/api/events").await];
    let mut told = Vec::new();
    for events in &mut events {
        let mut fired = BTreeMap::new();
        while fired.len() < 4 {
            let event = events.next_named("schedule_fired").await;
            let due = event.data["due_at"].as_str().unwrap().to_owned();
            let before = fired.insert(due, event.data["status"].as_str().unwrap().to_owned());
            assert_eq!(before, None, "told twice: {event:?}");
        }
        told.push(fired);
    }
    // The first firing runs and fills the lane, at both servers.
    let both = told[0].iter().filter(|(due, _)| told[1].contains_key(*due));
    let both: Vec<_> = both.map(|(due, status)| (status, &told[1][due])).collect();
    assert!(both.len() >= 2 && both.iter().all(|(a, b)| a == b), "{told:?}");
    let off = servers[1].send("PATCH", "/api/schedules/tick", json!({"enabled": false})).await;
    assert_eq!(off.status, 200, "{off:?}");
    let runs = [runs(&servers[0], "tick").await, runs(&servers[1], "tick").await];
    let running = runs[1].iter().filter(|run| run["status"] == "running").count();
    assert_eq!(running, 1, "{runs:?}");
    let due: BTreeSet<&str> = runs[1].iter().map(|run| run["due_at"].as_str().unwrap()).collect();
    assert_eq!(due.len(), runs[1].len(), "a moment fired twice: {runs:?}");
    gate.let_go(10);
}

#[tokio::test]
async fn a_schedule_created_at_one_server_exists_at_the_other() {
    let redis = Redis::start();
    let mut servers = two_on(&redis, "").await;
    let new = json!({"name": "daily", "cron": "@daily", "agent": "echo", "message": "m"});
    assert_eq!(servers[0].post("/api/schedules", new.clone()).await.status, 201);
    let seen = async |server: &Running| {
        let all = server.get("/api/schedules").await.json();
        all["items"].as_array().unwrap().first().cloned()
    };
    until("it is known", async || seen(&servers[1]).await.is_some()).await;
    assert_eq!(servers[1].post("/api/schedules", new).await.status, 409);
    let changed = servers[1].send("PATCH", "/api/schedules/daily", json!({"cron": "* * * * * *"})).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    until_fired(&servers[0], "daily").await;
    until_fired(&servers[1], "daily").await;
    // The remaining replica continues.
    servers[1].stop();
    servers[1].stopped().await;
    until_fired(&servers[0], "daily").await;
    assert_eq!(servers[0].send("DELETE", "/api/schedules/daily", json!(null)).await.status, 204);
    assert_eq!(seen(&servers[0]).await, None);
}

#[tokio::test]
async fn a_schedule_is_fired_by_a_server_that_knows_its_agent() {
    let redis = Redis::start();
    let open = async || Arc::new(RedisStore::open(&redis.url()).await.unwrap()) as Arc<dyn Store>;
    let knows = serve_in("agent \"only\" { echo = true }", Some(open().await), None).await;
    let _does_not = serve_in("agent \"other\" { echo = true }", Some(open().await), None).await;
    let new = json!({"name": "s", "cron": "* * * * * *", "agent": "only", "message": "m"});
    assert_eq!(knows.post("/api/schedules", new).await.status, 201);
    until("four have fired", async || runs(&knows, "s").await.len() >= 4).await;
    let failed: Vec<Value> =
        runs(&knows, "s").await.into_iter().filter(|run| run["status"] == "failed").collect();
    assert_eq!(failed, Vec::<Value>::new());
}

#[tokio::test]
async fn a_schedule_has_an_owner_and_a_waiting_firing_says_so() {
    let gate = Gate::open().await;
    let server = serve(&format!("agent \"coder\" {{ url = \"{}\" }}", gate.url)).await;
    let user = json!({"id": "u-7", "email": "ann@example.org"});
    let new = json!({"name": "s", "cron": "0 0 1 1 *", "agent": "coder", "message": "go", "user": user});
    assert_eq!(server.post("/api/schedules", new).await.status, 201);
    let found = server.get("/api/schedules/s").await;
    assert_eq!((found.status, &found.json()["user"]), (200, &user));
    assert_eq!(server.get("/api/schedules/t").await.status, 404);
    let first = server.post("/api/schedules/s/run", json!(null)).await.json();
    assert_eq!(first["status"], "running");
    assert_eq!(gate.arrival().await["user"], user);
    let second = server.post("/api/schedules/s/run", json!(null)).await.json();
    assert_eq!(second["status"], "queued");
    let status = async |index: usize| runs(&server, "s").await[index]["status"].clone();
    assert_eq!((status(0).await, status(1).await), (json!("queued"), json!("running")));
    assert_eq!(server.get("/api/schedules/s").await.json()["last_run"]["status"], "queued");
    let queue = server.get("/api/agents/coder/queue").await.json();
    assert_eq!(queue["queued_executions"][0]["source_user_id"], "u-7");
    gate.let_go(2);
    server.until_numbers((0, 0)).await;
    until("both are written", async || status(0).await == "completed" && status(1).await == "completed")
        .await;
    let mine = json!({"user": {"id": "u-8"}});
    assert_eq!(server.send("PATCH", "/api/schedules/s", mine).await.json()["user"], json!({"id": "u-8"}));
}
