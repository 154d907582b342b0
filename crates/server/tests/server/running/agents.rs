//! Agents that come and go while the server runs.

use std::sync::Arc;

use laneway_store_redis::RedisStore;
use laneway_store_sqlite::SqliteStore;
use laneway_test_services::Redis;
use serde_json::{Value, json};

use crate::common::{Answer, Gate, Running, serve, serve_in};

/// Asks an agent without waiting for the answer.
async fn ask(server: &Running, agent: &str, session: &str) -> Answer {
    let body = json!({"message": "hello", "session": session});
    server.send_with("POST", &format!("/api/agents/{agent}/chat"), body, &[("prefer", "respond-async")]).await
}

async fn status(server: &Running, task: &Value) -> Value {
    let task = server.get(&format!("/api/tasks/{}", task.as_str().unwrap())).await.json();
    json!([task["status"], task["reason"]])
}

#[tokio::test]
async fn an_agent_is_created_changed_and_removed() {
    let gate = Gate::open().await;
    let server = serve("lane \"agent:*\" { max_queued = 7 }\nagent \"fixed\" { echo = true }").await;
    assert_eq!(ask(&server, "helper", "a").await.status, 404);
    let new = json!({"name": "helper", "url": gate.url, "timeout_ms": 60_000, "lanes": ["main", "gpu"]});
    let made = server.post("/api/agents", new.clone()).await;
    assert_eq!(made.status, 201, "{made:?}");
    let view = made.json();
    assert_eq!((&view["runner"], &view["origin"]), (&json!("url"), &json!("api")));
    assert_eq!((&view["lanes"], &view["max_concurrency"]), (&json!(["main", "gpu"]), &json!(1)));
    // Its lane has the settings of the pattern, as the lane of an agent in the file.
    assert_eq!(view["max_queued"], 7);
    let listed = server.get("/api/agents").await.json();
    let names: Vec<&Value> = listed["items"].as_array().unwrap().iter().map(|agent| &agent["name"]).collect();
    assert_eq!(names, ["fixed", "helper"]);
    let running = ask(&server, "helper", "a").await.json()["execution"]["id"].clone();
    assert_eq!(gate.arrival().await["message"], "hello");

    // Settings that a change leaves out stay, and a new spelling replaces the old one.
    let changes = json!({"max_queued": 5, "timeout": "2m", "lanes": null});
    let view = server.send("PATCH", "/api/agents/helper", changes).await.json();
    assert_eq!(
        (&view["max_queued"], &view["lanes"], &view["runner"]),
        (&json!(5), &json!(["main"]), &json!("url"))
    );
    let lane = server.get("/api/lanes/agent:helper").await.json();
    assert_eq!(lane["settings"]["timeout"], "120000ms");
    let waiting = ask(&server, "helper", "b").await.json()["execution"]["id"].clone();
    let queue = server.get("/api/agents/helper/queue").await.json();
    assert_eq!(queue["queued_executions"][0]["agent_name"], "helper");
    assert_eq!(queue["current_execution"]["agent_name"], "helper");

    // The running turn ends; the waiting one ends with a reason.
    assert_eq!(server.send("DELETE", "/api/agents/helper", json!(null)).await.status, 204);
    assert_eq!(status(&server, &waiting).await, json!(["cancelled", "agent_removed"]));
    assert_eq!(ask(&server, "helper", "c").await.status, 404);
    gate.let_go(1);
    server.until_numbers((0, 0)).await;
    assert_eq!(status(&server, &running).await, json!(["completed", null]));
    let audit = server.get("/api/audit").await.json();
    let actions: Vec<Value> =
        audit["items"].as_array().unwrap().iter().map(|entry| entry["action"].clone()).collect();
    for action in ["create_agent", "change_agent", "remove_agent"] {
        assert!(actions.contains(&json!(action)), "{actions:?}");
    }
}

#[tokio::test]
async fn wrong_agents_are_refused_with_what_would_be_right() {
    let server = serve("agent \"fixed\" { echo = true }").await;
    for (body, status, words) in [
        (json!({"echo": true}), 400, "name"),
        (json!({"name": "a/b", "echo": true}), 400, "must not contain a '/'"),
        (json!({"name": "a"}), 400, "needs one of command, url"),
        (json!({"name": "a", "command": ["sh"]}), 400, "must be in the configuration file"),
        (json!({"name": "a", "url": "ftp://x"}), 400, "must be an http:// or https:// URL"),
        (json!({"name": "a", "echo": true, "max_concurency": 2}), 400, "did you mean max_concurrency?"),
        (json!({"name": "a", "echo": true, "max_concurrency": 0}), 400, "must be a whole number from 1"),
        (json!({"name": "..", "echo": true}), 400, "the name must not be '.' or '..'"),
        (json!({"name": "a", "echo": true, "lanes": ["token:x"]}), 400, "lanes that begin with token:"),
        (json!({"name": "a", "url": format!("http://x/{}", "x".repeat(9000))}), 413, "url is too long"),
        (json!({"name": "fixed", "echo": true}), 409, "of that name already"),
    ] {
        let refused = server.post("/api/agents", body.clone()).await;
        assert_eq!(refused.status, status, "{body}");
        assert!(refused.json()["detail"].as_str().unwrap().contains(words), "{body}: {}", refused.text);
    }
    assert_eq!(server.post("/api/agents", json!({"name": "a", "echo": true})).await.status, 201);
    let twice = server.send("PATCH", "/api/agents/a", json!({"timeout": "1m", "timeout_ms": 3})).await;
    assert!(twice.status == 400 && twice.text.contains("timeout is given twice"), "{twice:?}");
    let changed = server.send("PATCH", "/api/agents/fixed", json!({"max_queued": 1})).await;
    assert!(changed.status == 400 && changed.text.contains("configuration file"), "{changed:?}");
    assert_eq!(server.send("DELETE", "/api/agents/fixed", json!(null)).await.status, 400);
    assert_eq!(server.send("DELETE", "/api/agents/unknown", json!(null)).await.status, 404);
}

