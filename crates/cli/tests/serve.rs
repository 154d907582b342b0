//! `laneway serve` as a process with signals, files and kills.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A server in its own process, which ends with the test.
struct Served {
    process: Child,
    address: String,
    greeting: Vec<String>,
}

fn laneway(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_laneway"));
    command.args(arguments).current_dir(dir).env_remove("LANEWAY_STORE").env_remove("LANEWAY_LISTEN");
    command
}

fn serve(dir: &Path, arguments: &[&str]) -> Served {
    let all = [&["serve", "--listen", "127.0.0.1:0"], arguments].concat();
    let mut process = laneway(dir, &all).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let greeting: Vec<String> = lines.by_ref().take(4).map(|line| line.unwrap()).collect();
    let address = greeting.first().and_then(|line| line.rsplit_once("http://")).expect("it did not start").1;
    Served { address: address.to_owned(), greeting, process }
}

impl Served {
    /// The status and the body of an answer.
    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(120))).ok()?;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{headers}\r\n{body}",
            self.address,
            body.len()
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let status = text.split(' ').nth(1)?.parse().ok()?;
        Some((status, text.split_once("\r\n\r\n")?.1.to_owned()))
    }

    fn get(&self, path: &str) -> (u16, String) {
        self.ask("GET", path, "", "").expect("no answer")
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.process.id().to_string()]).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// The value of a text field of a flat JSON object.
fn field<'a>(json: &'a str, name: &str) -> &'a str {
    let start = format!("\"{name}\":\"");
    let rest = json.split_once(&start).unwrap_or_else(|| panic!("no {name} in {json}")).1;
    rest.split('"').next().unwrap()
}

#[test]
fn without_a_file_the_server_echoes_on_loopback_and_the_commands_of_greeting_and_readme_work() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), &[]);
    for (line, word) in served.greeting.iter().zip(["listens on", "curl http://", "dashboard", "/docs"]) {
        assert!(line.contains(word), "{line}");
    }
    let readme = include_str!("../../../README.md");
    let printed = served.greeting[1].split_once("curl").map(|(_, rest)| format!("curl{rest}")).unwrap();
    let mut lines: Vec<&str> = readme.lines().filter(|line| line.starts_with("curl ")).collect();
    assert!(lines.len() >= 3, "the README shows how to ask");
    lines.push(&printed);
    for line in lines {
        let line = line.replace("127.0.0.1:7717", &served.address).replacen(
            "curl ",
            "curl -sS --fail-with-body ",
            1,
        );
        let output = Command::new("sh").args(["-c", &line]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{line}\n{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(!text.is_empty(), "{line}");
    }
    assert!(dir.path().join("laneway-data").is_dir());
}

#[test]
fn with_a_file_the_greeting_names_an_agent_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = "agent \"builder\" { external = true }\nagent \"shout\" { command = [\"cat\"] }\n";
    std::fs::write(dir.path().join("laneway.hcl"), file).unwrap();
    let served = serve(dir.path(), &[]);
    let (_, asked) = served.greeting[1].split_once("curl ").unwrap();
    let output =
        Command::new("sh").args(["-c", &format!("curl -sS --fail-with-body {asked}")]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && field(&text, "response") == "hello", "{asked}\n{text}");
}

#[test]
fn tasks_accepted_with_durability_disk_survive_every_kill() {
    const ROUNDS: usize = 20;
    let dir = tempfile::tempdir().unwrap();
    let mut known: Vec<String> = Vec::new();
    for round in 0..ROUNDS {
        let served = serve(dir.path(), &["--store", "data", "--log", "error"]);
        for id in known.iter().rev().take(100) {
            assert_eq!(served.get(&format!("/api/tasks/{id}")).0, 200, "round {round}: {id} is gone");
        }
        let accepted: Mutex<Vec<String>> = Mutex::default();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let (served, accepted, is_over) = (&served, &accepted, &is_over);
                scope.spawn(move || {
                    let body = format!(
                        "{{\"kind\": \"index\", \"payload\": {{\"round\": {round}, \"by\": {worker}}}}}"
                    );
                    while !is_over.load(Ordering::SeqCst) {
                        // A request that the kill cuts off has no answer, so its task may be missing.
                        let Some((202, answer)) = served.ask("POST", "/api/tasks", "", &body) else {
                            continue;
                        };
                        assert_eq!(field(&answer, "durability"), "disk");
                        accepted.lock().unwrap().push(field(&answer, "id").to_owned());
                    }
                });
            }
            // Kill the server during the requests, later in each round.
            let enough = 5 + round * 3;
            while accepted.lock().unwrap().len() < enough {
                std::thread::yield_now();
            }
            served.signal("-KILL");
            is_over.store(true, Ordering::SeqCst);
        });
        known.extend(accepted.into_inner().unwrap());
    }
    let served = serve(dir.path(), &["--store", "data", "--log", "error"]);
    for id in &known {
        let (status, task) = served.get(&format!("/api/tasks/{id}"));
        assert_eq!(status, 200, "{id} is gone");
        assert!(task.contains("\"by\":"), "its payload is gone: {task}");
    }
    assert!(known.len() >= ROUNDS * 5);
}

