//! Tasks and callers when the server stops.

use std::path::Path;
use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use laneway_store_sqlite::SqliteStore;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::common::{Events, Gate, Running, answer, serve_in};

/// A server with its store in a directory.
async fn serve_on(dir: &Path, config: &str) -> Running {
    let store = Arc::new(SqliteStore::open(dir.join("store")).unwrap());
    serve_in(config, Some(store), Some(dir.to_owned())).await
}

#[tokio::test]
async fn a_shutdown_makes_running_tasks_lost_or_retried_and_never_failed() {
    let dir = tempfile::tempdir().unwrap();
    let gate = Gate::open().await;
    let begun = dir.path().join("begun");
    let twice = format!("test -e {0} && echo again && exit; touch {0}; exec sleep 60", begun.display());
    let config = format!(
        "server {{ drain_grace = \"0s\" }}
        agent \"text\" {{
        command = [\"sleep\", \"60\"]
        lanes = []
        }}
        agent \"jsonl\" {{
        command = [\"sleep\", \"60\"]
        protocol = \"jsonl\"
        lanes = []
        }}
        agent \"url\" {{
        url = \"{}\"
        lanes = []
        }}
        handler \"twice\" {{ command = [\"sh\", \"-c\", \"{twice}\"] }}",
        gate.url
    );
    let mut server = serve_on(dir.path(), &config).await;
    let mut once = Vec::new();
    for agent in ["text", "jsonl", "url"] {
        let (path, asking) = (format!("/api/agents/{agent}/chat"), [("prefer", "respond-async")]);
        let accepted = server.send_with("POST", &path, json!({"message": "x"}), &asking).await.json();
        once.push(accepted["execution"]["id"].as_str().unwrap().to_owned());
    }
    let retry = json!({"strategy": "fixed", "max_retries": 1, "fixed_delay_ms": 1});
    let body = json!({"kind": "twice", "lanes": ["main"], "retry": retry});
    let again = server.post("/api/tasks", body).await.json()["id"].as_str().unwrap().to_owned();
    gate.arrival().await;
    server.until_numbers((4, 0)).await;
    while !begun.exists() {
        tokio::task::yield_now().await;
    }
    server.stop();
    server.stopped().await;
    drop(server);

    let server = serve_on(dir.path(), &config).await;
    for id in once {
        let task = server.get(&format!("/api/tasks/{id}")).await.json();
        assert_eq!(task["status"], "lost", "{task}");
    }
    server.until_numbers((0, 0)).await;
    let task = server.get(&format!("/api/tasks/{again}")).await.json();
    assert_eq!((&task["status"], &task["result"]), (&json!("completed"), &json!("again\n")), "{task}");
}

#[tokio::test]
async fn a_waiting_caller_learns_at_a_shutdown_that_its_task_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let gate = Gate::open().await;
    let config = format!("agent \"coder\" {{\n url = \"{}\"\n lanes = []\n}}", gate.url);
    let mut server = serve_on(dir.path(), &config).await;
    let path = "/api/agents/coder/chat";
    let ask = |session: &str| json!({"message": session, "session": session});
    server.send_with("POST", path, ask("runs"), &[("prefer", "respond-async")]).await;
    gate.arrival().await;
    let request = server.request("POST", path).header("content-type", "application/json");
    let waits = tokio::spawn(answer(request.body(ask("waits").to_string())));
    let mut watches = Events::chat(&server, path, ask("watches"), &[]).await;
    server.until_numbers((1, 2)).await;
    server.stop();
    while server.get("/readyz").await.status != 503 {
        tokio::task::yield_now().await;
    }
    gate.let_go(1);
    let refused = waits.await.unwrap();
    let problem = refused.json();
    let waiting = problem["task_id"].as_str().unwrap().to_owned();
    assert_eq!((refused.status, &problem["code"]), (503, &json!("DRAINING")));
    assert_eq!((&problem["taskId"], refused.header("x-laneway-task-id")), (&json!(waiting), &*waiting));
    assert_eq!((&problem["retryable"], refused.header("x-should-retry")), (&json!(false), "false"));
    assert_eq!(refused.header("retry-after"), "");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("is kept") && detail.contains(&format!("/api/tasks/{waiting}")), "{detail}");
    let told = watches.next_named("error").await.data;
    assert_eq!((&told["code"], &told["retryable"]), (&json!("DRAINING"), &json!(false)));
    let watched = told["task_id"].as_str().unwrap().to_owned();
    assert!(watches.next().await.is_none(), "it was the last word");
    server.stopped().await;
    drop(server);

    let server = serve_on(dir.path(), &config).await;
    gate.let_go(2);
    server.until_numbers((0, 0)).await;
    for (id, word) in [(waiting, "answer to waits"), (watched, "answer to watches")] {
        assert_eq!(server.get(&format!("/api/tasks/{id}")).await.json()["result"], word);
    }
}

