//! Operation: draining, reloads, lanes, the audit log, metrics, traces.

use std::sync::Arc;

use futures_util::StreamExt;
use laneway_store_sqlite::SqliteStore;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::common::{Events, Gate, serve, serve_in};

#[tokio::test]
async fn draining_refuses_new_tasks_finishes_running_ones_keeps_waiting_ones_and_closes_sockets_last() {
    let dir = tempfile::tempdir().unwrap();
    let gate = Gate::open().await;
    let config = format!("agent \"coder\" {{\n url = \"{}\"\n lanes = []\n}}", gate.url);
    let store = Arc::new(SqliteStore::open(dir.path().join("store")).unwrap());
    let mut server = serve_in(&config, Some(store), Some(dir.path().to_owned())).await;
    let ask = |session: &'static str| json!({"message": session, "session": session});
    let path = "/api/agents/coder/chat";
    let mut running = Events::chat(&server, path, ask("runs"), &[]).await;
    running.next_named("started").await;
    let waiting = server.send_with("POST", path, ask("waits"), &[("prefer", "respond-async")]).await.json();
    assert_eq!((&waiting["execution"]["status"], &waiting["durability"]), (&json!("queued"), &json!("disk")));
    let (mut socket, _) =
        tokio_tungstenite::connect_async(format!("ws://{}/api/ws", server.address)).await.unwrap();
    server.stop();
    while server.get("/readyz").await.status != 503 {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.get("/readyz").await.json()["status"], "draining");
    let refused = server.post(path, ask("late")).await;
    assert_eq!((refused.status, &refused.json()["code"]), (503, &json!("DRAINING")));
    assert_eq!(server.get("/healthz").await.status, 200);
    gate.let_go(1);
    assert_eq!(running.next_named("completed").await.data["result"], "answer to runs");
    let closed = loop {
        match socket.next().await.unwrap().unwrap() {
            Message::Close(frame) => break frame.unwrap(),
            _ => continue,
        }
    };
    assert_eq!(u16::from(closed.code), 1001);
    server.stopped().await;
    drop(server);

    let store = Arc::new(SqliteStore::open(dir.path().join("store")).unwrap());
    let server = serve_in(&config, Some(store), Some(dir.path().to_owned())).await;
    gate.let_go(1);
    server.until_numbers((0, 0)).await;
    let id = waiting["execution"]["id"].as_str().unwrap();
    assert_eq!(server.get(&format!("/api/tasks/{id}")).await.json()["result"], "answer to waits");
}

#[tokio::test]
async fn the_audit_log_records_clear_and_release_and_an_old_attempt_is_stale() {
    let gate = Gate::open().await;
    let server = serve(&format!("agent \"coder\" {{\n url = \"{}\"\n lanes = []\n}}", gate.url)).await;
    let path = "/api/agents/coder/chat";
    let asking = [("prefer", "respond-async"), ("x-source-agent", "planner")];
    for session in ["a", "b", "c"] {
        let body =
            json!({"message": session, "session": session, "user": {"id": "u1", "email": "ann@example.org"}});
        assert_eq!(server.send_with("POST", path, body, &asking).await.status, 202);
    }
    gate.arrival().await;
    let queue = server.get("/api/agents/coder/queue").await.json();
    assert_eq!((&queue["is_busy"], &queue["queue_length"]), (&json!(true), &json!(2)));
    let current = &queue["current_execution"];
    for (field, value) in [
        ("source", "agent"),
        ("source_agent", "planner"),
        ("source_user_id", "u1"),
        ("source_user_email", "ann@example.org"),
    ] {
        assert_eq!(current[field], value);
    }
    let cleared = server.post("/api/agents/coder/queue/clear", json!(null)).await.json();
    assert_eq!(cleared, json!({"status": "cleared", "agent": "coder", "cleared_count": 2}));
    let released = server.post("/api/agents/coder/queue/release", json!(null)).await.json();
    assert_eq!((&released["status"], &released["was_running"]), (&json!("released"), &json!(true)));
    assert_eq!(released["released"][0], current["id"]);
    assert_eq!(server.numbers().await, (0, 0));
    let audit = server.get("/api/audit").await.json();
    let told: Vec<(&str, &str, &str)> = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| {
            (e["action"].as_str().unwrap(), e["event_type"].as_str().unwrap(), e["actor"].as_str().unwrap())
        })
        .collect();
    assert_eq!(told, [("force_release", "agent_queue", "local"), ("clear_queue", "agent_queue", "local")]);
}

