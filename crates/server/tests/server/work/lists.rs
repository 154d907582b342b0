//! Lists of tasks, and the record of one task.

use std::sync::Arc;

use laneway_store_sqlite::SqliteStore;
use serde_json::{Value, json};

use crate::common::{Running, serve, serve_in};

async fn submit(server: &Running, task: Value) -> String {
    let accepted = server.post("/api/tasks", task).await;
    assert_eq!(accepted.status, 202, "{accepted:?}");
    accepted.json()["id"].as_str().unwrap().to_owned()
}

fn ids(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_children_of_a_task_are_listed_live_and_ended_and_can_be_cancelled_together() {
    let server = serve("handler \"slow\" { command = [\"sleep\", \"600\"] }").await;
    let parent = submit(&server, json!({"kind": "slow", "lanes": ["one"], "payload": {}})).await;
    server.until_numbers((1, 0)).await;
    let mut children = Vec::new();
    for _ in 0..3 {
        let child = json!({"kind": "made", "lanes": ["external"], "payload": {}, "parent": parent});
        children.push(submit(&server, child).await);
    }
    submit(&server, json!({"kind": "made", "lanes": ["external"], "payload": {}})).await;
    let path = format!("/api/tasks?parent={parent}");
    assert_eq!(ids(&server.get(&path).await.json()), children);
    server.send("DELETE", &format!("/api/tasks/{}", children[0]), json!(null)).await;
    let mut listed: Vec<String> = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = server.get(&format!("{path}&limit=1{cursor}")).await.json();
        listed.extend(ids(&page).into_iter().map(str::to_owned));
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    listed.sort();
    children.sort();
    assert_eq!(listed, children);
    // A dry run counts the tasks and cancels none.
    for is_dry in [true, true, false] {
        let which = json!({"parent": parent, "dry_run": is_dry});
        assert_eq!(server.post("/api/tasks/cancel", which).await.json()["cancelled"], 2);
    }
    assert_eq!(server.get("/api/tasks?parent=unknown").await.status, 400);
    assert_eq!(
        server.get("/api/tasks?kind=made&status=queued").await.json()["items"].as_array().unwrap().len(),
        1
    );
    server.send("DELETE", &format!("/api/tasks/{parent}"), json!(null)).await;
    server.until_numbers((0, 1)).await;
}

#[tokio::test]
async fn a_task_lists_every_attempt_with_worker_and_error_also_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Arc::new(SqliteStore::open(dir.path().join("store")).unwrap());
    let mut server = serve_in("", Some(open()), Some(dir.path().to_owned())).await;
    let retry = json!({"strategy": "fixed", "max_retries": 1, "fixed_delay_ms": 1});
    let id =
        submit(&server, json!({"kind": "work", "lanes": ["external"], "payload": {"a": 1}, "retry": retry}))
            .await;
    let path = format!("/api/tasks/{id}");
    let mut events = server.events(&format!("{path}/events")).await;
    assert_eq!(server.get(&path).await.json().get("attempt_list"), None);
    for (worker, end) in
        [("w1", json!({"success": false, "error": "no disk"})), ("w2", json!({"success": true}))]
    {
        let claim = json!({"worker": worker, "lanes": ["external"], "wait_ms": 60_000});
        let fence = server.post("/api/claim", claim).await.json()["tasks"][0]["fence"].clone();
        let running =
            server.get(&path).await.json()["attempt_list"].as_array().unwrap().last().unwrap().clone();
        assert_eq!((&running["outcome"], &running["worker"]), (&json!("running"), &json!(worker)));
        let mut end = end;
        end["fence"] = fence;
        assert_eq!(server.post(&format!("{path}/complete"), end).await.status, 200);
    }
    let retrying = events.next_named("retrying").await.data;
    assert_eq!((&retrying["attempt"], &retrying["error"]), (&json!(1), &json!("no disk")));
    drop(events);
    server.stop();
    server.stopped().await;
    drop(server);
    let server = serve_in("", Some(open()), Some(dir.path().to_owned())).await;
    let task = server.get(&path).await.json();
    let list = task["attempt_list"].as_array().unwrap();
    let told: Vec<_> =
        list.iter().map(|one| json!([one["number"], one["outcome"], one["worker"], one["error"]])).collect();
    assert_eq!(told, [json!([1, "failed", "w1", "no disk"]), json!([2, "completed", "w2", null])]);
    for attempt in list {
        assert!(attempt["started_at"].as_str() <= attempt["ended_at"].as_str(), "{attempt}");
    }
    assert_eq!((&task["attempts"], &task["payload"]), (&json!(2), &json!({"a": 1})));
}

