//! Kills a server under load, and kills it at a system call: what it answered with `disk` is there afterwards.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use laneway_seeded::Random;

use super::served::{Served, ask, field, has_payload, payload, was_killed};
use crate::chore::{build_program, ensure, program};

/// The calls with which something reaches a disk, and how late such a call is at most the one that kills.
const CALLS: [(&str, u64); 4] =
    [("pwrite64", 150), ("fsync,fdatasync", 40), ("?open,?openat", 60), ("ftruncate", 3)];
/// How many servers work on one store. Then the next gets a new one, so that none grows without end.
const ROUNDS_OF_A_STORE: u64 = 20;
const CLIENTS: usize = 4;
/// Texts are shorter than this.
const PAYLOAD_MAX: usize = 400;
/// How many stores are used at once: a round mostly waits for a start and for its moment.
const STORES: u64 = 3;
/// How long the load lasts at most, when no call kills before.
const LOAD: Duration = Duration::from_millis(700);

#[derive(Default)]
struct Figures {
    kills: u64,
    points: u64,
    /// Of the points: while it started.
    early: u64,
    accepted: usize,
    looked_at: usize,
}

/// Kills servers `rounds` times at some moment, and `points` times at some system call.
pub(crate) fn run_all(rounds: u64, points: u64, seed: u64) -> Result<(), String> {
    ensure("strace", "strace")?;
    build_program()?;
    println!("crash serve: {rounds} kills and {points} kills at a system call from seed {seed}");
    let program = program("debug");
    let place = std::env::temp_dir().join(format!("laneway-crash-{}", std::process::id()));
    let began = Instant::now();
    let outcome = crash_all(&program, &place, rounds, points, seed);
    // The store of a failure is kept for inspection.
    let figures =
        outcome.map_err(|problem| format!("{problem}; seed {seed}; the store is in {}", place.display()))?;
    std::fs::remove_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    println!(
        "crash serve: {} kills, {} kills at a system call ({} of them while it started), {} accepted with disk, \
         {} looked at afterwards, lost: 0; {:.0} s",
        figures.kills,
        figures.points,
        figures.early,
        figures.accepted,
        figures.looked_at,
        began.elapsed().as_secs_f64()
    );
    if figures.accepted == 0 || figures.points < points {
        return Err("nothing was accepted, or too few system calls killed: this shows nothing".to_owned());
    }
    Ok(())
}

/// Shares the kills out among some stores.
fn crash_all(program: &Path, place: &Path, rounds: u64, points: u64, seed: u64) -> Result<Figures, String> {
    let outcomes: Vec<Result<Figures, String>> = std::thread::scope(|scope| {
        let share = |all: u64, store: u64| (all + store) / STORES;
        let start = |store: u64| {
            scope.spawn(move || {
                let (place, mut random) = (place.join(store.to_string()), Random::new(seed + store));
                crash(program, &place, share(rounds, store), share(points, store), &mut random)
            })
        };
        let running: Vec<_> = (0..STORES).map(start).collect();
        let told =
            |outcome: std::thread::Result<_>| outcome.unwrap_or_else(|_| Err("it panicked".to_owned()));
        running.into_iter().map(|store| told(store.join())).collect()
    });
    let mut sum = Figures::default();
    for outcome in outcomes {
        let figures = outcome?;
        sum.kills += figures.kills;
        sum.points += figures.points;
        sum.early += figures.early;
        sum.accepted += figures.accepted;
        sum.looked_at += figures.looked_at;
    }
    Ok(sum)
}

fn crash(
    program: &Path,
    place: &Path,
    rounds: u64,
    points: u64,
    random: &mut Random,
) -> Result<Figures, String> {
    let mut figures = Figures::default();
    let mut known: Vec<Accepted> = Vec::new();
    // A call that does not come while there is load kills nothing; then it is one more kill at some moment.
    for round in 0..rounds + 4 * points {
        if round >= rounds && figures.points >= points {
            break;
        }
        if round % ROUNDS_OF_A_STORE == 0 {
            check_all(program, place, &known, &mut figures)?;
            known.clear();
            if place.exists() {
                std::fs::remove_dir_all(place).map_err(|error| error.to_string())?;
            }
            std::fs::create_dir_all(place).map_err(|error| error.to_string())?;
        }
        let at = if round < rounds { None } else { Some(point(random)) };
        let moment = Duration::from_millis(random.number() % 300);
        let newest = known.len().saturating_sub(50);
        let told = || at.clone().unwrap_or_else(|| format!("after {moment:?}"));
        let (accepted, death) = one(program, place, at.as_deref(), moment, &known[newest..])
            .map_err(|problem| format!("round {round}, killed {}: {problem}", told()))?;
        match death {
            Death::Ours => figures.kills += 1,
            Death::AtCall => figures.points += 1,
            Death::Starting => (figures.points, figures.early) = (figures.points + 1, figures.early + 1),
        }
        figures.accepted += accepted.len();
        known.extend(accepted);
    }
    check_all(program, place, &known, &mut figures)?;
    Ok(figures)
}

