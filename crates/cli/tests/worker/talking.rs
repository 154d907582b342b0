//! Handlers that are HTTP services, and programs that speak `jsonl`.

use laneway_client::protocol::ChatRequest;
use laneway_client::{AskKind, AskOptions};
use serde_json::{Value, json};

use crate::common::{Process, ended, laneway, serve, submit, worker};

/// A program that reports progress, waits for a steering message, and repeats it in its result.
const LISTENER: &str = r#"read -r first
echo "{\"type\": \"progress\", \"step\": \"listens\"}"
read -r second
heard=$(printf '%s' "$second" | sed 's/.*"text":"\([^"]*\)".*/\1/')
echo "{\"type\": \"result\", \"result\": {\"first\": $first, \"heard\": \"$heard\"}}"
"#;

/// Starts a worker for the lanes of all agents and the lane `external`.
fn start(dir: &std::path::Path, address: &str, file: &str) -> Process {
    std::fs::write(dir.join("worker.hcl"), file).unwrap();
    let mut command = laneway(dir);
    command.args(["worker", "--lanes", "external,agent:*", "--name", "w"]);
    command.env("LANEWAY_URL", format!("http://{address}"));
    Process::start(command)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_gets_the_payload_and_its_answer_is_the_result() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), "store = \"memory\"\nagent \"echo\" { echo = true }");
    let chat = format!("http://{}/api/agents/echo/chat", served.address);
    let gone = "http://127.0.0.1:1/";
    let file = format!("handler \"ask\" {{ url = \"{chat}\" }}\nhandler \"gone\" {{ url = \"{gone}\" }}");
    let _worker = start(dir.path(), &served.address, &file);
    let client = &served.client;
    let asked = submit(client, "ask", json!({ "message": "is anybody there?" })).await;
    let view = ended(client, &asked.id).await;
    assert_eq!(view.result.unwrap()["response"], "is anybody there?");
    let wrong = ended(client, &submit(client, "ask", json!({ "no": "message" })).await.id).await;
    assert_eq!((wrong.status.as_str(), wrong.error.as_deref()), ("failed", Some("the service answered 400")));
    let away = ended(client, &submit(client, "gone", Value::Null).await.id).await;
    assert_eq!(away.error.as_deref(), Some("the service cannot be reached"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_jsonl_program_reports_progress_and_gets_steering() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), "store = \"memory\"\nagent \"builder\" { external = true }");
    let client = &served.client;
    let script = dir.path().join("listener");
    std::fs::write(&script, LISTENER).unwrap();
    let file = format!(
        "handler \"agent:builder\" {{\ncommand = [\"sh\", \"{}\"]\nprotocol = \"jsonl\"\n}}\n\
         handler \"odd\" {{\ncommand = [\"echo\", \"no JSON\"]\nprotocol = \"jsonl\"\n}}",
        script.display()
    );
    let _worker = start(dir.path(), &served.address, &file);
    let request: ChatRequest = serde_json::from_value(json!({ "message": "build", "session": "s" })).unwrap();
    let mut events =
        client.chat_events("builder", AskKind::Chat, &request, &AskOptions::default()).await.unwrap();
    let mut result = Value::Null;
    while let Some(event) = events.next().await.unwrap() {
        match event.event.as_str() {
            "progress" => while client.steer("s", "left, not right").await.is_err() {},
            "completed" => result = event.data["result"].clone(),
            _ => {}
        }
    }
    assert_eq!(result["heard"], "left, not right", "{result}");
    assert_eq!((&result["first"]["type"], &result["first"]["message"]), (&json!("message"), &json!("build")));
    let odd = ended(client, &submit(client, "odd", Value::Null).await.id).await;
    assert!(odd.error.as_deref().is_some_and(|error| error.contains("no JSON object")), "{odd:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_error_names_the_exit_code_or_the_signal_of_a_program() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), "store = \"memory\"");
    let file = "handler \"code\" { command = [\"sh\", \"-c\", \"exit 7\"] }\n\
                handler \"signal\" { command = [\"sh\", \"-c\", \"kill -KILL $$\"] }";
    let _worker = worker(dir.path(), &served, "w", file);
    for (kind, error) in
        [("code", "the program ended with exit code 7"), ("signal", "the program ended with signal 9")]
    {
        let accepted = submit(&served.client, kind, json!(null)).await;
        let view = ended(&served.client, &accepted.id).await;
        assert_eq!(view.error.as_deref(), Some(error));
    }
}
