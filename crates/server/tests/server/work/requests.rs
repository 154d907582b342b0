//! Headers and bodies of requests.

use serde_json::json;

use crate::common::{answer, serve};

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

#[tokio::test]
async fn an_error_names_the_parameter_or_the_header_that_is_wrong() {
    let server = serve("agent \"a\" { echo = true }").await;
    for (path, words) in [
        (
            "/api/lanes?colour=red",
            "colour is not a parameter of this query; expected one of `patterns`, `limit`",
        ),
        ("/api/lanes?limit=many", "the parameter limit of the query is not valid"),
        ("/api/lanes?%3Cb%3E=1", "the query has an unknown parameter"),
    ] {
        let refused = server.get(path).await;
        assert!(refused.status == 400 && refused.text.contains(words), "{path}: {refused:?}");
    }
    let slot = "/api/slots/01900000-0000-7000-8000-000000000000";
    let refused = server.send("DELETE", slot, json!(null)).await;
    assert!(
        refused.status == 400 && refused.text.contains("the query needs the parameter fence"),
        "{refused:?}"
    );
    let chat = "/api/agents/a/chat";
    let refused = server.send_with("POST", chat, json!({"message": "x"}), &[("x-detach", "maybe")]).await;
    assert!(refused.status == 400 && refused.text.contains("X-Detach must be true or false"), "{refused:?}");
    for (metadata, words) in [
        ("[".repeat(5000) + &"]".repeat(5000), "nested too deeply"),
        ("1e400".to_owned(), "a number that is too large"),
    ] {
        let body = format!("{{\"message\": \"x\", \"metadata\": {metadata}}}");
        let request = server.request("POST", chat).header("content-type", "application/json").body(body);
        let refused = answer(request).await;
        assert!(refused.status == 400 && refused.text.contains(words), "{refused:?}");
    }
}
