//! Headers and bodies of requests.

use serde_json::json;

use crate::common::serve;

#[tokio::test]
async fn the_accept_header_for_events_may_have_any_case() {
    let server = serve("").await;
    for (accept, is_stream) in [
        ("text/event-stream", true),
        ("TEXT/Event-Stream", true),
        ("application/json, text/event-stream;q=0.5", true),
        ("text/event-stream;q=0", false),
        ("text/event-stream; Q=0.000, application/json", false),
        ("text/event-streams", false),
        ("application/json", false),
    ] {
        let body = json!({"message": "x"});
        let answer = server.send_with("POST", "/api/agents/echo/chat", body, &[("accept", accept)]).await;
        let form = answer.header("content-type");
        assert_eq!(form.starts_with("text/event-stream"), is_stream, "{accept}: {form}");
    }
}

#[tokio::test]
async fn only_a_valid_trace_is_returned() {
    let server = serve("").await;
    let right = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    for (sent, told) in [(right, right), ("hello", ""), ("00-0af7-b7ad-01", ""), ("<script>", "")] {
        let body = json!({"message": "x"});
        let answer = server.send_with("POST", "/api/agents/echo/chat", body, &[("traceparent", sent)]).await;
        assert_eq!((answer.status, answer.header("traceparent")), (200, told), "{sent}");
    }
}

#[tokio::test]
async fn the_error_of_a_wrong_body_uses_words_of_json() {
    let server = serve("").await;
    for (body, words) in [
        (json!([]), "expected an object"),
        (json!("hello"), "expected an object"),
        (json!({"message": "x", "user": 7}), "expected an object"),
        (json!({"message": 7}), "expected a string"),
        (json!({"message": "x", "timeout_ms": "soon"}), "expected a whole number"),
    ] {
        let refused = server.post("/api/agents/echo/chat", body.clone()).await;
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(refused.status == 400 && detail.contains(words), "{body}: {detail}");
        let names = ["struct", "Request", "UserRef", "u64", "elements"];
        assert!(!names.iter().any(|name| detail.contains(name)), "{body}: {detail}");
    }
}
