//! Which requests start, wait or are refused, and in which order the checks run.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio_tungstenite::tungstenite::Message;

use crate::common::{Events, Gate, serve};

fn agent(gate: &Gate, settings: &str) -> String {
    format!("agent \"coder\" {{\n url = \"{}\"\n {settings}\n lanes = []\n}}", gate.url)
}

async fn async_chat(server: &crate::common::Running, session: &str) -> crate::common::Answer {
    let body = json!({ "message": "hello", "session": session });
    server.send_with("POST", "/api/agents/coder/chat", body, &[("prefer", "respond-async")]).await
}

#[tokio::test]
async fn one_limit_covers_every_transport_and_all_refuse_in_the_same_words() {
    let gate = Gate::open().await;
    let server = serve(&agent(&gate, "max_concurrency = 2\n max_queued = 0")).await;
    let mut sse =
        Events::chat(&server, "/api/agents/coder/chat", json!({"message": "1", "session": "a"}), &[]).await;
    sse.next_named("started").await;
    let url = format!("ws://{}/api/ws", server.address);
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
    let submit = |message: &str| {
        let data = json!({"agent": "coder", "message": message, "session": message});
        Message::text(json!({"event": "submit", "data": data, "id": message}).to_string())
    };
    socket.send(submit("2")).await.unwrap();
    let started = loop {
        let frame = frame(&mut socket).await;
        if frame["event"] == "started" && frame["data"].get("request_id").is_some() {
            break frame["data"].clone();
        }
    };
    assert_eq!(started["request_id"], "2");
    assert_eq!(server.numbers().await, (2, 0));

    let refused = server.post("/api/agents/coder/chat", json!({"message": "3", "session": "c"})).await;
    assert_eq!(refused.status, 429);
    assert_eq!(refused.header("content-type"), "application/problem+json");
    let problem = refused.json();
    for (field, value) in [
        ("code", json!("AT_CAPACITY")),
        ("type", json!("urn:laneway:problem:at-capacity")),
        ("status", json!(429)),
        ("retryable", json!(true)),
        ("lane", json!("agent:coder")),
        ("running", json!(2)),
        ("max_concurrency", json!(2)),
        ("queue_length", json!(0)),
        ("max_queued", json!(0)),
        ("phase", json!("setup")),
        ("agent", json!("coder")),
        ("error", json!("Agent queue is full")),
    ] {
        assert_eq!(problem[field], value, "{field}");
    }
    let id = problem["task_id"].as_str().unwrap();
    assert_eq!((refused.header("x-laneway-task-id"), problem["taskId"].as_str()), (id, Some(id)));
    assert_eq!(refused.header("retry-after"), problem["retry_after"].to_string());
    assert_eq!(refused.header("retry-after-ms"), problem["retry_after_ms"].to_string());
    assert_eq!(refused.header("x-should-retry"), "true");

    // The socket refuses with the same words and stays open: when there is room, it accepts the next request.
    socket.send(submit("4")).await.unwrap();
    let error = loop {
        let frame = frame(&mut socket).await;
        if frame["event"] == "error" {
            break frame["data"].clone();
        }
    };
    for field in ["code", "lane", "running", "max_concurrency", "queue_length", "retryable", "phase"] {
        assert_eq!(error[field], problem[field], "{field}");
    }
    assert_eq!(error["request_id"], "4");
    gate.let_go(1);
    server.until_numbers((1, 0)).await;
    socket.send(submit("5")).await.unwrap();
    while frame(&mut socket).await["event"] != "started" {}
    gate.let_go(5);
    server.until_numbers((0, 0)).await;
}

async fn frame<S>(socket: &mut S) -> Value
where
    S: StreamExt<Item = Result<Message, tokio_tungstenite::tungstenite::Error>> + Unpin,
{
    loop {
        let next = tokio::time::timeout(crate::common::PATIENCE, socket.next()).await.expect("no frame came");
        if let Message::Text(text) = next.unwrap().unwrap() {
            return serde_json::from_str(&text).unwrap();
        }
    }
}

#[tokio::test]
async fn the_retry_time_is_computed_from_measured_attempts() {
    let gate = Gate::open().await;
    let server = serve(&agent(&gate, "max_queued = 0")).await;
    let first = async_chat(&server, "a").await;
    assert_eq!(first.status, 202);
    gate.arrival().await;
    let unknown = async_chat(&server, "b").await.json();
    let wait_ms = unknown["retry_after_ms"].as_u64().unwrap();
    assert!((100..=5500).contains(&wait_ms), "about as long as the first one has run: {unknown}");
    gate.let_go(1);
    server.until_numbers((0, 0)).await;
    assert_eq!(async_chat(&server, "a").await.status, 202);
    gate.arrival().await;
    let measured = async_chat(&server, "b").await.json();
    assert_eq!(measured["retry_after"], 1, "the run took less than a second: {measured}");
    gate.let_go(1);
}

