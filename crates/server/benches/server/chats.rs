//! How many chats a second are answered by an agent in the server itself, with a store on disk.

use std::sync::Arc;
use std::time::Instant;

use laneway_engine::{Context, Failure, Handle, Options, Task};
use laneway_store_sqlite::SqliteStore;
use serde_json::Value;

use crate::other::{Asked, Other, load};
use crate::{CONNECTIONS, ROUND, ROUNDS, Table, Threads, median};

/// Each connection is a conversation, because the turns of one run one after another.
const CHAT: Asked = Asked {
    path: "/api/agents/echo/chat",
    body: |connection| format!("{{\"message\": \"hello\", \"session\": \"s{connection}\"}}"),
    status: 200,
};

/// Compares a chat with what it is for the engine: a submission, an attempt and an end, each of them stored. No bound: it is
/// not known yet what is good.
pub(crate) async fn chat_rate(table: &Table) {
    for threads in [Threads::Many, Threads::One] {
        let ours = Other::start("chats", threads);
        let dir = tempfile::tempdir().unwrap();
        let runtime = threads.runtime(false);
        let store = Arc::new(SqliteStore::open(dir.path().join("store")).unwrap());
        let alone = tokio::task::block_in_place(|| runtime.block_on(engine(store)));
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            let ours = load(ours.address, CHAT).await.0;
            rounds.push((ours, tokio::task::block_in_place(|| runtime.block_on(turns(&alone)))));
        }
        let of = |pick: fn(&(f64, f64)) -> f64| median(rounds.iter().map(pick).collect());
        let what = match threads {
            Threads::Many => "chat over HTTP on disk, a second",
            Threads::One => "  one thread: chat over HTTP on disk, a second",
        };
        table.unbound(what, of(|r| r.0), of(|r| r.1), of(|r| r.0 / r.1));
        drop(alone);
        runtime.shutdown_background();
    }
}

/// An engine whose handler answers with the payload, and lanes as the server gives them to the turns of the agent.
async fn engine(store: Arc<SqliteStore>) -> Handle {
    let handle = Handle::open(store, Options::default()).await.unwrap();
    handle.handler("echo", |_: Context, payload: Value| async { Ok::<Value, Failure>(payload) }).unwrap();
    let mut settings = laneway_core::LaneSettings::default();
    settings.set("max_concurrency", &CONNECTIONS.to_string()).unwrap();
    let lanes = laneway_core::Pattern::new("agent:echo").unwrap();
    handle.configure(vec![laneway_core::Block { lanes, settings: Some(settings) }]).await.unwrap();
    handle
}

/// Turns a second, asked for by as many callers at once as there are connections.
async fn turns(handle: &Handle) -> f64 {
    let (begun, until) = (Instant::now(), Instant::now() + ROUND);
    let mut callers = Vec::new();
    for caller in 0..CONNECTIONS {
        let handle = handle.clone();
        callers.push(tokio::spawn(async move {
            let mut count = 0;
            while Instant::now() < until {
                let turn =
                    Task::new("agent:echo").session(format!("s{caller}")).kind("echo").payload("hello");
                handle.submit(turn).await.unwrap().wait().await.unwrap();
                count += 1;
            }
            count
        }));
    }
    let mut count = 0;
    for caller in callers {
        count += caller.await.unwrap();
    }
    f64::from(count) / begun.elapsed().as_secs_f64()
}
