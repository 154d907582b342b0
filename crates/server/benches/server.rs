//! What the server costs beside what it stands on: load from one process, the server in another.
//!
//! `cargo xtask bench server [memory|disk|looks|watchers]`. Prints a table of ratios with their bounds and ends with a
//! status that says whether all hold.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use laneway_config::{Profile, parse};
use laneway_server::{Parts, Server, with_echo};
use laneway_store_sqlite::SqliteStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// As in the program: for the server, for what it is compared with and for the load alike.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CONNECTIONS: usize = 64;
const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_millis(700);
const WATCHERS: usize = 10_000;
const WAITING: usize = 100_000;
const TASK: &str = "{\"kind\": \"index\", \"payload\": {\"n\": 1}}";

fn main() {
    let words: Vec<String> = std::env::args().collect();
    match words.iter().position(|word| word == "--child") {
        Some(place) => Threads::named(&words[place + 2]).runtime().block_on(child(&words[place + 1])),
        None => {
            // `cargo bench` says so by itself.
            let word = words.into_iter().skip(1).find(|word| word != "--bench").unwrap_or_default();
            let all_hold = Threads::Many.runtime().block_on(measure(&word));
            std::process::exit(if all_hold { 0 } else { 1 });
        }
    }
}

/// How many threads a server, and what it is compared with, has for its tasks. Bounds are for as many as there are cores, which is
/// how a server runs; how it is with one stands beside that, because it depends less on what else a machine does.
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

    fn runtime(self) -> tokio::runtime::Runtime {
        let mut builder = match self {
            Threads::One => tokio::runtime::Builder::new_current_thread(),
            Threads::Many => tokio::runtime::Builder::new_multi_thread(),
        };
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
        let router = axum::Router::new().route("/api/tasks", axum::routing::post(answer));
        return axum::serve(listener, router).await.unwrap();
    }
    let config = "lane \"global\" { max_queued = 10000000 }\n\
                  lane \"external\" { handler = \"external\"  max_concurrency = 1  max_queued = 10000000 }";
    let nothing: [(&str, &str); 0] = [];
    let mut config = parse("bench.hcl", config, Profile::SERVER, nothing).unwrap();
    with_echo(&mut config);
    let dir = tempfile::tempdir().unwrap();
    let store: Option<Arc<dyn laneway_store::Store>> = match what {
        "memory" => None,
        _ => Some(Arc::new(SqliteStore::open(dir.path().join("store")).unwrap())),
    };
    let parts = Parts { config, config_file: None, overrides: Vec::new(), store, state_dir: None };
    let server = Server::open(parts).await.unwrap();
    server.serve(listener, std::future::pending()).await.unwrap();
}

struct Other {
    process: Child,
    address: SocketAddr,
}

impl Other {
    fn start(what: &str, threads: Threads) -> Other {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--child", what, threads.name()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Other { address: line.trim().parse().unwrap(), process }
    }

    /// Kilobytes of memory that it has now.
    fn resident_kb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Seconds of processor time that it has taken so far. The kernel counts them in hundredths.
    fn cpu_secs(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
        let after_name = stat.rsplit(')').next().unwrap();
        let ticks = after_name.split_whitespace().skip(11).take(2);
        ticks.map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A connection that is kept.
struct Client {
    stream: TcpStream,
    /// Room for one answer. Kept, because to clear as much for each costs more than to ask.
    room: Vec<u8>,
}

impl Client {
    async fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream, room: vec![0; 64 * 1024] }
    }

    fn request(method: &str, path: &str, body: &str) -> String {
        format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    }

    async fn ask(&mut self, method: &str, path: &str, body: &str) -> (u16, &str) {
        self.exchange(Client::request(method, path, body).as_bytes()).await
    }

