//! The limits of each token on every transport, their reload, and the end of connections with their token.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use laneway_store_sqlite::SqliteStore;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::common::{Events, PATIENCE, Running, serve, serve_in, until};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A server whose requests use its first token.
async fn with_token(config: &str, dir: &Path) -> Running {
    let mut server = serve_in(config, None, Some(dir.to_owned())).await;
    server.token = Some(new_token(&server, "root").await);
    server
}

async fn new_token(server: &Running, subject: &str) -> String {
    let created = server.post("/api/tokens", json!({"subject": subject, "scopes": ["admin"]})).await;
    assert_eq!(created.status, 201, "{created:?}");
    created.json()["token"].as_str().unwrap().to_owned()
}

async fn socket(server: &Running, token: Option<&str>) -> Result<Socket, Error> {
    let query = token.map_or(String::new(), |token| format!("?access_token={token}"));
    let url = format!("ws://{}/api/ws{query}", server.address);
    tokio_tungstenite::connect_async(url).await.map(|(socket, _)| socket)
}

async fn next(socket: &mut Socket) -> Message {
    let next = tokio::time::timeout(PATIENCE, socket.next()).await.expect("nothing came");
    next.unwrap().unwrap()
}

/// The next refusal.
async fn error(socket: &mut Socket) -> Value {
    loop {
        if let Message::Text(text) = next(socket).await {
            let frame: Value = serde_json::from_str(&text).unwrap();
            if frame["event"] == "error" {
                return frame["data"].clone();
            }
        }
    }
}

/// The code with which the server closes the socket.
async fn closed(socket: &mut Socket) -> u16 {
    let closing = async {
        loop {
            if let Message::Close(frame) = next(socket).await {
                return frame.unwrap().code.into();
            }
        }
    };
    tokio::time::timeout(PATIENCE, closing).await.expect("it was not closed")
}

/// Waits for the end of a stream.
async fn ended(mut stream: Events) {
    let ending = async { while stream.next().await.is_some() {} };
    tokio::time::timeout(PATIENCE, ending).await.expect("it did not end");
}

/// A frame that the server refuses, unless a limit stops it first.
fn cancel_of_nothing(id: &str, bytes: usize) -> Message {
    let data = json!({"task_id": "x".repeat(bytes)});
    Message::text(json!({"event": "cancel", "data": data, "id": id}).to_string())
}

#[tokio::test]
async fn an_open_socket_counts_as_a_connection_of_its_token() {
    let dir = tempfile::tempdir().unwrap();
    let server = with_token("server { token_connections = 3 }", dir.path()).await;
    let token = server.token.as_deref();
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(socket(&server, token).await.unwrap());
    }
    match socket(&server, token).await {
        Err(Error::Http(answer)) => assert_eq!(answer.status(), 429),
        other => panic!("a fourth: {other:?}"),
    }
    assert_eq!(server.get("/api/status").await.json()["code"], "RATE_LIMITED");
    drop(open.pop());
    until("there is room again", async || server.get("/api/status").await.status == 200).await;
    drop(open);
}

#[tokio::test]
async fn a_socket_counts_toward_the_maximum_of_connections() {
    let server = serve("server { connections_max = 1 }").await;
    let open = socket(&server, None).await.unwrap();
    assert!(server.request("GET", "/healthz").send().await.is_err(), "the socket is the only connection");
    drop(open);
    until("there is room again", async || server.request("GET", "/healthz").send().await.is_ok()).await;
}

