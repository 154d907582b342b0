//! Power cuts: what a server answered with `disk` is there afterwards, whatever the disk made of what was not flushed.
//!
//! A real server under load is watched by strace. From what it wrote and flushed, and in which order, the files are made
//! as a disk may leave them that loses power at some moment ([`disk`]); a real server opens them, and everything that was
//! answered before that moment is looked for. The same on a disk that only pretends to flush must lose something.

mod disk;
mod files;
#[cfg(test)]
mod tests;
mod trace;

use std::collections::BTreeSet;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::power::disk::{Flushes, after_power_cut};
use crate::power::files::Files;
use crate::power::trace::{Call, Event};
use crate::served::{Chance, PATIENCE, Served, ask, field, has_payload, payload, program};
use crate::{build_program, ensure};

/// So many cuts are tried with one trace.
const CUTS_OF_A_TRACE: u64 = 25;
/// So many servers in a row work on one store, each on what a power cut left of the one before it.
const TRACES_OF_A_STORE: u64 = 3;
const CLIENTS: usize = 4;
/// Enough that the write-ahead log is written back and begun anew.
const TASKS: usize = 140;
const PAYLOAD_MAX: usize = 32 * 1024;
/// So many cuts of a disk that pretends to flush are tried for a loss.
const PRETENDED: usize = 8;

#[derive(Default)]
struct Figures {
    traces: u64,
    cuts: u64,
    accepted: usize,
    completed: usize,
    looked_at: usize,
    calls: usize,
    pretended: usize,
    found: usize,
}

/// What a server has promised.
#[derive(Clone, Default)]
struct Promises {
    accepted: BTreeSet<String>,
    completed: BTreeSet<String>,
}

/// Cuts the power so many times.
pub(crate) fn cut(points: u64, seed: u64) -> Result<(), String> {
    ensure("strace", "strace")?;
    build_program()?;
    println!("crash power: {points} power cuts from seed {seed}");
    let place = std::env::temp_dir().join(format!("laneway-power-{}", std::process::id()));
    let began = Instant::now();
    let outcome = cut_all(&program(), &place, points, &mut Chance::new(seed));
    // The files of a failure are left for whoever looks into it.
    let figures =
        outcome.map_err(|problem| format!("{problem}; seed {seed}; the files are in {}", place.display()))?;
    std::fs::remove_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    println!(
        "crash power: {} power cuts in {} traces of {} calls; {} accepted with disk and {} completed before them, {} \
         looked at afterwards, lost: 0; a disk that only pretends to flush lost something in {} of {} cuts; {:.0} s",
        figures.cuts,
        figures.traces,
        figures.calls,
        figures.accepted,
        figures.completed,
        figures.looked_at,
        figures.found,
        figures.pretended,
        began.elapsed().as_secs_f64()
    );
    match figures {
        Figures { looked_at: 0, .. } => Err("no cut came after an answer: this shows nothing".to_owned()),
        Figures { found: 0, .. } => {
            Err("a disk that pretends to flush lost nothing: this shows nothing".to_owned())
        }
        _ => Ok(()),
    }
}

fn cut_all(program: &Path, place: &Path, points: u64, chance: &mut Chance) -> Result<Figures, String> {
    let mut figures = Figures::default();
    let (mut promises, mut traces_left) = (Promises::default(), 0);
    while figures.cuts < points {
        if traces_left == 0 {
            traces_left = TRACES_OF_A_STORE;
            promises = Promises::default();
            drop(std::fs::remove_dir_all(place));
            std::fs::create_dir_all(place).map_err(|error| error.to_string())?;
        }
        let before = Files::read(place)?;
        let events = watch(program, place, chance)?;
        figures.traces += 1;
        traces_left -= 1;
        figures.calls += events.len();
        let cuts = CUTS_OF_A_TRACE.min(points - figures.cuts);
        let mut left = promises.clone();
        for _ in 0..cuts {
            let at = chosen(&events, chance);
            let mut files = after_power_cut(&before, &events, at, Flushes::Real, chance);
            files.spoil("-shm", chance);
            files.write(place)?;
            left = promises.with(&events, at);
            look(program, place, &left, &mut figures)
                .map_err(|problem| format!("power cut at line {} of the trace: {problem}", at + 1))?;
            figures.cuts += 1;
        }
        if figures.found == 0 {
            pretend(program, place, &before, &events, &promises, &mut figures, chance)?;
            // What it made is of no use to the next one.
            traces_left = 0;
        }
        promises = left;
    }
    Ok(figures)
}

/// The same with flushes that do nothing, until one loses something.
fn pretend(
    program: &Path,
    place: &Path,
    before: &Files,
    events: &[Event],
    promises: &Promises,
    figures: &mut Figures,
    chance: &mut Chance,
) -> Result<(), String> {
    while figures.pretended < PRETENDED && figures.found == 0 {
        let at = chosen(events, chance);
        after_power_cut(before, events, at, Flushes::Ignored, chance).write(place)?;
        let promised = promises.with(events, at);
        figures.pretended += 1;
        figures.found += usize::from(look(program, place, &promised, &mut Figures::default()).is_err());
    }
    Ok(())
}

/// At any call, and as often right behind an answer, when most is promised and least is flushed for other reasons.
fn chosen(events: &[Event], chance: &mut Chance) -> usize {
    let answers: Vec<&Event> = events.iter().filter(|event| matches!(event.call, Call::Answer(_))).collect();
    match answers.as_slice() {
        [_, ..] if chance.below(2) == 0 => answers[chance.below(answers.len())].start,
        _ => events.get(chance.below(events.len().max(1))).map_or(0, |event| event.start),
    }
}

