//! Hostile, broken and slow clients.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::{Events, PATIENCE, Running, serve, serve_in};

/// Sends raw bytes, and returns the answer until the server closes the connection or sends nothing for a while.
async fn raw(server: &Running, bytes: &str) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(bytes.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match tokio::time::timeout(PATIENCE, stream.read(&mut piece)).await {
            Ok(Ok(read)) if read > 0 => answer.extend_from_slice(&piece[..read]),
            _ => break,
        }
        let text = String::from_utf8_lossy(&answer);
        let length =
            text.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse::<usize>().ok());
        if let (Some(end), Some(length)) = (text.find("\r\n\r\n"), length)
            && answer.len() >= end + 4 + length
        {
            break;
        }
    }
    String::from_utf8_lossy(&answer).into_owned()
}

async fn with_tokens() -> (Running, tempfile::TempDir, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let mut server = serve_in("", None, Some(dir.path().to_owned())).await;
    let mut tokens = Vec::new();
    for (subject, scopes) in [
        ("root", json!(["admin"])),
        ("ann", json!(["submit", "read"])),
        ("bob", json!(["submit"])),
        ("w", json!(["worker"])),
    ] {
        let created = server.post("/api/tokens", json!({"subject": subject, "scopes": scopes})).await;
        assert_eq!(created.status, 201, "{created:?}");
        tokens.push(created.json()["token"].as_str().unwrap().to_owned());
        server.token = Some(tokens[0].clone());
    }
    (server, dir, tokens)
}