#[tokio::test]
async fn a_frame_counts_as_a_request_with_its_bytes() {
    let dir = tempfile::tempdir().unwrap();
    // Opening the socket is the first of two requests.
    let server = with_token("server { token_requests_per_minute = 2 }", dir.path()).await;
    let mut frames = socket(&server, server.token.as_deref()).await.unwrap();
    frames.send(cancel_of_nothing("1", 1)).await.unwrap();
    assert_eq!(error(&mut frames).await["code"], "NOT_FOUND");
    for nonsense in [Message::text("{"), Message::binary("x")] {
        frames.send(nonsense).await.unwrap();
        assert_eq!(error(&mut frames).await["code"], "RATE_LIMITED");
    }
    frames.send(cancel_of_nothing("2", 1)).await.unwrap();
    let refused = error(&mut frames).await;
    assert_eq!((&refused["code"], &refused["request_id"]), (&json!("RATE_LIMITED"), &json!("2")));
    let wait = refused["retry_after_ms"].as_u64().unwrap();
    assert!((1..=30_000).contains(&wait), "{wait}");
    assert_eq!(server.get("/api/status").await.status, 429);

    let dir = tempfile::tempdir().unwrap();
    let server = with_token("server { token_bytes_per_minute = 1000 }", dir.path()).await;
    let mut bytes = socket(&server, server.token.as_deref()).await.unwrap();
    bytes.send(cancel_of_nothing("1", 2000)).await.unwrap();
    assert_eq!(error(&mut bytes).await["code"], "NOT_FOUND");
    bytes.send(cancel_of_nothing("2", 2000)).await.unwrap();
    let refused = error(&mut bytes).await;
    assert_eq!(refused["code"], "RATE_LIMITED");
    assert!(refused["detail"].as_str().unwrap().contains("1000 bytes a minute"), "{refused}");
}

#[tokio::test]
async fn a_waiting_slot_request_counts_as_a_waiting_task_of_its_token() {
    let dir = tempfile::tempdir().unwrap();
    let server = with_token("server { token_waiting = 1 }", dir.path()).await;
    let asked = json!({"lanes": ["gpu"], "wait_ms": 60_000, "lease_ms": 60_000});
    let held = server.post("/api/slots", asked.clone()).await;
    assert_eq!(held.status, 200, "{held:?}");
    let waits = server.post("/api/slots", asked);
    let refused = async {
        until("one waits", async || server.numbers().await == (1, 1)).await;
        let refused = server.post("/api/slots", json!({"lanes": ["gpu"], "wait_ms": 1000})).await;
        let (id, fence) = (held.json()["id"].as_str().unwrap().to_owned(), held.json()["fence"].clone());
        let path = format!("/api/slots/{id}?fence={fence}");
        assert_eq!(server.send("DELETE", &path, json!(null)).await.status, 204);
        refused
    };
    let (waited, refused) = tokio::join!(waits, refused);
    assert_eq!((refused.status, waited.status), (429, 200));
    assert!(refused.json()["lane"].as_str().unwrap().starts_with("token:"), "{refused:?}");
}

#[tokio::test]
async fn a_refusal_for_waiting_tasks_of_a_token_does_not_call_the_agent_busy() {
    let dir = tempfile::tempdir().unwrap();
    let config = "server { token_waiting = 1 }\nlane \"global\" { max_concurrency = 1 }\nagent \"slow\" { command = [\"sleep\", \"600\"] }\nagent \"idle\" { echo = true }";
    let server = with_token(config, dir.path()).await;
    let ask = async |agent: &str| {
        let path = format!("/api/agents/{agent}/chat");
        server.send_with("POST", &path, json!({"message": "x"}), &[("prefer", "respond-async")]).await
    };
    assert_eq!((ask("slow").await.status, ask("slow").await.status), (202, 202));
    let refused = ask("idle").await;
    assert_eq!((refused.status, &refused.json()["agent"]), (429, &json!("idle")));
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("token:") && !detail.contains("busy"), "{detail}");
}

#[tokio::test]
async fn messages_of_one_token_are_limited_across_sessions() {
    let dir = tempfile::tempdir().unwrap();
    let config = "server { token_waiting = 2 }\nagent \"slow\" {\n command = [\"sleep\", \"600\"]\n max_queued = 20\n}";
    let mut server = with_token(config, dir.path()).await;
    let (greedy, other) = (server.token.clone(), new_token(&server, "other").await);
    let send = async |server: &Running, session: &str| {
        let message = json!({"agent": "slow", "text": "go on", "mode": "followup", "debounce_ms": 0});
        server.post(&format!("/api/sessions/{session}/messages"), message).await
    };
    for session in ["a", "b", "c"] {
        assert_eq!(send(&server, session).await.status, 202, "{session}");
    }
    for session in ["d", "e", "a"] {
        let refused = send(&server, session).await;
        assert_eq!(refused.status, 429, "{session}: {refused:?}");
        assert!(refused.json()["lane"].as_str().unwrap().starts_with("token:"), "{refused:?}");
    }
    server.token = Some(other);
    assert_eq!(send(&server, "d").await.status, 202);
    // Messages of another token in the same session still get answers.
    assert_eq!(send(&server, "a").await.status, 202);
    server.token = greedy;
    assert_eq!(server.get("/api/lanes/agent:slow").await.json()["waiting"], 3);
}

