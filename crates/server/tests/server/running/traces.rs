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
}

struct Taking {
    refusals: AtomicUsize,
    spans: mpsc::UnboundedSender<Value>,
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
        let taking = Arc::new(Taking { refusals: AtomicUsize::new(refusals), spans: sender });
        let router = axum::Router::new().route("/v1/traces", post(take)).with_state(taking);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Collector { url, spans }
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
    let asked = server.send_with("POST", path, json!({"message": "my secret"}), &headers).await.json();
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
