//! MCP next to the other transports: one limit, one guard, one set of counters. Real MCP clients are in `tests/mcp`.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::common::{Answer, Events, Gate, PATIENCE, Running, serve, serve_in};

const VERSION: &str = "2026-07-28";

/// A request of the current revision, which needs no handshake.
async fn ask(server: &Running, method: &str, mut params: Value, headers: &[(&str, &str)]) -> Answer {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let name = params["name"].as_str().unwrap_or_default().to_owned();
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let mut all = vec![
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", VERSION),
        ("mcp-method", method),
    ];
    if !name.is_empty() {
        all.push(("mcp-name", &name));
    }
    all.extend(headers);
    server.send_with("POST", "/mcp", body, &all).await
}

async fn call(server: &Running, tool: &str, arguments: Value, headers: &[(&str, &str)]) -> Value {
    let answer = ask(server, "tools/call", json!({ "name": tool, "arguments": arguments }), headers).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let data = answer.text.lines().find_map(|line| line.strip_prefix("data: {")).unwrap();
    serde_json::from_str::<Value>(&format!("{{{data}")).unwrap()["result"].clone()
}

#[tokio::test]
async fn a_limit_that_sse_and_a_socket_have_filled_refuses_a_call_with_the_same_number_and_counts_it() {
    let gate = Gate::open().await;
    let agent = format!(
        "agent \"coder\" {{\n url = \"{}\"\n max_concurrency = 2\n max_queued = 0\n lanes = []\n}}",
        gate.url
    );
    let server = serve(&agent).await;
    let body = json!({"message": "1", "session": "a"});
    let mut sse = Events::chat(&server, "/api/agents/coder/chat", body, &[]).await;
    sse.next_named("started").await;
    let (mut socket, _) =
        tokio_tungstenite::connect_async(format!("ws://{}/api/ws", server.address)).await.unwrap();
    let data = json!({"agent": "coder", "message": "2", "session": "b"});
    socket.send(Message::text(json!({"event": "submit", "data": data}).to_string())).await.unwrap();
    while !heard(&mut socket).await.contains("\"started\"") {}

    let refused = server.post("/api/agents/coder/chat", json!({"message": "3", "session": "c"})).await.json();
    // A malformed request is refused before the check for room.
    let nonsense =
        call(&server, "chat_with_agent", json!({"agent_name": "coder", "message": " "}), &[]).await;
    assert_eq!(nonsense["structuredContent"]["code"], "INVALID");
    let arguments = json!({"agent_name": "coder", "message": "4", "session": "d"});
    let busy = call(&server, "chat_with_agent", arguments, &[]).await;
    assert_eq!(busy["isError"], true);
    // Clients that read only the text get all of it there.
    let text: Value = serde_json::from_str(busy["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, busy["structuredContent"]);
    let busy = &busy["structuredContent"];
    assert_eq!((&busy["status"], &busy["queue_status"]), (&json!("agent_busy"), &json!("queue_full")));
    assert_eq!(busy["details"]["retry_after"], busy["retry_after_seconds"]);
    for field in ["code", "lane", "running", "max_concurrency", "queue_length", "max_queued", "error"] {
        assert_eq!(busy["details"][field], refused[field], "{field}");
    }
    let metrics = server.get("/metrics").await.text;
    let counted = "laneway_rejected_total{lane=\"agent:coder\",code=\"AT_CAPACITY\"} 2";
    assert!(metrics.contains(counted), "{metrics}");
    gate.let_go(2);
    server.until_numbers((0, 0)).await;
}

async fn heard<S>(socket: &mut S) -> String
where
    S: StreamExt<Item = Result<Message, tokio_tungstenite::tungstenite::Error>> + Unpin,
{
    let next = tokio::time::timeout(PATIENCE, socket.next()).await.expect("no frame came");
    next.unwrap().unwrap().into_text().unwrap().to_string()
}

#[tokio::test]
async fn mcp_accepts_only_known_tokens_hosts_and_origins() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = serve_in("", None, Some(dir.path().to_owned())).await;
    let created = server.post("/api/tokens", json!({"subject": "root", "scopes": ["admin"]})).await.json();
    for method in ["GET", "POST", "DELETE"] {
        let refused = server.send(method, "/mcp", json!({})).await;
        assert_eq!((refused.status, refused.header("www-authenticate")), (401, "Bearer"), "{method}");
    }
    server.token = Some(created["token"].as_str().unwrap().to_owned());
    assert_eq!(server.send("PUT", "/mcp", json!({})).await.status, 405);
    for (header, value) in [("host", "evil.example"), ("origin", "https://evil.example"), ("origin", "null")]
    {
        assert_eq!(ask(&server, "tools/list", json!({}), &[(header, value)]).await.status, 403, "{header}");
    }
    assert_eq!(ask(&server, "tools/list", json!({}), &[]).await.status, 200);
}

#[tokio::test]
async fn a_call_needs_a_running_parent() {
    let (of_parent, of_child) = (Gate::open().await, Gate::open().await);
    let agents = format!(
        "agent \"coder\" {{ url = \"{}\" }}\nagent \"helper\" {{ url = \"{}\" }}",
        of_parent.url, of_child.url
    );
    let server = serve(&agents).await;
    let prefer = [("prefer", "respond-async")];
    let parent = server.send_with("POST", "/api/agents/coder/chat", json!({"message": "1"}), &prefer).await;
    let parent = parent.json()["execution"]["id"].as_str().unwrap().to_owned();
    of_parent.arrival().await;
    let arguments = json!({"agent_name": "helper", "message": "2"});
    let header = [("x-laneway-parent", parent.as_str())];
    let calling = call(&server, "chat_with_agent", arguments.clone(), &header);
    let looking = async {
        of_child.arrival().await;
        let queue = server.get("/api/agents/helper/queue").await.json();
        let child = queue["current_execution"]["id"].as_str().unwrap().to_owned();
        let view = server.get(&format!("/api/tasks/{child}")).await.json();
        of_child.let_go(1);
        view
    };
    let (answer, view) = tokio::join!(calling, looking);
    assert_eq!(answer["structuredContent"]["response"], "answer to 2");
    assert_eq!((&view["parent"], &view["source"]), (&json!(parent), &json!("agent")));
    of_parent.let_go(1);
    server.until_numbers((0, 0)).await;
    let late = call(&server, "chat_with_agent", arguments, &header).await;
    assert_eq!(late["isError"], true, "{late}");
}

#[tokio::test]
async fn sessions_of_older_clients_cost_nothing_and_end() {
    let server = serve("").await;
    let hello = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
        },
    });
    let accept = [("accept", "application/json, text/event-stream")];
    let mut sessions = Vec::new();
    for _ in 0..3 {
        let answer = server.send_with("POST", "/mcp", hello.clone(), &accept).await;
        assert_eq!(answer.status, 200);
        sessions.push(answer.header("mcp-session-id").to_owned());
    }
    let nameless = server.send_with("DELETE", "/mcp", json!({}), &[]).await;
    assert_eq!((nameless.status, &nameless.json()["code"]), (400, &json!("INVALID")));
    let list = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/list" });
    for session in &sessions {
        let header = [("mcp-session-id", session.as_str())];
        let asked = [&accept[..], &header].concat();
        assert_eq!(server.send_with("POST", "/mcp", list.clone(), &asked).await.status, 200);
        assert_eq!(server.send_with("GET", "/mcp", json!(null), &asked).await.status, 405);
        assert_eq!(server.send_with("DELETE", "/mcp", json!({}), &header).await.status, 204);
        assert_eq!(server.send_with("POST", "/mcp", list.clone(), &asked).await.status, 404);
        assert_eq!(server.send_with("DELETE", "/mcp", json!({}), &header).await.status, 404);
    }
}

