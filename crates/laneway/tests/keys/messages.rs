//! The keys of `messages`.

use std::path::Path;
use std::time::Duration;

use laneway::{Configured, MessageEnd, MessageStatus, NewMessage};

use crate::open;

const MEMORY: &str = "store = \"memory\"\n";

async fn queued(lanes: &Configured, channel: Option<&str>) -> String {
    let queue = lanes.queue_for("ann", channel.map(Into::into)).await.unwrap();
    let (mode, drop) = (queue.mode.value.as_str(), queue.drop.value.as_str());
    format!("{mode} {} {} {} {drop}", queue.debounce.value, queue.max_wait.value, queue.cap.value)
}

#[tokio::test]
async fn every_key_of_the_queue_holds_in_the_queue_that_runs() {
    let dir = tempfile::tempdir().unwrap();
    for (line, everywhere, in_discord) in [
        ("", "collect 1000ms 10000ms 20 summarize", "collect 1000ms 10000ms 20 summarize"),
        (
            "mode = \"followup\"",
            "followup 1000ms 10000ms 20 summarize",
            "followup 1000ms 10000ms 20 summarize",
        ),
        ("debounce_ms = 500", "collect 500ms 10000ms 20 summarize", "collect 500ms 10000ms 20 summarize"),
        ("max_wait = \"20s\"", "collect 1000ms 20000ms 20 summarize", "collect 1000ms 20000ms 20 summarize"),
        ("cap = 3", "collect 1000ms 10000ms 3 summarize", "collect 1000ms 10000ms 3 summarize"),
        ("drop = \"old\"", "collect 1000ms 10000ms 20 old", "collect 1000ms 10000ms 20 old"),
        (
            "by_channel { discord = { cap = 9, mode = \"latest\" } }",
            "collect 1000ms 10000ms 20 summarize",
            "latest 1000ms 10000ms 9 summarize",
        ),
    ] {
        let (lanes, _) = open(dir.path(), &format!("{MEMORY}messages {{\nqueue {{\n{line}\n}}\n}}")).await;
        let seen = (queued(&lanes, None).await, queued(&lanes, Some("discord")).await);
        assert_eq!(seen, (everywhere.to_owned(), in_discord.to_owned()), "{line}");
    }
}

#[tokio::test]
async fn what_the_file_says_of_messages_changes_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let (lanes, _) = open(dir.path(), &format!("{MEMORY}messages {{\nqueue {{\ncap = 3\n}}\n}}")).await;
    std::fs::write(dir.path().join("laneway.hcl"), format!("{MEMORY}messages {{\nqueue {{\ncap = 4\n}}\n}}"))
        .unwrap();
    lanes.reload().await.unwrap();
    assert_eq!(queued(&lanes, None).await, "collect 1000ms 10000ms 4 summarize");
}

#[tokio::test]
async fn no_message_goes_beyond_the_policy() {
    let dir = tempfile::tempdir().unwrap();
    let long = || {
        NewMessage::new("ann", "forever", "hello")
            .debounce(Duration::from_secs(180))
            .max_wait(Duration::from_secs(180))
    };
    let many = || NewMessage::new("ann", "forever", "hello").cap(60);
    let (lanes, _) = open(dir.path(), MEMORY).await;
    lanes.send_message(long()).await.unwrap();
    lanes.send_message(many()).await.unwrap();
    let policy = "messages {\npolicy {\ncap_max = 50\nwait_max = \"2m\"\n}\n}";
    let (lanes, _) = open(dir.path(), &format!("{MEMORY}{policy}")).await;
    for (message, most) in [(long(), "2m"), (many(), "50")] {
        let refused = lanes.send_message(message).await.unwrap_err().to_string();
        assert!(refused.contains(most), "{refused}");
    }
}

/// What became of a message whose turn was lost with the program that ran it.
fn lost(dir: &Path, text: &str) -> MessageStatus {
    let run = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = format!("store = {:?}\n{text}", dir.join("data").to_str().unwrap());
    let first = run();
    let message = first.block_on(async {
        let (lanes, _) = open(dir, &store).await;
        let hello = NewMessage::new("ann", "forever", "hello").debounce(Duration::ZERO);
        let message = lanes.send_message(hello).await.unwrap().message;
        while lanes.inflight().await.unwrap() == 0 {
            tokio::task::yield_now().await;
        }
        message
    });
    // As if the program had died: no caller gets an answer.
    first.shutdown_timeout(Duration::from_secs(5));
    run().block_on(async {
        let (lanes, _) = open(dir, &store).await;
        lanes.message(message).await.unwrap().unwrap()
    })
}

#[test]
fn messages_of_a_lost_turn_are_sent_again_unless_the_file_says_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let again = lost(dir.path(), "");
    assert!(!matches!(again, MessageStatus::Ended { .. }), "{again:?}");
    let other = tempfile::tempdir().unwrap();
    let aside = lost(other.path(), "messages {\nredeliver = false\n}");
    assert!(matches!(aside, MessageStatus::Ended { end: MessageEnd::Parked { .. }, .. }), "{aside:?}");
}
