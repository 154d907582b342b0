//! Only the owner of a task may name it as parent, end it, or report on it.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::common::{Answer, Gate, PATIENCE, Running, serve, serve_in};

const CODER: &str = "agent \"coder\" {\nurl = \"URL\"\nmax_concurrency = 1\nmax_queued = 9\n}";

/// A server with an agent behind a gate, and a token for each name and its scopes.
async fn with_tokens(gate: &Gate, whose: &[(&str, Value)]) -> (Running, tempfile::TempDir, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let config = CODER.replace("URL", &gate.url);
    let mut server = serve_in(&config, None, Some(dir.path().to_owned())).await;
    let mut tokens = Vec::new();
    for (subject, scopes) in whose {
        let created = server.post("/api/tokens", json!({"subject": subject, "scopes": scopes})).await;
        assert_eq!(created.status, 201, "{created:?}");
        tokens.push(created.json()["token"].as_str().unwrap().to_owned());
        server.token = Some(tokens[0].clone());
    }
    (server, dir, tokens)
}

impl Running {
    async fn post_as(&mut self, token: &str, path: &str, body: Value) -> Answer {
        self.post_with(token, path, body, &[]).await
    }

    async fn post_with(&mut self, token: &str, path: &str, body: Value, headers: &[(&str, &str)]) -> Answer {
        self.token = Some(token.to_owned());
        self.send_with("POST", path, body, headers).await
    }
}

const ASYNC: (&str, &str) = ("prefer", "respond-async");

#[tokio::test]
async fn a_task_for_an_agent_always_runs_in_the_agents_lane() {
    let gate = Gate::open().await;
    let server = serve(&CODER.replace("URL", &gate.url)).await;
    for lane in ["one", "two", "three"] {
        let task =
            json!({"kind": "agent:coder", "payload": {"agent": "coder", "message": lane}, "lanes": [lane]});
        assert_eq!(server.post("/api/tasks", task).await.status, 202);
    }
    gate.arrival().await;
    assert_eq!(server.numbers().await, (1, 2), "one at a time");
    let batch = json!({"session": "s", "calls": [{"tool": "agent:coder", "payload": {}}]});
    let refused = server.post("/api/tasks/batch", batch).await;
    assert_eq!((refused.status, &refused.json()["code"]), (400, &json!("INVALID")));
    gate.let_go(3);
    server.until_numbers((0, 0)).await;
}

#[tokio::test]
async fn only_a_task_its_owner_and_its_agent_may_name_it_as_parent() {
    let gate = Gate::open().await;
    let submit = json!(["submit", "read"]);
    let whose = [
        ("root", json!(["admin"])),
        ("ann", submit.clone()),
        ("bob", submit.clone()),
        ("agent:coder", submit.clone()),
        ("agent:other", submit),
    ];
    let (mut server, _dir, tokens) = with_tokens(&gate, &whose).await;
    let asked =
        server.post_with(&tokens[1], "/api/agents/coder/chat", json!({"message": "1"}), &[ASYNC]).await;
    let run = asked.json()["execution"]["id"].as_str().unwrap().to_owned();
    gate.arrival().await;
    let parent = ("x-laneway-parent", run.as_str());
    for (token, status) in tokens.iter().zip([202, 202, 403, 202, 403]) {
        let by_header = server.post_with(token, "/api/tasks", json!({"kind": "index"}), &[parent]).await;
        assert_eq!(by_header.status, status, "{by_header:?}");
        let by_body = server.post_as(token, "/api/tasks", json!({"kind": "index", "parent": run})).await;
        assert_eq!(by_body.status, status, "{by_body:?}");
    }
    let child = json!({"message": "child", "session": "other"});
    let refused = server.post_with(&tokens[2], "/api/agents/coder/chat", child, &[parent]).await;
    assert_eq!((refused.status, &refused.json()["code"]), (403, &json!("FORBIDDEN")));
    gate.let_go(1);
}