#[tokio::test]
async fn a_wrong_request_is_refused_as_json_and_the_error_names_a_wrong_argument() {
    let server = serve("").await;
    let accept = [("accept", "application/json, text/event-stream")];
    let no_session = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/list" });
    let samples = [
        (json!([no_session]), &[][..], 400, json!(null), -32600, "takes no batches"),
        (json!("hello"), &[], 400, json!(null), -32600, "is an object"),
        (no_session, &[("mcp-session-id", "unknown")], 404, json!(7), -32600, "Session not found"),
    ];
    for (body, headers, status, id, code, why) in samples {
        let answer = server.send_with("POST", "/mcp", body.clone(), &[&accept, headers].concat()).await;
        assert_eq!(answer.status, status, "{body}: {answer:?}");
        let told = answer.json();
        assert_eq!((&told["id"], &told["error"]["code"]), (&id, &json!(code)), "{body}: {told}");
        assert!(told["error"]["message"].as_str().unwrap().contains(why), "{body}: {told}");
    }
    let samples = [
        (json!({ "agent_name": "echo", "message": 5 }), "`message` does not fit: expected a string."),
        (json!({ "agent_name": [], "message": 5 }), "`agent_name` does not fit: expected a string."),
        (
            json!({ "agent_name": "echo", "message": "x", "parallel": "yes" }),
            "`parallel` does not fit: expected a boolean.",
        ),
    ];
    for (arguments, why) in samples {
        let refused = call(&server, "chat_with_agent", arguments, &[]).await;
        assert_eq!(refused["content"][0]["text"], why);
        assert_eq!(refused["isError"], true);
    }
}

#[tokio::test]
async fn an_agent_that_was_created_at_run_time_is_listed_and_answers() {
    let server = serve("agent \"fixed\" { echo = true }").await;
    assert_eq!(server.post("/api/agents", json!({"name": "helper", "echo": true})).await.status, 201);
    let listed = call(&server, "list_agents", json!({}), &[]).await["structuredContent"]["items"].clone();
    let names: Vec<&Value> = listed.as_array().unwrap().iter().map(|agent| &agent["name"]).collect();
    assert_eq!(names, ["fixed", "helper"]);
    let told = call(&server, "chat_with_agent", json!({"agent_name": "helper", "message": "hi"}), &[]).await;
    assert_eq!(told["structuredContent"]["response"], "hi");
}
