//! Messages to sessions over HTTP.

use serde_json::json;

use crate::common::{Gate, serve};

#[tokio::test]
async fn messages_to_a_busy_session_are_collected_into_one_turn() {
    let gate = Gate::open().await;
    let queue = "messages {\nqueue { debounce_ms = 0 }\n}";
    let server = serve(&format!("{queue}\nagent \"bot\" {{ url = \"{}\" }}", gate.url)).await;
    let say =
        |text: &'static str| server.post("/api/sessions/ann/messages", json!({"agent": "bot", "text": text}));
    let first = say("hello").await.json();
    assert_eq!((&first["outcome"], &first["typing"]), (&json!("started"), &json!(true)));
    assert_eq!(gate.arrival().await["message"], "hello");
    let second = say("one").await.json();
    assert_eq!(second["outcome"], "queued");
    say("two").await;
    let session = server.get("/api/sessions/ann").await.json();
    assert_eq!(session["current_turn"]["task_id"], first["task_id"]);
    assert_eq!(session["current_turn"]["messages"], json!([first["id"]]));
    assert_eq!(session["current_turn"]["said"][0]["text"], "hello");
    assert_eq!(session["current_turn"]["said"][0]["id"], first["id"]);
    assert_eq!(session["settings"]["mode"], json!({"value": "collect", "from": "default"}));
    assert_eq!(session["messages"].as_array().unwrap().len(), 2);
    gate.let_go(1);
    let text = gate.arrival().await["message"].as_str().unwrap().to_owned();
    assert_eq!(text, "[Queued messages while agent was busy]\n\n---\nQueued #1\none\n\n---\nQueued #2\ntwo");
    gate.let_go(1);
    server.until_numbers((0, 0)).await;
    let receipt =
        server.get(&format!("/api/sessions/ann/messages/{}", second["id"].as_str().unwrap())).await.json();
    assert_eq!(receipt["status"], "delivered");
}

#[tokio::test]
async fn direct_turns_have_their_message_in_the_session() {
    let gate = Gate::open().await;
    let server = serve(&format!("agent \"bot\" {{ url = \"{}\" }}", gate.url)).await;
    let body = json!({"message": "a poem", "session": "bob"});
    let asked = server.send_with("POST", "/api/agents/bot/chat", body, &[("prefer", "respond-async")]).await;
    gate.arrival().await;
    let turn = server.get("/api/sessions/bob").await.json()["current_turn"].clone();
    assert_eq!(turn["task_id"], asked.json()["execution"]["id"]);
    assert_eq!((&turn["said"][0]["text"], &turn["said"][0]["agent"]), (&json!("a poem"), &json!("bot")));
    // The turn takes no steering, so the message waits for the next turn.
    let said = server.post("/api/sessions/bob/steer", json!({"text": "in verse"})).await;
    assert_eq!((said.status, &said.json()["outcome"]), (202, &json!("queued")), "{}", said.json());
    gate.let_go(2);
    gate.arrival().await;
    server.until_numbers((0, 0)).await;
}

#[tokio::test]
async fn concurrent_changes_of_session_settings_are_all_kept() {
    let server = serve("").await;
    for round in 0..20 {
        let path = format!("/api/sessions/s{round}");
        let (mode, cap) = tokio::join!(
            server.send("PATCH", &path, json!({"mode": "followup"})),
            server.send("PATCH", &path, json!({"cap": 3})),
        );
        assert_eq!((mode.status, cap.status), (200, 200));
        let settings = server.get(&path).await.json()["settings"].clone();
        assert_eq!(settings["mode"], json!({"value": "followup", "from": "session"}), "round {round}");
        assert_eq!(settings["cap"], json!({"value": "3", "from": "session"}), "round {round}");
    }
}

