//! Workers and slot holders hear at once that they must stop, or that there is a message.

use serde_json::{Value, json};

use crate::common::{Running, serve};

async fn claimed(server: &Running, worker: &str, lane: &str) -> Value {
    let claim = json!({"worker": worker, "lanes": [lane], "wait_ms": 60_000});
    server.post("/api/claim", claim).await.json()["tasks"][0].clone()
}

fn path(task: &Value, verb: &str) -> String {
    format!("/api/tasks/{}/{verb}", task["id"].as_str().unwrap())
}

#[tokio::test]
async fn a_worker_hears_of_a_cancel_and_holds_its_slot_until_it_confirms() {
    let server = serve("lane \"gpu\" {\n  handler = \"external\"\n  max_concurrency = 1\n}").await;
    let mut events = server.events("/api/workers/w1/events").await;
    let mut others = server.events("/api/workers/w2/events").await;
    for _ in 0..2 {
        server.post("/api/tasks", json!({"kind": "draw", "lanes": ["gpu"]})).await;
    }
    let task = claimed(&server, "w1", "gpu").await;
    let cancel =
        server.send("DELETE", &format!("/api/tasks/{}", task["id"].as_str().unwrap()), json!(null)).await;
    assert_eq!(cancel.json()["status"], "cancelling", "{cancel:?}");
    assert_eq!(events.next().await.unwrap().data["task_id"], task["id"]);
    // A stream that begins later starts with what there is to hear.
    assert_eq!(
        server.events("/api/workers/w1/events").await.next_named("heartbeat_wanted").await.data["task_id"],
        task["id"]
    );
    let beat = server.post(&path(&task, "heartbeat"), json!({"fence": task["fence"]})).await.json();
    assert_eq!(beat["cancel_requested"], true);
    // The second task waits until the worker has stopped the first one.
    let none = server.post("/api/claim", json!({"worker": "w2", "lanes": ["gpu"]})).await.json();
    assert_eq!(none, json!({"tasks": []}));
    let stopped = json!({"fence": task["fence"], "success": false, "error": "cancelled", "retryable": false});
    assert_eq!(server.post(&path(&task, "complete"), stopped).await.status, 200);
    let second = claimed(&server, "w2", "gpu").await;
    server.send("DELETE", &format!("/api/tasks/{}", second["id"].as_str().unwrap()), json!(null)).await;
    assert_eq!(others.next().await.unwrap().data["task_id"], second["id"], "it hears of its own tasks only");
}

#[tokio::test]
async fn a_worker_hears_of_a_forced_release_and_not_of_its_own_reports() {
    let server = serve("agent \"builder\" { external = true }").await;
    let mut events = server.events("/api/workers/w1/events").await;
    let ask = || {
        server.send_with(
            "POST",
            "/api/agents/builder/chat",
            json!({"message": "build"}),
            &[("prefer", "respond-async")],
        )
    };
    ask().await;
    let first = claimed(&server, "w1", "agent:*").await;
    server
        .post(&path(&first, "complete"), json!({"fence": first["fence"], "success": true, "result": "done"}))
        .await;
    ask().await;
    let second = claimed(&server, "w1", "agent:*").await;
    assert_eq!(server.post("/api/agents/builder/queue/release", json!(null)).await.status, 200);
    assert_eq!(events.next().await.unwrap().data["task_id"], second["id"]);
    assert_eq!(server.post(&path(&second, "heartbeat"), json!({"fence": second["fence"]})).await.status, 409);
}

#[tokio::test]
async fn the_holder_of_a_slot_hears_that_it_was_cancelled() {
    let server = serve("").await;
    let mut events = server.events("/api/workers/editor-1/events").await;
    let take =
        || server.post("/api/slots", json!({"lanes": ["deploy"], "worker": "editor-1", "wait_ms": 60_000}));
    let slot = take().await.json();
    server.send("DELETE", &format!("/api/tasks/{}", slot["id"].as_str().unwrap()), json!(null)).await;
    assert_eq!(events.next().await.unwrap().data["task_id"], slot["id"]);
    let full = server.post("/api/slots", json!({"lanes": ["deploy"], "wait_ms": 0})).await;
    assert_eq!(full.status, 429, "its holder has not confirmed: {full:?}");
    assert_eq!(
        server.post(&path(&slot, "complete"), json!({"fence": slot["fence"], "success": true})).await.status,
        200
    );
}

#[tokio::test]
async fn the_holder_of_a_slot_hears_of_a_forced_release_and_cannot_renew_it() {
    let server = serve("").await;
    let mut events = server.events("/api/workers/editor-1/events").await;
    let slot = server.post("/api/slots", json!({"lanes": ["deploy"], "worker": "editor-1"})).await.json();
    let released = server.post("/api/lanes/deploy/release", json!(null)).await.json();
    assert_eq!((&released["was_running"], &released["released"]), (&json!(true), &json!([slot["id"]])));
    assert_eq!(events.next().await.unwrap().data["task_id"], slot["id"]);
    // Unlike after a cancel, the slot is free before its holder confirms.
    let next = server.post("/api/slots", json!({"lanes": ["deploy"], "wait_ms": 0})).await;
    assert!(next.json()["fence"].as_u64() > slot["fence"].as_u64(), "{next:?}");
    let late = server.post(&path(&slot, "heartbeat"), json!({"fence": slot["fence"]})).await;
    assert_eq!((late.status, &late.json()["code"]), (409, &json!("STALE_LEASE")), "{late:?}");
}

#[tokio::test]
async fn a_worker_hears_of_a_message_to_its_running_turn() {
    let server = serve("agent \"builder\" { external = true }").await;
    let message = |text: &str, mode: &str| {
        let body = json!({"agent": "builder", "text": text, "mode": mode, "debounce_ms": 0});
        server.post("/api/sessions/s/messages", body)
    };
    message("build it", "collect").await;
    let turn = claimed(&server, "w1", "agent:*").await;
    let open = json!({"fence": turn["fence"], "takes_steering": true, "steered": []});
    server.post(&path(&turn, "heartbeat"), open.clone()).await;
    let mut events = server.events("/api/workers/w1/events").await;
    assert_eq!(message("in red", "steer").await.json()["outcome"], "steered");
    assert_eq!(events.next().await.unwrap().data["task_id"], turn["id"]);
    let beat = server.post(&path(&turn, "heartbeat"), open).await.json();
    assert_eq!(beat["steer"], json!(["in red"]));
    // A message that waits can be passed into the turn later.
    server
        .post(
            &path(&turn, "heartbeat"),
            json!({"fence": turn["fence"], "steered": [beat["steering"][0]["id"]]}),
        )
        .await;
    let waiting = message("and round", "followup").await.json();
    let promote = format!("/api/sessions/s/messages/{}/promote", waiting["id"].as_str().unwrap());
    assert_eq!(server.post(&promote, json!(null)).await.json()["outcome"], "steered");
    assert_eq!(events.next().await.unwrap().data["task_id"], turn["id"]);
}
