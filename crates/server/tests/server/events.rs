//! Event streams: a reconnected stream continues after its last event.

use std::sync::Arc;

use laneway_store::Store;
use laneway_store_sqlite::SqliteStore;
use serde_json::json;

use crate::common::{Events, serve, serve_in};

#[tokio::test]
async fn reconnecting_with_the_last_id_neither_skips_nor_repeats_events() {
    let server = serve("").await;
    let mut all = server.events("/api/events").await;
    for n in 0..3 {
        server.post("/api/agents/echo/chat", json!({"message": format!("{n}")})).await;
    }
    let mut whole = Vec::new();
    while whole.iter().filter(|event: &&crate::common::Event| event.name == "done").count() < 3 {
        whole.push(all.next().await.unwrap());
    }
    let ids: Vec<&str> = whole.iter().map(|event| event.id.as_str()).collect();
    for cut in [0, 3, whole.len() / 2] {
        let mut again = Events::open(&server, "/api/events", &[("last-event-id", ids[cut])]).await;
        for expected in &whole[cut + 1..] {
            let event = again.next().await.unwrap();
            assert_eq!((event.id.as_str(), &event.data), (expected.id.as_str(), &expected.data));
        }
    }
    for lost in ["0-1", "nonsense", "ffff-999999"] {
        let mut again = Events::open(&server, "/api/events", &[("last-event-id", lost)]).await;
        assert_eq!(again.next().await.unwrap().name, "gap", "{lost}");
    }
}

#[tokio::test]
async fn the_stream_of_an_ended_task_has_its_end_and_a_lanes_stream_only_its_own_tasks() {
    let server = serve("agent \"a\" { echo = true }\nagent \"b\" { echo = true }").await;
    let mut only_b = server.events("/api/events?lane=agent%3Ab").await;
    let answer = server.post("/api/agents/a/chat", json!({"message": "hi"})).await.json();
    let id = answer["execution"]["id"].as_str().unwrap();
    let story = server.events(&format!("/api/tasks/{id}/events")).await.rest().await;
    let names: Vec<&str> = story.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["completed", "done"]);
    assert_eq!(story[0].data["result"], "hi");
    let body = json!({"message": "yo", "session": "s"});
    server.post("/api/agents/b/chat", body).await;
    let (numbers, first) = (only_b.next().await.unwrap(), only_b.next().await.unwrap());
    assert_eq!((numbers.name.as_str(), &numbers.data["lane"]), ("changed", &json!("agent:b")));
    assert!(first.name == "accepted" && first.data["lanes"][0] == "agent:b", "{first:?}");
    assert_eq!(server.get("/api/tasks/00000000-0000-0000-0000-000000000000/events").await.status, 404);
}

#[tokio::test]
async fn after_a_restart_the_stream_of_a_task_reports_missing_events() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Some(Arc::new(SqliteStore::open(dir.path().join("store")).unwrap()) as Arc<dyn Store>);
    let mut server = serve_in("", open(), None).await;
    let mut chat = Events::chat(&server, "/api/agents/echo/chat", json!({"message": "hi"}), &[]).await;
    let seen = chat.next_named("accepted").await;
    chat.next_named("done").await;
    let path = format!("/api/tasks/{}/events", seen.data["task_id"].as_str().unwrap());
    server.stop();
    server.stopped().await;
    drop(server);

    let server = serve_in("", open(), None).await;
    let names = async |headers: &[(&str, &str)]| -> Vec<String> {
        let events = Events::open(&server, &path, headers).await.rest().await;
        events.into_iter().map(|event| event.name).collect()
    };
    assert_eq!(names(&[("last-event-id", &seen.id)]).await, ["gap", "completed", "done"]);
    assert_eq!(names(&[]).await, ["completed", "done"]);
}

#[tokio::test]
async fn a_group_stream_counts_its_tasks() {
    let server =
        serve("handler \"ok\" { command = [\"true\"] }\nhandler \"no\" { command = [\"false\"] }").await;
    let mut all = server.events("/api/events").await;
    for kind in ["ok", "ok", "no"] {
        let accepted =
            server.post("/api/tasks", json!({"kind": kind, "lanes": ["main"], "group": "plan"})).await;
        assert_eq!(accepted.status, 202, "{accepted:?}");
    }
    loop {
        let event = all.next_named("group").await;
        if event.data["done"] == 3 {
            assert_eq!((&event.data["total"], &event.data["failed"]), (&json!(3), &json!(1)));
            break;
        }
    }
    assert_eq!(server.get("/api/groups/plan").await.json(), json!({"done": 3, "total": 3, "failed": 1}));
    assert_eq!(server.get("/api/groups/none").await.status, 404);
}

#[tokio::test]
async fn a_task_that_ends_during_a_request_for_its_events_is_found() {
    // With a store on disk, the two lookups of the task are further apart.
    let dir = tempfile::tempdir().unwrap();
    let store = std::sync::Arc::new(laneway_store_sqlite::SqliteStore::open(dir.path()).unwrap());
    let server = serve_in("", Some(store), None).await;
    for number in 0..200 {
        let headers = [("prefer", "respond-async")];
        let body = json!({"message": "hi", "session": format!("{number}")});
        let accepted = server.send_with("POST", "/api/agents/echo/chat", body, &headers).await.json();
        let id = accepted["execution"]["id"].as_str().unwrap();
        let story = server.events(&format!("/api/tasks/{id}/events")).await.rest().await;
        assert_eq!(story.last().map(|event| event.name.as_str()), Some("done"), "{story:?}");
    }
}