#[tokio::test]
async fn a_server_without_a_durable_store_does_not_promise_to_keep_tasks() {
    let gate = Gate::open().await;
    let config = format!("agent \"coder\" {{\n url = \"{}\"\n lanes = []\n}}", gate.url);
    let mut server = crate::common::serve(&config).await;
    let path = "/api/agents/coder/chat";
    server
        .send_with("POST", path, json!({"message": "a", "session": "a"}), &[("prefer", "respond-async")])
        .await;
    gate.arrival().await;
    let request = server.request("POST", path).header("content-type", "application/json");
    let waits = tokio::spawn(answer(request.body(json!({"message": "b", "session": "b"}).to_string())));
    server.until_numbers((1, 1)).await;
    server.stop();
    gate.let_go(1);
    let refused = waits.await.unwrap();
    assert_eq!((refused.status, &refused.json()["retryable"]), (503, &json!(true)), "{refused:?}");
    assert!(!refused.text.contains("is kept"), "{refused:?}");
    server.stopped().await;
}

#[tokio::test]
async fn without_a_durable_store_a_worker_may_end_its_run_within_the_grace() {
    let mut server = crate::common::serve("agent \"builder\" { external = true }").await;
    let request =
        server.request("POST", "/api/agents/builder/chat").header("content-type", "application/json");
    let caller = tokio::spawn(answer(request.body(json!({"message": "build"}).to_string())));
    let claim = json!({"worker": "w1", "lanes": ["agent:*"], "wait_ms": 60_000});
    let turn = server.post("/api/claim", claim).await.json()["tasks"][0].clone();
    server.stop();
    while server.get("/readyz").await.status != 503 {
        tokio::task::yield_now().await;
    }
    let task = format!("/api/tasks/{}", turn["id"].as_str().unwrap());
    let beat = server.post(&format!("{task}/heartbeat"), json!({"fence": turn["fence"]})).await;
    assert_eq!(beat.status, 200, "{beat:?}");
    let done = json!({"fence": turn["fence"], "success": true, "result": "built"});
    assert_eq!(server.post(&format!("{task}/complete"), done).await.status, 200);
    let answer = caller.await.unwrap();
    assert_eq!((answer.status, &answer.json()["response"]), (200, &json!("built")), "{answer:?}");
    server.stopped().await;
}

/// 24 drains, each with one run that ends within the grace, and a caller over each transport.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_durable_store_every_caller_gets_the_answer_of_a_run_that_ends_within_the_grace() {
    let path = "/api/agents/coder/chat";
    for round in 0..24 {
        let gate = Gate::open().await;
        let program = "read line; cat $0; echo answer to $line";
        let fifo = tempfile::tempdir().unwrap();
        let door = fifo.path().join("door");
        assert!(std::process::Command::new("mkfifo").arg(&door).status().unwrap().success());
        let agent = match round % 2 {
            0 => format!("url = \"{}\"", gate.url),
            _ => format!("command = [\"sh\", \"-c\", \"{program}\", \"{}\"]", door.display()),
        };
        let mut server = crate::common::serve(&format!("agent \"coder\" {{\n{agent}\nlanes = []\n}}")).await;
        let ask = json!({"message": "it\n"});
        let request = server.request("POST", path).header("content-type", "application/json");
        let waits = (round % 3 == 0).then(|| tokio::spawn(answer(request.body(ask.to_string()))));
        let watches = match round % 3 {
            1 => Some(Events::chat(&server, path, ask.clone(), &[]).await),
            _ => None,
        };
        let url = format!("ws://{}/api/ws", server.address);
        let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
        if round % 3 == 2 {
            let submit = json!({"event": "submit", "data": {"agent": "coder", "message": "it\n"}});
            socket.send(Message::text(submit.to_string())).await.unwrap();
        }
        server.until_numbers((1, 0)).await;
        server.stop();
        while server.get("/readyz").await.status != 503 {
            tokio::task::yield_now().await;
        }
        match round % 2 {
            0 => gate.let_go(1),
            _ => tokio::fs::write(&door, "").await.unwrap(),
        }
        let result = match (waits, watches) {
            (Some(waits), _) => {
                let answer = waits.await.unwrap();
                assert_eq!(answer.status, 200, "round {round}: {answer:?}");
                answer.json()["response"].clone()
            }
            (None, Some(mut watches)) => watches.next_named("completed").await.data["result"].clone(),
            (None, None) => loop {
                let message = socket.next().await.unwrap().unwrap();
                let frame: Value = serde_json::from_str(message.to_text().unwrap()).unwrap();
                assert_ne!(frame["event"], "error", "round {round}: {frame}");
                if frame["event"] == "completed" {
                    break frame["data"]["result"].clone();
                }
            },
        };
        let said = result.as_str().unwrap_or_default().trim().to_owned();
        assert_eq!(said, "answer to it", "round {round}: {result}");
        server.stopped().await;
    }
}