#[tokio::test]
async fn tool_calls_count_as_waiting_tasks_of_their_token() {
    let dir = tempfile::tempdir().unwrap();
    let config = "server { token_waiting = 1 }\nqueue { }\nhandler \"bash\" { command = [\"true\"] }";
    let server = with_token(config, dir.path()).await;
    let batch = async |calls: usize| {
        let calls = vec![json!({"tool": "bash"}); calls];
        server.post("/api/tasks/batch", json!({"session": "s", "calls": calls})).await
    };
    let refused = batch(3).await;
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(refused.json()["lane"].as_str().unwrap().starts_with("token:"), "{refused:?}");
    assert_eq!(batch(2).await.status, 200);
}

#[tokio::test]
async fn a_task_cannot_name_the_lane_of_a_token() {
    let dir = tempfile::tempdir().unwrap();
    let server = with_token("server { token_waiting = 1 }", dir.path()).await;
    let victim = new_token(&server, "victim").await;
    let lane = format!("token:{}", victim.split_once('.').unwrap().0);
    for (path, body) in [
        ("/api/tasks", json!({"kind": "index", "lanes": [lane]})),
        ("/api/tasks", json!({"kind": "index", "lanes": ["main", format!("  {lane} ")]})),
        ("/api/tasks", json!({"kind": "index", "fair_key": lane})),
        ("/api/slots", json!({"lanes": ["main", lane]})),
    ] {
        let refused = server.post(path, body.clone()).await;
        assert_eq!((refused.status, &refused.json()["code"]), (400, &json!("INVALID")), "{body}");
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("the server's own"), "{detail}");
    }
    assert_eq!(server.get(&format!("/api/lanes/{lane}")).await.json()["waiting"], 0);
}

#[tokio::test]
async fn a_reload_applies_limits_and_names_settings_that_need_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("laneway.hcl");
    let where_is_it = "agent \"where\" { command = [\"printenv\", \"LANEWAY_URL\"] }";
    let plain = &format!("agent \"echo\" {{ echo = true }}\n{where_is_it}");
    std::fs::write(&file, plain).unwrap();
    let server = with_token(plain, dir.path()).await;
    let large = json!({"message": "x".repeat(4096)});
    let task = json!({"kind": "index"});
    let reload = async |block: &str| {
        std::fs::write(&file, format!("{plain}\n{block}")).unwrap();
        server.reloader.reload().await.unwrap();
    };
    reload(
        "server {\nbody_bytes_max = 2048\ntoken_waiting = 1\nhistory_max = 5\notlp = \"http://127.0.0.1:1\"\n}",
    )
    .await;
    assert_eq!(server.post("/api/agents/echo/chat", large.clone()).await.status, 413);
    assert_eq!(server.post("/api/tasks", task.clone()).await.status, 202);
    let refused = server.post("/api/tasks", task.clone()).await;
    assert_eq!(refused.status, 429);
    assert!(refused.json()["lane"].as_str().unwrap().starts_with("token:"), "{refused:?}");
    let audit = server.get("/api/audit").await.json();
    assert_eq!(audit["items"][0]["details"], json!({"needs_restart": ["server.otlp", "server.history_max"]}));
    let config = server.get("/api/config").await.json();
    let value = |key: &str| {
        let is_it = |value: &&Value| value["block"] == "server" && value["key"] == key;
        config["values"].as_array().unwrap().iter().find(is_it).unwrap()["value"].clone()
    };
    assert_eq!((value("history_max"), value("body_bytes_max")), (json!("10000"), json!("2048")));

    let bearer = format!("Bearer {}", server.token.as_deref().unwrap());
    let stream = Events::open(&server, "/api/events", &[("authorization", &bearer)]).await;
    reload("server { token_connections = 1 }").await;
    assert_eq!(server.get("/api/status").await.status, 429);
    reload("server { connections_max = 1 }").await;
    assert!(server.request("GET", "/healthz").send().await.is_err(), "the stream is the only connection");
    reload("server { url = \"https://lanes.example\" }").await;
    let place = server.post("/api/agents/where/chat", json!({"message": "?"})).await.json();
    assert!(place["response"].as_str().unwrap().contains("https://lanes.example"), "{place}");
    reload("").await;
    assert_eq!(server.post("/api/agents/echo/chat", large).await.status, 200);
    assert_eq!(server.post("/api/tasks", task).await.status, 202);
    drop(stream);
}