#[tokio::test]
async fn a_slow_reader_has_a_bounded_buffer_and_gets_the_number_of_missed_events() {
    const LARGE: u64 = 24;
    const SMALL: u64 = 1500;
    let server = serve("").await;
    let task = json!({"kind": "work", "lanes": ["external"], "payload": {}});
    let id = server.post("/api/tasks", task).await.json()["id"].as_str().unwrap().to_owned();
    // The task lasts longer than the reader reads.
    let claim = json!({"worker": "w", "lanes": ["external"], "lease_ms": 3_600_000});
    let claimed = server.post("/api/claim", claim).await.json();
    let fence = &claimed["tasks"][0]["fence"];
    let mut slow = server.events(&format!("/api/events?task={id}")).await;
    let beat = async |progress: serde_json::Value| {
        let body = json!({"fence": fence, "progress": progress});
        assert_eq!(server.post(&format!("/api/tasks/{id}/heartbeat"), body).await.status, 200);
    };
    // The output fills all buffers, and then exceeds the number of events that may wait for one reader.
    for number in 0..LARGE {
        beat(json!({"number": number, "padding": "x".repeat(1 << 20)})).await;
    }
    for number in LARGE..LARGE + SMALL {
        beat(json!({"number": number})).await;
    }
    let (mut heard, mut missed, mut last) = (0, 0, None);
    while heard + missed < LARGE + SMALL {
        let event = slow.next().await.expect("it was cut off");
        match event.name.as_str() {
            "gap" => missed += event.data["missed"].as_u64().unwrap(),
            _ => {
                let number = event.data["progress"]["number"].as_u64();
                assert!(number > last, "{number:?} after {last:?}");
                (heard, last) = (heard + 1, number);
            }
        }
    }
    assert_eq!(heard + missed, LARGE + SMALL);
    assert!(missed >= SMALL - 512 - LARGE, "nothing was bounded: {heard} heard, {missed} missed");
    // The stream continues after the gap.
    beat(json!({"number": 9999})).await;
    assert_eq!(slow.next().await.unwrap().data["progress"]["number"], 9999);
}

#[tokio::test]
async fn those_who_follow_a_session_see_what_its_tools_wait_for_and_how_that_ended() {
    let server = serve("handler \"bash\" { command = [\"cat\"] }").await;
    let lane = "/api/lanes/session:ann%2Fexecute";
    let mut session = server.events("/api/sessions/ann/events").await;
    let mut of_lane = server.events("/api/events?lane=session:ann%2Fexecute").await;
    let mut other = server.events("/api/events?session=bob").await;
    for handler in ["external", "hybrid"] {
        let change = json!({"handler": handler, "timeout_ms": 60_000, "wait_timeout_ms": 30_000});
        assert_eq!(server.send("PATCH", lane, change).await.status, 200);
        let payload = json!({"command": handler});
        let task = json!({"kind": "bash", "lanes": ["session:ann/execute"], "payload": payload});
        let id = server.post("/api/tasks", task).await.json()["id"].clone();
        if handler == "external" {
            let claim = json!({"worker": "w", "ids": [id]});
            let claimed = server.post("/api/claim", claim).await.json()["tasks"][0].clone();
            let path = format!("/api/tasks/{}/complete", id.as_str().unwrap());
            let failed =
                json!({"fence": claimed["fence"], "success": false, "error": "no", "retryable": false});
            assert_eq!(server.post(&path, failed).await.status, 200);
        }
        for events in [&mut session, &mut of_lane] {
            let pending = events.next_named("external_task_pending").await.data;
            assert_eq!(pending["task_id"], id);
            assert_eq!(
                (&pending["payload"], &pending["timeout_ms"]),
                (&payload, &json!(60_000)),
                "{pending}"
            );
            assert_eq!(
                (&pending["session"], &pending["lane"]),
                (&json!("ann"), &json!("session:ann/execute"))
            );
            let done = events.next_named("external_task_completed").await.data;
            assert_eq!((&done["task_id"], &done["session"]), (&id, &json!("ann")), "{done}");
            assert_eq!((&done["lane"], &done["kind"]), (&json!("session:ann/execute"), &json!("bash")));
            assert_eq!(done["success"], handler == "hybrid", "{done}");
        }
    }
    server.post("/api/sessions/bob/messages", json!({"agent": "echo", "text": "hi"})).await;
    assert_eq!(other.next().await.unwrap().name, "message", "nothing of another session came before");
}

#[tokio::test]
async fn a_heartbeat_carries_text_progress_and_usage_to_those_who_watch() {
    let server = serve("").await;
    let task = json!({"kind": "work", "lanes": ["external"]});
    let id = server.post("/api/tasks", task).await.json()["id"].as_str().unwrap().to_owned();
    let mut events = server.events(&format!("/api/tasks/{id}/events")).await;
    let claim = json!({"worker": "w", "lanes": ["external"]});
    let fence = server.post("/api/claim", claim).await.json()["tasks"][0]["fence"].as_u64().unwrap();
    let path = format!("/api/tasks/{id}/heartbeat");
    let beat = json!({"fence": fence, "delta": "a b", "progress": 1, "usage": {"tokens": 3}});
    assert_eq!(server.post(&path, json!({"fence": fence - 1, "delta": "stale"})).await.status, 409);
    assert_eq!(server.post(&path, beat).await.status, 200);
    assert_eq!(events.next_named("delta").await.data["text"], "a b");
    assert_eq!(events.next().await.unwrap().data["progress"], 1);
    let usage = events.next().await.unwrap();
    assert_eq!((usage.name.as_str(), &usage.data["usage"]), ("usage", &json!({"tokens": 3})));
}