#[tokio::test]
async fn a_rejecting_session_names_its_turn_and_a_waiting_message_can_be_withdrawn() {
    let gate = Gate::open().await;
    let server = serve(&format!("agent \"bot\" {{ url = \"{}\" }}", gate.url)).await;
    let say = |body: serde_json::Value| server.post("/api/sessions/ann/messages", body);
    let first = say(json!({"agent": "bot", "text": "hello"})).await.json();
    gate.arrival().await;
    let refused = say(json!({"agent": "bot", "text": "x", "mode": "reject"})).await;
    assert_eq!((refused.status, &refused.json()["code"]), (409, &json!("SESSION_BUSY")));
    assert_eq!(refused.json()["current_task_id"], first["task_id"]);
    let waiting = say(json!({"agent": "bot", "text": "wait"})).await.json();
    let path = format!("/api/sessions/ann/messages/{}", waiting["id"].as_str().unwrap());
    assert_eq!(server.send("DELETE", &path, json!(null)).await.status, 204);
    assert_eq!(server.get(&path).await.json()["status"], "cancelled");
    let set = server.send("PATCH", "/api/sessions/ann", json!({"mode": "followup", "cap": 3})).await.json();
    assert_eq!(set["settings"]["mode"], json!({"value": "followup", "from": "session"}));
    for bad in [json!({"mode": "loud"}), json!({"cap": 0}), json!({"drop": "maybe"})] {
        assert_eq!(server.send("PATCH", "/api/sessions/ann", bad.clone()).await.status, 400, "{bad}");
    }
    let directive = say(json!({"agent": "bot", "text": "/queue"})).await.json();
    assert_eq!(directive["outcome"], "directive");
    assert!(directive["reply"].as_str().unwrap().contains("followup"), "{directive}");
    assert_eq!(server.post("/api/sessions/ann/interrupt", json!(null)).await.status, 204);
    server.until_numbers((0, 0)).await;
    let stats = server.get("/api/sessions/ann/stats").await.json();
    assert_eq!(stats["lanes"]["query"]["handler_mode"], "internal");
}

#[tokio::test]
async fn a_repeated_message_gets_the_answer_of_the_first() {
    let gate = Gate::open().await;
    let server = serve(&format!("agent \"bot\" {{ url = \"{}\" }}", gate.url)).await;
    let say = |body: serde_json::Value| server.post("/api/sessions/ann/messages", body);
    let first = say(json!({"agent": "bot", "text": "hello", "message_id": "7"})).await.json();
    gate.arrival().await;
    let again = say(json!({"agent": "bot", "text": "hello", "message_id": "7"})).await.json();
    assert_eq!((&again["outcome"], &again["id"]), (&json!("duplicate"), &first["id"]));
    let id = first["id"].as_str().unwrap();
    let receipt = server.get(&format!("/api/sessions/ann/messages/{id}")).await.json();
    assert_eq!((&receipt["status"], &receipt["ended"]), (&json!("in_turn"), &json!(false)));
    assert_eq!(server.get(&format!("/api/sessions/bob/messages/{id}")).await.status, 404);
    let elsewhere = server.send("DELETE", &format!("/api/sessions/bob/messages/{id}"), json!(null)).await;
    assert_eq!(elsewhere.status, 404);
    gate.let_go(1);
    server.until_numbers((0, 0)).await;
    let receipt = server.get(&format!("/api/sessions/ann/messages/{id}")).await.json();
    assert_eq!((&receipt["status"], &receipt["ended"]), (&json!("delivered"), &json!(true)));
}

#[tokio::test]
async fn a_message_may_be_a_heartbeat_or_steer_one_turn() {
    let gate = Gate::open().await;
    let server = serve(&format!("agent \"bot\" {{ url = \"{}\" }}", gate.url)).await;
    let say = |body: serde_json::Value| server.post("/api/sessions/ann/messages", body);
    let first = say(json!({"agent": "bot", "text": "hello"})).await.json();
    gate.arrival().await;
    let beat = say(json!({"agent": "bot", "text": "still there?", "heartbeat": true})).await.json();
    assert_eq!((&beat["outcome"], &beat["typing"]), (&json!("dropped"), &json!(false)));
    let turn = &first["task_id"];
    let meant = |otherwise: &str| {
        say(json!({"agent": "bot", "text": "x", "turn_id": turn, "otherwise": otherwise, "max_wait_ms": 50}))
    };
    assert_eq!(meant("reject").await.status, 404);
    assert_eq!(meant("drop").await.json()["outcome"], "dropped");
    assert_eq!(meant("followup").await.json()["outcome"], "queued");
    assert_eq!(meant("perhaps").await.status, 400);
    let nothing_meant = say(json!({"agent": "bot", "text": "x", "otherwise": "drop"})).await;
    assert_eq!(nothing_meant.status, 400);
    gate.let_go(2);
    server.until_numbers((0, 0)).await;
}