#[tokio::test]
async fn sockets_and_streams_end_when_their_token_is_removed_or_required() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = serve_in("", None, Some(dir.path().to_owned())).await;
    let mut nameless = socket(&server, None).await.unwrap();
    let unnamed = Events::open(&server, "/api/events", &[("connection", "close")]).await;
    server.token = Some(new_token(&server, "root").await);
    assert_eq!(closed(&mut nameless).await, 1008);
    ended(unnamed).await;

    let ann = new_token(&server, "ann").await;
    let bearer = format!("Bearer {ann}");
    let mut talks = socket(&server, Some(&ann)).await.unwrap();
    let mut listens = socket(&server, Some(&ann)).await.unwrap();
    let mut stays = socket(&server, server.token.as_deref()).await.unwrap();
    let headers = [("authorization", bearer.as_str()), ("connection", "close")];
    let stream = Events::open(&server, "/api/events", &headers).await;
    let path = format!("/api/tokens?id={}", ann.split_once('.').unwrap().0);
    assert_eq!(server.send("DELETE", &path, json!(null)).await.status, 204);
    let submit = json!({"agent": "echo", "message": "x", "session": "late"});
    let submit = json!({"event": "submit", "data": submit, "id": "1"});
    talks.send(Message::text(submit.to_string())).await.unwrap();
    let refused = error(&mut talks).await;
    assert_eq!((&refused["code"], &refused["request_id"]), (&json!("UNAUTHORIZED"), &json!("1")));
    assert_eq!(closed(&mut talks).await, 1008);
    assert_eq!(closed(&mut listens).await, 1008);
    ended(stream).await;
    stays.send(cancel_of_nothing("1", 1)).await.unwrap();
    assert_eq!(error(&mut stays).await["code"], "NOT_FOUND");
}

#[tokio::test]
async fn only_the_owner_can_read_state_files() {
    let dir = tempfile::tempdir().unwrap();
    let (state, place) = (dir.path().join("state"), dir.path().join("store"));
    // Existing directories keep their permissions.
    for made in [&state, &place] {
        std::fs::create_dir(made).unwrap();
        std::fs::set_permissions(made, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let store = Arc::new(SqliteStore::open(&place).unwrap());
    let mut server = serve_in("", Some(store), Some(state.clone())).await;
    server.token = Some(new_token(&server, "root").await);
    assert_eq!(server.post("/api/tasks", json!({"kind": "index"})).await.status, 202);
    // The copy of the log's tokens follows soon.
    crate::common::until("there is a file of tokens", async || state.join("tokens.json").exists()).await;
    let mut found = Vec::new();
    for entry in [&state, &place].into_iter().flat_map(|dir| std::fs::read_dir(dir).unwrap()) {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{name}");
        found.push(name);
    }
    for name in ["audit.jsonl", "tokens.json", "laneway.db", "laneway.db-wal", "laneway.db-shm"] {
        assert!(found.iter().any(|one| one == name), "{found:?}");
    }
}

#[tokio::test]
async fn a_client_that_writes_a_body_that_is_too_long_reads_the_refusal() {
    let server = serve("").await;
    let body = vec![b'x'; 8 * 1024 * 1024];
    let head = format!(
        "POST /api/tasks HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        server.address,
        body.len()
    );
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&body).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
}