#[tokio::test]
async fn the_lane_external_stays_external_whatever_else_is_set() {
    let server = serve("lane \"external\" { max_queued = 3 }").await;
    let submit = async || server.post("/api/tasks", json!({"kind": "k", "payload": 1})).await.status;
    assert_eq!(submit().await, 202);
    let set = server.send("PATCH", "/api/lanes/external", json!({"max_queued": 2})).await.json();
    assert_eq!((&set["settings"]["handler"], &set["max_queued"]), (&json!("external"), &json!(2)));
    assert_eq!((submit().await, submit().await), (202, 429));
}

#[tokio::test]
async fn lanes_are_set_paused_and_cleared_and_errors_name_wrong_settings() {
    let server = serve("").await;
    let raised = server
        .send("PATCH", "/api/lanes/main", json!({"max_concurrency": 7, "retry": {"max_retries": 2}}))
        .await;
    assert_eq!((raised.status, &raised.json()["max_concurrency"]), (200, &json!(7)), "{raised:?}");
    assert_eq!(raised.json()["settings"]["retry.max_retries"], 2);
    for (body, word) in [
        (json!({"max_concurrency": 0}), "max_concurrency must be"),
        (json!({"max_concurrency": "abc"}), "max_concurrency must be"),
        (json!({"lease": "soon"}), "lease must be"),
        (json!({"speed": 3}), "speed is not a setting"),
        (json!({"<b>": 3}), "one of the keys is not a setting"),
        (json!({}), "at least one setting"),
    ] {
        let refused = server.send("PATCH", "/api/lanes/main", body.clone()).await;
        assert_eq!(refused.status, 400, "{body}");
        assert!(refused.json()["detail"].as_str().unwrap().contains(word), "{refused:?}");
    }
    assert_eq!(server.get("/api/lanes/main").await.json()["max_concurrency"], 7);
    let pattern = server.send("PATCH", "/api/lanes/session:*", json!({"max_queued": 5})).await;
    assert_eq!((pattern.status, &pattern.json()["max_queued"]), (200, &json!(5)));
    assert_eq!(server.get("/api/lanes/session:bob").await.json()["max_queued"], 5);
    assert_eq!(server.post("/api/lanes/agent:echo/pause", json!(null)).await.json()["paused"], true);
    let body = json!({"message": "x"});
    let waits =
        server.send_with("POST", "/api/agents/echo/chat", body, &[("prefer", "respond-async")]).await.json();
    let why = server
        .get(&format!("/api/tasks/{}/explain", waits["execution"]["id"].as_str().unwrap()))
        .await
        .json();
    assert_eq!(why["blockers"][0]["kind"], "paused");
    assert_eq!(server.post("/api/lanes/agent:echo/clear", json!(null)).await.json()["cancelled"], 1);
    assert_eq!(server.post("/api/lanes/agent:echo/drain", json!(null)).await.json()["draining"], true);
    assert_eq!(server.post("/api/agents/echo/chat", json!({"message": "x"})).await.status, 503);
    server.post("/api/lanes/agent:echo/resume", json!(null)).await;
    assert_eq!(server.post("/api/agents/echo/chat", json!({"message": "x"})).await.status, 200);
    let values = server.get("/api/config").await.json();
    let main = values["values"].as_array().unwrap().iter().find(|v| v["block"] == "lane \"main\"").unwrap();
    assert_eq!(main["source"], "api");
}

#[tokio::test]
async fn a_reload_applies_the_whole_file_or_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("laneway.hcl");
    std::fs::write(&file, "agent \"a\" { echo = true }").unwrap();
    let server = serve_in("agent \"a\" { echo = true }", None, Some(dir.path().to_owned())).await;
    std::fs::write(&file, "agent \"a\" { echo = true }\nagent \"b\" {\necho = true\nmax_queued = 9\n}")
        .unwrap();
    server.reloader.reload().await.unwrap();
    assert_eq!(server.post("/api/agents/b/chat", json!({"message": "x"})).await.json()["response"], "x");
    assert_eq!(server.get("/api/lanes/agent:b").await.json()["max_queued"], 9);
    std::fs::write(&file, "agent \"c\" { echo = true }\nlane \"main\" { max_concurrency = 0 }").unwrap();
    let error = server.reloader.reload().await.unwrap_err();
    assert!(error.to_string().contains("max_concurrency"), "{error}");
    assert_eq!(server.get("/api/agents/c").await.status, 404);
    assert_eq!(server.get("/api/agents/b").await.status, 200);
}