#[tokio::test]
async fn a_worker_may_name_a_task_that_is_claimed_as_parent() {
    let gate = Gate::open().await;
    let submit = json!(["submit", "read"]);
    let whose = [
        ("root", json!(["admin"])),
        ("ann", submit.clone()),
        ("bob", submit),
        ("w", json!(["submit", "worker"])),
    ];
    let (mut server, _dir, tokens) = with_tokens(&gate, &whose).await;
    let task = json!({"kind": "work", "lanes": ["external"]});
    let task = server.post_as(&tokens[1], "/api/tasks", task).await.json()["id"].as_str().unwrap().to_owned();
    let parent = ("x-laneway-parent", task.as_str());
    let slot = json!({"lanes": ["main"]});
    let early = server.post_with(&tokens[3], "/api/slots", slot.clone(), &[parent]).await;
    assert_eq!(early.status, 403, "not claimed: {early:?}");
    let claim = json!({"worker": "w", "lanes": ["external"]});
    assert_eq!(server.post_as(&tokens[3], "/api/claim", claim).await.json()["tasks"][0]["id"], json!(task));
    for (token, status) in [(2, 403), (3, 200)] {
        let answer = server.post_with(&tokens[token], "/api/slots", slot.clone(), &[parent]).await;
        assert_eq!(answer.status, status, "{answer:?}");
    }
    let batch = json!({"session": "s", "calls": [{"tool": "read"}]});
    let refused = server.post_with(&tokens[2], "/api/tasks/batch", batch, &[parent]).await;
    assert_eq!(refused.status, 403, "{refused:?}");
}

#[tokio::test]
async fn other_users_cannot_stop_a_turn_and_the_audit_log_names_the_actor() {
    let gate = Gate::open().await;
    let submit = json!(["submit", "read"]);
    let whose = [("root", json!(["admin"])), ("ann", submit.clone()), ("bob", submit)];
    let (mut server, _dir, tokens) = with_tokens(&gate, &whose).await;
    let chat = json!({"message": "1", "session": "anns"});
    server.post_with(&tokens[1], "/api/agents/coder/chat", chat, &[ASYNC]).await;
    gate.arrival().await;
    let interrupt = "/api/sessions/anns/interrupt";
    assert_eq!(server.post_as(&tokens[2], interrupt, json!({})).await.status, 403);
    let steer = json!({"text": "no"});
    assert_eq!(server.post_as(&tokens[2], "/api/sessions/anns/steer", steer).await.status, 403);
    assert_eq!(server.numbers().await, (1, 0));
    assert_eq!(server.post_as(&tokens[1], interrupt, json!({})).await.status, 204);
    server.until_numbers((0, 0)).await;

    let message = json!({"agent": "coder", "text": "2"});
    let sent = server.post_as(&tokens[1], "/api/sessions/anns/messages", message).await.json();
    gate.arrival().await;
    let turn = format!("/api/tasks/{}", sent["task_id"].as_str().unwrap());
    let cancelled = server.send("DELETE", &turn, json!(null)).await;
    assert_eq!(cancelled.json()["status"], "cancelling", "{cancelled:?}");
    server.token = Some(tokens[0].clone());
    let changed = server.send("PATCH", "/api/sessions/anns", json!({"mode": "collect"})).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    let entries = server.get("/api/audit").await.json();
    let entries = entries["items"].as_array().unwrap();
    let deeds: Vec<(&str, &str)> = entries
        .iter()
        .filter(|entry| entry["event_type"] == "session")
        .map(|entry| (entry["actor"].as_str().unwrap(), entry["action"].as_str().unwrap()))
        .collect();
    assert_eq!(deeds, [("root", "change"), ("ann", "interrupt")]);
}

