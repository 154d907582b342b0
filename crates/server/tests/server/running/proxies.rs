//! Servers behind nginx, HAProxy and Caddy, with the files that `packaging/proxies` has for them.

use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use laneway_test_services::{Balancer, Redis};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

use crate::common::{Events, Gate, Running, serve};
use crate::running::replicas::server_on;

/// How soon the first event of a stream arrives. A busy machine may need some of the tries.
const FIRST_EVENT_WITHIN: Duration = Duration::from_millis(100);
const TRIES: usize = 20;

/// A file of `packaging/proxies` for these servers, on this port.
fn packaged(name: &str, port: u16, servers: &[&Running]) -> String {
    let path = format!("{}/../../packaging/proxies/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut text = std::fs::read_to_string(path).unwrap();
    for (index, server) in servers.iter().enumerate() {
        text = text.replace(&format!("10.0.0.1{}:7717", index + 1), &server.address.to_string());
    }
    assert!(!text.contains("10.0.0."), "{text}");
    text.replace("listen 80;", &format!("listen 127.0.0.1:{port};"))
        .replace("bind :80", &format!("bind 127.0.0.1:{port}"))
        .replace("lanes.example {", &format!("http://127.0.0.1:{port} {{"))
}

async fn three_servers(redis: &Redis, gate: &Gate) -> [Running; 3] {
    let config = format!("agent \"coder\" {{\nurl = \"{}\"\nmax_concurrency = 100\nlanes = []\n}}", gate.url);
    [server_on(redis, &config).await, server_on(redis, &config).await, server_on(redis, &config).await]
}

/// Starts turns that do not end, and takes the time until the first event of each. Lets them end afterwards.
async fn first_event_is_quick(front: &Running, gate: &Gate) {
    let (mut streams, mut best) = (Vec::new(), Duration::MAX);
    while best > FIRST_EVENT_WITHIN && streams.len() < TRIES {
        let begun = Instant::now();
        let asked = json!({"message": "hello"});
        let mut events = Events::chat(front, "/api/agents/coder/chat", asked, &[]).await;
        assert_eq!(events.next().await.unwrap().name, "accepted");
        best = best.min(begun.elapsed());
        gate.arrival().await;
        streams.push(events);
    }
    assert!(best <= FIRST_EVENT_WITHIN, "the first event took {best:?}");
    gate.let_go(streams.len());
    for mut events in streams {
        events.next_named("done").await;
    }
}

/// Asks over a WebSocket.
async fn socket_works(front: &Running, gate: &Gate) {
    let url = format!("ws://{}/api/ws", front.address);
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
    let frame = json!({"event": "submit", "data": {"agent": "coder", "message": "over a socket"}});
    socket.send(Message::text(frame.to_string())).await.unwrap();
    gate.arrival().await;
    gate.let_go(1);
    loop {
        let Message::Text(text) = socket.next().await.unwrap().unwrap() else { continue };
        let frame: Value = serde_json::from_str(&text).unwrap();
        if frame["event"] == "completed" {
            return assert_eq!(frame["data"]["result"], "answer to over a socket");
        }
    }
}

/// Streams, sockets and plain requests, before and after one of three servers is gone.
async fn three_servers_behind(proxy: fn(&dyn Fn(u16) -> String) -> Balancer, file: &str) {
    let (redis, gate) = (Redis::start(), Gate::open().await);
    let [a, b, mut c] = three_servers(&redis, &gate).await;
    let balancer = proxy(&|port| packaged(file, port, &[&a, &b, &c]));
    let front = a.behind(balancer.port());
    first_event_is_quick(&front, &gate).await;
    socket_works(&front, &gate).await;
    c.stop();
    c.stopped().await;
    for _ in 0..12 {
        let answer = front.get("/api/status").await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

#[tokio::test]
async fn nginx_passes_on_streams_and_sockets_and_leaves_out_a_server_that_is_gone() {
    three_servers_behind(|site| Balancer::nginx(site), "nginx.conf").await;
}

#[tokio::test]
async fn haproxy_passes_on_streams_and_sockets_and_leaves_out_a_server_that_is_gone() {
    three_servers_behind(|config| Balancer::haproxy(config), "haproxy.cfg").await;
}

#[tokio::test]
async fn caddy_passes_on_streams_and_sockets_and_leaves_out_a_server_that_is_gone() {
    three_servers_behind(|config| Balancer::caddy(config), "Caddyfile").await;
}

#[tokio::test]
async fn nginx_without_any_settings_passes_on_each_event_at_once() {
    let gate = Gate::open().await;
    let server =
        serve(&format!("agent \"coder\" {{\nurl = \"{}\"\nmax_concurrency = 100\nlanes = []\n}}", gate.url))
            .await;
    let bare = |port| {
        let pass = format!("location / {{ proxy_pass http://{}; }}", server.address);
        format!("server {{ listen 127.0.0.1:{port}; {pass} }}")
    };
    let balancer = Balancer::nginx(bare);
    first_event_is_quick(&server.behind(balancer.port()), &gate).await;
}

/// Sends the head of a request as it is, and returns the head of the answer.
async fn raw(server: &Running, head: &str) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(format!("{head}\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.lines().next().unwrap().to_owned()
}

#[tokio::test]
async fn health_checks_need_no_host_and_no_token_and_may_be_of_http_1_0() {
    let server = serve("").await;
    let token = json!({"subject": "me", "scopes": ["admin"]});
    assert_eq!(server.post("/api/tokens", token).await.status, 201);
    for path in ["/healthz", "/readyz"] {
        let heads = [
            format!("GET {path} HTTP/1.0"),
            format!("HEAD {path} HTTP/1.0"),
            format!("GET {path} HTTP/1.1\r\nHost: 10.1.2.3:7717\r\nConnection: close"),
            format!(
                "GET {path} HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\nConnection: close"
            ),
        ];
        for head in heads {
            let answer = raw(&server, &head).await;
            assert!(answer.contains(" 200 "), "{head}: {answer}");
        }
    }
    let others = [
        ("GET /api/status HTTP/1.0", " 400 "),
        ("GET /api/status HTTP/1.1\r\nHost: evil.example\r\nConnection: close", " 403 "),
        ("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close", " 403 "),
        ("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close", " 401 "),
    ];
    for (head, status) in others {
        let answer = raw(&server, head).await;
        assert!(answer.contains(status), "{head}: {answer}");
    }
}