impl Promises {
    /// These, and what was answered up to this line. An answer counts from its first byte on.
    fn with(&self, events: &[Event], cut: usize) -> Promises {
        let mut promises = self.clone();
        for event in events.iter().filter(|event| event.start <= cut) {
            let Call::Answer(text) = &event.call else { continue };
            let (Some(id), Some(status)) = (field(text, "id"), text.split(' ').nth(1)) else { continue };
            if status == "202" && field(text, "durability") == Some("disk") {
                promises.accepted.insert(id.to_owned());
            }
            if status == "200" && field(text, "status") == Some("completed") {
                promises.completed.insert(id.to_owned());
            }
        }
        promises
    }
}

/// A server under load, and what it did; it is killed in the end.
fn watch(program: &Path, place: &Path, chance: &mut Chance) -> Result<Vec<Event>, String> {
    let file = trace_file(place);
    let name = file.to_string_lossy();
    let watched = ["-q", "-y", "-xx", "-s", "4194304", "-o", &name, "-e", trace::CALLS];
    let mut served = Served::start(program, place, &watched)?.ok_or("the watched server was killed")?;
    let settings = "{\"handler\": \"external\", \"max_queued\": 100000, \"max_concurrency\": 8}";
    match served.ask("PATCH", "/api/lanes/work", settings) {
        Some((200, _)) => {}
        other => return Err(format!("the lane was not made: {other:?}")),
    }
    let (answered, seed) = (AtomicUsize::new(0), chance.next());
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (address, answered) = (&served.address, &answered);
            scope.spawn(move || load(address, &mut Chance::new(seed ^ client as u64), answered));
        }
    });
    served.kill();
    let text = read_whole(&file, served.process.id())?;
    std::fs::remove_file(&file).map_err(|error| error.to_string())?;
    let events = trace::read(&text, place)?;
    let seen = Promises::default().with(&events, usize::MAX);
    match (seen.accepted.len(), answered.into_inner()) {
        (seen, answered) if seen == answered && seen > 0 => Ok(events),
        (seen, answered) => Err(format!("{answered} were answered, and {seen} of them are in the trace")),
    }
}

/// Beside the store, which a power cut makes anew.
fn trace_file(place: &Path) -> PathBuf {
    place.with_extension("trace")
}

/// What strace wrote, when it has written that the server is dead.
fn read_whole(file: &Path, server: u32) -> Result<String, String> {
    // Numbers are padded, so that the short ones are followed by more than one blank.
    let server = server.to_string();
    let is_dead = |line: &str| {
        line.split_once(' ').is_some_and(|(process, rest)| {
            process == server && rest.trim_start() == "+++ killed by SIGKILL +++"
        })
    };
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let end = read_end(file).map_err(|error| format!("{}: {error}", file.display()))?;
        if end.lines().any(is_dead) && end.ends_with('\n') {
            return std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err("strace did not come to an end".to_owned())
}

/// The last lines of a file.
fn read_end(file: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(file)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(4096)))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    Ok(String::from_utf8_lossy(&end).into_owned())
}

/// Submits, and now and then does what it finds.
fn load(address: &str, chance: &mut Chance, answered: &AtomicUsize) {
    for _ in 0..TASKS / CLIENTS {
        let payload = payload(chance.below(PAYLOAD_MAX));
        let body = format!("{{\"kind\": \"index\", \"lanes\": [\"work\"], \"payload\": {payload}}}");
        if matches!(ask(address, "POST", "/api/tasks", &body), Some((202, _))) {
            answered.fetch_add(1, Ordering::SeqCst);
        }
        if chance.below(2) == 0 {
            complete_one(address);
        }
    }
}

fn complete_one(address: &str) {
    let claim = "{\"worker\": \"hand\", \"lanes\": [\"work\"]}";
    let Some((200, claimed)) = ask(address, "POST", "/api/claim", claim) else { return };
    let fence = claimed.split_once("\"fence\":").and_then(|(_, rest)| rest.split([',', '}']).next());
    if let (Some(id), Some(fence)) = (field(&claimed, "id"), fence) {
        let report = format!("{{\"fence\": {fence}, \"success\": true, \"result\": 1}}");
        ask(address, "POST", &format!("/api/tasks/{id}/complete"), &report);
    }
}

/// A real server opens what is left, and has everything that was promised.
fn look(program: &Path, place: &Path, promised: &Promises, figures: &mut Figures) -> Result<(), String> {
    let mut served = Served::start(program, place, &[])?.ok_or("it does not start")?;
    for id in promised.accepted.union(&promised.completed) {
        let (status, task) = served.ask("GET", &format!("/api/tasks/{id}"), "").ok_or("no answer")?;
        // Of what has ended the result is kept, and large payloads are not.
        let is_whole = match field(&task, "status") {
            Some("completed") => task.contains("\"result\":1"),
            _ => has_payload(&task),
        };
        if status != 200 || !is_whole {
            return Err(format!("{id} is gone: {status} {task:.300}"));
        }
        if promised.completed.contains(id) && field(&task, "status") != Some("completed") {
            return Err(format!("{id} was completed and is not: {task:.300}"));
        }
    }
    served.kill();
    figures.accepted = figures.accepted.max(promised.accepted.len());
    figures.completed = figures.completed.max(promised.completed.len());
    figures.looked_at += promised.accepted.len();
    Ok(())
}
