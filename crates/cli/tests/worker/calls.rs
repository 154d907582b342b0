//! The client against a real server: every read, every kind of refusal, events across a restart.

use laneway_client::protocol::{ChatRequest, Code, LettersSelector, NewSchedule, NewToken, Scope};
use laneway_client::{
    AskKind, AskOptions, Attempt, AttemptFailure, ChartQuery, Client, Error, RetryPolicy, TasksQuery, Watch,
    Worker,
};
use serde_json::{Value, json};

use crate::common::{PATIENCE, ended, laneway, serve, serve_at, submit, task};

fn ask(message: &str) -> ChatRequest {
    serde_json::from_value(json!({ "message": message })).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_decodes_every_answer_of_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(
        dir.path(),
        "store = \"data\"\nqueue {}\nagent \"echo\" { echo = true }\nhandler \"no\" { command = [\"false\"] }",
    );
    agents(&served.client).await;
    tasks(&served.client).await;
    lanes(&served.client).await;
    sessions(&served.client).await;
    operations(&served.client).await;
}

async fn agents(client: &Client) {
    let options = AskOptions { key: Some("k1".to_owned()), ..AskOptions::default() };
    let answer = client.chat("echo", AskKind::Chat, &ask("hello"), &options).await.unwrap();
    assert_eq!((answer.response, answer.execution.attempt), (json!("hello"), 1));
    let later =
        client.chat_later("echo", AskKind::Task, &ask("later"), &AskOptions::default()).await.unwrap();
    client.task(&later.execution.id).await.unwrap();
    assert_eq!(client.agents().await.unwrap().items[0].name, "echo");
    assert_eq!(client.agent("echo").await.unwrap().lane, "agent:echo");
    assert_eq!(client.queue("echo").await.unwrap().queue_length, 0);
    assert_eq!(client.clear_queue("echo").await.unwrap().status, "cleared");
    assert_eq!(client.release_queue("echo").await.unwrap().status, "released");
}

async fn tasks(client: &Client) {
    let waiting = submit(client, "elsewhere", json!({ "a": 1 })).await;
    assert_eq!(client.explain(&waiting.id).await.unwrap().blockers[0].kind, "unclaimed");
    let change = serde_json::from_value(json!({ "priority": 9 })).unwrap();
    assert_eq!(client.change_task(&waiting.id, &change).await.unwrap().priority, 9);
    assert_eq!(client.external_tasks(Some(5), None).await.unwrap().items[0].id, waiting.id);
    let query = TasksQuery { kind: Some("elsewhere".into()), limit: Some(1), ..TasksQuery::default() };
    assert_eq!(client.tasks(&query).await.unwrap().items[0].id, waiting.id);
    let claim = json!({ "worker": "w", "lanes": ["external"], "kinds": ["elsewhere"] });
    let claimed = client.claim(&serde_json::from_value(claim).unwrap()).await.unwrap().tasks;
    let [claimed] = claimed.as_slice() else { panic!("{claimed:?}") };
    assert_eq!(client.workers().await.unwrap().items[0].worker, "w");
    let beat = serde_json::from_value(json!({ "fence": claimed.fence })).unwrap();
    assert!(client.heartbeat(&claimed.id, &beat).await.unwrap().lease_until >= claimed.lease_until);
    let outcome =
        serde_json::from_value(json!({ "fence": claimed.fence, "success": true, "result": 3 })).unwrap();
    let done = client.complete(&claimed.id, &outcome).await.unwrap();
    assert_eq!((done.status.as_str(), done.result), ("completed", Some(json!(3))));
    let again = client.complete(&claimed.id, &outcome).await.unwrap_err();
    assert_eq!(again.code(), Some(Code::StaleLease));
    assert_eq!(client.cancel(&claimed.id).await.unwrap().status, "already_completed");

    let slot = client.slot(&serde_json::from_value(json!({ "lanes": ["gpu"] })).unwrap()).await.unwrap();
    let free = serde_json::from_value(json!({ "fence": slot.fence, "success": true })).unwrap();
    client.complete(&slot.id, &free).await.unwrap();
    let batch = json!({ "session": "s", "calls": [{ "tool": "no" }], "group": "g" });
    let batch = client.batch(&serde_json::from_value(batch).unwrap()).await.unwrap();
    assert!(!batch.results[0].success);
    client.group("g").await.unwrap();
}

async fn lanes(client: &Client) {
    client.status().await.unwrap();
    assert_eq!(client.health().await.unwrap().status, "ok");
    assert_eq!(client.readiness().await.unwrap().status, "ready");
    assert!(client.metrics().await.unwrap().contains("laneway_tasks_total"));
    assert!(!client.lanes(None, None).await.unwrap().items.is_empty());
    assert!(client.pause("session:a/b").await.unwrap().paused);
    assert!(!client.resume("session:a/b").await.unwrap().paused);
    assert!(client.drain("other").await.unwrap().draining);
    assert_eq!(client.lane("session:a/b").await.unwrap().lane, "session:a/b");
    assert_eq!(client.clear_lane("other").await.unwrap().cancelled, 0);
    let lane = client.change_lane("main", &json!({ "max_concurrency": 7 })).await.unwrap();
    assert_eq!(lane.max_concurrency, Some(7));
    client.history(&ChartQuery::default()).await.unwrap();
}

