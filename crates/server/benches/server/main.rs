//! Compares the server with axum and with the engine alone: load from one process, the server in another.
//!
//! `cargo xtask bench server [memory|full|disk|chats|looks|watchers]`. Prints a table of ratios with their bounds and ends with a
//! status that says whether all hold.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod chats;
mod other;
mod rates;
mod views;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use laneway_config::{Profile, parse};
use laneway_server::{Parts, Server, with_echo};
use laneway_store_sqlite::SqliteStore;
use tokio::net::TcpListener;

use crate::chats::chat_rate;
use crate::rates::{disk_rate, full_rate, memory_rate};
use crate::views::{looks, watchers};

/// As in the program: for the server, for what it is compared with and for the load alike.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CONNECTIONS: usize = 64;
const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(700);
const TASK: &str = "{\"kind\": \"index\", \"payload\": {\"n\": 1}}";

fn main() {
    let words: Vec<String> = std::env::args().collect();
    match words.iter().position(|word| word == "--child") {
        Some(place) => {
            let (what, threads) = (&words[place + 1], Threads::named(&words[place + 2]));
            threads.runtime(is_on_disk(what)).block_on(child(what));
        }
        None => {
            // `cargo bench` says so by itself.
            let word = words.into_iter().skip(1).find(|word| word != "--bench").unwrap_or_default();
            let all_hold = Threads::Many.runtime(false).block_on(measure(&word));
            std::process::exit(if all_hold { 0 } else { 1 });
        }
    }
}

/// The number of threads of a server and of its reference. Bounds are for one per core, as in production. The table also has
/// the numbers for one thread, which depend less on other load.
#[derive(Clone, Copy)]
enum Threads {
    One,
    Many,
}

impl Threads {
    fn name(self) -> &'static str {
        match self {
            Threads::One => "one",
            Threads::Many => "many",
        }
    }

    fn named(name: &str) -> Threads {
        [Threads::One, Threads::Many].into_iter().find(|threads| threads.name() == name).unwrap()
    }

    /// With as many as the program has, if it is for a server that writes to a disk.
    fn runtime(self, is_server_on_disk: bool) -> tokio::runtime::Runtime {
        let mut builder = match self {
            Threads::One => tokio::runtime::Builder::new_current_thread(),
            Threads::Many => tokio::runtime::Builder::new_multi_thread(),
        };
        if is_server_on_disk {
            builder.worker_threads(laneway_server::threads(&laneway_config::StoreLocation::Path(
                "store".into(),
            )));
        }
        builder.enable_all().build().unwrap()
    }
}

/// The other process: the server with a store, or axum with a constant answer.
async fn child(what: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    std::io::stdout().flush().unwrap();
    if what == "constant" {
        let answer = || async { (axum::http::StatusCode::ACCEPTED, "{\"id\":\"0\",\"status\":\"queued\"}") };
        let refusal = || async { (axum::http::StatusCode::TOO_MANY_REQUESTS, "{\"code\":\"AT_CAPACITY\"}") };
        let router = axum::Router::new()
            .route("/api/tasks", axum::routing::post(answer))
            .route("/api/agents/busy/chat", axum::routing::post(refusal));
        return axum::serve(listener, router).await.unwrap();
    }
    let nothing: [(&str, &str); 0] = [];
    let mut config = parse("bench.hcl", &config_of(what), Profile::SERVER, nothing).unwrap();
    with_echo(&mut config);
    let dir = tempfile::tempdir().unwrap();
    let store: Option<Arc<dyn laneway_store::Store>> = if is_on_disk(what) {
        Some(Arc::new(SqliteStore::open(dir.path().join("store")).unwrap()))
    } else {
        None
    };
    let parts = Parts { config, config_file: None, overrides: Vec::new(), store, state_dir: None };
    let server = Server::open(parts).await.unwrap();
    server.serve(listener, std::future::pending()).await.unwrap();
}

/// The lanes and agents of a server.
fn config_of(what: &str) -> String {
    let lanes = format!(
        "lane \"global\" {{\n max_concurrency = {CONNECTIONS}\n max_queued = 10000000\n}}\n\
         lane \"external\" {{\n handler = \"external\"\n max_concurrency = 1\n max_queued = 10000000\n}}\n"
    );
    let agent = match what {
        "full" => "agent \"busy\" {\n external = true\n max_queued = 1\n}".to_owned(),
        "chats" => {
            format!("agent \"echo\" {{\n echo = true\n lanes = []\n max_concurrency = {CONNECTIONS}\n}}")
        }
        _ => String::new(),
    };
    lanes + &agent
}

fn is_on_disk(what: &str) -> bool {
    matches!(what, "disk" | "chats")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[derive(Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

struct Table {
    all_hold: bool,
}

impl Table {
    /// A row about servers with this number of threads.
    fn of(&mut self, threads: Threads, what: &str, ours: f64, reference: f64, ratio: f64, bound: Bound) {
        match threads {
            Threads::Many => self.row(what, ours, reference, ratio, bound),
            Threads::One => self.unbound(&format!("  one thread: {what}"), ours, reference, ratio),
        }
    }

    /// A line without a bound.
    fn unbound(&self, what: &str, ours: f64, reference: f64, ratio: f64) {
        println!("{what:<58} {ours:>12.1} {reference:>12.1} {ratio:>8.2}");
    }

    fn row(&mut self, what: &str, ours: f64, reference: f64, ratio: f64, bound: Bound) {
        let (sign, bound, holds) = match bound {
            Bound::AtLeast(bound) => (">=", bound, ratio >= bound),
            Bound::AtMost(bound) => ("<=", bound, ratio <= bound),
        };
        self.all_hold &= holds;
        let word = if holds { "holds" } else { "DOES NOT HOLD" };
        println!("{what:<58} {ours:>12.1} {reference:>12.1} {ratio:>8.2} {sign} {bound:<5} {word}");
    }
}

/// The rows of this name, or all.
async fn measure(word: &str) -> bool {
    let names = ["memory", "full", "disk", "chats", "looks", "watchers"];
    assert!(word.is_empty() || names.contains(&word), "there are the rows {names:?}, and not {word}");
    let is_asked = |name: &str| word.is_empty() || word == name;
    let mut table = Table { all_hold: true };
    println!("{:<58} {:>12} {:>12} {:>8}    bound", "what", "ours", "reference", "ratio");
    if is_asked("memory") {
        for threads in [Threads::Many, Threads::One] {
            memory_rate(&mut table, threads).await;
        }
    }
    if is_asked("full") {
        for threads in [Threads::Many, Threads::One] {
            full_rate(&mut table, threads).await;
        }
    }
    if is_asked("disk") {
        for threads in [Threads::Many, Threads::One] {
            disk_rate(&mut table, threads).await;
        }
    }
    if is_asked("chats") {
        chat_rate(&table).await;
    }
    if is_asked("looks") {
        looks(&mut table).await;
    }
    if is_asked("watchers") {
        watchers(&mut table).await;
    }
    table.all_hold
}