#[tokio::test]
async fn an_ended_task_keeps_its_payload_unless_it_is_long() {
    let server =
        serve("handler \"cat\" { command = [\"cat\"] }\nhandler \"no\" { command = [\"false\"] }").await;
    let long = "x".repeat(20_000);
    for (kind, payload, remembered) in
        [("cat", json!({"text": "short"}), true), ("no", json!([1, 2]), true), ("cat", json!(long), false)]
    {
        let id = submit(&server, json!({"kind": kind, "lanes": ["main"], "payload": payload})).await;
        server.until_numbers((0, 0)).await;
        let task = server.get(&format!("/api/tasks/{id}")).await.json();
        assert!(task["ended_at"].is_string(), "{task}");
        assert_eq!(task.get("payload"), remembered.then_some(&payload));
    }
    // A task that never ran keeps its payload too.
    let id = submit(&server, json!({"kind": "away", "payload": {"text": "later"}})).await;
    let path = format!("/api/tasks/{id}");
    assert_eq!(server.send("DELETE", &path, json!(null)).await.json()["status"], "cancelled_while_queued");
    let task = server.get(&path).await.json();
    assert_eq!((&task["status"], &task["payload"]), (&json!("cancelled"), &json!({"text": "later"})));
    let listed = server.get("/api/tasks").await.json();
    assert!(listed["items"].as_array().unwrap().iter().all(|task| task.get("payload").is_none()));
}

#[tokio::test]
async fn the_waiting_tasks_of_a_lane_are_listed_in_order_with_positions_and_pages() {
    let server = serve("handler \"slow\" { command = [\"sleep\", \"600\"] }\nlane \"quay\" { max_queued = 100 }\nlane \"pier\" { max_queued = 100 }").await;
    server.post("/api/lanes/quay/pause", json!(null)).await;
    let mut expected = Vec::new();
    for number in 0..30_u64 {
        let (priority, is_guest) = (number % 3, number % 4 == 0);
        let lanes = if is_guest { json!(["pier", "quay"]) } else { json!(["quay"]) };
        let task = json!({"kind": "slow", "lanes": lanes, "payload": {}, "priority": priority});
        expected.push((2 - priority, number, submit(&server, task).await));
    }
    let later =
        json!({"kind": "slow", "lanes": ["quay"], "payload": {}, "priority": 9, "run_after_ms": 600_000});
    expected.push((9, 99, submit(&server, later).await));
    submit(&server, json!({"kind": "slow", "lanes": ["pier"], "payload": {}})).await;
    expected.sort();
    let (mut listed, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/api/tasks?lane=quay&status=queued&limit=7{cursor}");
        let page = server.get(&path).await.json();
        listed.extend(page["items"].as_array().unwrap().iter().cloned());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    let found: Vec<_> = listed.iter().map(|task| task["id"].as_str().unwrap()).collect();
    assert_eq!(found, expected.iter().map(|(_, _, id)| id.as_str()).collect::<Vec<_>>());
    let places: Vec<_> = listed.iter().map(|task| task["lane_position"].as_u64()).collect();
    assert_eq!(places, (1..=30).map(Some).chain([None]).collect::<Vec<_>>());
    assert_eq!(server.get("/api/tasks?lane=quay&status=queued&cursor=o-").await.status, 400);
}
