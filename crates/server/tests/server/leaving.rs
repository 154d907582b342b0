//! A caller that disconnects gives back its slots, at every stage and on every transport.

use std::sync::Arc;
use std::time::Duration;

use futures_util::SinkExt;
use laneway_store_sqlite::SqliteStore;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

use crate::common::{Events, Gate, Running, serve, serve_in};

async fn send_chat(server: &Running, session: &str, accept: &str, whole: bool) -> TcpStream {
    let body = json!({"message": "hello", "session": session}).to_string();
    let request = format!(
        "POST /api/agents/coder/chat HTTP/1.1\r\nhost: {}\r\naccept: {accept}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{}",
        server.address,
        body.len(),
        if whole { &body } else { &body[..5] }
    );
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn a_thousand_disconnects_at_every_stage_leave_no_tasks() {
    let gate = Gate::open().await;
    let config = format!(
        "agent \"coder\" {{\n url = \"{}\"\n max_concurrency = 4\n max_queued = 500\n lanes = []\n}}",
        gate.url
    );
    let server = serve(&config).await;
    for round in 0..50 {
        let mut gone = Vec::new();
        for n in 0..20 {
            let session = format!("{round}-{n}");
            let accept = if n % 2 == 0 { "application/json" } else { "text/event-stream" };
            // The callers disconnect during the request, during a stream of events, or while their tasks wait or run. The
            // first four tasks run, the others wait.
            let stream = match n % 5 {
                0 => send_chat(&server, &session, accept, false).await,
                1 => {
                    let mut events = Events::chat(
                        &server,
                        "/api/agents/coder/chat",
                        json!({"message": "x", "session": session}),
                        &[],
                    )
                    .await;
                    assert_eq!(events.next().await.unwrap().name, "accepted");
                    drop(events);
                    continue;
                }
                _ => send_chat(&server, &session, accept, true).await,
            };
            gone.push(stream);
        }
        if round % 10 == 0 {
            // Some callers disconnect while their task streams its output.
            gate.let_go(1);
        }
        drop(gone);
    }
    server.until_numbers((0, 0)).await;
    let lanes = server.get("/api/lanes/agent%3Acoder").await.json();
    assert_eq!((&lanes["running"], &lanes["waiting"]), (&json!(0), &json!(0)));
    assert!(lanes["counters"]["accepted"].as_u64().unwrap() >= 400, "{lanes}");
}

#[tokio::test]
async fn a_caller_that_disconnects_during_acceptance_leaves_no_task() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(dir.path().join("laneway.db")).unwrap());
    let gate = Gate::open().await;
    let config = format!("agent \"coder\" {{\nurl = \"{}\"\nmax_concurrency = 50\nlanes = []\n}}", gate.url);
    let server = serve_in(&config, Some(store), None).await;
    let held = server.post("/api/slots", json!({"lanes": ["gpu"], "lease_ms": 600_000})).await;
    assert_eq!(held.status, 200, "{held:?}");
    let waits = json!({"lanes": ["gpu"], "wait_ms": 600_000}).to_string();
    let waits = format!(
        "POST /api/slots HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{waits}",
        server.address,
        waits.len()
    );
    let accepted = async || {
        let lane = server.get("/api/lanes/agent%3Acoder").await.json();
        lane["counters"]["accepted"].as_u64().unwrap()
    };
    let mut round = 0;
    // On a busy machine the server may see a request and its disconnect at once. Such a caller tests nothing.
    while round < 40 || accepted().await < 10 {
        assert!(round < 1000, "hardly any caller left after the server had accepted its request");
        let accept = if round % 2 == 0 { "application/json" } else { "text/event-stream" };
        let chat = send_chat(&server, &round.to_string(), accept, true).await;
        let mut slot = TcpStream::connect(server.address).await.unwrap();
        slot.write_all(waits.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_micros(100 * (round % 20))).await;
        drop((chat, slot));
        round += 1;
    }
    // When the server answers this request, it has handled all earlier ones.
    assert_eq!(server.post("/api/tasks", json!({"kind": "last", "lanes": ["x"]})).await.status, 202);
    server.until_numbers((1, 1)).await;
}