#[tokio::test]
async fn an_agent_and_what_waits_for_it_survive_a_restart_and_a_reload() {
    let (dir, gate) = (tempfile::tempdir().unwrap(), Gate::open().await);
    std::fs::write(dir.path().join("laneway.hcl"), "store = \"memory\"\nagent \"fixed\" { echo = true }")
        .unwrap();
    let open = async || {
        let store = Arc::new(SqliteStore::open(dir.path().join("laneway.db")).unwrap());
        let config = "store = \"memory\"\nagent \"fixed\" { echo = true }";
        serve_in(config, Some(store), Some(dir.path().to_owned())).await
    };
    let mut server = open().await;
    let new = json!({"name": "helper", "url": gate.url, "max_queued": 9});
    assert_eq!(server.post("/api/agents", new).await.status, 201);
    server.post("/api/lanes/agent:helper/pause", json!(null)).await;
    assert_eq!(ask(&server, "helper", "a").await.status, 202);
    server.stop();
    server.stopped().await;

    let server = open().await;
    server.post("/api/lanes/agent:helper/resume", json!(null)).await;
    assert_eq!(gate.arrival().await["message"], "hello");
    let view = server.get("/api/agents/helper").await.json();
    assert_eq!((&view["origin"], &view["max_queued"]), (&json!("api"), &json!(9)));
    server.reloader.reload().await.unwrap();
    let view = server.get("/api/agents/helper").await.json();
    assert_eq!((&view["origin"], &view["max_queued"]), (&json!("api"), &json!(9)));
    gate.let_go(1);
    server.until_numbers((0, 0)).await;
}

#[tokio::test]
async fn all_replicas_know_an_agent_at_once() {
    let (redis, gate) = (Redis::start(), Gate::open().await);
    let open = async || {
        let store = Arc::new(RedisStore::open(&redis.url()).await.unwrap());
        serve_in("agent \"fixed\" { echo = true }", Some(store), None).await
    };
    let (one, two) = (open().await, open().await);
    for round in 0..10 {
        let name = format!("helper-{round}");
        let new = json!({"name": name, "url": gate.url});
        assert_eq!(one.post("/api/agents", new).await.status, 201);
        assert_eq!(ask(&two, &name, &name).await.status, 202);
        gate.arrival().await;
        assert_eq!(two.send("DELETE", &format!("/api/agents/{name}"), json!(null)).await.status, 204);
        gate.let_go(1);
    }
    one.until_numbers((0, 0)).await;
    let names =
        async |server: &Running| server.get("/api/agents").await.json()["items"].as_array().unwrap().len();
    assert_eq!((names(&one).await, names(&two).await), (1, 1));
}

#[tokio::test]
async fn any_agents_lane_and_any_lane_can_be_seen_cleared_and_released() {
    let server =
        serve("lane \"agent:dyn\" { handler = \"external\" }\nlane \"gpu\" { handler = \"external\" }").await;
    for lane in ["agent:dyn", "gpu"] {
        for _ in 0..2 {
            let task = json!({"kind": "work", "lanes": [lane], "payload": {"n": 1}});
            assert_eq!(server.post("/api/tasks", task).await.status, 202);
        }
    }
    server.post("/api/claim", json!({"worker": "w", "lanes": ["agent:dyn", "gpu"], "max": 2})).await;
    let queue = server.get("/api/agents/dyn/queue").await.json();
    assert_eq!((&queue["is_busy"], &queue["queue_length"]), (&json!(true), &json!(1)));
    let running = queue["current_execution"]["id"].clone();
    assert_eq!(server.post("/api/agents/dyn/queue/clear", json!(null)).await.json()["cleared_count"], 1);
    let released = server.post("/api/agents/dyn/queue/release", json!(null)).await.json();
    assert_eq!(released["released"], json!([running]));
    let released = server.post("/api/lanes/gpu/release", json!(null)).await.json();
    assert_eq!((&released["lane"], &released["was_running"]), (&json!("gpu"), &json!(true)));
    assert_eq!(released["released"].as_array().unwrap().len(), 1);
    let audit = server.get("/api/audit").await.json();
    let last = &audit["items"][0];
    assert_eq!((&last["action"], &last["severity"]), (&json!("force_release"), &json!("warning")));
    assert_eq!(server.post("/api/lanes/nothing/release", json!(null)).await.json()["released"], json!([]));

    // The list has payloads on request.
    let listed = server.get("/api/tasks?lane=gpu&status=queued").await.json();
    assert_eq!(listed["items"][0]["payload"], json!(null));
    let listed = server.get("/api/tasks?lane=gpu&payload=true").await.json();
    assert_eq!(listed["items"][0]["payload"], json!({"n": 1}));
    assert_eq!(server.get("/api/tasks?payload=true&limit=51").await.status, 400);
}