    /// Sends a request and returns the status and the body of its answer, with as little work as can be.
    async fn exchange(&mut self, request: &[u8]) -> (u16, &str) {
        self.stream.write_all(request).await.unwrap();
        let mut filled = 0;
        let body = loop {
            if filled == self.room.len() {
                self.room.resize(2 * filled, 0);
            }
            let read = self.stream.read(&mut self.room[filled..]).await.unwrap();
            assert!(read > 0, "the server hung up");
            filled += read;
            let answer = &self.room[..filled];
            let after = |part: &[u8]| {
                let start = answer.windows(part.len()).position(|window| window.eq_ignore_ascii_case(part));
                start.map(|start| start + part.len())
            };
            let Some(head) = after(b"\r\n\r\n") else { continue };
            let length = &answer[after(b"content-length: ").expect("answers say how long they are")..head];
            let digits = length.iter().take_while(|byte| byte.is_ascii_digit());
            let length = digits.fold(0, |length, digit| 10 * length + usize::from(digit - b'0'));
            if filled >= head + length {
                break head..head + length;
            }
        };
        let text = |range| std::str::from_utf8(&self.room[range]).unwrap();
        (text(9..12).parse().unwrap(), text(body))
    }
}

/// Requests a second, and the 99th percentile of their times.
async fn load(address: SocketAddr) -> (f64, Duration) {
    // One thread: what the load costs is taken from the server, which shares its cores, and threads that wake each other cost more.
    let loading = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(load_here(address))
    });
    loading.await.unwrap()
}

async fn load_here(address: SocketAddr) -> (f64, Duration) {
    let request: Arc<[u8]> = Client::request("POST", "/api/tasks", TASK).into_bytes().into();
    let until = Instant::now() + ROUND;
    let begun = Instant::now();
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let request = Arc::clone(&request);
        clients.push(tokio::spawn(async move {
            let mut client = Client::connect(address).await;
            let mut times = Vec::new();
            while Instant::now() < until {
                let asked = Instant::now();
                assert_eq!(client.exchange(&request).await.0, 202);
                times.push(asked.elapsed());
            }
            times
        }));
    }
    let mut times = Vec::new();
    for client in clients {
        times.extend(client.await.unwrap());
    }
    times.sort_unstable();
    (times.len() as f64 / begun.elapsed().as_secs_f64(), times[times.len() * 99 / 100])
}

/// The engine by itself, in this process. It is kept for all rounds, as the server is: what waits grows, is noticed and is
/// saved in both.
struct Alone {
    runtime: tokio::runtime::Runtime,
    handle: laneway_engine::Handle,
    _dir: tempfile::TempDir,
}

impl Alone {
    fn open(threads: Threads) -> Alone {
        let runtime = threads.runtime();
        let (handle, dir) = tokio::task::block_in_place(|| runtime.block_on(Alone::engine()));
        Alone { runtime, handle, _dir: dir }
    }

