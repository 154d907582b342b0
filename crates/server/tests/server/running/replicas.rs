//! Several servers on one Redis: different configurations, older and newer programs, lost data, slots and streams.

use std::io::{self, Read, Write};
use std::sync::Arc;

use laneway_core::{Block, Event, LaneSettings, Pattern, Timestamp};
use laneway_store::testing::in_format;
use laneway_store::{BATCH_FORMAT, Batch, BatchId, Entry, ErrorKind, Log, OLDEST_FORMAT, Record, Store};
use laneway_store_redis::RedisStore;
use laneway_test_services::{Redis, Signal};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::common::{Events, Gate, PATIENCE, Running, answer, serve_in, until};

pub async fn server_on(redis: &Redis, config: &str) -> Running {
    let store = Arc::new(RedisStore::open(&redis.url()).await.unwrap());
    serve_in(config, Some(store), None).await
}

/// The log lines of all servers of a test.
struct Lines(mpsc::UnboundedReceiver<String>);

impl Lines {
    fn listen() -> (Lines, tracing::subscriber::DefaultGuard) {
        struct Sender(mpsc::UnboundedSender<String>);
        impl io::Write for Sender {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                drop(self.0.send(String::from_utf8_lossy(bytes).into_owned()));
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (sender, lines) = mpsc::unbounded_channel();
        let make = move || Sender(sender.clone());
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(make).finish();
        (Lines(lines), tracing::subscriber::set_default(subscriber))
    }

    /// Waits for a line with all words.
    async fn with(&mut self, words: &[&str]) {
        let mut said = String::new();
        let look = async {
            while let Some(line) = self.0.recv().await {
                said.push_str(&line);
                if words.iter().all(|word| line.contains(word)) {
                    return;
                }
            }
        };
        if tokio::time::timeout(PATIENCE, look).await.is_err() {
            panic!("no line has {words:?}:\n{said}");
        }
    }
}

/// The value of a setting at a server, and its source.
async fn value_of(server: &Running, block: &str, key: &str) -> (String, String) {
    let config = server.get("/api/config").await.json();
    let is_it = |value: &&Value| value["block"] == block && value["key"] == key;
    let value = config["values"].as_array().unwrap().iter().find(is_it).unwrap().clone();
    let text = |name: &str| value[name].as_str().unwrap().to_owned();
    (text("value"), text("source"))
}

#[tokio::test]
async fn servers_with_different_files_share_one_limit_and_report_its_source() {
    let (mut lines, _guard) = Lines::listen();
    let (redis, gate) = (Redis::start(), Gate::open().await);
    let config = |limit: u32| {
        format!("agent \"coder\" {{\n url = \"{}\"\n max_concurrency = {limit}\n lanes = []\n}}", gate.url)
    };
    let block = "lane \"agent:coder\"";
    let first = server_on(&redis, &config(3)).await;
    assert_eq!(value_of(&first, block, "max_concurrency").await.0, "3");

    // The last server to start wins. It logs the old value, and the other server logs the new one.
    let second = server_on(&redis, &config(1)).await;
    lines.with(&["replaces the settings in the store", "max_concurrency: 3 holds, the file says 1"]).await;
    lines
        .with(&["all replicas follow the settings in force", "max_concurrency: 1 holds, the file says 3"])
        .await;
    let (value, source) = value_of(&first, block, "max_concurrency").await;
    assert_eq!(value, "1");
    assert!(source.starts_with("replica (test.hcl:") && source.ends_with("says 3)"), "{source}");
    let (value, source) = value_of(&second, block, "max_concurrency").await;
    assert!(value == "1" && source.starts_with("test.hcl:"), "{value} {source}");

    // Both servers apply the limit, and a change at either of them, at once.
    for (server, session) in [(&first, "a"), (&second, "b"), (&first, "c")] {
        let body = json!({ "message": "hello", "session": session });
        let path = "/api/agents/coder/chat";
        let accepted = server.send_with("POST", path, body, &[("prefer", "respond-async")]).await;
        assert_eq!(accepted.status, 202, "{accepted:?}");
    }
    gate.arrival().await;
    assert_eq!((first.numbers().await, second.numbers().await), ((1, 2), (1, 2)));
    let set = second.send("PATCH", "/api/lanes/agent:coder", json!({ "max_concurrency": 3 })).await;
    assert_eq!(set.status, 200, "{set:?}");
    lines.with(&["the settings in force are those of this server's configuration"]).await;
    assert_eq!(first.numbers().await, (3, 0));
    assert!(value_of(&first, block, "max_concurrency").await.1.starts_with("test.hcl:"));
    // A change at one server keeps settings that another server changed.
    let set = second.send("PATCH", "/api/lanes/agent:coder", json!({ "max_concurrency": 4 })).await;
    assert_eq!(set.status, 200, "{set:?}");
    let set = first.send("PATCH", "/api/lanes/agent:coder", json!({ "max_queued": 7 })).await;
    assert_eq!((&set.json()["max_concurrency"], &set.json()["max_queued"]), (&json!(4), &json!(7)));
    gate.let_go(3);
    first.until_numbers((0, 0)).await;
}

/// Appends a batch in another format that sets the limit of a lane. The event itself has the same form in all formats.
async fn append_in(log: &Log, format: u8, number: u128, limit: &str) {
    let mut settings = LaneSettings::default();
    settings.set("max_concurrency", limit).unwrap();
    let block = Block { lanes: Pattern::new("work").unwrap(), settings: Some(settings) };
    loop {
        let head = log.store().head().await.unwrap();
        let at = log.store().time().await.unwrap().unwrap_or(Timestamp(0));
        let events = vec![Event::Configured { blocks: vec![block.clone()] }];
        let mut append = log.seal(head, &Entry::of(Batch { id: BatchId(number), at, events })).unwrap();
        append.record = in_format(Record::Batch(append.outcome().version), format, &append.record);
        match log.store().append(append).await {
            Ok(_) => return,
            // The server has appended first, so try again.
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
        }
    }
}

#[tokio::test]
async fn a_server_works_with_an_older_program_and_stops_at_a_batch_of_a_newer_one() {
    let (mut lines, _guard) = Lines::listen();
    let redis = Redis::start();
    let config = "agent \"echo\" { echo = true }\nlane \"work\" { max_concurrency = 100 }";
    let server = server_on(&redis, config).await;
    let log = Log::new(Arc::new(RedisStore::open(&redis.url()).await.unwrap()));
    for number in 1..=5_u128 {
        append_in(&log, OLDEST_FORMAT, number, &number.to_string()).await;
        assert_eq!(server.get("/api/lanes/work").await.json()["max_concurrency"], json!(number));
        let before = log.store().head().await.unwrap();
        let told = server.post("/api/agents/echo/chat", json!({ "message": "hello" })).await;
        assert_eq!(told.status, 200, "{told:?}");
        assert!(
            log.store().head().await.unwrap().version > before.version,
            "it appends after a batch in the oldest format"
        );
    }
    // Another server reads the batches of both.
    let other = server_on(&redis, config).await;
    assert_eq!(other.get("/api/lanes/work").await.json()["max_concurrency"], json!(100));

    append_in(&log, BATCH_FORMAT + 1, 6, "7").await;
    for server in [&server, &other] {
        let refused = server.post("/api/agents/echo/chat", json!({ "message": "hello" })).await;
        assert_eq!(
            (refused.status, &refused.json()["code"]),
            (503, &json!("STORE_UNAVAILABLE")),
            "{refused:?}"
        );
        assert!(refused.json()["detail"].as_str().unwrap().contains("newer version"), "{refused:?}");
        assert_eq!(server.get("/readyz").await.status, 503);
    }
    let newer = format!("written in format {} by a newer version of Laneway", BATCH_FORMAT + 1);
    lines.with(&["has stopped deciding", &newer]).await;
    let head = log.store().head().await.unwrap();
    assert_eq!(head.batch, BatchId(6), "no replica has appended after the unreadable batch");
    // A replica that starts now fails with the reason.
    let nothing: [(&str, &str); 0] = [];
    let config = laneway_config::parse("test.hcl", config, laneway_config::Profile::SERVER, nothing).unwrap();
    let store: Arc<dyn laneway_store::Store> = Arc::new(RedisStore::open(&redis.url()).await.unwrap());
    let parts = laneway_server::Parts {
        config,
        config_file: None,
        overrides: Vec::new(),
        store: Some(store),
        state_dir: None,
    };
    let refused = laneway_server::Server::open(parts).await.err().unwrap();
    assert!(refused.to_string().contains(&newer), "{refused}");
}

#[tokio::test]
async fn callers_and_watchers_of_a_lost_task_learn_of_the_loss() {
    let (mut said, _guard) = Lines::listen();
    let mut redis = Redis::start();
    let gate = Gate::open().await;
    let config =
        format!("agent \"coder\" {{\n url = \"{}\"\n max_concurrency = 2\n lanes = []\n}}", gate.url);
    let (a, b) = (server_on(&redis, &config).await, server_on(&redis, &config).await);
    let path = "/api/agents/coder/chat";
    let mut streams = Events::chat(&a, path, json!({"message": "runs", "session": "s"}), &[]).await;
    let id = streams.next_named("started").await.data["task_id"].as_str().unwrap().to_owned();
    gate.arrival().await;
    let request = a.request("POST", path).header("content-type", "application/json");
    let waits = tokio::spawn(answer(request.body(json!({"message": "runs", "session": "t"}).to_string())));
    gate.arrival().await;
    let mut elsewhere = Events::open(&b, &format!("/api/tasks/{id}/events"), &[]).await;
    elsewhere.next_named("started").await;
    redis.kill();
    said.with(&["WARN", "the store cannot be used"]).await;
    redis.restart_empty();
    said.with(&["the store can be used again"]).await;
    said.with(&["ERROR", "the store has lost its last writes", "ends_restored=2", &id]).await;
    for events in [&mut streams, &mut elsewhere] {
        let failed = events.next_named("failed").await.data;
        assert_eq!(failed["code"], "LOST", "{failed}");
        events.next_named("done").await;
    }
    let waited = waits.await.unwrap();
    assert_eq!(waited.json()["code"], "LOST", "{waited:?}");
    assert_eq!(b.get(&format!("/api/tasks/{id}")).await.json()["status"], "lost");
}

#[tokio::test]
async fn recently_accepted_tasks_are_resubmitted_when_redis_comes_back_empty() {
    let redis = Redis::start();
    let (a, b) = (server_on(&redis, "").await, server_on(&redis, "").await);
    let mut tasks = Vec::new();
    for number in 0..5 {
        let task = a.post("/api/tasks", json!({"kind": "k", "payload": number})).await;
        tasks.push(task.json()["id"].as_str().unwrap().to_owned());
    }
    // The second round loses the resubmitted tasks.
    for _ in 0..2 {
        assert_eq!(answer_of(&redis, "FLUSHALL"), *b"+O");
        for server in [&a, &b] {
            for task in &tasks {
                let path = format!("/api/tasks/{task}");
                until("the task is there again", async || server.get(&path).await.status == 200).await;
            }
        }
    }
}

#[tokio::test]
async fn every_server_accepts_the_release_of_a_slot() {
    let redis = Redis::start();
    let (a, b) = (server_on(&redis, "").await, server_on(&redis, "").await);
    let held = a.post("/api/slots", json!({"lanes": ["gpu"], "lease_ms": 60_000})).await.json();
    let path = format!("/api/slots/{}?fence=", held["id"].as_str().unwrap());
    let wrong = b.send("DELETE", &format!("{path}77"), json!(null)).await;
    assert_eq!((wrong.status, &wrong.json()["code"]), (409, &json!("STALE_LEASE")));
    let path = format!("{path}{}", held["fence"]);
    assert_eq!(b.send("DELETE", &path, json!(null)).await.status, 204);
    a.until_numbers((0, 0)).await;
    for server in [&a, &b] {
        assert_eq!(server.send("DELETE", &path, json!(null)).await.status, 204, "once more changes nothing");
    }
}

#[tokio::test]
async fn every_server_renews_a_slot_and_the_slot_outlives_its_grantor() {
    let redis = Redis::start();
    let config = "server { drain_grace = \"100ms\" }";
    let (mut a, b) = (server_on(&redis, config).await, server_on(&redis, config).await);
    let take = async |server: &Running, lease: u64| {
        let held = server.post("/api/slots", json!({"lanes": ["gpu"], "lease_ms": lease})).await.json();
        (held["id"].as_str().unwrap().to_owned(), held["fence"].clone())
    };
    let alive = async |(id, fence): &(String, Value)| {
        b.post(&format!("/api/tasks/{id}/heartbeat"), json!({ "fence": fence })).await
    };
    let held = take(&a, 1500).await;
    let wrong = alive(&(held.0.clone(), json!(77))).await;
    assert_eq!((wrong.status, &wrong.json()["code"]), (409, &json!("STALE_LEASE")), "{wrong:?}");
    let three_leases = std::time::Instant::now() + std::time::Duration::from_millis(4500);
    while std::time::Instant::now() < three_leases {
        let renewed = alive(&held).await;
        assert_eq!(renewed.status, 200, "{renewed:?}");
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    }
    assert_eq!(b.numbers().await, (1, 0));
    // Without heartbeats the lease lapses.
    b.until_numbers((0, 0)).await;
    assert_eq!(alive(&held).await.json()["code"], "STALE_LEASE");
    // The next heartbeat removes the records of old ones.
    let next = take(&a, 20_000).await;
    assert_eq!(alive(&next).await.status, 200);
    a.stop();
    a.stopped().await;
    let renewed = alive(&next).await;
    assert_eq!(renewed.status, 200, "{renewed:?}");
    assert_eq!(b.numbers().await, (1, 0));
}

#[tokio::test]
async fn two_servers_cannot_share_a_state_directory() {
    let dir = tempfile::tempdir().unwrap();
    let redis = Redis::start();
    let store = async || Some(Arc::new(RedisStore::open(&redis.url()).await.unwrap()) as Arc<dyn Store>);
    let mut first = serve_in("", store().await, Some(dir.path().to_owned())).await;
    let none: [(&str, &str); 0] = [];
    let config = laneway_config::parse("b.hcl", "", laneway_config::Profile::SERVER, none).unwrap();
    let state_dir = Some(dir.path().to_owned());
    let parts = || laneway_server::Parts {
        config: config.clone(),
        config_file: None,
        overrides: Vec::new(),
        store: None,
        state_dir: state_dir.clone(),
    };
    let refused = laneway_server::Server::open(parts()).await.err().unwrap();
    assert!(
        refused.to_string().contains("is in use by another server: give each a directory of its own"),
        "{refused}"
    );
    first.stop();
    first.stopped().await;
    laneway_server::Server::open(parts()).await.unwrap();
}

#[tokio::test]
async fn the_server_of_the_client_runs_and_streams_the_turn_although_another_grants_it() {
    let redis = Redis::start();
    let gate = Gate::open().await;
    let config = format!("agent \"coder\" {{\n url = \"{}\"\n lanes = []\n}}", gate.url);
    let (a, b) = (server_on(&redis, &config).await, server_on(&redis, &config).await);
    let path = "/api/agents/coder/chat";
    let ask = |session: &str| json!({"message": session, "session": session});
    a.send_with("POST", path, ask("first"), &[("prefer", "respond-async")]).await;
    gate.arrival().await;
    let mut events = Events::chat(&b, path, ask("second"), &[]).await;
    b.until_numbers((1, 1)).await;
    // The first turn ends at one server, which grants the second turn to the server of its client.
    gate.let_go(2);
    assert_eq!(events.next_named("delta").await.data["text"], "answer to second");
    events.next_named("done").await;
    a.until_numbers((0, 0)).await;
}

/// Whether a replica listens to the output of attempts.
/// The first bytes of the answer of Redis to a command.
fn answer_of(redis: &Redis, command: &str) -> [u8; 2] {
    let mut connection = std::net::TcpStream::connect(("127.0.0.1", redis.port())).unwrap();
    connection.write_all(format!("{command}\r\n").as_bytes()).unwrap();
    let mut answer = [0; 2];
    connection.read_exact(&mut answer).unwrap();
    answer
}

fn has_listeners(redis: &Redis) -> bool {
    answer_of(redis, "PUBSUB CHANNELS") != *b"*0"
}

#[tokio::test]
async fn every_server_streams_the_output_of_an_attempt_before_its_end() {
    let redis = Redis::start();
    let gate = Gate::open().await;
    let config = format!("agent \"coder\" {{\n url = \"{}\"\n lanes = []\n}}", gate.url);
    let (a, b) = (server_on(&redis, &config).await, server_on(&redis, &config).await);
    let body = json!({"message": "hello"});
    let accepted = a.send_with("POST", "/api/agents/coder/chat", body, &[("prefer", "respond-async")]).await;
    let id = accepted.header("x-laneway-task-id").to_owned();
    gate.arrival().await;
    let mut one = b.events(&format!("/api/tasks/{id}/events")).await;
    let mut all = b.events("/api/events").await;
    // The engine subscribes shortly after the client.
    until("a replica listens", async || has_listeners(&redis)).await;
    gate.let_go(1);
    for events in [&mut one, &mut all] {
        let heard = events.next_named("delta").await.data;
        assert_eq!((&heard["text"], &heard["task_id"]), (&json!("answer to hello"), &json!(id)));
        events.next_named("done").await;
    }
    // Without listeners, replicas publish no output.
    drop((one, all));
    until("no replica listens", async || !has_listeners(&redis)).await;
}

#[tokio::test]
async fn a_waiting_caller_gets_a_slot_that_another_server_grants() {
    let redis = Redis::start();
    let config = "lane \"gpu\" { max_concurrency = 1 }";
    let (a, b) = (server_on(&redis, config).await, server_on(&redis, config).await);
    let asked = json!({"lanes": ["gpu"], "wait_ms": 60_000, "lease_ms": 60_000});
    let held = a.post("/api/slots", asked.clone()).await.json();
    let (waited, ()) = tokio::join!(b.post("/api/slots", asked), async {
        a.until_numbers((1, 1)).await;
        let path = format!("/api/slots/{}?fence={}", held["id"].as_str().unwrap(), held["fence"]);
        assert_eq!(a.send("DELETE", &path, json!(null)).await.status, 204);
    });
    assert_eq!(waited.status, 200, "{waited:?}");
    let slot = waited.json();
    let renewed = b
        .post(
            &format!("/api/tasks/{}/heartbeat", slot["id"].as_str().unwrap()),
            json!({"fence": slot["fence"]}),
        )
        .await;
    assert_eq!(renewed.status, 200, "{renewed:?}");
}

#[tokio::test]
async fn a_server_answers_while_its_store_is_stuck() {
    let redis = Redis::start();
    let server = server_on(&redis, "").await;
    redis.signal(Signal::Stop);
    let begun = std::time::Instant::now();
    let health = server.get("/healthz").await;
    let took = begun.elapsed();
    redis.signal(Signal::Continue);
    assert_eq!((health.status, &health.json()["status"]), (200, &json!("ok")));
    assert!(took < std::time::Duration::from_secs(2), "it waited for the store: {took:?}");
}

#[tokio::test]
async fn a_redis_that_begins_to_throw_keys_away_is_complained_about_until_it_is_repaired() {
    let (mut lines, _guard) = Lines::listen();
    let redis = Redis::start();
    let server = server_on(&redis, "agent \"echo\" { echo = true }").await;
    let ready = async || {
        let answer = server.get("/readyz").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        (
            answer.json()["store_warning"].clone(),
            server.get("/api/status").await.json()["store_warning"].clone(),
        )
    };
    assert_eq!(ready().await, (Value::Null, Value::Null));
    redis.command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    lines.with(&["WARN", "the store may lose accepted work", "maxmemory-policy allkeys-lru"]).await;
    let (readiness, status) = ready().await;
    assert!(readiness.as_str().is_some_and(|text| text.contains("set maxmemory-policy to noeviction")));
    assert_eq!(readiness, status);
    redis.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    lines.with(&["the store keeps accepted work again"]).await;
    assert_eq!(ready().await, (Value::Null, Value::Null));
}
