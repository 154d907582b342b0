//! What the clock asks.

use serde_json::json;

use crate::common::{Gate, serve, serve_in};

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
    ] {
        let answer = server.post("/api/schedules", bad.clone()).await;
        assert_eq!(answer.status, 400, "{bad}: {answer:?}");
    }
    let new = json!({"name": "nightly", "cron": "30 2 * * *", "timezone": "Europe/Berlin", "agent": "echo", "message": "m"});
    let made = server.post("/api/schedules", new.clone()).await;
    assert_eq!((made.status, made.json()["next_runs"].as_array().unwrap().len()), (201, 3));
    assert_eq!(server.post("/api/schedules", new).await.status, 409);
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
}