/// Waits until the system has passed on that the client at this port closed its connection. On a busy machine, a request on
/// another connection can overtake that.
async fn until_the_close_has_arrived(port: u16) {
    const ESTABLISHED: &str = "01";
    const FIN_WAIT_1: &str = "04";
    let client = format!("0100007F:{port:04X}");
    let is_on_its_way = |connection: &str| {
        let fields: Vec<&str> = connection.split_whitespace().collect();
        fields.len() > 3 && fields[1] == client && [ESTABLISHED, FIN_WAIT_1].contains(&fields[3])
    };
    while std::fs::read_to_string("/proc/net/tcp").unwrap().lines().any(is_on_its_way) {
        tokio::task::yield_now().await;
    }
}

/// The caller closes its connection just before another one frees the slot for which it waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_granted_to_a_caller_that_has_just_left_is_given_back() {
    let server = serve("lane \"gpu\" { max_concurrency = 1 }").await;
    let wants = json!({"lanes": ["gpu"], "lease_ms": 600_000, "wait_ms": 60_000});
    let body = wants.to_string();
    let request = format!(
        "POST /api/slots HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    for round in 0..300 {
        let held = server.post("/api/slots", wants.clone()).await;
        assert_eq!(held.status, 200, "round {round}: {held:?}");
        let held = held.json();
        let mut leaving = TcpStream::connect(server.address).await.unwrap();
        leaving.write_all(request.as_bytes()).await.unwrap();
        let path = format!("/api/slots/{}?fence={}", held["id"].as_str().unwrap(), held["fence"]);
        let port = leaving.local_addr().unwrap().port();
        drop(leaving);
        until_the_close_has_arrived(port).await;
        assert_eq!(server.send("DELETE", &path, json!(null)).await.status, 204);
    }
    server.until_numbers((0, 0)).await;
}

#[tokio::test]
async fn a_thousand_disconnects_after_a_known_stage_leave_no_tasks() {
    const EACH: usize = 250;
    let gate = Gate::open().await;
    let agent = |name: &str, url: &str, most: u32| {
        format!(
            "agent \"{name}\" {{\nurl = \"{url}\"\nmax_concurrency = {most}\nmax_queued = 500\nlanes = []\n}}\n"
        )
    };
    let config = "lane \"global\" { max_concurrency = 1000 }\n".to_owned()
        + &agent("coder", &gate.url, 1)
        + &agent("run", &gate.url, 500)
        + &agent("stream", &gate.url.replace("/run", "/stream"), 500);
    let server = serve(&config).await;
    let held = json!({"message": "holds the one slot", "session": "held"});
    let held = server.send_with("POST", "/api/agents/coder/chat", held, &[("prefer", "respond-async")]).await;
    gate.arrival().await;
    for n in 0..EACH {
        let chat = async |agent: &str, until: &str| {
            let body = json!({"message": "x", "session": format!("{agent}-{n}")});
            let mut events = Events::chat(&server, &format!("/api/agents/{agent}/chat"), body, &[]).await;
            events.next_named(until).await;
            events
        };
        drop(send_chat(&server, "never", "application/json", false).await);
        let waiting = chat("coder", "queued").await;
        let running = chat("run", "started").await;
        gate.arrival().await;
        let streaming = chat("stream", "delta").await;
        drop((waiting, running, streaming));
    }
    server.until_numbers((1, 0)).await;
    for (agent, accepted) in [("coder", EACH + 1), ("run", EACH), ("stream", EACH)] {
        let lane = server.get(&format!("/api/lanes/agent%3A{agent}")).await.json();
        assert_eq!(lane["counters"]["accepted"], accepted, "{lane}");
        assert_eq!(lane["counters"]["cancelled"], EACH, "{lane}");
    }
    let held = format!("/api/tasks/{}", held.json()["execution"]["id"].as_str().unwrap());
    assert_eq!(server.send("DELETE", &held, json!(null)).await.json()["status"], "cancelling");
    server.until_numbers((0, 0)).await;
}