    async fn engine() -> (laneway_engine::Handle, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteStore::open(dir.path().join("store")).unwrap());
        let options = laneway_engine::Options::default();
        let handle = laneway_engine::Handle::open(store, options).await.unwrap();
        let block = |lanes: &str, words: &[(&str, &str)]| {
            let mut settings = laneway_core::LaneSettings::default();
            words.iter().for_each(|(key, value)| settings.set(key, value).unwrap());
            let lanes = laneway_core::Pattern::new(lanes).unwrap();
            laneway_core::Block { lanes, settings: Some(settings) }
        };
        let room = ("max_queued", "10000000");
        let external = [("handler", "external"), ("max_concurrency", "1"), room];
        handle.configure(vec![block("global", &[room]), block("external", &external)]).await.unwrap();
        (handle, dir)
    }

    fn submissions(&self) -> f64 {
        tokio::task::block_in_place(|| self.runtime.block_on(self.submit_all()))
    }

    /// Durable submissions a second, asked by as many at once as there are connections.
    async fn submit_all(&self) -> f64 {
        let until = Instant::now() + ROUND;
        let begun = Instant::now();
        let mut askers = Vec::new();
        for _ in 0..CONNECTIONS {
            let handle = self.handle.clone();
            askers.push(tokio::spawn(async move {
                let mut count = 0;
                while Instant::now() < until {
                    let task = laneway_engine::Task::new("external").kind("index").payload(1);
                    handle.submit(task).await.unwrap().detach();
                    count += 1;
                }
                count
            }));
        }
        let mut count = 0;
        for asker in askers {
            count += asker.await.unwrap();
        }
        f64::from(count) / begun.elapsed().as_secs_f64()
    }
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
    /// A line about servers of so many threads.
    fn of(&mut self, threads: Threads, what: &str, ours: f64, reference: f64, ratio: f64, bound: Bound) {
        match threads {
            Threads::Many => self.row(what, ours, reference, ratio, bound),
            Threads::One => self.beside(&format!("  one thread: {what}"), ours, reference, ratio),
        }
    }

    /// A line without a bound.
    fn beside(&self, what: &str, ours: f64, reference: f64, ratio: f64) {
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
    let names = ["memory", "disk", "looks", "watchers"];
    assert!(word.is_empty() || names.contains(&word), "there are the rows {names:?}, and not {word}");
    let is_asked = |name: &str| word.is_empty() || word == name;
    let mut table = Table { all_hold: true };
    println!("{:<58} {:>12} {:>12} {:>8}    bound", "what", "ours", "reference", "ratio");
    if is_asked("memory") {
        for threads in [Threads::Many, Threads::One] {
            memory_rate(&mut table, threads).await;
        }
    }
    if is_asked("disk") {
        for threads in [Threads::Many, Threads::One] {
            disk_rate(&mut table, threads).await;
        }
    }
    if is_asked("looks") {
        looks(&mut table).await;
    }
    if is_asked("watchers") {
        watchers(&mut table).await;
    }
    table.all_hold
}

/// What was measured of ours and of the reference: how many a second, and their 99th percentile.
type Round = ((f64, Duration), (f64, Duration));

async fn memory_rate(table: &mut Table, threads: Threads) {
    let (ours, constant) = (Other::start("memory", threads), Other::start("constant", threads));
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push((load(ours.address).await, load(constant.address).await));
    }
    let asked = |pick: fn(&Round) -> f64| rounds.iter().map(pick).sum::<f64>() * ROUND.as_secs_f64();
    let ours_us = ours.cpu_secs() * 1e6 / asked(|r| r.0.0);
    let constant_us = constant.cpu_secs() * 1e6 / asked(|r| r.1.0);
    let of = |pick: fn(&Round) -> f64| median(rounds.iter().map(pick).collect());
    let (rate, reference) = (of(|r| r.0.0), of(|r| r.1.0));
    let (what, ratio) = ("POST /api/tasks in memory, a second", of(|r| r.0.0 / r.1.0));
    table.of(threads, what, rate, reference, ratio, Bound::AtLeast(0.5));
    let (p99, reference) = (of(|r| r.0.1.as_secs_f64() * 1e6), of(|r| r.1.1.as_secs_f64() * 1e6));
    let ratio = of(|r| r.0.1.as_secs_f64() / r.1.1.as_secs_f64());
    table.of(threads, "  its 99th percentile, us", p99, reference, ratio, Bound::AtMost(5.0));
    // Where the kernel counts whole ticks this is rough, and says all the same what a request costs the server itself.
    table.beside("  processor time of one, us", ours_us, constant_us, ours_us / constant_us);
}

async fn disk_rate(table: &mut Table, threads: Threads) {
    let (ours, alone, constant) =
        (Other::start("disk", threads), Alone::open(threads), Other::start("constant", threads));
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let (ours, alone) = (load(ours.address).await.0, alone.submissions());
        rounds.push((ours, alone, load(constant.address).await.0));
    }
    let of = |pick: fn(&(f64, f64, f64)) -> f64| median(rounds.iter().map(pick).collect());
    let (rate, reference) = (of(|r| r.0), of(|r| r.1));
    let (what, ratio) = ("POST /api/tasks on disk, a second", of(|r| r.0 / r.1));
    table.of(threads, what, rate, reference, ratio, Bound::AtLeast(0.5));
    // What can be had at best: the same cores answer the constant and submit, one after the other.
    let (at_best, ratio) = (of(|r| by_turns(r.1, r.2)), of(|r| by_turns(r.1, r.2) / r.1));
    table.beside("  the constant and the submission by turns", at_best, reference, ratio);
    alone.runtime.shutdown_background();
}