#[tokio::test]
async fn every_route_needs_a_token_with_its_scope() {
    let (mut server, _dir, tokens) = with_tokens().await;
    let api = server.get("/openapi.json").await.json();
    let mut asked = 0;
    for (path, item) in api["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            if ["/healthz", "/readyz"].contains(&path.as_str()) {
                continue;
            }
            let path = path.replace("{id}", "01900000-0000-7000-8000-000000000000");
            let path = path.replace("{agent}", "echo").replace("{lane}", "main").replace(['{', '}'], "");
            for token in [None, Some("lw_0.0"), Some("x"), Some(&tokens[0][..tokens[0].len() - 1])] {
                server.token = token.map(str::to_owned);
                let answer = server.send(&method.to_uppercase(), &path, json!({})).await;
                assert_eq!(answer.status, 401, "{method} {path}");
                assert_eq!(answer.header("www-authenticate"), "Bearer");
                asked += 1;
            }
        }
    }
    assert!(asked > 200);
    let cases: [(&str, &str, [u16; 4]); 5] = [
        ("GET", "/api/status", [200, 200, 403, 403]),
        ("GET", "/api/tokens", [200, 403, 403, 403]),
        ("POST", "/api/agents/echo/queue/clear", [200, 403, 403, 403]),
        ("POST", "/api/agents/echo/chat", [200, 200, 200, 403]),
        ("POST", "/api/claim", [200, 403, 403, 200]),
    ];
    for (method, path, expected) in cases {
        let body = match path {
            "/api/claim" => json!({"worker": "w", "lanes": ["x"]}),
            _ => json!({"message": "hi"}),
        };
        for (token, status) in tokens.iter().zip(expected) {
            server.token = Some(token.clone());
            assert_eq!(server.send(method, path, body.clone()).await.status, status, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn a_token_cannot_touch_the_tasks_keys_and_names_of_another() {
    let (mut server, _dir, tokens) = with_tokens().await;
    server.token = Some(tokens[1].clone());
    let task = json!({"kind": "index", "payload": 1});
    let key = [("idempotency-key", "k")];
    let anns = server.send_with("POST", "/api/tasks", task.clone(), &key).await.json();
    let path = format!("/api/tasks/{}", anns["id"].as_str().unwrap());
    let for_other = json!({"message": "hi", "user": {"id": "root"}});
    assert_eq!(server.post("/api/agents/echo/chat", for_other).await.status, 403);
    server.token = Some(tokens[2].clone());
    let bobs = server.send_with("POST", "/api/tasks", task, &key).await.json();
    assert_ne!(anns["id"], bobs["id"], "the same key of another caller is another key");
    assert_eq!(server.send("DELETE", &path, json!(null)).await.status, 403);
    assert_eq!(server.send("PATCH", &path, json!({"priority": 9})).await.status, 403);
    server.token = Some(tokens[1].clone());
    assert_eq!(server.get(&path).await.json()["owner"], tokens[1].split_once('.').unwrap().0);
    assert_eq!(server.send("DELETE", &path, json!(null)).await.json()["status"], "cancelled_while_queued");
}

#[tokio::test]
async fn a_token_is_limited_in_its_requests_and_its_waiting_tasks() {
    let dir = tempfile::tempdir().unwrap();
    let bounds = "server {\ntoken_requests_per_minute = 20\ntoken_waiting = 2\ntoken_connections = 3\n}";
    let mut server = serve_in(bounds, None, Some(dir.path().to_owned())).await;
    let new = json!({"subject": "ann", "scopes": ["admin"]});
    let (ann, other) = {
        let first =
            server.post("/api/tokens", new.clone()).await.json()["token"].as_str().unwrap().to_owned();
        server.token = Some(first.clone());
        let second = server.post("/api/tokens", new).await.json()["token"].as_str().unwrap().to_owned();
        (first, second)
    };
    let task = json!({"kind": "index"});
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let answer = server.post("/api/tasks", task.clone()).await;
        statuses.push(answer.status);
        if answer.status == 429 {
            assert!(answer.json()["lane"].as_str().unwrap().starts_with("token:"), "{answer:?}");
        }
    }
    assert_eq!(statuses, [202, 202, 429]);
    let bearer = format!("Bearer {ann}");
    let mut streams = Vec::new();
    for _ in 0..3 {
        streams.push(Events::open(&server, "/api/events", &[("authorization", &bearer)]).await);
    }
    let busy = server.get("/api/status").await;
    assert_eq!((busy.status, &busy.json()["code"]), (429, &json!("RATE_LIMITED")));
    drop(streams);
    server.token = Some(other.clone());
    assert_eq!(server.post("/api/tasks", task).await.status, 202);
    let mut last = 200;
    for _ in 0..30 {
        last = server.get("/api/status").await.status;
    }
    assert_eq!(last, 429);
}

#[tokio::test]
async fn other_hosts_and_origins_are_refused_on_every_transport() {
    let server =
        serve("server {\nhosts = [\"lanes.example\"]\norigins = [\"https://chat.example\"]\n}").await;
    for (headers, status) in [
        ("host: evil.example", "403"),
        ("host: localhost\r\nhost: evil.example", "400"),
        ("host: localhost\r\nhost: localhost", "400"),
        ("host: lanes.example", "200"),
        ("host: localhost:1", "200"),
        ("host: 127.0.0.1\r\norigin: https://evil.example", "403"),
        ("host: 127.0.0.1\r\norigin: null", "403"),
        ("host: 127.0.0.1\r\norigin: https://chat.example", "200"),
        ("host: 127.0.0.1:7\r\norigin: http://127.0.0.1:7", "200"),
        ("x: y", "400"),
    ] {
        let answer = raw(&server, &format!("GET /api/status HTTP/1.1\r\n{headers}\r\n\r\n")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{headers}: {answer}");
    }
    let absolute = |host: &str| format!("GET http://{host}/api/status HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
    assert!(raw(&server, &absolute("evil.example")).await.starts_with("HTTP/1.1 403"));
    assert!(raw(&server, &absolute("lanes.example")).await.starts_with("HTTP/1.1 200"));
    let upgrade = "GET /api/ws HTTP/1.1\r\nhost: 127.0.0.1\r\norigin: https://evil.example\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    assert!(raw(&server, upgrade).await.starts_with("HTTP/1.1 403"));
    let events = "GET /api/events HTTP/1.1\r\nhost: evil.example\r\n\r\n";
    assert!(raw(&server, events).await.starts_with("HTTP/1.1 403"));
}

#[tokio::test]
async fn too_large_too_slow_and_malformed_requests_are_cut_off() {
    let server =
        serve("server {\nbody_bytes_max = 2048\nbody_timeout = \"1s\"\nheader_timeout = \"1s\"\n}").await;
    let large = json!({"message": "x".repeat(4096)});
    let refused = server.post("/api/agents/echo/chat", large).await;
    assert_eq!((refused.status, &refused.json()["code"]), (413, &json!("TOO_LARGE")));
    let post = "POST /api/agents/echo/chat HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let chunked = format!("{post}transfer-encoding: chunked\r\n\r\nbb8\r\n{}\r\n0\r\n\r\n", "x".repeat(3000));
    assert!(raw(&server, &chunked).await.starts_with("HTTP/1.1 413"));
    let slow_body = raw(&server, &format!("{post}content-length: 50\r\n\r\n{{")).await;
    assert!(slow_body.starts_with("HTTP/1.1 408") && slow_body.contains("problem+json"), "{slow_body}");
    // The server closes a connection whose request head never ends.
    assert_eq!(raw(&server, "GET /api/status HTTP/1.1\r\nhost: local").await, "");
    let long_head =
        format!("GET /api/status HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n", "y".repeat(100_000));
    let answer = raw(&server, &long_head).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    for path in [
        "/../../etc/passwd",
        "/api/../../etc/passwd",
        "/docs/%2e%2e/%2e%2e/etc/passwd",
        "/api/tasks/..%2f..%2fetc",
    ] {
        let answer = raw(&server, &format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
        assert!(!answer.contains("root:"));
    }
    let wrong_type =
        server.request("POST", "/api/agents/echo/chat").header("content-type", "text/plain").body("{}");
    assert_eq!(crate::common::answer(wrong_type).await.status, 415);
    assert_eq!(server.send("PUT", "/api/status", json!({})).await.status, 405);
    assert_eq!(server.get("/nowhere").await.json()["code"], "NOT_FOUND");
}

#[tokio::test]
async fn no_answer_repeats_a_header_or_a_text_of_the_caller() {
    let server = serve("").await;
    let secret = "s3cr3t-input";
    let inject = format!("a\r\nx-evil: {secret}");
    for body in [
        json!({"message": "x", "session": inject}),
        json!({"message": "x", "priority": secret}),
        json!({"message": 1, secret: 2}),
        json!({"message": "x", "timeout_ms": secret}),
        json!({"message": "x", "user": secret}),
    ] {
        let answer = server.post("/api/agents/echo/chat", body.clone()).await;
        assert!(answer.headers.get("x-evil").is_none());
        if answer.status >= 400 {
            assert!(!answer.text.contains(secret), "{body}: {}", answer.text);
        }
    }
    for path in [format!("/api/agents/{secret}/chat"), format!("/api/tasks/{secret}"), format!("/{secret}")] {
        for answer in [server.post(&path, json!({"message": "x"})).await, server.get(&path).await] {
            assert!(answer.status >= 400 && !answer.text.contains(secret), "{path}: {}", answer.text);
        }
    }
    let odd = server.get(&format!("/api/tasks?{secret}=1&status={secret}")).await;
    assert!(odd.status == 400 && !odd.text.contains(secret));
    let key: Value = json!({"kind": "k", "lanes": [format!("{secret}*")]});
    let star = server.post("/api/tasks", key).await;
    assert!(star.status == 400 && !star.text.contains(secret), "{star:?}");
}
