//! Agents that are programs.

use serde_json::json;

use crate::common::{Events, serve};

#[tokio::test]
async fn a_program_gets_its_message_its_task_and_no_other_variables() {
    let script = "cat; printf '|%s|%s|%s|%s|%s' \\\"$LANEWAY_TASK_ID\\\" \\\"$LANEWAY_FENCE\\\" \\\"$LANEWAY_URL\\\" \\\"$LANEWAY_AGENT\\\" \\\"$CARGO_MANIFEST_DIR\\\"";
    let server = serve(&format!("agent \"p\" {{ command = [\"sh\", \"-c\", \"{script}\"] }}")).await;
    let answer = server.post("/api/agents/p/chat", json!({"message": "; rm -rf $HOME `id`"})).await.json();
    let id = answer["execution"]["id"].as_str().unwrap();
    let url = format!("http://{}", server.address);
    assert_eq!(answer["response"], format!("; rm -rf $HOME `id`|{id}|1|{url}|p|"));
}

#[tokio::test]
async fn a_programs_output_is_streamed_and_its_exit_code_is_the_outcome() {
    let server =
        serve("agent \"p\" { command = [\"sh\", \"-c\", \"echo one; echo two >&2; exit 4\"] }").await;
    let events = Events::chat(&server, "/api/agents/p/chat", json!({"message": "x"}), &[]).await.rest().await;
    let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names.iter().filter(|name| **name == "delta").count(), 1);
    let failed = events.iter().find(|event| event.name == "failed").unwrap();
    assert!(failed.data["error"].as_str().unwrap().contains("exit code 4"), "{failed:?}");
    assert!(!failed.data.to_string().contains("two"));
    let missing = serve("agent \"p\" { command = [\"/no/such/program\"] }").await;
    assert_eq!(missing.post("/api/agents/p/chat", json!({"message": "x"})).await.status, 502);
}

#[tokio::test]
async fn the_whole_process_group_ends_when_the_caller_disconnects() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("alive");
    let script = format!("(trap '' HUP; sleep 60) & echo $! > {}; echo started; wait", file.display());
    let server = serve(&format!("agent \"p\" {{ command = [\"sh\", \"-c\", \"{script}\"] }}")).await;
    let mut events = Events::chat(&server, "/api/agents/p/chat", json!({"message": "x"}), &[]).await;
    events.next_named("delta").await;
    let grandchild = std::fs::read_to_string(&file).unwrap().trim().to_owned();
    let proc = std::path::PathBuf::from(format!("/proc/{grandchild}"));
    assert!(proc.exists());
    drop(events);
    server.until_numbers((0, 0)).await;
    let state = std::fs::read_to_string(proc.join("stat")).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "the grandchild is alive: {state}");
}

const JSONL: &str = r#"
import json, sys
first = json.loads(sys.stdin.readline())
print(json.dumps({"type": "delta", "text": "got " + first["message"]}), flush=True)
print(json.dumps({"type": "progress", "percent": 50}), flush=True)
if first["message"] == "steer me":
    steer = json.loads(sys.stdin.readline())
    print(json.dumps({"type": "result", "result": {"steered": steer["text"]}}), flush=True)
elif first["message"] == "fail":
    print(json.dumps({"type": "error", "error": "no luck", "retryable": False}), flush=True)
elif first["message"] == "nonsense":
    print("hello", flush=True)
"#;

#[tokio::test]
async fn a_jsonl_program_streams_answers_fails_and_takes_steering() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("agent.py");
    std::fs::write(&file, JSONL).unwrap();
    let config = format!(
        "agent \"p\" {{\n command = [\"python3\", \"{}\"]\n protocol = \"jsonl\"\n lanes = [\"tools\"]\n}}",
        file.display()
    );
    let server = serve(&config).await;
    let plain = server.post("/api/agents/p/chat", json!({"message": "hi"})).await.json();
    assert_eq!(plain["response"], "got hi");
    let failed = server.post("/api/agents/p/chat", json!({"message": "fail"})).await;
    assert!(
        failed.status == 502 && failed.json()["detail"].as_str().unwrap().contains("no luck"),
        "{failed:?}"
    );
    assert_eq!(server.post("/api/agents/p/chat", json!({"message": "nonsense"})).await.status, 502);

    let body = json!({"message": "steer me", "session": "s"});
    let mut events = Events::chat(&server, "/api/agents/p/chat", body, &[]).await;
    assert_eq!(events.next_named("progress").await.data["progress"]["percent"], 50);
    let steered = server.post("/api/sessions/s/steer", json!({"text": "left"})).await;
    assert_eq!((steered.status, &steered.json()["outcome"]), (202, &json!("steered")));
    assert_eq!(events.next_named("completed").await.data["result"], json!({"steered": "left"}));

    // A turn of messages runs in the agent's lanes, and takes steering.
    let mut events = Events::open(&server, "/api/events", &[]).await;
    server.post("/api/sessions/m/messages", json!({"agent": "p", "text": "steer me"})).await;
    events.next_named("progress").await;
    let steered = server.post("/api/sessions/m/steer", json!({"text": "right"})).await;
    assert_eq!((steered.status, &steered.json()["outcome"]), (202, &json!("steered")));
}

/// A program that writes all the time while it slowly reads, and then prints what it read.
const TALKS_WHILE_IT_READS: &str = r#"
import json, os, sys, threading, time
stop = threading.Event()
lock = threading.Lock()
def say(what):
    with lock:
        print(json.dumps(what), flush=True)
def talk():
    while not stop.is_set():
        say({"type": "progress", "percent": 1})
        time.sleep(0.001)
threading.Thread(target=talk).start()
read = b""
while not read.endswith(b"\n"):
    read += os.read(0, 4096)
    time.sleep(0.002)
stop.set()
lines = read.decode().splitlines()
say({"type": "result", "result": [len(lines), len(json.loads(lines[0])["message"])]})
"#;

#[tokio::test]
async fn a_long_message_is_written_once_to_a_program_that_writes_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("agent.py");
    std::fs::write(&file, TALKS_WHILE_IT_READS).unwrap();
    let config = format!(
        "agent \"p\" {{\n command = [\"python3\", \"{}\"]\n protocol = \"jsonl\"\n}}",
        file.display()
    );
    let server = serve(&config).await;
    let long = "x".repeat(300_000);
    let answer = server.post("/api/agents/p/chat", json!({ "message": long })).await.json();
    assert_eq!(answer["response"], json!([1, 300_000]), "{answer}");
}

#[tokio::test]
async fn tool_calls_of_one_turn_return_in_order() {
    let tools = "handler \"read\" { command = [\"cat\"] }\nhandler \"bash\" { command = [\"sh\", \"-c\", \"exit 1\"] }";
    for queue in ["", "queue { }"] {
        let server = serve(&format!("{tools}\n{queue}")).await;
        let calls = json!([{"tool": "read", "payload": "a"}, {"tool": "bash"}, {"tool": "read", "payload": {"b": 1}}]);
        let answer = server.post("/api/tasks/batch", json!({"session": "s", "calls": calls})).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let results = &answer.json()["results"];
        assert_eq!(
            (&results[0]["result"], &results[2]["result"]),
            (&json!("a"), &json!({"b": 1})),
            "{results}"
        );
        assert_eq!(results[1]["error"]["code"], "RUN_FAILED");
    }
    let server = serve(tools).await;
    let unknown = json!({"session": "s", "calls": [{"tool": "unknown"}]});
    assert_eq!(server.post("/api/tasks/batch", unknown).await.status, 400);
}