#[test]
fn signals_reload_and_drain() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("laneway.hcl");
    std::fs::write(&file, "store = \"memory\"\nagent \"a\" { echo = true }").unwrap();
    let mut served = serve(dir.path(), &[]);
    assert_eq!(served.get("/api/agents/b").0, 404);
    std::fs::write(&file, "store = \"memory\"\nagent \"a\" { echo = true }\nagent \"b\" { echo = true }")
        .unwrap();
    served.signal("-HUP");
    let patience = std::time::Instant::now() + Duration::from_secs(120);
    while served.get("/api/agents/b").0 != 200 {
        assert!(patience > std::time::Instant::now(), "the file was not read again");
    }
    served.signal("-TERM");
    assert_eq!(served.process.wait().unwrap().code(), Some(0));
}

#[test]
fn tokens_are_created_without_the_server_and_other_hosts_need_one() {
    let dir = tempfile::tempdir().unwrap();
    let refused = laneway(dir.path(), &["serve", "--listen", "0.0.0.0:0"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(why.contains("there is no token") && why.contains("laneway token create"), "{why}");

    let create = ["token", "create", "--subject", "ann", "--scope", "read", "--scope", "admin"];
    let made = laneway(dir.path(), &create).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let token = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let served = serve(dir.path(), &[]);
    assert_eq!(served.get("/api/status").0, 401);
    let bearer = format!("authorization: Bearer {token}\r\n");
    assert_eq!(served.ask("GET", "/api/status", &bearer, "").unwrap().0, 200);
    assert_eq!(served.ask("POST", "/api/agents/echo/queue/clear", &bearer, "").unwrap().0, 200);
    let verify = || laneway(dir.path(), &["audit", "verify"]).output().unwrap();
    assert_eq!(
        String::from_utf8(verify().stdout).unwrap(),
        "2 lines, none changed\n",
        "the token and the clearing"
    );
    let log = dir.path().join("laneway-data/server/audit.jsonl");
    let edited = std::fs::read_to_string(&log).unwrap().replace("ann", "bob");
    std::fs::write(&log, edited).unwrap();
    let changed = verify();
    assert_eq!(changed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&changed.stderr).contains("line 1: was changed"));

    let wrong =
        laneway(dir.path(), &["token", "create", "--subject", "x", "--scope", "fly"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    let id = token.split_once('.').unwrap().0;
    let list = laneway(dir.path(), &["token", "list"]).output().unwrap();
    let listed = String::from_utf8(list.stdout).unwrap();
    assert!(listed.contains(id) && !listed.contains(token.split_once('.').unwrap().1));
    assert!(laneway(dir.path(), &["token", "remove", id]).status().unwrap().success());
    assert_eq!(laneway(dir.path(), &["token", "remove", id]).status().unwrap().code(), Some(2));
}

#[test]
fn every_example_configuration_is_valid_without_a_warning() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut read = 0;
    for entry in std::fs::read_dir(examples).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "hcl") {
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        let check =
            laneway(dir.path(), &["config", "check", "--config", path.to_str().unwrap()]).output().unwrap();
        let warnings = String::from_utf8_lossy(&check.stderr).into_owned();
        assert!(check.status.success() && warnings.is_empty(), "{}: {warnings}", path.display());
        assert!(String::from_utf8_lossy(&check.stdout).contains(".hcl:"));
        read += 1;
    }
    assert_eq!(read, 5);
}

/// The first server grants the only slot of a lane. The second refuses another one, and takes the slot back.
fn two_servers_share_their_lanes(store: &str) {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [first, second] = dirs.each_ref().map(|dir| serve(dir.path(), &["--store", store]));
    let slot = r#"{"lanes": ["gpu"], "wait_ms": 0}"#;
    let (status, taken) = first.ask("POST", "/api/slots", "", slot).unwrap();
    assert_eq!(status, 200, "{taken}");
    let (status, refused) = second.ask("POST", "/api/slots", "", slot).unwrap();
    assert_eq!((status, field(&refused, "code")), (429, "AT_CAPACITY"), "{refused}");
    let fence = taken.split_once("\"fence\":").unwrap().1.split([',', '}']).next().unwrap();
    let complete = format!("/api/tasks/{}/complete", field(&taken, "id"));
    let body = format!("{{\"fence\": {fence}, \"success\": true}}");
    let (status, done) = second.ask("POST", &complete, "", &body).unwrap();
    assert_eq!(status, 200, "{done}");
    let (status, taken) = second.ask("POST", "/api/slots", "", slot).unwrap();
    assert_eq!(status, 200, "{taken}");
}

#[test]
fn servers_on_one_redis_share_their_lanes() {
    let redis = laneway_test_services::Redis::start();
    two_servers_share_their_lanes(&redis.url());
}

#[test]
fn servers_on_one_postgres_share_their_lanes() {
    let postgres = laneway_test_services::Postgres::start();
    two_servers_share_their_lanes(&postgres.url());
}