#[tokio::test]
async fn a_repeated_directive_is_applied_once_and_answered_each_time() {
    let server = serve("agent \"bot\" { external = true }").await;
    let set = json!({"agent": "bot", "text": "/queue cap:7", "message_id": "d-1"});
    let first = server.post("/api/sessions/ann/messages", set.clone()).await.json();
    assert_eq!(first["outcome"], "directive");
    server.send("PATCH", "/api/sessions/ann", json!({"cap": 9})).await;
    let again = server.post("/api/sessions/ann/messages", set).await.json();
    assert_eq!((&again["outcome"], &again["id"]), (&json!("duplicate"), &first["id"]));
    assert_eq!((&again["reply"], &again["typing"]), (&first["reply"], &json!(false)));
    assert_eq!(server.get("/api/sessions/ann").await.json()["settings"]["cap"]["value"], "9");
}

#[tokio::test]
async fn a_parked_message_can_be_resent_or_deleted() {
    let server = serve("agent \"bot\" { external = true }").await;
    let body = json!({"agent": "bot", "text": "hello", "message_id": "m-1"});
    let claim = json!({"worker": "w", "lanes": ["agent:*"], "wait_ms": 60_000});
    let mut ids = Vec::new();
    for key in ["ann", "bob"] {
        let path = format!("/api/sessions/{key}/messages");
        let id = server.post(&path, body.clone()).await.json()["id"].as_str().unwrap().to_owned();
        for tries in 1..=7 {
            let task = server.post("/api/claim", claim.clone()).await.json()["tasks"][0].clone();
            let failed = json!({"fence": task["fence"], "success": false, "error": "no model"});
            let complete = format!("/api/tasks/{}/complete", task["id"].as_str().unwrap());
            assert_eq!(server.post(&complete, failed).await.status, 200);
            let hastened = server.post(&format!("{path}/{id}/send-now"), json!({})).await.status;
            assert_eq!(hastened, if tries < 7 { 204 } else { 404 });
        }
        assert_eq!(server.get(&format!("{path}/{id}")).await.json()["status"], "set_aside");
        let aside = server.get(&format!("/api/sessions/{key}")).await.json()["set_aside"][0].clone();
        assert_eq!((&aside["id"], &aside["text"]), (&json!(id), &json!("hello")));
        assert_eq!(aside["error"], "no model");
        ids.push(id);
    }
    let of = |key: &str, index: usize| format!("/api/sessions/{key}/messages/{}", ids[index]);
    assert_eq!(server.post(&format!("{}/resend", of("bob", 0)), json!({})).await.status, 404);
    let again = server.post(&format!("{}/resend", of("ann", 0)), json!({})).await;
    assert_eq!((again.status, &again.json()["outcome"]), (202, &json!("queued")), "it waits for a worker");
    let turn = server.post("/api/claim", claim).await.json()["tasks"][0].clone();
    assert_eq!((&turn["id"], &turn["payload"]["text"]), (&again.json()["task_id"], &json!("hello")));
    let same = server.post("/api/sessions/ann/messages", body).await.json();
    assert_eq!((&same["outcome"], &same["id"]), (&json!("duplicate"), &again.json()["id"]));
    assert_eq!(server.post(&format!("{}/resend", of("ann", 0)), json!({})).await.status, 404);
    assert_eq!(server.send("DELETE", &of("bob", 1), json!({})).await.status, 204);
    assert_eq!(server.get("/api/sessions/bob").await.status, 404);
    assert_eq!(server.get(&of("bob", 1)).await.json()["status"], "set_aside");
}