#[tokio::test]
async fn a_change_of_a_pattern_reaches_lanes_with_settings_of_their_own() {
    let server = serve("queue {\n}").await;
    let patch = |lane: &str, body: Value| {
        let path = format!("/api/lanes/{}", lane.replace('/', "%2F"));
        let server = &server;
        async move { server.send("PATCH", &path, body).await.json()["settings"].clone() }
    };
    patch("session:*/query", json!({"max_queued": 11, "retry": {"strategy": "fixed", "max_retries": 5}}))
        .await;
    let own = patch("session:lay/query", json!({"priority": 7, "retry": {"max_retries": 2}})).await;
    // A change of one part of a group keeps the others.
    assert_eq!((&own["max_queued"], &own["retry.strategy"]), (&json!(11), &json!("fixed")), "{own}");
    patch("session:*/query", json!({"handler": "external", "priority": 1, "retry": "none"})).await;
    let lanes = ["session:lay/query", "session:other/query"].map(|lane| patch(lane, json!({"weight": 2})));
    let [own, other] = futures_util::future::join_all(lanes).await.try_into().unwrap();
    let shown = |lane: &Value| json!([lane["handler"], lane["priority"], lane["retry.max_retries"]]);
    assert_eq!(shown(&own), json!(["external", 7, 2]));
    assert_eq!((shown(&other), &other["retry"]), (json!(["external", 1, null]), &json!("none")));
}

#[tokio::test]
async fn tool_lanes_have_metrics_unless_these_are_off() {
    for (is_on, block) in [(true, "queue {\n}"), (false, "queue { enable_metrics = false }")] {
        let server = serve(&format!("{block}\nhandler \"read\" {{ command = [\"true\"] }}")).await;
        let batch = json!({"session": "alpha", "calls": [{"tool": "read", "payload": {}}]});
        assert_eq!(server.post("/api/tasks/batch", batch).await.status, 200);
        // A lane with settings of its own counts with the others.
        let own = server.send("PATCH", "/api/lanes/session%3Abeta%2Fquery", json!({"priority": 4})).await;
        assert_eq!((own.status, &own.json()["label"]), (200, &json!("session:*/query")));
        let listed = server.get("/api/lanes?patterns=true").await.json();
        let lanes = listed["items"].as_array().unwrap();
        let query = lanes.iter().find(|lane| lane["lane"] == "session:*/query");
        let completed =
            query.map(|lane| (lane["counters"]["completed"].clone(), lane["run"]["count"].clone()));
        assert_eq!(completed, is_on.then_some((json!(1), json!(1))));
        assert_eq!(lanes.iter().any(|lane| lane["lane"] == "session:beta/query"), is_on, "{listed}");
        let text = server.get("/metrics").await.text;
        assert_eq!(text.contains("session:*/query"), is_on, "{text}");
        assert!(!text.contains("beta"), "{text}");
        // A single lane has the counters of its pattern.
        let lane = server.get("/api/lanes/session%3Aalpha%2Fquery").await.json();
        assert_eq!((&lane["counters"]["completed"], &lane["run"]["count"]), (&json!(1), &json!(1)));
        assert!(lane["run"]["p95_ms"].is_u64(), "{lane}");
    }
}

#[tokio::test]
async fn as_many_calls_of_a_batch_run_at_once_as_the_tool_lane_allows() {
    let gate = Gate::open().await;
    let handler = format!("handler \"read\" {{ url = \"{}\" }}", gate.url);
    let server = serve(&format!("queue {{ query_max_concurrency = 24 }}\n{handler}")).await;
    let calls: Vec<_> = (0..24).map(|n| json!({"tool": "read", "payload": {"n": n}})).collect();
    let batch = server.post("/api/tasks/batch", json!({"session": "alpha", "calls": calls}));
    let all_at_once = async {
        for _ in 0..24 {
            gate.arrival().await;
        }
        gate.let_go(24);
    };
    let (answer, ()) = tokio::join!(batch, all_at_once);
    assert!(answer.json()["results"].as_array().unwrap().iter().all(|result| result["success"] == true));
}

