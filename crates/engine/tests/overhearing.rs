//! A replica streams the output of attempts to subscribers at another replica.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{lane, replica_options as options};
use laneway_core::Event;
use laneway_engine::{Context, Failure, Filter, Handle, Subscription, Task, Update};
use laneway_store::{MemoryStore, Store};
use serde_json::json;

async fn two() -> [Handle; 2] {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let join = async || Handle::join(Arc::clone(&store), options()).await.unwrap();
    let [a, b] = [join().await, join().await];
    a.handler("talk", |context: Context, (): ()| async move {
        for word in ["one", "two", "three"] {
            context.delta(word);
        }
        context.progress(json!({"left": 0}));
        Ok::<_, Failure>(())
    })
    .unwrap();
    [a, b]
}

/// The output until a task ends.
async fn output(updates: &mut Subscription) -> Vec<String> {
    let mut output = Vec::new();
    while let Some(update) = updates.next().await {
        match update {
            Update::Delta { text, .. } => output.push(text.to_string()),
            Update::Progress { value, .. } => output.push(value.to_string()),
            Update::Event { event, .. } if matches!(*event, Event::Ended { .. }) => break,
            _ => {}
        }
    }
    output
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_everywhere_gets_output_of_another_replica_in_order_and_before_the_end() {
    let [a, b] = two().await;
    let filter = |name: &str| Filter::lane(lane(name));
    let [mut here, mut there] = [a.subscribe(filter("work")), b.subscribe(filter("work").everywhere())];
    let mut elsewhere = b.subscribe(filter("elsewhere"));
    tokio::time::sleep(Duration::from_millis(50)).await;
    let all = ["one", "two", "three", "{\"left\":0}"];
    for _ in 0..20 {
        a.submit(Task::new("work").kind("talk")).await.unwrap().wait().await.unwrap();
        assert_eq!(
            (output(&mut here).await, output(&mut there).await),
            (all.map(String::from).to_vec(), all.map(String::from).to_vec())
        );
    }
    assert!(elsewhere.try_next().is_none());
    drop(there);
    let mut there = b.subscribe(filter("work"));
    tokio::time::sleep(Duration::from_millis(50)).await;
    a.submit(Task::new("work").kind("talk")).await.unwrap().wait().await.unwrap();
    assert_eq!(output(&mut there).await, Vec::<String>::new());
}