#[tokio::test]
async fn a_session_stream_has_typing_at_once_and_the_end_of_each_message() {
    let server = serve("messages {\nqueue { mode = \"latest\" }\n}\nagent \"bot\" { external = true }").await;
    let mut events = server.events("/api/sessions/ann/events").await;
    let say =
        |text: &'static str| server.post("/api/sessions/ann/messages", json!({"agent": "bot", "text": text}));
    let first = say("hello").await.json();
    let accepted = events.next_named("message").await.data;
    assert_eq!((&accepted["message_id"], &accepted["typing"]), (&first["id"], &json!(true)));
    let (second, third) = (say("one").await.json(), say("two").await.json());
    for id in [&second["id"], &third["id"]] {
        assert_eq!(events.next_named("message").await.data["message_id"], *id);
    }
    let dropped = events.next_named("message").await.data;
    assert_eq!((&dropped["message_id"], &dropped["outcome"]), (&second["id"], &json!("dropped")));
    assert_eq!(dropped["detail"], "latest");
    let claim = json!({"worker": "w", "lanes": ["agent:*"], "wait_ms": 60_000});
    let fence = server.post("/api/claim", claim).await.json()["tasks"][0]["fence"].clone();
    let done = json!({"fence": fence, "success": true});
    let turn = first["task_id"].as_str().unwrap();
    assert_eq!(server.post(&format!("/api/tasks/{turn}/complete"), done).await.status, 200);
    let delivered = events.next_named("message").await.data;
    assert_eq!((&delivered["outcome"], &delivered["task_id"]), (&json!("delivered"), &json!(turn)));
}

#[tokio::test]
async fn an_agent_without_further_lanes_needs_none_for_messages() {
    let gate = Gate::open().await;
    let server = serve(&format!("agent \"coder\" {{\nurl = \"{}\"\nlanes = []\n}}", gate.url)).await;
    let sent = server.post("/api/sessions/s/messages", json!({"agent": "coder", "text": "1"})).await.json();
    gate.arrival().await;
    let turn = server.get(&format!("/api/tasks/{}", sent["task_id"].as_str().unwrap())).await.json();
    assert_eq!(turn["lanes"], json!(["agent:coder", "session:s"]));
    gate.let_go(1);
}

#[tokio::test]
async fn directives_need_the_permission_queue_when_permissions_are_given() {
    let gate = Gate::open().await;
    let server = serve(&format!("agent \"bot\" {{ url = \"{}\" }}", gate.url)).await;
    let say = async |fields: serde_json::Value| {
        let mut body = json!({"agent": "bot", "text": "/stop", "mode": "followup"});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        server.post("/api/sessions/ann/messages", body).await.json()["outcome"].clone()
    };
    assert_eq!(say(json!({"text": "write a poem"})).await, "started");
    gate.arrival().await;
    // The server has no tokens. The gateway says that this sender may do nothing.
    assert_eq!(say(json!({"permissions": []})).await, "queued");
    assert_eq!(say(json!({"permissions": ["read"]})).await, "queued");
    assert_eq!(server.numbers().await.0, 1);
    assert_eq!(say(json!({"permissions": ["queue"]})).await, "directive");
    server.until_numbers((0, 0)).await;
    assert_eq!(say(json!({})).await, "directive");
}