/// What strace is to do, and when.
fn point(random: &mut Random) -> String {
    let (calls, latest) = CALLS[random.index(CALLS.len())];
    format!("inject={calls}:signal=KILL:when={}", 1 + random.number() % latest)
}

/// What a server died of.
enum Death {
    /// The kill at some moment.
    Ours,
    /// A system call, under load.
    AtCall,
    /// A system call, before it listened.
    Starting,
}

/// One server: looks for what is known, takes load, dies. Returns what it accepted, and what it died of.
fn one(
    program: &Path,
    place: &Path,
    at: Option<&str>,
    moment: Duration,
    known: &[Accepted],
) -> Result<(Vec<Accepted>, Death), String> {
    let watched: Vec<&str> = at.map(|at| vec!["-qq", "-o", "/dev/null", "-e", at]).unwrap_or_default();
    let Some(mut served) = Served::start(program, place, &watched)? else {
        return Ok((Vec::new(), Death::Starting));
    };
    for (id, length) in known {
        match served.ask("GET", &format!("/api/tasks/{id}"), "") {
            Some((200, task)) if has_payload(&task, *length) => {}
            Some((status, task)) => return Err(format!("{id} is gone: {status} {task:.300}")),
            // Dead already.
            None => break,
        }
    }
    let (accepted, is_over) = (Mutex::<Vec<Accepted>>::default(), AtomicBool::new(false));
    let mut ended = None;
    let address = served.address.clone();
    std::thread::scope(|scope| {
        let (address, accepted, is_over) = (&address, &accepted, &is_over);
        for client in 0..CLIENTS {
            scope.spawn(move || load(address, client, accepted, is_over));
        }
        let began = Instant::now();
        let until = if at.is_some() { LOAD } else { moment };
        while began.elapsed() < until && ended.is_none() {
            std::thread::sleep(Duration::from_millis(2));
            ended = served.process.try_wait().ok().flatten();
        }
        served.kill();
        is_over.store(true, Ordering::SeqCst);
    });
    let death = match ended {
        None => Death::Ours,
        Some(status) if at.is_some() && was_killed(status) => Death::AtCall,
        Some(status) => return Err(format!("it ended by itself: {status}")),
    };
    Ok((accepted.into_inner().map_err(|_| "a client panicked")?, death))
}

/// A task that a server called accepted, and the length of its payload.
type Accepted = (String, usize);

/// Submits until the server is gone.
fn load(address: &str, client: usize, accepted: &Mutex<Vec<Accepted>>, is_over: &AtomicBool) {
    for length in (0..PAYLOAD_MAX).cycle().skip(client * PAYLOAD_MAX / CLIENTS) {
        if is_over.load(Ordering::SeqCst) {
            break;
        }
        let body = format!("{{\"kind\": \"index\", \"payload\": {}}}", payload(length));
        // A request that the kill cuts off was never answered, and may or may not be there.
        let Some((202, answer)) = ask(address, "POST", "/api/tasks", &body) else { continue };
        if let (Some("disk"), Some(id), Ok(mut accepted)) =
            (field(&answer, "durability"), field(&answer, "id"), accepted.lock())
        {
            accepted.push((id.to_owned(), length));
        }
    }
}

/// Every task that a store ever accepted is there, with its payload.
fn check_all(program: &Path, place: &Path, known: &[Accepted], figures: &mut Figures) -> Result<(), String> {
    if known.is_empty() {
        return Ok(());
    }
    let mut served = Served::start(program, place, &[])?.ok_or("it no longer starts")?;
    for (id, length) in known {
        let (status, task) = served.ask("GET", &format!("/api/tasks/{id}"), "").ok_or("no answer")?;
        if status != 200 || !has_payload(&task, *length) {
            return Err(format!("{id} is gone: {status} {task:.300}"));
        }
    }
    figures.looked_at += known.len();
    served.kill();
    Ok(())
}
