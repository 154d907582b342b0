//! Workers, slots and dead letters over HTTP.

use serde_json::{Value, json};

use crate::common::{answer, serve, until};

#[tokio::test]
async fn a_worker_claims_renews_and_completes_and_an_old_fence_is_stale() {
    let server = serve("agent \"builder\" { external = true }").await;
    let body = json!({"message": "build it", "session": "s"});
    let accepted =
        server.send_with("POST", "/api/agents/builder/chat", body, &[("prefer", "respond-async")]).await;
    let id = accepted.json()["execution"]["id"].as_str().unwrap().to_owned();
    let pending = server.get("/api/external-tasks").await.json();
    assert_eq!((&pending["items"][0]["id"], &pending["items"][0]["attempt"]), (&json!(id), &json!(1)));
    let claim = json!({"worker": "w1", "lanes": ["agent:*"], "wait_ms": 60_000});
    let (one, two) = futures_util::future::join(
        server.post("/api/claim", claim.clone()),
        server.post("/api/claim", json!({"worker": "w2", "lanes": ["agent:*"]})),
    )
    .await;
    let mut tasks: Vec<serde_json::Value> = Vec::new();
    for answer in [one.json(), two.json()] {
        tasks.extend(answer["tasks"].as_array().unwrap().iter().cloned());
        if tasks.len() == 1 {
            break;
        }
    }
    assert_eq!(tasks.len(), 1);
    let task = &tasks[0];
    assert_eq!(
        (&task["id"], &task["payload"]["message"], &task["session"]),
        (&json!(id), &json!("build it"), &json!("s"))
    );
    let fence = task["fence"].as_u64().unwrap();
    let beat = server
        .post(&format!("/api/tasks/{id}/heartbeat"), json!({"fence": fence, "progress": {"percent": 40}}))
        .await;
    assert_eq!((beat.status, &beat.json()["cancel_requested"]), (200, &json!(false)));
    let worker = server.get("/api/workers").await.json()["items"][0].clone();
    assert_eq!(worker["tasks"], json!([id]));
    let lease = &worker["leases"][0];
    assert_eq!((&lease["task"], &lease["last_heartbeat"]), (&json!(id), &worker["last_heartbeat"]));
    // The heartbeat was at or after the claim, and the lease of 30 s counts from it.
    assert!(lease["last_heartbeat"].as_str() >= lease["started_at"].as_str(), "{lease}");
    assert_eq!(lease["lease_until"], beat.json()["lease_until"]);
    assert!(lease["last_heartbeat"].as_str() < lease["lease_until"].as_str(), "{lease}");
    let stale =
        server.post(&format!("/api/tasks/{id}/complete"), json!({"fence": fence + 1, "success": true})).await;
    assert_eq!((stale.status, &stale.json()["code"]), (409, &json!("STALE_LEASE")));
    let done = json!({"fence": fence, "success": true, "result": {"built": true}});
    let complete = server.post(&format!("/api/tasks/{id}/complete"), done.clone()).await;
    assert_eq!((complete.status, &complete.json()["result"]), (200, &json!({"built": true})));
    assert_eq!(server.post(&format!("/api/tasks/{id}/complete"), done.clone()).await.status, 409);
    let unknown = "/api/tasks/01900000-0000-7000-8000-000000000000/complete";
    assert_eq!(server.post(unknown, done).await.status, 404);
}

