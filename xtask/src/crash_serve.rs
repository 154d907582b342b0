//! Kills a server under load, and kills it at a system call: what it answered with `disk` is there afterwards.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::{ensure, root, run};

/// The calls with which something reaches a disk, and how late such a call is at most the one that kills.
const CALLS: [(&str, u64); 4] =
    [("pwrite64", 150), ("fsync,fdatasync", 40), ("?open,?openat", 60), ("ftruncate", 3)];
/// So many servers work on one store; then the next has a new one, so that none grows without end.
const ROUNDS_OF_A_STORE: u64 = 20;
const CLIENTS: u64 = 4;
/// How long the load lasts at most, when no call kills before.
const LOAD: Duration = Duration::from_millis(700);
/// Only what hangs takes so long.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Figures {
    kills: u64,
    points: u64,
    accepted: usize,
    looked_at: usize,
}

/// Kills servers so many times at some moment, and so many times at some system call.
pub(crate) fn run_all(rounds: &str, points: &str) -> Result<(), String> {
    let number = |what: &str, text: &str| {
        text.parse::<u64>().map_err(|_| format!("{what} is a whole number; {text:?} is not"))
    };
    let (rounds, points) = (number("--rounds", rounds)?, number("--points", points)?);
    ensure("strace", "strace")?;
    run("cargo", &["build", "--package", "laneway-cli"], &[])?;
    let program = program();
    let place = std::env::temp_dir().join(format!("laneway-crash-{}", std::process::id()));
    let began = Instant::now();
    let outcome = crash(&program, &place, rounds, points);
    // The store of a failure is left for whoever looks into it.
    let figures = outcome.map_err(|problem| format!("{problem}; the store is in {}", place.display()))?;
    std::fs::remove_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    println!(
        "crash serve: {} kills, {} kills at a system call, {} accepted with disk, {} looked at afterwards, lost: 0; {:.0} s",
        figures.kills,
        figures.points,
        figures.accepted,
        figures.looked_at,
        began.elapsed().as_secs_f64()
    );
    if figures.accepted == 0 || (points > 4 && figures.points == 0) {
        return Err("nothing was accepted, or no system call killed: this shows nothing".to_owned());
    }
    Ok(())
}

fn program() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    target.join("debug").join("laneway")
}

fn crash(program: &Path, place: &Path, rounds: u64, points: u64) -> Result<Figures, String> {
    let mut figures = Figures::default();
    let mut chance = 0x9e37_79b9_7f4a_7c15;
    let mut known: Vec<String> = Vec::new();
    for round in 0..rounds + points {
        if round % ROUNDS_OF_A_STORE == 0 {
            check_all(program, place, &known, &mut figures)?;
            known.clear();
            if place.exists() {
                std::fs::remove_dir_all(place).map_err(|error| error.to_string())?;
            }
            std::fs::create_dir_all(place).map_err(|error| error.to_string())?;
        }
        let at = if round < rounds { None } else { Some(point(&mut chance)) };
        let moment = Duration::from_millis(next(&mut chance) % 300);
        let newest = known.len().saturating_sub(50);
        let told = || at.clone().unwrap_or_else(|| format!("after {moment:?}"));
        let (accepted, by_call) = one(program, place, at.as_deref(), moment, &known[newest..])
            .map_err(|problem| format!("round {round}, killed {}: {problem}", told()))?;
        figures.points += u64::from(by_call);
        figures.kills += u64::from(!by_call);
        figures.accepted += accepted.len();
        known.extend(accepted);
    }
    check_all(program, place, &known, &mut figures)?;
    Ok(figures)
}

/// What strace is to do, and when.
fn point(chance: &mut u64) -> String {
    let (calls, latest) = CALLS[(next(chance) % CALLS.len() as u64) as usize];
    format!("inject={calls}:signal=KILL:when={}", 1 + next(chance) % latest)
}