#[tokio::test]
async fn a_closed_socket_cancels_its_tasks_but_not_detached_ones() {
    let gate = Gate::open().await;
    let config =
        format!("agent \"coder\" {{\n url = \"{}\"\n max_concurrency = 4\n lanes = []\n}}", gate.url);
    let server = serve(&config).await;
    let url = format!("ws://{}/api/ws", server.address);
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
    for (session, detach) in [("a", false), ("b", false), ("c", true)] {
        let data = json!({"agent": "coder", "message": session, "session": session, "detach": detach});
        socket.send(Message::text(json!({"event": "submit", "data": data}).to_string())).await.unwrap();
        gate.arrival().await;
    }
    server.until_numbers((3, 0)).await;
    drop(socket);
    server.until_numbers((1, 0)).await;
    let body = json!({"message": "d", "session": "d"});
    let sse = Events::chat(&server, "/api/agents/coder/chat", body, &[("x-detach", "true")]).await;
    gate.arrival().await;
    drop(sse);
    server.until_numbers((2, 0)).await;
    gate.let_go(2);
    server.until_numbers((0, 0)).await;
    let done = server.get("/api/tasks?status=completed").await.json();
    assert_eq!(done["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn stopping_one_of_three_leaves_the_other_two_their_slots() {
    let gate = Gate::open().await;
    let config =
        format!("agent \"coder\" {{\n url = \"{}\"\n max_concurrency = 3\n lanes = []\n}}", gate.url);
    let server = serve(&config).await;
    let mut ids = Vec::new();
    for session in ["a", "b", "c"] {
        let body = json!({"message": session, "session": session});
        let accepted =
            server.send_with("POST", "/api/agents/coder/chat", body, &[("prefer", "respond-async")]).await;
        ids.push(accepted.json()["execution"]["id"].as_str().unwrap().to_owned());
        gate.arrival().await;
    }
    let stopped = server.send("DELETE", &format!("/api/tasks/{}", ids[1]), json!(null)).await;
    assert_eq!(stopped.json()["status"], "cancelling");
    server.until_numbers((2, 0)).await;
    for id in [&ids[0], &ids[2]] {
        assert_eq!(server.get(&format!("/api/tasks/{id}")).await.json()["status"], "running");
    }
    let again = server.send("DELETE", &format!("/api/tasks/{}", ids[1]), json!(null)).await;
    assert_eq!(again.json()["status"], "already_cancelled");
    gate.let_go(2);
    server.until_numbers((0, 0)).await;
}

#[tokio::test]
async fn a_failed_upstream_frees_the_slot_and_the_caller_gets_its_code() {
    let server = serve("agent \"dead\" { url = \"http://127.0.0.1:9/x\" }").await;
    let failed = server.post("/api/agents/dead/chat", json!({"message": "hi"})).await;
    assert_eq!((failed.status, &failed.json()["code"]), (502, &json!("RUN_FAILED")));
    assert_eq!(failed.json()["phase"], "run");
    assert_eq!(server.numbers().await, (0, 0));
    let gate = Gate::open().await;
    let server = serve(&format!("agent \"slow\" {{ url = \"{}\" }}", gate.url)).await;
    let body = json!({"message": "hi", "timeout_ms": 50});
    let slow = server.post("/api/agents/slow/chat", body).await;
    assert_eq!((slow.status, &slow.json()["code"]), (504, &json!("RUN_TIMED_OUT")));
    assert_eq!(server.numbers().await, (0, 0));
}
