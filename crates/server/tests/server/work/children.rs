//! Work that a running task asks for over HTTP is its child.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::common::{Events, Running, serve};

const POOL: &str = "queue {}\nlane \"global\" { max_concurrency = 10 }\n\
    lane \"main\" { max_concurrency = 100 }\n\
    lane \"pool\" {\nhandler = \"external\"\nmax_concurrency = 10\n}\n\
    handler \"read\" { command = [\"true\"] }";

/// Ten claimed tasks, which hold all slots of `global`.
async fn ten_claimed(server: &Running) -> Vec<String> {
    for number in 0..10 {
        let task = json!({"kind": "work", "lanes": ["pool"], "payload": number});
        assert_eq!(server.post("/api/tasks", task).await.status, 202);
    }
    let claimed =
        server.post("/api/claim", json!({"worker": "w", "lanes": ["pool"], "max": 10})).await.json();
    let ids: Vec<String> = claimed["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!((ids.len(), server.numbers().await), (10, (10, 0)));
    ids
}

#[tokio::test]
async fn ten_tasks_that_hold_all_slots_get_their_batches_slots_and_chats() {
    let server = serve(POOL).await;
    let tasks = ten_claimed(&server).await;
    let server = &server;
    let waiting = server.post("/api/slots", json!({"lanes": ["main"], "wait_ms": 0})).await;
    assert_eq!((waiting.status, &waiting.json()["lane"]), (429, &json!("global")), "all slots are taken");

    let batches = tasks.iter().map(|task| async move {
        let calls = json!([{"tool": "read"}, {"tool": "read"}]);
        let body = json!({"session": format!("of-{task}"), "calls": calls});
        server.send_with("POST", "/api/tasks/batch", body, &[("x-laneway-parent", task)]).await
    });
    for batch in join_all(batches).await {
        let results = batch.json()["results"].clone();
        assert_eq!(
            (&results[0]["success"], &results[1]["success"]),
            (&json!(true), &json!(true)),
            "{results}"
        );
    }
    let chats = tasks.iter().map(|task| async move {
        let body = json!({"message": "hello"});
        server.send_with("POST", "/api/agents/echo/task", body, &[("x-laneway-parent", task)]).await
    });
    for chat in join_all(chats).await {
        assert_eq!((chat.status, &chat.json()["response"]), (200, &json!("hello")));
    }
    for task in &tasks {
        let slot = json!({"lanes": ["main"], "wait_ms": 0});
        let slot = server.send_with("POST", "/api/slots", slot, &[("x-laneway-parent", task)]).await;
        assert_eq!(slot.status, 200, "{slot:?}");
        let view = server.get(&format!("/api/tasks/{}", slot.json()["id"].as_str().unwrap())).await.json();
        assert_eq!((&view["parent"], &view["source"]), (&json!(task), &json!("agent")));
    }
    assert_eq!(server.numbers().await.1, 0);
}

#[tokio::test]
async fn a_message_for_the_turn_skips_the_calls_of_its_batch_that_have_not_started() {
    let config = "agent \"coder\" { external = true }\nqueue {\nexecute_max_concurrency = 1\n\
        lane_handlers = { execute = { mode = \"external\" } }\n}";
    let server = serve(config).await;
    server.post("/api/sessions/s/messages", json!({"agent": "coder", "text": "begin"})).await;
    let server = &server;
    let claim = |lane: &'static str| async move {
        let body = json!({"worker": "w", "lanes": [lane], "wait_ms": 60_000});
        server.post("/api/claim", body).await.json()["tasks"][0].clone()
    };
    let turn = claim("agent:coder").await;
    let id = turn["id"].as_str().unwrap().to_owned();
    let beat = json!({"fence": turn["fence"], "takes_steering": true, "steered": []});
    let beat = server.post(&format!("/api/tasks/{id}/heartbeat"), beat).await;
    assert_eq!(beat.status, 200, "{beat:?}");
    let batch = async {
        let calls = json!([{"tool": "bash"}, {"tool": "bash"}, {"tool": "bash"}]);
        let body = json!({"session": "s", "calls": calls});
        server.send_with("POST", "/api/tasks/batch", body, &[("x-laneway-parent", &id)]).await
    };
    let steered = async {
        let call = claim("session:s/execute").await;
        let message = json!({"agent": "coder", "text": "not like that", "mode": "steer"});
        let sent = server.post("/api/sessions/s/messages", message).await;
        assert_eq!(sent.json()["outcome"], "steered");
        let done = json!({"fence": call["fence"], "success": true, "result": 1});
        let path = format!("/api/tasks/{}/complete", call["id"].as_str().unwrap());
        assert_eq!(server.post(&path, done).await.status, 200);
    };
    let (batch, ()) = futures_util::future::join(batch, steered).await;
    let ends: Vec<Value> = batch.json()["results"].as_array().unwrap().clone();
    assert_eq!(ends[0]["success"], true);
    for skipped in &ends[1..] {
        assert_eq!((&skipped["success"], &skipped["error"]["reason"]), (&json!(false), &json!("steered")));
    }
}

#[tokio::test]
async fn children_end_with_their_parent_unless_they_are_detached() {
    let server = serve("lane \"pool\" { handler = \"external\" }").await;
    server.post("/api/tasks", json!({"kind": "work", "lanes": ["pool"]})).await;
    let claimed = server.post("/api/claim", json!({"worker": "w", "lanes": ["pool"]})).await.json();
    let (parent, fence) = (claimed["tasks"][0]["id"].as_str().unwrap(), &claimed["tasks"][0]["fence"]);
    let mut children = Vec::new();
    for headers in
        [vec![("x-laneway-parent", parent)], vec![("x-laneway-parent", parent), ("x-detach", "true")]]
    {
        let child = server.send_with("POST", "/api/tasks", json!({"kind": "index"}), &headers).await;
        children.push(child.json()["id"].as_str().unwrap().to_owned());
    }
    let mut events = Events::open(&server, "/api/events", &[]).await;
    let done = json!({"fence": fence, "success": true});
    assert_eq!(server.post(&format!("/api/tasks/{parent}/complete"), done).await.status, 200);
    let cancelled = events.next_named("cancelled").await;
    assert_eq!(
        (&cancelled.data["task_id"], &cancelled.data["reason"]),
        (&json!(children[0]), &json!("parent"))
    );
    let detached = server.get(&format!("/api/tasks/{}", children[1])).await.json();
    assert_eq!((&detached["status"], &detached["parent"]), (&json!("queued"), &json!(parent)));
    let late = server
        .send_with("POST", "/api/slots", json!({"lanes": ["main"]}), &[("x-laneway-parent", parent)])
        .await;
    assert_eq!(late.status, 400, "a task that has ended has no children: {late:?}");
}