#[tokio::test]
async fn a_failed_call_returns_its_output_and_its_error() {
    let server = serve("queue { lane_handlers = { execute = { mode = \"external\" } } }").await;
    let calls = json!({"session": "s", "calls": [{"tool": "bash", "payload": {"command": "make"}}]});
    let request = server.request("POST", "/api/tasks/batch").header("content-type", "application/json");
    let batch = tokio::spawn(answer(request.body(calls.to_string())));
    let claim = json!({"worker": "w", "lanes": ["session:s/execute"], "wait_ms": 60_000});
    let task = server.post("/api/claim", claim).await.json()["tasks"][0].clone();
    let path = format!("/api/tasks/{}", task["id"].as_str().unwrap());
    let mut events = server.events(&format!("{path}/events")).await;
    let output = json!({"output": "no rule to make target", "exit_code": 2});
    let report = json!({"fence": task["fence"], "success": false, "result": output, "error": "exit code 2"});
    let reported = server.post(&format!("{path}/complete"), report).await;
    assert_eq!(reported.status, 200, "{reported:?}");
    let failed = server.get(&path).await.json();
    assert_eq!(failed["status"], "failed");
    assert_eq!((&failed["result"], &failed["error"]), (&output, &json!("exit code 2")));
    let result = batch.await.unwrap().json()["results"][0].clone();
    assert_eq!((&result["success"], &result["result"]), (&json!(false), &output), "{result}");
    assert_eq!(result["error"]["code"], "RUN_FAILED");
    assert_eq!(events.next_named("failed").await.data["result"], output);
    let dead = server.get("/api/dead-letters").await.json()["items"][0].clone();
    assert_eq!((&dead["result"], &dead["error"]), (&output, &json!("exit code 2")));
}

#[tokio::test]
async fn an_invalid_report_leaves_the_attempt_to_its_worker() {
    let server = serve("").await;
    let id = server.post("/api/tasks", json!({"kind": "k"})).await.json()["id"].as_str().unwrap().to_owned();
    let task = server.post("/api/claim", json!({"worker": "w", "lanes": ["external"]})).await.json();
    let (path, fence) = (format!("/api/tasks/{id}/complete"), &task["tasks"][0]["fence"]);
    let both = server.post(&path, json!({"fence": fence, "success": true, "error": "no"})).await;
    assert_eq!((both.status, both.json()["code"].as_str()), (400, Some("INVALID")));
    assert_eq!(server.get(&format!("/api/tasks/{id}")).await.json()["status"], "running");
    assert_eq!(server.post(&path, json!({"fence": fence, "success": true})).await.status, 200);
}

