//! Each key of the configuration has an effect on the queue that runs: what is seen with it is not what is seen
//! without it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

mod lanes;
mod look;
mod messages;
mod queue;
mod reload;
mod top;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use laneway::{Configured, Context, Failure, FromConfig, Laneway};
use look::Look;
use serde_json::Value;

/// What the handlers did, in order.
pub(crate) type Diary = Arc<Mutex<Vec<String>>>;

/// A queue from this text, whose tools and kinds are known to the looks.
pub(crate) fn queue(dir: &Path, text: &str) -> (FromConfig, Diary) {
    let file = dir.join("laneway.hcl");
    std::fs::write(&file, text).unwrap();
    let diary = Diary::default();
    let mut queue = Laneway::from_config(file).environment(Vec::<(String, String)>::new());
    for kind in ["forever", "pause", "read", "bash", "generate"] {
        queue = queue.handler(kind, |_: Context, _: Value| std::future::pending::<Result<(), Failure>>());
    }
    let failing = |_: Context, _: Value| async { Err::<(), _>(Failure::new("broken")) };
    let second = |_: Context, value: Value| async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(value)
    };
    let notes = Arc::clone(&diary);
    let noting = move |_: Context, note: String| {
        notes.lock().unwrap().push(note);
        async { Ok(()) }
    };
    let queue = queue.handler("fail", failing).handler("glob", second).handler("write", second);
    (queue.handler("note", noting), diary)
}

pub(crate) async fn open(dir: &Path, text: &str) -> (Configured, Diary) {
    let (queue, diary) = queue(dir, text);
    (queue.await.unwrap_or_else(|error| panic!("{error}\nin:\n{text}")), diary)
}

/// What is seen in a queue from this text.
async fn seen(text: &str, look: Look) -> String {
    let dir = tempfile::tempdir().unwrap();
    let (lanes, diary) = open(dir.path(), &format!("store = \"memory\"\n{text}")).await;
    look.at(&lanes, &diary).await
}

/// Whether `line`, in place of the `#` in the frame, makes the difference that it should; else what is wrong.
pub(crate) async fn check(frame: &str, line: &str, look: Look, without: &str, with: &str) -> Option<String> {
    assert_ne!(with, without, "{line}: this shows nothing");
    let seen = (seen(&frame.replace('#', ""), look).await, seen(&frame.replace('#', line), look).await);
    let is_right = seen == (without.to_owned(), with.to_owned());
    (!is_right).then(|| format!("{line}, {look:?}: without it {:?}, with it {:?}", seen.0, seen.1))
}