#[tokio::test]
async fn metrics_count_by_lane_and_a_trace_goes_through() {
    let gate = Gate::open().await;
    let server = serve(&format!("agent \"coder\" {{\nurl = \"{}\"\nmax_queued = 0\n}}", gate.url)).await;
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let headers = [("traceparent", trace), ("prefer", "respond-async")];
    let accepted =
        server.send_with("POST", "/api/agents/coder/chat", json!({"message": "x"}), &headers).await;
    assert_eq!(accepted.header("traceparent"), trace);
    assert_eq!(gate.arrival().await["traceparent"], trace);
    let id = accepted.json()["execution"]["id"].as_str().unwrap().to_owned();
    assert_eq!(server.get(&format!("/api/tasks/{id}")).await.json()["traceparent"], trace);
    assert_eq!(server.post("/api/agents/coder/chat", json!({"message": "y"})).await.status, 429);
    gate.let_go(1);
    server.until_numbers((0, 0)).await;
    let text = server.get("/metrics").await.text;
    for line in [
        "laneway_tasks_total{lane=\"agent:coder\",outcome=\"completed\"} 1",
        "laneway_rejected_total{lane=\"agent:coder\",code=\"AT_CAPACITY\"} 1",
        "laneway_run_seconds_count{lane=\"agent:coder\"} 1",
        "laneway_stale_total 0",
        "# TYPE laneway_run_seconds histogram",
        "laneway_wait_seconds_bucket{le=\"4194.304\",lane=\"agent:coder\"} 1",
        "laneway_wait_seconds_bucket{le=\"+Inf\",lane=\"agent:coder\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "no {line} in\n{text}");
    }
    assert!(!text.contains(&id));
    let points = server.get("/api/history?metric=completed&lane=agent:coder").await;
    assert_eq!((points.status, &points.json()["metric"]), (200, &json!("completed")));
    for (range, step) in [("5m", 10_000), ("1h", 60_000), ("24h", 300_000)] {
        for metric in ["running", "wait_p50", "wait_p95", "wait_p99", "refused"] {
            let found = server.get(&format!("/api/history?metric={metric}&range={range}")).await.json();
            assert_eq!((&found["range"], &found["step_ms"]), (&json!(range), &json!(step)), "{found}");
        }
    }
    let hour_ago = server.get("/api/history?since=2001-01-01T00:00:00Z").await.json();
    assert_eq!(hour_ago["range"], "24h");
    for wrong in ["metric=joy", "range=7d", "since=yesterday"] {
        assert_eq!(server.get(&format!("/api/history?{wrong}")).await.status, 400, "{wrong}");
    }
    assert_eq!(server.get("/openapi.json").await.json()["info"]["title"], "Laneway");
    assert!(server.get("/docs").await.text.contains("Laneway API"));
}

#[tokio::test]
async fn refusals_are_counted_by_the_label_of_their_lane_and_by_code() {
    let gate = Gate::open().await;
    let lanes = "lane \"gpu*\" {\nhandler = \"external\"\nmax_queued = 1\n}";
    let server = serve(&format!("agent \"coder\" {{ url = \"{}\" }}\n{lanes}", gate.url)).await;
    let task = json!({"kind": "train", "lanes": ["gpu-1"]});
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(server.post("/api/tasks", task.clone()).await.status);
    }
    server.post("/api/lanes/gpu-1/drain", json!(null)).await;
    statuses.push(server.post("/api/tasks", task).await.status);
    assert_eq!(statuses, [202, 429, 429, 503]);
    let turn = json!({"message": "x", "session": "ann"});
    let asynchronous = [("prefer", "respond-async")];
    let accepted =
        server.send_with("POST", "/api/agents/coder/chat", turn.clone(), &asynchronous).await.json();
    gate.arrival().await;
    let parent = [("x-laneway-parent", accepted["execution"]["id"].as_str().unwrap())];
    assert_eq!(server.send_with("POST", "/api/agents/coder/chat", turn, &parent).await.status, 409);
    // The server alone refuses this, and no lane has anything to do with it.
    assert_eq!(server.get("/api/agents/unknown").await.status, 404);
    let text = server.get("/metrics").await.text;
    let counted: Vec<&str> = text.lines().filter(|line| line.starts_with("laneway_rejected_total")).collect();
    let expected = [
        "laneway_rejected_total{lane=\"\",code=\"NOT_FOUND\"} 1",
        "laneway_rejected_total{lane=\"gpu*\",code=\"AT_CAPACITY\"} 2",
        "laneway_rejected_total{lane=\"gpu*\",code=\"DRAINING\"} 1",
        "laneway_rejected_total{lane=\"session:*\",code=\"WOULD_DEADLOCK\"} 1",
    ];
    assert_eq!(counted, expected);
    gate.let_go(1);
}
