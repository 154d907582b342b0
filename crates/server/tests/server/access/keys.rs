//! Idempotency keys.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::common::{Gate, serve};

#[tokio::test]
async fn the_same_key_runs_once_and_the_answer_is_replayed() {
    let gate = Gate::open().await;
    let config = format!("agent \"coder\" {{\n url = \"{}\"\n max_queued = 0\n lanes = []\n}}", gate.url);
    let server = serve(&config).await;
    let key = [("idempotency-key", "k1")];
    let ask = |message: &'static str| {
        server.send_with("POST", "/api/agents/coder/chat", json!({"message": message}), &key)
    };
    let both = async { futures_util::future::join(ask("hi"), ask("hi")).await };
    let open = async {
        gate.arrival().await;
        // The second caller has joined when two callers wait for the task.
        gate.let_go(1);
    };
    let ((first, second), ()) = futures_util::future::join(both, open).await;
    assert_eq!((first.status, second.status), (200, 200), "{first:?} {second:?}");
    assert_eq!(first.json()["execution"]["id"], second.json()["execution"]["id"]);
    let later = ask("hi").await;
    assert_eq!(later.json()["response"], "answer to hi");
    assert_eq!(later.header("idempotency-replayed"), "true");
    let other = ask("something else").await;
    assert_eq!((other.status, &other.json()["code"]), (422, &json!("IDEMPOTENCY_CONFLICT")));
    let lane = server.get("/api/lanes/agent%3Acoder").await.json();
    assert_eq!(lane["counters"]["started"], 1);
}

#[tokio::test]
async fn a_refusal_frees_the_key() {
    let gate = Gate::open().await;
    let config = format!("agent \"coder\" {{\n url = \"{}\"\n max_queued = 0\n lanes = []\n}}", gate.url);
    let server = serve(&config).await;
    let holder = json!({"message": "holds", "session": "a"});
    let held =
        server.send_with("POST", "/api/agents/coder/chat", holder, &[("prefer", "respond-async")]).await;
    assert_eq!(held.status, 202);
    gate.arrival().await;
    let key = [("idempotency-key", "k"), ("prefer", "respond-async")];
    let ask =
        || server.send_with("POST", "/api/agents/coder/chat", json!({"message": "b", "session": "b"}), &key);
    assert_eq!(ask().await.status, 429);
    gate.let_go(1);
    server.until_numbers((0, 0)).await;
    assert_eq!(ask().await.status, 202);
    gate.let_go(1);
    server.until_numbers((0, 0)).await;
}

#[tokio::test]
async fn tasks_have_keys_and_routes_do_not_share_them() {
    let server = serve("").await;
    let task = json!({"kind": "index", "payload": {"n": 1}});
    let key = [("idempotency-key", "same")];
    let first = server.send_with("POST", "/api/tasks", task.clone(), &key).await;
    let second = server.send_with("POST", "/api/tasks", task, &key).await;
    assert_eq!((first.status, second.status), (202, 202));
    assert_eq!(first.json()["id"], second.json()["id"]);
    assert_eq!(second.json()["replayed"], true);
    assert_eq!((first.header("idempotency-replayed"), second.header("idempotency-replayed")), ("", "true"));
    let chat = server.send_with("POST", "/api/agents/echo/chat", json!({"message": "x"}), &key).await;
    assert_eq!(chat.json()["response"], "x");
}

#[tokio::test]
async fn a_replay_has_the_outcome_and_a_socket_marks_it_as_a_replay() {
    let server = serve("").await;
    let (path, body) = ("/api/agents/echo/chat", json!({"message": "x"}));
    let key = [("idempotency-key", "same"), ("prefer", "respond-async")];
    let first = server.send_with("POST", path, body.clone(), &key).await.json();
    server.until_numbers((0, 0)).await;
    let again = server.send_with("POST", path, body, &key).await.json();
    assert_eq!(again["execution"]["id"], first["execution"]["id"]);
    assert_eq!(again["execution"]["status"], "completed");

    let url = format!("ws://{}/api/ws", server.address);
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
    let data = json!({"agent": "echo", "message": "x", "idempotency_key": "same"});
    let submit = json!({"event": "submit", "data": data, "id": "again"}).to_string();
    socket.send(Message::text(submit)).await.unwrap();
    loop {
        let frame: Value =
            serde_json::from_str(socket.next().await.unwrap().unwrap().to_text().unwrap()).unwrap();
        let data = &frame["data"];
        assert_eq!((&data["request_id"], &data["replayed"]), (&json!("again"), &json!(true)), "{frame}");
        assert_eq!(data["task_id"], first["execution"]["id"]);
        if frame["event"] == "done" {
            break;
        }
    }
}

#[tokio::test]
async fn the_replay_of_a_failure_is_a_failure() {
    let server = serve("agent \"no\" { command = [\"false\"] }").await;
    for (accept, status) in [("application/json", 502), ("text/event-stream", 200)] {
        let headers = [("idempotency-key", accept), ("accept", accept)];
        for replayed in ["", "true"] {
            let body = json!({"message": "x"});
            let answer = server.send_with("POST", "/api/agents/no/chat", body, &headers).await;
            assert_eq!((answer.status, answer.header("idempotency-replayed")), (status, replayed));
            assert!(!answer.header("x-laneway-task-id").is_empty(), "{answer:?}");
        }
    }
    let lane = server.get("/api/lanes/agent%3Ano").await.json();
    assert_eq!(lane["counters"]["started"], 2);
}

#[tokio::test]
async fn a_batch_with_a_key_is_refused_before_a_tool_runs() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ran");
    let server =
        serve(&format!("handler \"bash\" {{ command = [\"touch\", \"{}\"] }}", file.display())).await;
    let body = json!({"session": "s", "calls": [{"tool": "bash"}]});
    let keyed = [("idempotency-key", "k")];
    let refused = server.send_with("POST", "/api/tasks/batch", body.clone(), &keyed).await;
    assert_eq!((refused.status, &refused.json()["code"]), (400, &json!("INVALID")));
    assert!(refused.json()["detail"].as_str().unwrap().contains("Idempotency-Key"), "{refused:?}");
    assert!(!file.exists());
    assert_eq!(server.post("/api/tasks/batch", body).await.status, 200);
    assert!(file.exists());
}