#[tokio::test]
async fn a_waiting_message_is_promoted_and_a_pending_one_withdrawn() {
    let server = serve("agent \"bot\" { external = true }").await;
    let say = async |text: &str| {
        let body = json!({"agent": "bot", "text": text, "mode": "followup"});
        server.post("/api/sessions/ann/messages", body).await.json()["id"].as_str().unwrap().to_owned()
    };
    say("first").await;
    let claim = json!({"worker": "w", "lanes": ["agent:*"], "wait_ms": 60_000});
    let claimed = server.post("/api/claim", claim).await.json()["tasks"][0].clone();
    let (one, two) = (say("one").await, say("two").await);
    let message = |id: &str, end: &str| format!("/api/sessions/ann/messages/{id}{end}");
    let refused = server.post(&message(&one, "/promote"), json!(null)).await;
    assert!(
        refused.status == 400 && refused.text.contains("no running turn takes this message"),
        "{refused:?}"
    );
    let beat = async || {
        let body = json!({"fence": claimed["fence"], "takes_steering": true, "steered": []});
        let path = format!("/api/tasks/{}/heartbeat", claimed["id"].as_str().unwrap());
        server.post(&path, body).await.json()["steer"].clone()
    };
    assert_eq!(beat().await, json!([]));
    for id in [&one, &two] {
        let promoted = server.post(&message(id, "/promote"), json!(null)).await;
        assert_eq!((promoted.status, &promoted.json()["outcome"]), (202, &json!("steered")));
    }
    assert_eq!(beat().await, json!(["one", "two"]));
    assert_eq!(server.send("DELETE", &message(&one, ""), json!(null)).await.status, 204);
    assert_eq!(beat().await, json!(["two"]));
    assert_eq!(server.get(&message(&one, "")).await.json()["status"], "cancelled");
}

#[tokio::test]
async fn the_stats_of_a_session_count_its_own_calls() {
    let handlers =
        "queue {}\nhandler \"read\" { command = [\"true\"] }\nhandler \"bash\" { command = [\"false\"] }";
    let server = serve(handlers).await;
    let of_alpha = json!([{"tool": "read"}, {"tool": "read"}, {"tool": "bash"}]);
    for (session, calls) in [("alpha", of_alpha), ("beta", json!([{"tool": "read"}]))] {
        server.post("/api/tasks/batch", json!({"session": session, "calls": calls})).await;
    }
    for (session, completed, failed) in [("alpha", 2, 1), ("beta", 1, 0), ("gamma", 0, 0)] {
        let lanes = server.get(&format!("/api/sessions/{session}/stats")).await.json()["lanes"].clone();
        let counts = (&lanes["query"]["completed"], &lanes["execute"]["failed"]);
        assert_eq!(counts, (&json!(completed), &json!(failed)), "{session}: {lanes}");
    }
}

#[tokio::test]
async fn a_message_whose_turn_waits_is_queued() {
    let server = serve("agent \"coder\" { echo = true }").await;
    server.post("/api/lanes/agent:coder/pause", json!(null)).await;
    let send = |session: &'static str| {
        let message = json!({"agent": "coder", "text": "hello"});
        let path = format!("/api/sessions/{session}/messages");
        let server = &server;
        async move { server.post(&path, message).await.json() }
    };
    let (first, second) = (send("a").await, send("b").await);
    for (sent, position) in [(first, 1), (second, 2)] {
        assert_eq!((&sent["outcome"], &sent["position"]), (&json!("queued"), &json!(position)));
        assert!(sent["task_id"].is_string(), "{sent}");
    }
    server.post("/api/lanes/agent:coder/resume", json!(null)).await;
    server.until_numbers((0, 0)).await;
    assert_eq!(send("a").await["outcome"], "started");
}

#[tokio::test]
async fn messages_are_redelivered_when_the_worker_of_their_turn_falls_silent() {
    let server = serve("agent \"coder\" { external = true }").await;
    server.post("/api/sessions/s/messages", json!({"agent": "coder", "text": "hello"})).await;
    let claim = json!({"worker": "w", "lanes": ["agent:coder"], "wait_ms": 60_000, "lease_ms": 50});
    for (attempt, redelivered) in [(1, false), (2, true)] {
        let task = server.post("/api/claim", claim.clone()).await.json()["tasks"][0].clone();
        let payload = &task["payload"];
        let of_message = payload["messages"][0]["redelivered"] == json!(true);
        assert_eq!(
            (&task["attempt"], payload["redelivered"] == json!(true), of_message),
            (&json!(attempt), redelivered, redelivered),
            "{task}"
        );
    }
}