async fn sessions(client: &Client) {
    let message =
        serde_json::from_value(json!({ "agent": "echo", "text": "hi", "message_id": "m" })).unwrap();
    let sent = client.send_message("chat/1", &message).await.unwrap();
    assert_eq!(client.receipt("chat/1", &sent.id).await.unwrap().id, sent.id);
    assert_eq!(client.session("chat/1").await.unwrap().key, "chat/1");
    client.session_stats("chat/1").await.unwrap();
    client.sessions(None, None).await.unwrap();
    client.change_session("chat/1", &serde_json::from_value(json!({ "cap": 3 })).unwrap()).await.unwrap();
    client.clear_session("chat/1").await.unwrap();
}

async fn operations(client: &Client) {
    let new = json!({ "name": "n", "cron": "@daily", "agent": "echo", "message": "m" });
    client.create_schedule(&serde_json::from_value::<NewSchedule>(new).unwrap()).await.unwrap();
    assert_eq!(client.schedules().await.unwrap().items[0].name, "n");
    client.run_schedule("n").await.unwrap();
    assert_eq!(client.schedule_runs("n").await.unwrap().items[0].trigger, "manual");
    client.change_schedule("n", &serde_json::from_value(json!({ "enabled": false })).unwrap()).await.unwrap();
    client.remove_schedule("n").await.unwrap();
    assert!(!client.audit(Some(3), None).await.unwrap().items.is_empty());
    assert!(!client.config().await.unwrap().values.is_empty());
    assert_eq!(client.me().await.unwrap().subject, "local");
    client.dead_letters(None, None).await.unwrap();
    let which = LettersSelector { kind: Some("no".into()), ..LettersSelector::default() };
    assert_eq!(client.redrive_many(&which).await.unwrap().count, 1);
    client.discard_many(&which).await.unwrap();
    let made = NewToken { subject: "s".into(), scopes: vec![Scope::Read], speaks_for_others: false };
    let made = client.create_token(&made).await.unwrap();
    let reader = Client::new(client.url(), Some(&made.token)).unwrap();
    assert_eq!(reader.me().await.unwrap().scopes, [Scope::Read]);
    let refused = reader.pause("main").await.unwrap_err();
    assert!(matches!(refused, Error::Unauthorized(_)), "{refused}");
    assert_eq!(client.me().await.unwrap_err().code(), Some(Code::Unauthorized), "now there is a token");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_several_replicas_goes_on_with_one_that_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), "store = \"memory\"");
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let several = format!("http://{gone}/below/,http://{}", served.address);
    let call = async |client: Client| client.submit(&task("k", Value::Null), None).await;
    // A request that no server got may be sent elsewhere, also one that is not safe to repeat.
    let client = Client::new(&several, None).unwrap();
    assert_eq!(call(client.clone()).await.unwrap().status, "queued");
    assert_eq!(client.url(), format!("http://{}", served.address), "it stays there");
    let mut events = Client::new(&several, None).unwrap().events(Watch::everything()).await.unwrap();
    client.pause("main").await.unwrap();
    while events.next().await.unwrap().unwrap().event != "paused" {}
    served.process.signal("-9");
    drop(served.process.says_until_its_end());
    let refused = call(client).await.unwrap_err();
    assert!(matches!(refused, Error::Unreachable { .. }), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_handler_asks_for_is_a_child_of_its_task() {
    let dir = tempfile::tempdir().unwrap();
    let config = "store = \"memory\"\nqueue {}\nlane \"one\" {}\nagent \"echo\" { echo = true }\n\
        handler \"read\" { command = [\"true\"] }";
    let served = serve(dir.path(), config);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let client = served.client.clone();
    let asks = move |_: Attempt| {
        let client = client.clone();
        async move { asked_by_a_handler(&client).await.map_err(AttemptFailure::fatal) }
    };
    let worker = Worker::new(served.client.clone(), "w").lanes(["external"]).handler("asks", asks);
    let working = tokio::spawn(worker.run(async { drop(stopped.await) }));
    let asks = serde_json::from_value(json!({ "kind": "asks", "lanes": ["external", "one"] })).unwrap();
    let task = served.client.submit(&asks, None).await.unwrap().id;
    let ended = ended(&served.client, &task).await;
    assert_eq!(ended.result, Some(json!([task, task, task, task])), "{ended:?}");
    drop(stop);
    working.await.unwrap().unwrap();
}

/// The parents of a slot, a chat, a call and a task that a handler asks for. Its task holds the only slot of `one`.
async fn asked_by_a_handler(client: &Client) -> Result<Value, Error> {
    let slot = serde_json::from_value(json!({ "lanes": ["one"], "wait_ms": 0 })).unwrap();
    let slot = client.slot(&slot).await?;
    let held = client.task(&slot.id).await?.parent;
    client.give_back(&slot.id, slot.fence).await?;
    let answer = client.chat("echo", AskKind::Task, &ask("hello"), &AskOptions::default()).await?;
    let batch = json!({ "session": "s", "calls": [{ "tool": "read" }], "group": "of-handler" });
    client.batch(&serde_json::from_value(batch).unwrap()).await?;
    let calls = TasksQuery { group: Some("of-handler".into()), ..TasksQuery::default() };
    let call = client.tasks(&calls).await?.items.remove(0).parent;
    let later = submit(client, "later", Value::Null).await.id;
    Ok(json!([
        held,
        client.task(&answer.execution.id).await?.parent,
        call,
        client.task(&later).await?.parent
    ]))
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_values_with_the_exit_code_of_a_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let served =
        serve(dir.path(), "store = \"memory\"\nlane \"one\" {\nmax_concurrency = 1\nmax_queued = 0\n}");
    let client = &served.client;
    let slot = serde_json::from_value(json!({ "lanes": ["one"], "wait_ms": 0 })).unwrap();
    client.slot(&slot).await.unwrap();
    let full = client.slot(&slot).await.unwrap_err();
    assert_eq!((full.code(), full.exit_code()), (Some(Code::AtCapacity), 3));
    assert!(full.problem().unwrap().retry_after_ms.is_some());
    let unknown = client.agent("missing").await.unwrap_err();
    assert_eq!((unknown.code(), unknown.exit_code()), (Some(Code::NotFound), 1));
    let wrong = client.submit(&task("", Value::Null), None).await.unwrap_err();
    assert_eq!((wrong.code(), wrong.exit_code()), (Some(Code::Invalid), 2));
    let nowhere = client.task("..").await.unwrap_err();
    assert!(matches!(nowhere, Error::Invalid(_)) && nowhere.exit_code() == 2, "{nowhere}");
    let address = served.address.clone();
    drop(served);
    let away = Client::new(&format!("http://{address}"), None).unwrap().status().await.unwrap_err();
    assert!(matches!(away, Error::Unreachable { .. }) && away.exit_code() == 4, "{away}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_is_repeated_until_the_server_is_back_and_events_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), "store = \"data\"");
    let patient = served.client.clone().retry(RetryPolicy::retries(20));
    let mut events = served.client.events(Watch::everything().lasting()).await.unwrap();
    let before = submit(&served.client, "k", Value::Null).await;
    let address = served.address.clone();
    served.process.signal("-KILL");
    drop(served);
    let reading = tokio::spawn(async move { patient.task(&before.id).await });
    let served = serve_at(dir.path(), &address);
    assert_eq!(reading.await.unwrap().unwrap().kind, "k");
    let mut seen = Vec::new();
    let reading = async {
        // The stream from before the restart brings the events of a task submitted after it.
        let mut after = None;
        loop {
            let event = events.next().await.unwrap().unwrap();
            if after.is_none() && event.event != "external_task_pending" {
                after = Some(submit(&served.client, "k", Value::Null).await.id);
            }
            let is_it = after.as_ref().is_some_and(|id| event.data["task_id"] == id.as_str());
            seen.push(event.event);
            if is_it {
                break;
            }
        }
    };
    assert!(tokio::time::timeout(PATIENCE, reading).await.is_ok(), "{seen:?}");
}

#[test]
fn a_wrong_token_and_a_wrong_file_end_a_worker_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let tokens = ["token", "create", "--subject", "a", "--scope", "worker"];
    assert!(laneway(dir.path()).args(tokens).output().unwrap().status.success());
    let served = serve(dir.path(), "");
    std::fs::write(dir.path().join("worker.hcl"), crate::common::HELD).unwrap();
    let url = format!("http://{}", served.address);
    let end = |arguments: &[&str]| {
        let output = laneway(dir.path()).arg("worker").args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, why) = end(&["--lanes", "external", "--url", &url, "--token", "no.such", "--log", "error"]);
    assert!(code == Some(1) && why.contains("UNAUTHORIZED"), "{why}");
    let (code, why) = end(&["--url", &url]);
    assert!(code == Some(2) && why.contains("--lanes"), "{why}");
    let (code, why) = end(&["--config", "none.hcl"]);
    assert!(code == Some(2) && why.contains("none.hcl"), "{why}");
    std::fs::write(dir.path().join("worker.hcl"), "handler \"k\" { command = [\"no-such-program\"] }")
        .unwrap();
    let (code, why) = end(&["--check"]);
    assert!(code == Some(2) && why.contains("there is no program no-such-program"), "{why}");
}