/// One server: looks for what is known, takes load, dies. Returns what it accepted, and whether a call killed it.
fn one(
    program: &Path,
    place: &Path,
    at: Option<&str>,
    moment: Duration,
    known: &[String],
) -> Result<(Vec<String>, bool), String> {
    let Some(mut served) = Served::start(program, place, at)? else {
        // Killed before it listened.
        return Ok((Vec::new(), true));
    };
    for id in known {
        match served.ask("GET", &format!("/api/tasks/{id}"), "") {
            Some((200, task)) if task.contains("\"by\":") => {}
            Some((status, task)) => return Err(format!("{id} is gone: {status} {task:.300}")),
            // Dead already.
            None => break,
        }
    }
    let (accepted, is_over) = (Mutex::<Vec<String>>::default(), AtomicBool::new(false));
    let mut by_call = false;
    let address = served.address.clone();
    std::thread::scope(|scope| {
        let (address, accepted, is_over) = (&address, &accepted, &is_over);
        for client in 0..CLIENTS {
            scope.spawn(move || load(address, client, accepted, is_over));
        }
        let began = Instant::now();
        let until = if at.is_some() { LOAD } else { moment };
        while began.elapsed() < until && !by_call {
            std::thread::sleep(Duration::from_millis(2));
            by_call = at.is_some() && matches!(served.process.try_wait(), Ok(Some(_)));
        }
        served.kill();
        is_over.store(true, Ordering::SeqCst);
    });
    Ok((accepted.into_inner().map_err(|_| "a client panicked")?, by_call))
}

/// Submits until the server is gone.
fn load(address: &str, client: u64, accepted: &Mutex<Vec<String>>, is_over: &AtomicBool) {
    let body = format!("{{\"kind\": \"index\", \"payload\": {{\"by\": {client}}}}}");
    while !is_over.load(Ordering::SeqCst) {
        // A request that the kill cuts off was never answered, and may or may not be there.
        let Some((202, answer)) = ask(address, "POST", "/api/tasks", &body) else { continue };
        if let (Some("disk"), Some(id), Ok(mut accepted)) =
            (field(&answer, "durability"), field(&answer, "id"), accepted.lock())
        {
            accepted.push(id.to_owned());
        }
    }
}

/// Every task that a store ever accepted is there, with its payload.
fn check_all(program: &Path, place: &Path, known: &[String], figures: &mut Figures) -> Result<(), String> {
    if known.is_empty() {
        return Ok(());
    }
    let mut served = Served::start(program, place, None)?.ok_or("it does not start any more")?;
    for id in known {
        let (status, task) = served.ask("GET", &format!("/api/tasks/{id}"), "").ok_or("no answer")?;
        if status != 200 || !task.contains("\"by\":") {
            return Err(format!("{id} is gone: {status} {task:.300}"));
        }
    }
    figures.looked_at += known.len();
    served.kill();
    Ok(())
}

/// A server in a process group of its own, with strace beside it if calls are to kill it.
struct Served {
    process: Child,
    address: String,
}

impl Served {
    /// `None` if it was killed before it listened.
    fn start(program: &Path, place: &Path, at: Option<&str>) -> Result<Option<Served>, String> {
        let mut command = match at {
            None => Command::new(program),
            Some(at) => {
                // With -D the server is our own child, and strace is beside it.
                let mut command = Command::new("strace");
                command.args(["-D", "-f", "-qq", "-o", "/dev/null", "-e", at]).arg(program);
                command
            }
        };
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", "data", "--log", "error"]);
        command.current_dir(place).env_remove("LANEWAY_STORE").env_remove("LANEWAY_LISTEN");
        let spawned = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut process = spawned.map_err(|error| error.to_string())?;
        let out = process.stdout.take().ok_or("no pipe")?;
        let mut lines = BufReader::new(out).lines();
        let address = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.rsplit_once("http://").map(|(_, address)| address.trim().to_owned()));
        // Whatever else it prints is read, so that it never waits for a full pipe.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        match address {
            Some(address) => Ok(Some(Served { process, address })),
            None => {
                let status = process.wait().map_err(|error| error.to_string())?;
                let mut words = String::new();
                if let Some(mut pipe) = process.stderr.take() {
                    pipe.read_to_string(&mut words).map_err(|error| error.to_string())?;
                }
                match (status.code(), at) {
                    (None, Some(_)) => Ok(None),
                    _ => Err(format!("it did not start: {status} {words}")),
                }
            }
        }
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
        ask(&self.address, method, path, body)
    }

    /// SIGKILL, and waits until it is gone.
    fn kill(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The status and the body of an answer.
fn ask(address: &str, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let status = text.split(' ').nth(1)?.parse().ok()?;
    Some((status, text.split_once("\r\n\r\n")?.1.to_owned()))
}

/// The value of a text field of a flat JSON object.
fn field<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    json.split_once(&format!("\"{name}\":\""))?.1.split('"').next()
}

fn next(chance: &mut u64) -> u64 {
    *chance ^= *chance << 13;
    *chance ^= *chance >> 7;
    *chance ^= *chance << 17;
    *chance
}
