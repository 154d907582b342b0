//! Traces to a real OTLP receiver on loopback.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::common::{Gate, PATIENCE, serve};

/// A collector that refuses the first requests and then accepts everything.
struct Collector {
    url: String,
    spans: mpsc::UnboundedReceiver<Value>,
    metrics: mpsc::UnboundedReceiver<Value>,
}

struct Taking {
    refusals: AtomicUsize,
    spans: mpsc::UnboundedSender<Value>,
    metrics: mpsc::UnboundedSender<Value>,
}

async fn take_metrics(State(taking): State<Arc<Taking>>, Json(request): Json<Value>) -> Json<Value> {
    drop(taking.metrics.send(request));
    Json(json!({}))
}

async fn take(State(taking): State<Arc<Taking>>, Json(request): Json<Value>) -> (StatusCode, Json<Value>) {
    let left = taking.refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    if left.is_ok() {
        return (StatusCode::SERVICE_UNAVAILABLE, Json(json!({})));
    }
    for of_resource in request["resourceSpans"].as_array().unwrap() {
        assert_eq!(of_resource["resource"]["attributes"][0]["value"]["stringValue"], "laneway");
        for span in
            of_resource["scopeSpans"].as_array().unwrap().iter().flat_map(|s| s["spans"].as_array().unwrap())
        {
            taking.spans.send(span.clone()).unwrap();
        }
    }
    (StatusCode::OK, Json(json!({})))
}

impl Collector {
    async fn open(refusals: usize) -> Collector {
        let (sender, spans) = mpsc::unbounded_channel();
        let (of_metrics, metrics) = mpsc::unbounded_channel();
        let refusals = AtomicUsize::new(refusals);
        let taking = Arc::new(Taking { refusals, spans: sender, metrics: of_metrics });
        let router = axum::Router::new().route("/v1/traces", post(take));
        let router = router.route("/v1/metrics", post(take_metrics)).with_state(taking);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Collector { url, spans, metrics }
    }

    async fn span(&mut self) -> Value {
        tokio::time::timeout(PATIENCE, self.spans.recv()).await.expect("no span came").unwrap()
    }
}

fn attribute<'a>(span: &'a Value, key: &str) -> &'a Value {
    let attributes = span["attributes"].as_array().unwrap();
    &attributes.iter().find(|one| one["key"] == key).unwrap_or_else(|| panic!("no {key} in {span}"))["value"]
}

#[tokio::test]
async fn a_task_is_a_span_of_its_callers_trace_with_its_wait_and_run_inside() {
    let mut collector = Collector::open(1).await;
    let gate = Gate::open().await;
    let config =
        format!("server {{ otlp = \"{}\" }}\nagent \"coder\" {{ url = \"{}\" }}", collector.url, gate.url);
    let server = serve(&config).await;
    let (trace, caller) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let traceparent = format!("00-{trace}-{caller}-01");
    let headers = [("traceparent", traceparent.as_str()), ("prefer", "respond-async")];
    let path = "/api/agents/coder/chat";
    let asked = json!({"message": "my secret", "session": "ann", "model": "small-1"});
    let asked = server.send_with("POST", path, asked, &headers).await.json();
    assert_eq!(gate.arrival().await["traceparent"], traceparent);
    gate.let_go(1);
    let (task, wait, run) = (collector.span().await, collector.span().await, collector.span().await);
    assert_eq!((&task["traceId"], &task["parentSpanId"]), (&json!(trace), &json!(caller)));
    assert_eq!(task["name"], "task agent:coder");
    assert_eq!(attribute(&task, "laneway.task.id")["stringValue"], asked["execution"]["id"]);
    assert_eq!(attribute(&task, "laneway.lane")["stringValue"], "agent:coder");
    assert_eq!(
        (&task["status"]["code"], attribute(&task, "laneway.outcome")),
        (&json!(1), &json!({"stringValue": "completed"}))
    );
    for (span, name) in [(&wait, "waiting"), (&run, "running")] {
        assert_eq!((&span["name"], &span["traceId"]), (&json!(name), &json!(trace)));
        assert_eq!(span["parentSpanId"], task["spanId"]);
    }
    assert_eq!(
        (&wait["startTimeUnixNano"], &wait["endTimeUnixNano"]),
        (&task["startTimeUnixNano"], &run["startTimeUnixNano"])
    );
    assert_eq!(run["endTimeUnixNano"], task["endTimeUnixNano"]);
    for (key, value) in [
        ("messaging.system", "laneway"),
        ("messaging.destination.name", "agent:coder"),
        ("gen_ai.operation.name", "invoke_agent"),
        ("gen_ai.agent.name", "coder"),
        ("gen_ai.conversation.id", "ann"),
        ("gen_ai.request.model", "small-1"),
    ] {
        assert_eq!(attribute(&task, key)["stringValue"], value);
    }
    assert_eq!(attribute(&run, "gen_ai.agent.name")["stringValue"], "coder");
    assert!(![&task, &wait, &run].iter().any(|span| span.to_string().contains("secret")));
}