/// How many a second, if each is one of these and one of those.
fn by_turns(these: f64, those: f64) -> f64 {
    1.0 / (1.0 / these + 1.0 / those)
}

async fn looks(table: &mut Table) {
    let (many, few) = (Other::start("memory", Threads::Many), Other::start("memory", Threads::Many));
    for (other, count) in [(&many, WAITING), (&few, 100)] {
        let mut clients = Vec::new();
        for _ in 0..10 {
            let address = other.address;
            clients.push(tokio::spawn(async move {
                let mut client = Client::connect(address).await;
                for _ in 0..count / 10 {
                    assert_eq!(client.ask("POST", "/api/tasks", TASK).await.0, 202);
                }
            }));
        }
        for client in clients {
            client.await.unwrap();
        }
    }
    let (mut at_many, mut at_few) = (Client::connect(many.address).await, Client::connect(few.address).await);
    for path in ["/api/status", "/api/lanes", "/api/tasks"] {
        let mut rounds = Vec::new();
        for _ in 0..201 {
            let asked = Instant::now();
            assert_eq!(at_many.ask("GET", path, "").await.0, 200);
            let ours = asked.elapsed().as_secs_f64() * 1e6;
            let asked = Instant::now();
            at_few.ask("GET", path, "").await;
            rounds.push((ours, asked.elapsed().as_secs_f64() * 1e6));
        }
        let (ours, reference) =
            (median(rounds.iter().map(|r| r.0).collect()), median(rounds.iter().map(|r| r.1).collect()));
        let what = format!("GET {path} with 100 000 waiting, us");
        table.row(&what, ours, reference, ours / reference, Bound::AtMost(2.0));
    }
}

/// Every watcher gets every event of its task; how much memory each takes.
async fn watchers(table: &mut Table) {
    let other = Other::start("memory", Threads::Many);
    let mut client = Client::connect(other.address).await;
    let mut ids = Vec::new();
    for _ in 0..WATCHERS {
        let (_, body) = client.ask("POST", "/api/tasks", TASK).await;
        ids.push(body.split('"').nth(3).unwrap().to_owned());
    }
    let before = other.resident_kb();
    let mut streams = Vec::new();
    for id in &ids {
        let mut stream = TcpStream::connect(other.address).await.unwrap();
        let request = format!("GET /api/tasks/{id}/events HTTP/1.1\r\nhost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    // The first events of each: all are connected.
    for stream in &mut streams {
        read_until(stream, "event: queued").await;
    }
    let each = (other.resident_kb().saturating_sub(before)) as f64 / WATCHERS as f64;
    table.row("memory of a watcher, KB", each, 25.0, each / 25.0, Bound::AtMost(1.0));
    // Another connection: one that asks nothing for long is cut off, and so many take their time on a busy machine.
    let mut client = Client::connect(other.address).await;
    let (status, _) = client.ask("POST", "/api/tasks/cancel", "{\"kind\": \"index\"}").await;
    assert_eq!(status, 200);
    let mut complete = 0;
    for stream in &mut streams {
        let text = read_until(stream, "event: done").await;
        complete += usize::from(text.contains("event: cancelled"));
    }
    let share = complete as f64 / WATCHERS as f64;
    table.row("watchers that got every event", complete as f64, WATCHERS as f64, share, Bound::AtLeast(1.0));
}

async fn read_until(stream: &mut TcpStream, word: &str) -> String {
    let mut text = String::new();
    let mut piece = [0; 4096];
    while !text.contains(word) {
        let read = tokio::time::timeout(Duration::from_secs(60), stream.read(&mut piece)).await;
        let read = read.expect("nothing came").unwrap();
        assert!(read > 0, "the stream broke off");
        text.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    text
}