#[tokio::test]
async fn validation_comes_first_and_neither_a_wrong_request_nor_a_slow_upload_holds_a_slot() {
    let gate = Gate::open().await;
    let server = serve(&agent(&gate, "max_queued = 0")).await;
    assert_eq!(async_chat(&server, "a").await.status, 202);
    for body in
        [json!({"message": ""}), json!({"message": "  "}), json!({}), json!({"message": 3}), json!([])]
    {
        let answer = server.post("/api/agents/coder/chat", body.clone()).await;
        assert_eq!((answer.status, &answer.json()["code"]), (400, &json!("INVALID")), "{body}");
    }
    let broken = server.request("POST", "/api/agents/coder/chat").header("content-type", "application/json");
    let broken = crate::common::answer(broken.body("{\"message\": ")).await;
    assert_eq!(broken.status, 400);
    assert!(!broken.text.contains("{\\\"message"), "{}", broken.text);
    assert_eq!(server.post("/api/agents/unknown/chat", json!({"message": "x"})).await.status, 404);
    gate.let_go(1);
    server.until_numbers((0, 0)).await;

    let mut slow = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST /api/agents/coder/chat HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{{",
        server.address
    );
    slow.write_all(head.as_bytes()).await.unwrap();
    assert_eq!(server.numbers().await, (0, 0));
    assert_eq!(async_chat(&server, "b").await.json()["execution"]["status"], "running");
    gate.let_go(1);
}

#[tokio::test]
async fn of_five_callers_one_runs_three_wait_in_order_and_one_is_refused_every_time() {
    let gate = Gate::open().await;
    let server = serve(&agent(&gate, "")).await;
    for round in 0..300 {
        let asks = (0..5).map(|n| async_chat(&server, ["a", "b", "c", "d", "e"][n]));
        let answers = futures_util::future::join_all(asks).await;
        let mut outcomes: Vec<String> = Vec::new();
        for answer in &answers {
            let body = answer.json();
            outcomes.push(match answer.status {
                202 => format!("{} {}", body["execution"]["status"], body["execution"]["position"]),
                status => format!("{status} {}", body["code"]),
            });
        }
        outcomes.sort();
        assert_eq!(
            outcomes,
            ["\"queued\" 1", "\"queued\" 2", "\"queued\" 3", "\"running\" null", "429 \"AT_CAPACITY\""],
            "round {round}"
        );
        gate.let_go(4);
        server.until_numbers((0, 0)).await;
    }
}

#[tokio::test]
async fn a_waiting_caller_gets_its_position_until_the_start() {
    let gate = Gate::open().await;
    let server = serve(&agent(&gate, "")).await;
    let chat = |message: &'static str, session: &'static str| {
        Events::chat(&server, "/api/agents/coder/chat", json!({"message": message, "session": session}), &[])
    };
    let mut first = chat("1", "a").await;
    first.next_named("started").await;
    let mut second = chat("2", "b").await;
    assert_eq!(second.next().await.unwrap().name, "accepted");
    assert_eq!(second.next_named("queued").await.data["position"], 1);
    let mut third = chat("3", "c").await;
    assert_eq!(third.next_named("queued").await.data["position"], 2);

    let now = json!({"message": "now or never", "session": "d", "wait_timeout_ms": 0});
    let refused = server.post("/api/agents/coder/chat", now).await;
    assert_eq!(refused.status, 429);
    for (field, value) in [
        ("error", json!("Agent is busy")),
        ("reason", json!("BUSY")),
        ("lane", json!("agent:coder")),
        ("running", json!(1)),
        ("queue_length", json!(2)),
    ] {
        assert_eq!(refused.json()[field], value, "{field}");
    }
    let queue = server.get("/api/agents/coder/queue").await.json();
    assert_eq!(refused.json()["current_task_id"], queue["current_execution"]["id"]);
    assert!(
        refused.json()["detail"]
            .as_str()
            .unwrap()
            .contains(queue["current_execution"]["id"].as_str().unwrap())
    );
    assert_eq!(queue["queue_length"], 2);
    assert_eq!(queue["queued_executions"][1]["message"], "3");

    gate.let_go(1);
    assert_eq!(first.next_named("completed").await.data["result"], "answer to 1");
    second.next_named("started").await;
    assert_eq!(third.next_named("position").await.data["position"], 1);
    gate.let_go(2);
    let rest: Vec<String> = third.rest().await.into_iter().map(|event| event.name).collect();
    assert_eq!(rest, ["started", "delta", "completed", "done"]);
}

#[tokio::test]
async fn the_answer_describes_the_execution() {
    let gate = Gate::open().await;
    let server = serve(&agent(&gate, "")).await;
    gate.let_go(1);
    let answer = server.post("/api/agents/coder/chat", json!({"message": "hi"})).await;
    let body = answer.json();
    assert_eq!((answer.status, &body["response"]), (200, &json!("answer to hi")));
    let execution = &body["execution"];
    assert_eq!(execution["queue_status"], "running");
    assert_eq!((&execution["was_queued"], &execution["attempt"]), (&json!(false), &json!(1)));
    assert_eq!(answer.header("x-laneway-task-id"), execution["id"].as_str().unwrap());
    let task = server.get(&format!("/api/tasks/{}", execution["id"].as_str().unwrap())).await.json();
    assert_eq!((&task["status"], &task["result"]), (&json!("completed"), &json!("answer to hi")));
    assert_eq!(task["lanes"], json!(["agent:coder"]));
}

#[tokio::test]
async fn turns_without_a_session_run_together_up_to_the_limit_of_the_agent() {
    let gate = Gate::open().await;
    let example = include_str!("../../../../../examples/browser-agent.hcl");
    let server = serve(&example.replace("http://127.0.0.1:9000/api/chat", &gate.url)).await;
    let chat = || {
        let body = json!({"message": "look"});
        server.send_with("POST", "/api/agents/browser/chat", body, &[("prefer", "respond-async")])
    };
    for _ in 0..3 {
        assert_eq!(chat().await.status, 202);
        gate.arrival().await;
    }
    let refused = chat().await;
    assert_eq!((refused.status, server.numbers().await), (429, (3, 0)));
    for (field, value) in
        [("lane", json!("agent:browser")), ("running", json!(3)), ("max_concurrency", json!(3))]
    {
        assert_eq!(refused.json()[field], value, "{field}");
    }
    gate.let_go(3);
}

#[tokio::test]
async fn stateless_tasks_of_an_agent_leave_room_for_its_turns() {
    let gate = Gate::open().await;
    let server = serve(&format!("agent \"coder\" {{ url = \"{}\" }}", gate.url)).await;
    for _ in 0..12 {
        let prefer = [("prefer", "respond-async")];
        server.send_with("POST", "/api/agents/coder/task", json!({"message": "x"}), &prefer).await;
    }
    for _ in 0..10 {
        gate.arrival().await;
    }
    assert_eq!(server.numbers().await, (10, 2));
    let turn = async_chat(&server, "ann").await.json();
    assert_eq!(turn["execution"]["status"], "running");
    assert_eq!(gate.arrival().await["session"], "ann");
    gate.let_go(13);
    server.until_numbers((0, 0)).await;
}

#[tokio::test]
async fn a_refusal_names_the_lane_that_refused_with_its_own_numbers() {
    let gate = Gate::open().await;
    let agent = format!(
        "lane \"main\" {{\nmax_concurrency = 1\nmax_queued = 1\n}}\n\
         agent \"coder\" {{\nurl = \"{}\"\nmax_concurrency = 3\nmax_queued = 5\n}}",
        gate.url
    );
    let server = serve(&agent).await;
    for session in ["a", "b"] {
        assert_eq!(async_chat(&server, session).await.status, 202);
    }
    let refused = async_chat(&server, "c").await.json();
    assert_eq!(
        (&refused["lane"], &refused["running"], &refused["queue_length"], &refused["error"]),
        (&json!("main"), &json!(1), &json!(1), &json!("At capacity"))
    );
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.starts_with("lane main is full: 1/1 running, 1/1 waiting; come back in "), "{detail}");
    assert_eq!(refused["agent"], "coder");
    gate.let_go(2);

    // Here the line of the agent has no room, although it has a free slot: the session is busy.
    let agent =
        format!("agent \"coder\" {{\nurl = \"{}\"\nmax_concurrency = 3\nmax_queued = 0\n}}", gate.url);
    let server = serve(&agent).await;
    assert_eq!(async_chat(&server, "a").await.status, 202);
    let refused = async_chat(&server, "a").await.json();
    assert_eq!(
        (&refused["lane"], &refused["running"], &refused["max_concurrency"], &refused["blocked_by"]),
        (&json!("agent:coder"), &json!(1), &json!(3), &json!("session:a"))
    );
    gate.let_go(1);
}

#[tokio::test]
async fn full_is_not_unhealthy_and_readiness_on_full_is_a_setting() {
    let gate = Gate::open().await;
    for (setting, ready) in [("", 200), ("server { ready_when_full = false }", 503)] {
        let lanes = "lane \"global\" { max_concurrency = 1 }";
        let server = serve(&format!("{lanes}\n{setting}\n{}", agent(&gate, ""))).await;
        assert_eq!(server.get("/readyz").await.status, 200);
        assert_eq!(async_chat(&server, "a").await.status, 202);
        let health = server.get("/healthz").await;
        assert_eq!(health.status, 200);
        assert_eq!(health.json(), json!({"status": "ok", "running": 1, "waiting": 0, "limit": 1}));
        assert_eq!(server.get("/readyz").await.status, ready);
        assert_eq!(server.get("/api/status").await.json()["line"], "Agent: 1/1");
        gate.let_go(1);
    }
}