#[tokio::test]
async fn a_worker_reports_only_attempts_of_workers() {
    let gate = Gate::open().await;
    let whose = [("root", json!(["admin"])), ("w", json!(["worker"]))];
    let (mut server, _dir, tokens) = with_tokens(&gate, &whose).await;
    let asked =
        server.post_with(&tokens[0], "/api/agents/coder/chat", json!({"message": "1"}), &[ASYNC]).await;
    let run = asked.json()["execution"]["id"].as_str().unwrap().to_owned();
    gate.arrival().await;
    for fence in 0..20 {
        for (verb, body) in [
            ("complete", json!({"fence": fence, "success": true, "result": "forged"})),
            ("complete", json!({"fence": fence, "success": false, "error": "forged"})),
            ("heartbeat", json!({"fence": fence})),
        ] {
            let answer = server.post_as(&tokens[1], &format!("/api/tasks/{run}/{verb}"), body).await;
            assert_eq!(answer.json()["code"], "STALE_LEASE", "{verb} {fence}");
        }
    }
    gate.let_go(1);
    server.token = Some(tokens[0].clone());
    server.until_numbers((0, 0)).await;
    assert_eq!(server.get(&format!("/api/tasks/{run}")).await.json()["result"], "answer to 1");
}

#[tokio::test]
async fn only_pages_of_a_configured_origin_may_call_the_server() {
    let server = serve("server { origins = [\"https://chat.example\"] }").await;
    let ask = |origin: &str| {
        let request = server.request("OPTIONS", "/api/tasks");
        let request = request.header("origin", origin).header("access-control-request-method", "POST");
        request.header("access-control-request-headers", "authorization,content-type")
    };
    let may = crate::common::answer(ask("https://chat.example")).await;
    assert_eq!(may.status, 204, "{may:?}");
    for (header, value) in [
        ("access-control-allow-origin", "https://chat.example"),
        ("access-control-allow-methods", "POST"),
        ("access-control-allow-headers", "authorization,content-type"),
    ] {
        assert_eq!(may.header(header), value);
    }
    let may_not = crate::common::answer(ask("https://evil.example")).await;
    assert_eq!((may_not.status, may_not.header("access-control-allow-origin")), (403, ""));
    for (path, status) in [("/api/status", 200), ("/api/nothing", 404)] {
        let origin = [("origin", "https://chat.example")];
        let read = server.send_with("GET", path, json!(null), &origin).await;
        assert_eq!(read.status, status);
        assert_eq!(read.header("access-control-allow-origin"), "https://chat.example");
        assert_eq!(read.header("vary"), "origin");
    }
    assert_eq!(server.get("/api/status").await.header("access-control-allow-origin"), "");
}

#[tokio::test]
async fn a_socket_without_the_scope_read_hears_only_its_own_runs() {
    let gate = Gate::open().await;
    let whose = [("root", json!(["admin"])), ("ann", json!(["submit"])), ("bob", json!(["submit", "read"]))];
    let (mut server, _dir, tokens) = with_tokens(&gate, &whose).await;
    let address = server.address;
    let open = async |token: &str| {
        let url = format!("ws://{address}/api/ws?access_token={token}");
        tokio_tungstenite::connect_async(url).await.unwrap().0
    };
    let (mut ann, mut bob) = (open(&tokens[1]).await, open(&tokens[2]).await);
    let path = "/api/agents/coder/chat";
    let other = server.post_with(&tokens[0], path, json!({"message": "secret"}), &[ASYNC]).await.json();
    gate.arrival().await;
    let data = json!({"agent": "coder", "message": "mine"});
    let submit = json!({"event": "submit", "data": data, "id": "own"}).to_string();
    ann.send(Message::text(submit)).await.unwrap();
    gate.let_go(2);
    loop {
        let frame = tokio::time::timeout(PATIENCE, ann.next()).await.expect("no frame came").unwrap();
        let frame: Value = serde_json::from_str(frame.unwrap().to_text().unwrap()).unwrap();
        assert_eq!(frame["data"]["request_id"], "own", "{frame}");
        if frame["event"] == "done" {
            break;
        }
    }
    let first = tokio::time::timeout(PATIENCE, bob.next()).await.expect("no frame came").unwrap();
    let first: Value = serde_json::from_str(first.unwrap().to_text().unwrap()).unwrap();
    assert_eq!((&first["event"], &first["data"]["task_id"]), (&json!("accepted"), &other["execution"]["id"]));
}
