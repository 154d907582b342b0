//! Agents behind HTTP that answer with events.

use axum::extract::State;
use axum::http::header;
use axum::routing::post;
use serde_json::json;
use tokio::net::TcpListener;

use crate::common::{Running, serve};

/// A server whose agent answers every turn with fixed events.
async fn answering(events: &'static str) -> Running {
    let told = |State(events): State<&'static str>| async move {
        ([(header::CONTENT_TYPE, "text/event-stream")], events)
    };
    let router = axum::Router::new().route("/", post(told)).with_state(events);
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