#[tokio::test]
async fn a_worker_may_claim_tasks_by_id() {
    let server = serve("").await;
    let mut ids = Vec::new();
    for number in 0..4 {
        let task = json!({"kind": "work", "lanes": ["external"], "payload": number});
        ids.push(server.post("/api/tasks", task).await.json()["id"].clone());
    }
    let claim = |ids: serde_json::Value| server.post("/api/claim", json!({"worker": "w", "ids": ids}));
    let claimed = claim(json!([ids[2], ids[1]])).await.json();
    let payloads: Vec<_> = claimed["tasks"].as_array().unwrap().iter().map(|task| &task["payload"]).collect();
    assert_eq!(payloads, [&json!(2), &json!(1)]);
    // Tasks of other workers and unknown tasks are left out.
    let unknown = "01900000-0000-7000-8000-000000000000";
    let claimed = claim(json!([ids[2], unknown, ids[3]])).await.json();
    assert_eq!(claimed["tasks"].as_array().unwrap().len(), 1);
    assert_eq!(claimed["tasks"][0]["id"], ids[3]);
    server.post("/api/lanes/external/pause", json!(null)).await;
    assert_eq!(claim(json!([ids[0]])).await.json(), json!({"tasks": []}));
    for wrong in [
        json!({"worker": "w"}),
        json!({"worker": "w", "ids": ["x"]}),
        json!({"worker": "w", "ids": [ids[0]], "lanes": ["external"]}),
        json!({"worker": "w", "ids": [ids[0]], "max": 1}),
    ] {
        assert_eq!(server.post("/api/claim", wrong.clone()).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn a_slot_guards_the_callers_own_code() {
    let server = serve("").await;
    let take = |wait: u64| server.post("/api/slots", json!({"lanes": ["deploy"], "wait_ms": wait}));
    let first = take(0).await;
    assert_eq!(first.status, 200, "{first:?}");
    let (id, fence) = (first.json()["id"].as_str().unwrap().to_owned(), first.json()["fence"].clone());
    assert_eq!(take(0).await.status, 429);
    assert_eq!(server.post(&format!("/api/tasks/{id}/heartbeat"), json!({"fence": fence})).await.status, 200);
    let second = take(10_000);
    let path = format!("/api/tasks/{id}/complete");
    let give_back = server.post(&path, json!({"fence": fence, "success": true}));
    let (second, gave) = futures_util::future::join(second, give_back).await;
    assert_eq!((second.status, gave.status), (200, 200), "{second:?} {gave:?}");
    assert!(second.json()["fence"].as_u64() > fence.as_u64());
    assert_eq!(server.post(&format!("/api/tasks/{id}/heartbeat"), json!({"fence": fence})).await.status, 409);
    // The release needs no body, and repeating it is harmless.
    let (id, fence) = (second.json()["id"].as_str().unwrap().to_owned(), second.json()["fence"].clone());
    let path = |fence: &Value| format!("/api/slots/{id}?fence={fence}");
    assert_eq!(server.send("DELETE", &path(&json!(1)), json!(null)).await.status, 409, "another's fence");
    for _ in 0..2 {
        assert_eq!(server.send("DELETE", &path(&fence), json!(null)).await.status, 204);
    }
    let third = take(0).await;
    assert_eq!(third.status, 200, "{third:?}");
    let task = server.post("/api/tasks", json!({"kind": "index", "lanes": ["external"]})).await.json();
    for wrong in
        [format!("/api/slots/{}?fence=1", task["id"].as_str().unwrap()), "/api/slots/x?fence=1".to_owned()]
    {
        assert_eq!(server.send("DELETE", &wrong, json!(null)).await.status, 404, "{wrong}");
    }
    for wrong in [format!("/api/slots/{id}"), format!("/api/slots/{id}?fence=x")] {
        assert_eq!(server.send("DELETE", &wrong, json!(null)).await.status, 400, "{wrong}");
    }
    let brief = server.post("/api/slots", json!({"lanes": ["brief"], "lease_ms": 30})).await;
    assert_eq!(brief.status, 200);
    // No heartbeat renews the lease: the next worker gets the task when it lapses.
    assert_eq!(server.post("/api/slots", json!({"lanes": ["brief"], "wait_ms": 60_000})).await.status, 200);
}

#[tokio::test]
async fn a_failed_slot_cannot_be_redriven() {
    let server = serve("handler \"fails\" { command = [\"sh\", \"-c\", \"exit 3\"] }").await;
    let mut all = server.events("/api/events").await;
    let slot = server.post("/api/slots", json!({"lanes": ["deploy"]})).await.json();
    let path = format!("/api/tasks/{}/complete", slot["id"].as_str().unwrap());
    let failed = json!({"fence": slot["fence"], "success": false, "error": "it broke"});
    assert_eq!(server.post(&path, failed).await.status, 200);
    server.post("/api/tasks", json!({"kind": "fails", "lanes": ["deploy"]})).await;
    for _ in 0..2 {
        all.next_named("dead_lettered").await;
        all.next_named("done").await;
    }
    let letters = server.get("/api/dead-letters").await.json();
    assert_eq!(letters["items"].as_array().unwrap().len(), 2, "{letters}");
    let path = format!("/api/dead-letters/{}/redrive", slot["id"].as_str().unwrap());
    let refused = server.post(&path, json!({})).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    assert_eq!(refused.json()["detail"], "a slot cannot have a second life", "{refused:?}");
    // A selector with a lane covers only dead letters that can be redriven.
    let redriven = server.post("/api/dead-letters/redrive", json!({"lane": "deploy"})).await;
    assert_eq!((redriven.status, redriven.json()["count"].clone()), (200, json!(1)), "{redriven:?}");
}

#[tokio::test]
async fn a_failed_task_becomes_a_dead_letter_and_can_be_redriven() {
    let server = serve("handler \"fails\" { command = [\"sh\", \"-c\", \"exit 3\"] }").await;
    let mut all = server.events("/api/events").await;
    let task = json!({"kind": "fails", "lanes": ["main"], "payload": {"n": 7}});
    let id = server.post("/api/tasks", task).await.json()["id"].clone();
    all.next_named("dead_lettered").await;
    all.next_named("done").await;
    let letters = server.get("/api/dead-letters").await.json();
    let letter = &letters["items"][0];
    assert_eq!((&letter["id"], &letter["payload"], &letter["lane"]), (&id, &json!({"n": 7}), &json!("main")));
    assert!(letter["error"].as_str().unwrap().contains("exit code 3"), "{letter}");
    let path = format!("/api/dead-letters/{}/redrive", id.as_str().unwrap());
    let redriven = server.post(&path, json!(null)).await;
    assert_eq!(redriven.status, 200, "{redriven:?}");
    all.next_named("done").await;
    assert_eq!(server.post(&path, json!(null)).await.status, 404);
    assert_eq!(server.send("DELETE", "/api/dead-letters?kind=fails", json!(null)).await.json()["count"], 1);
    assert_eq!(server.get("/api/dead-letters").await.json()["items"], json!([]));
}

#[tokio::test]
async fn tasks_are_listed_explained_and_reprioritized() {
    let server = serve("lane \"external\" {\nmax_concurrency = 1\nhandler = \"external\"\n}").await;
    let mut ids = Vec::new();
    for n in 0..5 {
        let task = json!({"kind": "index", "payload": n, "group": "g", "priority": "background"});
        ids.push(server.post("/api/tasks", task).await.json()["id"].as_str().unwrap().to_owned());
    }
    let page = server.get("/api/tasks?status=queued&group=g&limit=2").await.json();
    assert_eq!(page["items"].as_array().unwrap().len(), 2);
    let mut seen: Vec<serde_json::Value> = Vec::new();
    let mut path = "/api/tasks?limit=2".to_owned();
    loop {
        let page = server.get(&path).await.json();
        seen.extend(page["items"].as_array().unwrap().iter().map(|item| item["id"].clone()));
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/api/tasks?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    seen.sort_by_key(|id| id.to_string());
    assert_eq!(seen, ids.iter().map(|id| json!(id)).collect::<Vec<_>>());
    let last = format!("/api/tasks/{}", ids[4]);
    assert_eq!(server.get(&format!("{last}/explain")).await.json()["position"], 5);
    assert_eq!(server.send("PATCH", &last, json!({"priority": 9})).await.json()["position"], 1);
    assert_eq!(server.post("/api/tasks/cancel", json!({"group": "g"})).await.json()["cancelled"], 5);
    assert_eq!(server.get(&last).await.json()["status"], "cancelled");
    for bad in ["status=odd", "limit=0", "cursor=x", "no=1"] {
        assert_eq!(server.get(&format!("/api/tasks?{bad}")).await.status, 400, "{bad}");
    }
}

#[tokio::test]
async fn steering_is_offered_until_the_worker_confirms_it() {
    let server = serve("messages {\nqueue { debounce_ms = 0 }\n}\nagent \"bot\" { external = true }").await;
    let say = |text: &'static str| {
        server.post("/api/sessions/ann/messages", json!({"agent": "bot", "text": text, "mode": "steer"}))
    };
    let first = say("hello").await.json();
    let claim = json!({"worker": "w", "lanes": ["agent:*"], "wait_ms": 60_000});
    let claimed = server.post("/api/claim", claim.clone()).await.json()["tasks"][0].clone();
    let (id, fence) = (claimed["id"].as_str().unwrap().to_owned(), claimed["fence"].clone());
    assert_eq!(first["task_id"], json!(id));
    let path = format!("/api/tasks/{id}/heartbeat");
    let beat = |steered: serde_json::Value| {
        server.post(&path, json!({"fence": fence, "takes_steering": true, "steered": steered}))
    };
    assert_eq!(beat(json!([])).await.json()["steer"], json!([]));
    let said: Vec<serde_json::Value> =
        [say("left").await.json(), say("right").await.json(), say("back").await.json()].into();
    for message in &said {
        assert_eq!(message["outcome"], "steered");
    }
    // The second answer repeats the offer, because the first may be lost.
    for _ in 0..2 {
        let heard = beat(json!([])).await.json();
        assert_eq!(heard["steer"], json!(["left", "right", "back"]));
        let first = json!({"id": said[0]["id"], "text": "left", "redelivered": false});
        assert_eq!(heard["steering"][0], first);
    }
    let heard = beat(json!([said[0]["id"]])).await.json();
    assert_eq!(heard["steer"], json!(["right", "back"]));
    let refused = beat(json!(["left"])).await;
    assert_eq!((refused.status, &refused.json()["code"]), (400, &json!("INVALID")));
    let done = json!({"fence": fence, "success": true, "steered": [said[0]["id"], said[1]["id"]]});
    assert_eq!(server.post(&format!("/api/tasks/{id}/complete"), done).await.status, 200);
    for (message, status) in said.iter().zip(["steered", "steered", "in_turn"]) {
        let receipt = format!("/api/sessions/ann/messages/{}", message["id"].as_str().unwrap());
        assert_eq!(server.get(&receipt).await.json()["status"], status);
    }
    // A worker that never sends `steered` gets each message once, and it counts as taken.
    let claimed = server.post("/api/claim", claim).await.json()["tasks"][0].clone();
    let plain = json!({"fence": claimed["fence"], "takes_steering": true});
    let path = format!("/api/tasks/{}/heartbeat", claimed["id"].as_str().unwrap());
    let beat = || server.post(&path, plain.clone());
    beat().await;
    say("on").await;
    assert_eq!(beat().await.json()["steer"], json!(["on"]));
    assert_eq!(beat().await.json()["steer"], json!([]));
}

#[tokio::test]
async fn dead_letters_are_found_by_lane_session_and_kind() {
    let server = serve("handler \"fails\" { command = [\"false\"] }\nqueue { enable_dlq = true }").await;
    let mut all = server.events("/api/events").await;
    for lane in ["session:ann/query", "session:ann/execute", "session:bob/query", "main"] {
        server.post("/api/tasks", json!({"kind": "fails", "lanes": [lane]})).await;
        all.next_named("done").await;
    }
    let found = async |query: &str| -> Vec<String> {
        let letters = server.get(&format!("/api/dead-letters?{query}")).await;
        assert_eq!(letters.status, 200, "{letters:?}");
        let items = letters.json()["items"].as_array().unwrap().clone();
        items.iter().map(|letter| format!("{} {}", letter["session"], letter["lane"])).collect()
    };
    assert_eq!(
        found("session=ann").await,
        [r#""ann" "session:ann/query""#, r#""ann" "session:ann/execute""#]
    );
    assert_eq!(found("lane=session:bob%2Fquery").await, [r#""bob" "session:bob/query""#]);
    assert_eq!(found("kind=fails&lane=main").await, [r#"null "main""#]);
    assert_eq!(found("session=unknown").await, [""; 0]);
    let first = server.get("/api/dead-letters?session=ann&limit=1").await.json();
    let cursor = first["next_cursor"].as_str().unwrap();
    assert_eq!(found(&format!("session=ann&limit=1&cursor={cursor}")).await.len(), 1);
    let discarded = server.send("DELETE", "/api/dead-letters?session=ann", json!(null)).await;
    assert_eq!(discarded.json()["count"], 2, "{discarded:?}");
    assert_eq!(found("").await.len(), 2);
}

#[tokio::test]
async fn a_new_handler_of_a_tool_lane_keeps_the_other_settings_and_bounds_the_wait() {
    let config =
        "queue {\n execute_max_concurrency = 5\n dlq_max_size = 7\n retry_policy {\n max_retries = 2\n }\n}";
    let server = serve(config).await;
    let lane = "/api/lanes/session%3Adocs%2Fexecute";
    let before = server.get(lane).await.json()["settings"].clone();
    let changed = server.send_with("PATCH", lane, json!({"handler": "external"}), &[]).await.json();
    let mut wanted = before.clone();
    (wanted["handler"], wanted["wait_timeout"]) = (json!("external"), json!("60000ms"));
    assert_eq!(changed["settings"], wanted);
    let task = json!({"kind": "bash", "lanes": ["session:docs/execute"], "payload": {}});
    server.post("/api/tasks", task.clone()).await;
    let pending = server.get("/api/external-tasks").await.json()["items"][0].clone();
    let left = pending["remaining_ms"].as_u64().unwrap();
    assert!((1..=60_000).contains(&left), "{pending}");
    server.send_with("PATCH", lane, json!({"timeout_ms": 1}), &[]).await;
    let id = server.post("/api/tasks", task).await.json()["id"].as_str().unwrap().to_owned();
    let path = format!("/api/tasks/{id}");
    until("the wait is over", async || server.get(&path).await.json()["status"] == "wait_timeout").await;
}
