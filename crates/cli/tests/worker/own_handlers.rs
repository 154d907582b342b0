//! A worker with handlers in Rust.

use std::time::Duration;

use laneway_client::protocol::ChatRequest;
use laneway_client::{AskKind, AskOptions, Attempt, AttemptFailure, Client, Tally, Watch, Worker};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::common::{ended, serve, submit};

/// Runs a worker in this process, until the test sends on the channel.
fn start(worker: Worker) -> (oneshot::Sender<()>, JoinHandle<Tally>) {
    let (stop, stopped) = oneshot::channel();
    let working = tokio::spawn(async move { worker.run(async { drop(stopped.await) }).await.unwrap() });
    (stop, working)
}

fn crew(client: &Client) -> Worker {
    Worker::new(client.clone(), "own").lanes(["external", "agent:*"]).concurrency(4)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_reports_progress_results_failures_and_panics() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), "store = \"memory\"");
    let client = &served.client;
    let worker = crew(client)
        .handler("steps", |attempt: Attempt| async move {
            attempt.progress(json!({ "percent": 50 }));
            // The test cancels the task when it sees the progress.
            let reason = attempt.stopped().await;
            Err(AttemptFailure::new(reason))
        })
        .handler("double", |attempt: Attempt| async move {
            let number = attempt.task().payload.as_i64().ok_or_else(|| AttemptFailure::fatal("no number"))?;
            Ok(json!(number * 2))
        })
        .handler("panics", |attempt: Attempt| async move {
            Ok(attempt.task().payload.get("missing").cloned().expect("something"))
        });
    let (stop, working) = start(worker);

    let steps = submit(client, "steps", Value::Null).await;
    let mut events = client.events(Watch::task(&steps.id)).await.unwrap();
    let mut names = Vec::new();
    while let Some(event) = events.next().await.unwrap() {
        if event.event == "progress" {
            assert_eq!(event.data["progress"]["percent"], 50, "{}", event.data);
            client.cancel(&steps.id).await.unwrap();
        }
        names.push(event.event);
    }
    assert_eq!(names.last().map(String::as_str), Some("done"), "{names:?}");
    assert!(names.contains(&"progress".to_owned()) && names.contains(&"cancelled".to_owned()), "{names:?}");

    let double = submit(client, "double", json!(21)).await;
    assert_eq!(ended(client, &double.id).await.result, Some(json!(42)));
    let wrong = ended(client, &submit(client, "double", json!("x")).await.id).await;
    assert_eq!((wrong.status.as_str(), wrong.error.as_deref()), ("failed", Some("no number")));
    let mut panics = crate::common::task("panics", Value::Null);
    panics.retry = serde_json::from_value(json!({ "strategy": "none" })).unwrap();
    let panicked = ended(client, &client.submit(&panics, None).await.unwrap().id).await;
    assert_eq!(panicked.error.as_deref(), Some("its handler panicked"));

    stop.send(()).unwrap();
    let tally = working.await.unwrap();
    assert_eq!(tally, Tally { claimed: 4, completed: 1, failed: 3, ..Tally::default() });
}

#[tokio::test(flavor = "multi_thread")]
async fn watchers_get_the_text_and_usage_of_a_handler_that_runs_all_kinds() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), "store = \"memory\"\nagent \"builder\" { external = true }");
    let client = &served.client;
    let worker = crew(client).handler("double", |_: Attempt| async { Ok(json!("its own")) }).handler(
        "*",
        |attempt: Attempt| async move {
            attempt.delta("hello ");
            attempt.delta("there");
            attempt.usage(json!({ "output_tokens": 2 }));
            Ok(json!(attempt.task().kind))
        },
    );
    let (stop, working) = start(worker);
    let request: ChatRequest = serde_json::from_value(json!({ "message": "build" })).unwrap();
    let mut events =
        client.chat_events("builder", AskKind::Chat, &request, &AskOptions::default()).await.unwrap();
    let (mut text, mut usage, mut result) = (String::new(), Value::Null, Value::Null);
    while let Some(event) = events.next().await.unwrap() {
        match event.event.as_str() {
            "delta" => text.push_str(event.data["text"].as_str().unwrap()),
            "usage" => usage = event.data["usage"].clone(),
            "completed" => result = event.data["result"].clone(),
            _ => {}
        }
    }
    // Output that was never sent by a heartbeat comes before the end.
    assert_eq!((text.as_str(), usage), ("hello there", json!({ "output_tokens": 2 })));
    assert_eq!(result, json!("agent:builder"));
    let own = submit(client, "double", Value::Null).await;
    assert_eq!(ended(client, &own.id).await.result, Some(json!("its own")));
    stop.send(()).unwrap();
    working.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn steering_reaches_the_handler_of_a_turn() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), "store = \"memory\"\nagent \"builder\" { external = true }");
    let client = &served.client;
    let worker = crew(client).handler("agent:builder", |attempt: Attempt| async move {
        attempt.progress(json!("listens"));
        let said = attempt.next_steering().await.text;
        Ok(json!(format!("heard: {said}")))
    });
    let (stop, working) = start(worker);
    let request: ChatRequest = serde_json::from_value(json!({ "message": "build", "session": "s" })).unwrap();
    let mut events =
        client.chat_events("builder", AskKind::Chat, &request, &AskOptions::default()).await.unwrap();
    let task = events.task_id().expect("the task is named").to_owned();
    let mut result = Value::Null;
    while let Some(event) = events.next().await.unwrap() {
        match event.event.as_str() {
            "progress" => {
                // The handler accepts steering from its first call on, which may come shortly after the progress.
                while client.steer("s", "left, not right").await.is_err() {}
            }
            "completed" => result = event.data["result"].clone(),
            _ => {}
        }
    }
    assert_eq!(result, json!("heard: left, not right"), "{:?}", client.task(&task).await);
    stop.send(()).unwrap();
    working.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_with_wrong_settings_fails_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), "store = \"memory\"");
    let never = std::future::pending::<()>;
    let nothing = || Worker::new(served.client.clone(), "w");
    let done = |_: Attempt| async { Ok(Value::Null) };
    for (worker, why) in [
        (nothing().handler("k", done), "at least one lane"),
        (nothing().lanes(["external"]), "handler for at least one kind"),
        (nothing().lanes(["external"]).handler("k", done).concurrency(0), "at least 1"),
        (nothing().lanes(["external"]).handler("k", done).poll(Duration::ZERO), "at least 100 ms"),
        (Worker::new(served.client.clone(), "").lanes(["external"]).handler("k", done), "INVALID"),
    ] {
        let error = worker.run(never()).await.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