#[tokio::test]
async fn a_waiting_slot_hears_at_once_that_a_server_without_a_durable_store_stops() {
    let gate = Gate::open().await;
    let config = format!(
        "server {{ drain_grace = \"10m\" }}\nlane \"one\" {{ max_concurrency = 1 }}\nagent \"coder\" {{ url = \"{}\" }}",
        gate.url
    );
    let mut server = crate::common::serve(&config).await;
    let path = "/api/agents/coder/chat";
    server.send_with("POST", path, json!({"message": "runs"}), &[("prefer", "respond-async")]).await;
    gate.arrival().await;
    assert_eq!(server.post("/api/slots", json!({"lanes": ["one"]})).await.status, 200);
    let request = server.request("POST", "/api/slots").header("content-type", "application/json");
    let waits = tokio::spawn(answer(request.body(json!({"lanes": ["one"]}).to_string())));
    server.until_numbers((2, 1)).await;
    server.stop();
    // The run holds up the end of the drain, and the slot does not wait for that.
    let refused = waits.await.unwrap();
    assert_eq!((refused.status, &refused.json()["code"]), (503, &json!("DRAINING")), "{refused:?}");
    assert_eq!(
        (refused.json()["retryable"].as_bool(), server.get("/healthz").await.status),
        (Some(true), 200)
    );
    gate.let_go(1);
    server.stopped().await;
}

#[tokio::test]
async fn a_waiting_socket_and_a_waiting_batch_learn_of_a_shutdown() {
    let dir = tempfile::tempdir().unwrap();
    let gate = Gate::open().await;
    let config = format!(
        "agent \"coder\" {{\n url = \"{}\"\n lanes = []\n}}
        handler \"tool\" {{ command = [\"echo\", \"done\"] }}
        queue {{ execute_max_concurrency = 1 }}",
        gate.url
    );
    let mut server = serve_on(dir.path(), &config).await;
    let path = "/api/agents/coder/chat";
    let asking = [("prefer", "respond-async")];
    server.send_with("POST", path, json!({"message": "runs", "session": "a"}), &asking).await;
    gate.arrival().await;
    let url = format!("ws://{}/api/ws", server.address);
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
    let submit = json!({"event": "submit", "data": {"agent": "coder", "message": "waits", "session": "b"}});
    socket.send(Message::text(submit.to_string())).await.unwrap();
    server.until_numbers((1, 1)).await;
    assert_eq!(server.post("/api/lanes/session:s%2Fexecute/pause", json!({})).await.status, 200);
    let calls = json!({"session": "s", "calls": [{"tool": "tool", "payload": {}}]});
    let request = server.request("POST", "/api/tasks/batch").header("content-type", "application/json");
    let batch = tokio::spawn(answer(request.body(calls.to_string())));
    server.until_numbers((1, 2)).await;
    server.stop();
    while server.get("/readyz").await.status != 503 {
        tokio::task::yield_now().await;
    }
    gate.let_go(1);
    let called = batch.await.unwrap().json()["results"][0]["error"].clone();
    assert_eq!((&called["code"], &called["retryable"]), (&json!("DRAINING"), &json!(false)), "{called}");
    assert!(called["detail"].as_str().unwrap().contains("GET /api/tasks?kind=tool"), "{called}");
    let mut errors = Vec::new();
    let reason = loop {
        match socket.next().await.unwrap().unwrap() {
            Message::Text(text) => {
                let frame: Value = serde_json::from_str(&text).unwrap();
                errors.extend((frame["event"] == "error").then(|| frame["data"].clone()));
            }
            Message::Close(frame) => break frame.unwrap().code,
            _ => {}
        }
    };
    assert_eq!((errors.len(), u16::from(reason)), (1, 1001), "{errors:?}");
    let (told, waiting) = (&errors[0], errors[0]["task_id"].as_str().unwrap());
    assert_eq!((&told["code"], &told["retryable"]), (&json!("DRAINING"), &json!(false)), "{told}");
    server.stopped().await;
    drop(server);

    let server = serve_on(dir.path(), &config).await;
    gate.let_go(1);
    server.until_numbers((0, 1)).await;
    assert_eq!(server.get(&format!("/api/tasks/{waiting}")).await.json()["result"], "answer to waits");
    assert_eq!(server.post("/api/lanes/session:s%2Fexecute/resume", json!({})).await.status, 200);
    server.until_numbers((0, 0)).await;
    let tools = server.get("/api/tasks?kind=tool&status=completed").await.json();
    assert_eq!(tools["items"].as_array().unwrap().len(), 1, "{tools}");
}
