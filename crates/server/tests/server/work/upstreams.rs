//! Agents behind HTTP: what they get, how they answer, how they are steered and stopped.

use axum::extract::State;
use axum::http::header;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::common::{Events, Gate, PATIENCE, Running, serve};

/// A server whose agent answers every turn with fixed events.
async fn answering(events: &'static str) -> Running {
    answering_with("text/event-stream", events).await
}

/// A server whose agent answers every turn with a fixed body.
async fn answering_with(form: &'static str, body: &'static str) -> Running {
    let told = |State((form, body)): State<(&'static str, &'static str)>| async move {
        ([(header::CONTENT_TYPE, form)], body)
    };
    let router = axum::Router::new().route("/", post(told)).with_state((form, body));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    serve(&format!("agent \"a\" {{ url = \"{url}\" }}")).await
}

#[tokio::test]
async fn an_upstream_that_reports_a_failure_fails_the_turn_despite_other_events() {
    for (events, words) in [
        (
            "event: delta\ndata: {\"text\":\"half\"}\n\nevent: failed\ndata: {\"error\":\"boom\"}\n\nevent: done\ndata: {}\n\n",
            "boom",
        ),
        ("event: error\ndata: {\"error\":{\"message\":\"overloaded\"}}\n\n", "overloaded"),
        ("event: error\ndata: {\"error\":\"Draining\",\"detail\":\"it stops\"}\n\n", "it stops"),
        ("event: error\ndata: just words\n\nevent: done\ndata: {}\n\n", "just words"),
        (
            "event: cancelled\ndata: {\"reason\":\"caller\"}\n\nevent: done\ndata: {}\n\n",
            "cancelled (caller)",
        ),
        ("event: timed_out\ndata: {}\n\nevent: done\ndata: {}\n\n", "timed_out"),
        ("event: expired\r\n\r\nevent: done\r\ndata: {}\r\n\r\n", "expired"),
    ] {
        let server = answering(events).await;
        let failed = server.post("/api/agents/a/chat", json!({"message": "hi"})).await;
        assert_eq!((failed.status, &failed.json()["code"]), (502, &json!("RUN_FAILED")), "{events}");
        assert!(failed.json()["detail"].as_str().unwrap().contains(words), "{events}: {failed:?}");
    }
}

#[tokio::test]
async fn an_upstream_that_retries_and_completes_completes_the_turn() {
    let events = "event: retrying\ndata: {\"error\":\"boom\"}\n\nevent: delta\ndata: {\"text\":\"whole\"}\n\nevent: done\ndata: {}\n\n";
    let server = answering(events).await;
    let answer = server.post("/api/agents/a/chat", json!({"message": "hi"})).await;
    assert_eq!((answer.status, &answer.json()["response"]), (200, &json!("whole")), "{answer:?}");
}

#[tokio::test]
async fn an_answer_keeps_all_its_fields() {
    let body =
        r#"{"response":"hi","metadata":{"cost_usd":0.1},"execution_log":[{"step":1}],"session_id":"s-1"}"#;
    let whole: Value = serde_json::from_str(body).unwrap();
    let server = answering_with("application/json", body).await;
    let answer = server.post("/api/agents/a/chat", json!({"message": "hi"})).await.json();
    for field in ["response", "metadata", "execution_log", "session_id"] {
        assert_eq!(answer[field], whole[field], "{answer}");
    }
    let id = answer["execution"]["id"].as_str().unwrap();
    assert_eq!(server.get(&format!("/api/tasks/{id}")).await.json()["result"], whole);
}

#[tokio::test]
async fn the_events_of_an_upstream_keep_their_names_and_end_with_any_usual_word() {
    for end in ["complete", "completed", "done", "result"] {
        // The stream goes on after the end, so that the server must not wait for it.
        let events = format!(
            "event: agent:action\ndata: {{\"action\":\"click\"}}\n\nevent: started\ndata: {{\"a\":1}}\n\n\
             event: {end}\ndata: {{\"finalAnswer\":\"42\",\"success\":true}}\n\nevent: error\ndata: {{}}\n\n"
        );
        let server = answering(events.leak()).await;
        let events =
            Events::chat(&server, "/api/agents/a/chat", json!({"message": "hi"}), &[]).await.rest().await;
        let named = |name: &str| events.iter().filter(|event| event.name == name).collect::<Vec<_>>();
        let [action] = named("agent:action")[..] else { panic!("{events:?}") };
        assert!(action.data["action"] == "click" && action.data["task_id"].is_string(), "{action:?}");
        let [taken] = named("progress")[..] else { panic!("{events:?}") };
        assert_eq!((&taken.data["event"], &taken.data["progress"]), (&json!("started"), &json!({"a": 1})));
        let result = json!({"finalAnswer": "42", "success": true});
        assert_eq!(named("completed")[0].data["result"], result, "{events:?}");
        let chat = server.post("/api/agents/a/chat", json!({"message": "hi"})).await;
        assert_eq!((chat.status, &chat.json()["response"]), (200, &result), "{chat:?}");
    }
}