#[tokio::test]
async fn unsampled_traces_are_left_out_and_others_are_exported_before_the_shutdown() {
    let mut collector = Collector::open(0).await;
    let mut server = serve(&format!("server {{ otlp = \"{}/\" }}", collector.url)).await;
    let unsampled = [("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00")];
    let body = json!({"message": "hello"});
    assert_eq!(server.send_with("POST", "/api/agents/echo/chat", body.clone(), &unsampled).await.status, 200);
    let told = server.post("/api/agents/echo/chat", body).await;
    server.stop();
    server.stopped().await;
    let task = collector.span().await;
    let id = told.json()["execution"]["id"].as_str().unwrap().to_owned();
    assert_eq!((&task["traceId"], task.get("parentSpanId")), (&json!(id.replace('-', "")), None));
    drop((collector.span().await, collector.span().await));
    assert!(collector.spans.try_recv().is_err());
}

#[tokio::test]
async fn a_wrong_collector_address_is_an_error() {
    let nothing: [(&str, &str); 0] = [];
    let text = "server { otlp = \"collector\" }";
    let config = laneway_config::parse("test.hcl", text, laneway_config::Profile::SERVER, nothing).unwrap();
    let parts =
        laneway_server::Parts { config, config_file: None, overrides: vec![], store: None, state_dir: None };
    let Err(error) = laneway_server::Server::open(parts).await else { panic!("it opened") };
    assert!(
        error.to_string().contains("server.otlp") && error.to_string().contains("http://127.0.0.1:4318"),
        "{error}"
    );
}

#[tokio::test]
async fn a_wait_names_its_lane_and_a_refusal_is_a_span_of_its_caller() {
    let mut collector = Collector::open(0).await;
    let gate = Gate::open().await;
    let agent = format!("agent \"coder\" {{\nurl = \"{}\"\nmax_queued = 1\n}}", gate.url);
    let server = serve(&format!("server {{ otlp = \"{}\" }}\n{agent}", collector.url)).await;
    let trace = |number: u8| format!("00-{number:032x}-00f067aa0ba902b7-01");
    let mut statuses = Vec::new();
    for number in 1..=3 {
        let headers = [("traceparent", &*trace(number)), ("prefer", "respond-async")];
        let body = json!({"message": "x"});
        statuses.push(server.send_with("POST", "/api/agents/coder/chat", body, &headers).await.status);
    }
    assert_eq!(statuses, [202, 202, 429]);
    gate.arrival().await;
    // Both turns end, and the second one has waited for the first.
    gate.let_go(2);
    let (mut waits, mut refused) = (Vec::new(), None);
    while waits.len() < 2 || refused.is_none() {
        let span = collector.span().await;
        match span["name"].as_str().unwrap() {
            "waiting" => waits.push(span),
            "refused" => refused = Some(span),
            _ => {}
        }
    }
    let waited_for = |number: u8| {
        let wait = waits.iter().find(|wait| wait["traceId"] == format!("{number:032x}")).unwrap();
        wait["attributes"].as_array().unwrap().iter().find(|one| one["key"] == "laneway.waited_for")
    };
    assert_eq!(waited_for(1), None);
    assert_eq!(waited_for(2).unwrap()["value"]["stringValue"], "agent:coder");
    let refused = refused.unwrap();
    assert_eq!((&refused["traceId"], &refused["status"]["code"]), (&json!(format!("{:032x}", 3)), &json!(2)));
    for (key, value) in [
        ("error.type", "AT_CAPACITY"),
        ("laneway.lane", "agent:coder"),
        ("http.route", "/api/agents/{agent}/chat"),
        ("http.request.method", "POST"),
    ] {
        assert_eq!(attribute(&refused, key)["stringValue"], value);
    }
    assert_eq!(attribute(&refused, "http.response.status_code")["intValue"], "429");
}

#[tokio::test]
async fn the_metrics_of_a_scrape_go_to_the_collector_as_well() {
    let mut collector = Collector::open(0).await;
    let mut server = serve(&format!("server {{ otlp = \"{}\" }}", collector.url)).await;
    assert_eq!(server.post("/api/agents/echo/chat", json!({"message": "x"})).await.status, 200);
    let scraped = server.get("/metrics").await.text;
    let families = scraped.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let families: Vec<&str> = families.collect();
    // The last metrics leave at the end.
    server.stop();
    server.stopped().await;
    let request =
        tokio::time::timeout(PATIENCE, collector.metrics.recv()).await.expect("nothing came").unwrap();
    let of_resource = &request["resourceMetrics"][0];
    assert_eq!(of_resource["resource"]["attributes"][0]["value"]["stringValue"], "laneway");
    let metrics = of_resource["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let names: Vec<&str> = metrics.iter().map(|metric| metric["name"].as_str().unwrap()).collect();
    for name in &names {
        let is_scraped = |family: &&str| {
            family.strip_prefix(name).is_some_and(|rest| ["", "_total", "_info"].contains(&rest))
        };
        assert!(families.iter().any(is_scraped), "{name}");
    }
    let requests = metrics.iter().find(|metric| metric["name"] == "laneway_http_request_seconds").unwrap();
    let points = requests["histogram"]["dataPoints"].as_array().unwrap();
    assert!(
        points.iter().any(|point| point["attributes"].to_string().contains("/chat") && point["count"] == "1")
    );
    assert!(names.contains(&"process_cpu_seconds") && names.contains(&"laneway_store_up"), "{names:?}");
}