#[tokio::test]
async fn an_empty_success_of_an_upstream_is_a_failure_that_says_so() {
    for (form, body) in [
        ("application/json", ""),
        ("application/json", "{}"),
        ("application/json", r#"{"response":""}"#),
        ("text/plain", " "),
        ("text/event-stream", "event: complete\ndata: {}\n\n"),
        ("text/event-stream", ""),
    ] {
        let server = answering_with(form, body).await;
        let empty = server.post("/api/agents/a/chat", json!({"message": "hi"})).await;
        assert_eq!((empty.status, &empty.json()["code"]), (502, &json!("RUN_FAILED")), "{form} {body:?}");
        assert!(empty.json()["detail"].as_str().unwrap().contains("without any text"), "{empty:?}");
    }
}

#[tokio::test]
async fn an_upstream_gets_everything_about_a_message() {
    let gate = Gate::open().await;
    let server = serve(&format!("agent \"a\" {{ url = \"{}\" }}", gate.url)).await;
    let message = json!({
        "agent": "a", "text": "", "message_id": "m-1", "channel": "telegram", "to": "ann", "account": "bot",
        "thread": 42, "sender": "u-1", "sender_name": "Ann", "permissions": ["write", "queue"],
        "metadata": {"locale": "de"}, "attachments": [{"type": "image", "url": "https://x/1.png"}],
    });
    let sent = server.post("/api/sessions/s/messages", message).await;
    assert_eq!(sent.json()["outcome"], "started", "{sent:?}");
    let turn = gate.arrival().await;
    let fields = ["agent", "message", "text", "session", "channel", "to", "account", "thread", "permissions"];
    let got: Vec<&Value> = fields.iter().map(|field| &turn[field]).collect();
    let expected = [
        json!("a"),
        json!(""),
        json!(""),
        json!("s"),
        json!("telegram"),
        json!("ann"),
        json!("bot"),
        json!("42"),
        json!(["queue", "write"]),
    ];
    assert_eq!(got, expected.iter().collect::<Vec<_>>(), "{turn}");
    assert_eq!((&turn["fresh"], &turn["redelivered"]), (&json!(false), &json!(false)));
    let said = &turn["messages"][0];
    assert_eq!((&said["message_id"], &said["sender"]), (&json!("m-1"), &json!("u-1")), "{turn}");
    assert_eq!(said["metadata"], json!({"locale": "de"}));
    assert_eq!(said["attachments"], json!([{"type": "image", "url": "https://x/1.png"}]));
    let fresh = json!({"agent": "a", "text": "/new hello", "permissions": ["queue"]});
    server.post("/api/sessions/s/messages", fresh).await;
    let turn = gate.arrival().await;
    assert_eq!((&turn["message"], &turn["fresh"]), (&json!("hello"), &json!(true)), "{turn}");
    let empty = server.post("/api/sessions/t/messages", json!({"agent": "a", "text": " "})).await;
    assert!(empty.status == 400 && empty.text.contains("a text or attachments"), "{empty:?}");
    let too_long = json!({"agent": "a", "text": "x", "metadata": "x".repeat(256 * 1024)});
    let too_long = server.post("/api/sessions/t/messages", too_long).await;
    assert!(too_long.status == 413 && too_long.text.contains("metadata and attachments"), "{too_long:?}");
}

#[tokio::test]
async fn an_upstream_gets_the_fields_of_other_systems_and_unknown_ones_are_named() {
    let gate = Gate::open().await;
    let config = format!(
        "agent \"a\" {{\nurl = \"{}\"\ntask_url = \"{}\"\n}}",
        gate.url.replace("/run", "/stream"),
        gate.url
    );
    let server = serve(&config).await;
    let fields = json!({
        "model": "m", "system_prompt": "be brief", "allowed_tools": ["Read"], "timeout_seconds": 900, "stream": false,
    });
    let mut body = fields.clone();
    body["message"] = "hi".into();
    let accepted =
        server.send_with("POST", "/api/agents/a/task", body, &[("prefer", "respond-async")]).await.json();
    let turn = gate.arrival().await;
    for (field, value) in fields.as_object().unwrap() {
        assert_eq!(&turn[field], value, "{turn}");
    }
    assert_eq!((&turn["stateless"], turn.get("session")), (&json!(true), None));
    let task = format!("/api/tasks/{}", accepted["execution"]["id"].as_str().unwrap());
    assert_eq!(server.get(&task).await.json()["timeout_ms"], 900_000);
    let lane = server.get("/api/lanes/task%3Aa").await.json();
    assert_eq!(lane["settings"]["timeout"], "300000ms", "{lane}");
    gate.let_go(1);
    let wrong = server.post("/api/agents/a/chat", json!({"message": "hi", "timeout_seconds": 0})).await;
    assert!(wrong.status == 400 && wrong.text.contains("timeout_seconds must be"), "{wrong:?}");
    let unknown = server.post("/api/agents/a/chat", json!({"message": "hi", "temperature": 1})).await;
    assert!(unknown.status == 400 && unknown.text.contains("temperature is not a field"), "{unknown:?}");
    // The name of a field may hold anything, and is repeated only if it looks like one.
    let odd = server.post("/api/agents/a/chat", json!({"message": "hi", "<b>secret": 1})).await;
    assert!(odd.status == 400 && !odd.text.contains("secret"), "{odd:?}");
}

/// An upstream whose turns last until they are let go, and that hears messages and the order to stop.
struct Steered {
    config: String,
    heard: tokio::sync::mpsc::UnboundedReceiver<Value>,
    gate: Gate,
}

impl Steered {
    /// `status` answers messages.
    async fn open(status: u16) -> Steered {
        let gate = Gate::open().await;
        let (tell, heard) = tokio::sync::mpsc::unbounded_channel();
        let told = move |axum::Json(body): axum::Json<Value>| {
            let tell = tell.clone();
            async move {
                let is_message = body["type"] == "steer";
                tell.send(body).unwrap();
                axum::http::StatusCode::from_u16(if is_message { status } else { 200 }).unwrap()
            }
        };
        let router = axum::Router::new().route("/", post(told));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let config = format!(
            "agent \"a\" {{\nurl = \"{}\"\nsteer_url = \"{url}\"\ncancel_url = \"{url}\"\n}}",
            gate.url
        );
        Steered { config, heard, gate }
    }

    async fn next(&mut self) -> Value {
        tokio::time::timeout(PATIENCE, self.heard.recv()).await.expect("nothing came").unwrap()
    }
}

#[tokio::test]
async fn an_upstream_with_addresses_for_it_is_steered_and_stopped() {
    let mut upstream = Steered::open(204).await;
    let server = serve(&upstream.config).await;
    let mut events = server.events("/api/sessions/s/events").await;
    let messages = "/api/sessions/s/messages";
    let first = server.post(messages, json!({"agent": "a", "text": "go", "mode": "steer"})).await.json();
    upstream.gate.arrival().await;
    let second =
        json!({"agent": "a", "text": "left", "mode": "steer", "sender": "u-1", "metadata": {"n": 1}});
    // The turn takes steering soon after it has begun.
    let second = loop {
        let session = server.get("/api/sessions/s").await.json();
        if session["current_turn"]["takes_steering"] == true {
            break server.post(messages, second).await.json();
        }
        events.next().await;
    };
    assert_eq!(second["outcome"], "steered", "{second}");
    let steer = upstream.next().await;
    assert_eq!((&steer["type"], &steer["task_id"]), (&json!("steer"), &first["task_id"]), "{steer}");
    assert_eq!((&steer["text"], &steer["session"]), (&json!("left"), &json!("s")));
    let said = &steer["messages"][0];
    assert_eq!((&said["sender"], &said["metadata"]), (&json!("u-1"), &json!({"n": 1})), "{steer}");
    events.next_named("steered").await;
    let task = format!("/api/tasks/{}", first["task_id"].as_str().unwrap());
    let cancelled = server.send("DELETE", &task, json!(null)).await.json();
    assert_eq!(cancelled["status"], "cancelling");
    let stop = upstream.next().await;
    assert_eq!((&stop["type"], &stop["reason"]), (&json!("cancel"), &json!("caller")), "{stop}");
    assert_eq!(stop["fence"], steer["fence"]);
    server.until_numbers((0, 0)).await;
}

#[tokio::test]
async fn a_message_that_an_upstream_does_not_take_becomes_a_turn() {
    let mut upstream = Steered::open(503).await;
    let server = serve(&upstream.config).await;
    let mut events = server.events("/api/sessions/s/events").await;
    let messages = "/api/sessions/s/messages";
    server.post(messages, json!({"agent": "a", "text": "go", "mode": "steer"})).await;
    upstream.gate.arrival().await;
    while server.get("/api/sessions/s").await.json()["current_turn"]["takes_steering"] != true {
        events.next().await;
    }
    let message = json!({"agent": "a", "text": "left", "mode": "steer", "debounce_ms": 0});
    assert_eq!(server.post(messages, message).await.json()["outcome"], "steered");
    upstream.next().await;
    upstream.gate.let_go(2);
    assert_eq!(upstream.gate.arrival().await["message"], "left");
}

#[tokio::test]
async fn a_program_gets_the_route_of_its_turn() {
    let program = "agent \"a\" { command = [\"sh\", \"-c\", \"cat; echo; echo $LANEWAY_TURN\"] }";
    let server = serve(program).await;
    let mut events = server.events("/api/events").await;
    let message =
        json!({"agent": "a", "text": "secret words", "channel": "telegram", "thread": 7, "sender": "u-1"});
    server.post("/api/sessions/s/messages", message).await;
    let result = events.next_named("completed").await.data["result"].as_str().unwrap().to_owned();
    let (text, turn) = result.trim().split_once('\n').unwrap();
    let turn: Value = serde_json::from_str(turn).unwrap();
    assert_eq!((text, &turn["channel"], &turn["thread"]), ("secret words", &json!("telegram"), &json!("7")));
    assert_eq!((&turn["messages"][0]["sender"], turn.to_string().contains("secret")), (&json!("u-1"), false));
}
