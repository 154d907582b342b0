//! Power cuts: what a server answered with `disk` is there afterwards, whatever the disk made of what was not flushed.
//!
//! The test runs a real server under load and records its writes and flushes with strace. From these it makes the files
//! that a disk may have after a power cut at some moment ([`disk`]). A real server opens the files, and must have
//! everything that was answered before that moment. On a disk that ignored all flushes for a while, the same test must
//! find a loss.

mod disk;
mod files;
#[cfg(test)]
mod tests;
mod trace;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use laneway_seeded::Random;

use super::served::{PATIENCE, Served, ask, field, has_payload, payload};
use crate::chore::{build_program, ensure, program};
use disk::after_power_cut;
use files::Files;
use trace::{Call, Event};

/// How many cuts are tried with one trace.
const CUTS_OF_A_TRACE: u64 = 25;
/// How many servers in a row work on one store, each on what the power cut before it left.
const TRACES_OF_A_STORE: u64 = 3;
const CLIENTS: usize = 4;
/// Enough that the write-ahead log (16 MB) is written back and restarted; [`cut`] fails if it never was.
const TASKS: usize = 360;
/// Where the write-ahead log is written back to.
const DATABASE: &str = "laneway.db";
const PAYLOAD_MAX: usize = 32 * 1024;
/// How many cuts are tried with a disk that pretends to flush from some moment on.
const PRETENDED: usize = 12;

#[derive(Default)]
struct Figures {
    traces: u64,
    cuts: u64,
    accepted: usize,
    completed: usize,
    looked_at: usize,
    calls: usize,
    written_back: usize,
    pretended: usize,
    found: usize,
}

/// What a server has promised.
#[derive(Clone, Default)]
struct Promises {
    accepted: BTreeSet<String>,
    completed: BTreeSet<String>,
}

/// What the clients of a server were answered.
#[derive(Default)]
struct Answered {
    /// The tasks that were accepted, each with the length of its payload.
    lengths: BTreeMap<String, usize>,
    completed: usize,
}

/// Cuts the power `points` times.
pub(crate) fn cut(points: u64, seed: u64) -> Result<(), String> {
    ensure("strace", "strace")?;
    build_program()?;
    println!("crash power: {points} power cuts from seed {seed}");
    let place = std::env::temp_dir().join(format!("laneway-power-{}", std::process::id()));
    let began = Instant::now();
    let outcome = cut_all(&program("debug"), &place, points, &mut Random::new(seed));
    // The files of a failure are kept for inspection.
    let figures =
        outcome.map_err(|problem| format!("{problem}; seed {seed}; the files are in {}", place.display()))?;
    std::fs::remove_dir_all(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    println!(
        "crash power: {} power cuts in {} traces of {} calls, in {} of them with the log written back; {} accepted with disk \
         and {} completed before them, {} looked at afterwards, lost: 0; a disk that for a while only pretended to flush lost something in \
         {} of {} cuts; {:.0} s",
        figures.cuts,
        figures.traces,
        figures.calls,
        figures.written_back,
        figures.accepted,
        figures.completed,
        figures.looked_at,
        figures.found,
        figures.pretended,
        began.elapsed().as_secs_f64()
    );
    match figures {
        Figures { looked_at: 0, .. } => Err("no cut came after an answer: this shows nothing".to_owned()),
        Figures { completed: 0, .. } => Err("no cut came after a completion: this shows nothing".to_owned()),
        Figures { written_back: 0, .. } => Err("the write-ahead log was never written back".to_owned()),
        Figures { found: 0, .. } => {
            Err("a disk that pretended to flush lost nothing: this shows nothing".to_owned())
        }
        _ => Ok(()),
    }
}

fn cut_all(program: &Path, place: &Path, points: u64, random: &mut Random) -> Result<Figures, String> {
    let mut figures = Figures::default();
    let (mut promises, mut lengths, mut traces_left) = (Promises::default(), BTreeMap::new(), 0);
    let cuts_of_a_trace = CUTS_OF_A_TRACE.min(points.div_ceil(2));
    // Two at least, because only on a store that was there before a lost flush is a lost task and nothing else.
    while figures.cuts < points || figures.traces < 2 {
        let is_new = traces_left == 0;
        if is_new {
            traces_left = TRACES_OF_A_STORE;
            promises = Promises::default();
            lengths.clear();
            drop(std::fs::remove_dir_all(place));
            std::fs::create_dir_all(place).map_err(|error| error.to_string())?;
        }
        let before = Files::read(place)?;
        let (events, answered) = watch(program, place, random)?;
        lengths.extend(answered);
        figures.traces += 1;
        traces_left -= 1;
        figures.calls += events.len();
        figures.written_back += usize::from(is_written_back(&events));
        let mut left = (promises.clone(), Files::default());
        for _ in 0..cuts_of_a_trace.min(points - figures.cuts) {
            let at = chosen(&events, random);
            let mut files = after_power_cut(&before, &events, at, random);
            files.spoil("-shm", random);
            files.write(place)?;
            left = (promises.with(&events, at), files);
            let lost = look(program, place, &left.0, &lengths, &mut figures);
            let at_line = |problem| format!("power cut at line {} of the trace: {problem}", at + 1);
            if let Some(loss) = lost.map_err(at_line)? {
                return Err(at_line(loss));
            }
            figures.cuts += 1;
        }
        while !is_new && figures.found == 0 && figures.pretended < PRETENDED {
            let (one, other) = (chosen(&events, random), chosen(&events, random));
            let at = one.max(other);
            after_power_cut(&before, &events, one.min(other), random).write(place)?;
            figures.pretended += 1;
            let (promised, none) = (promises.with(&events, at), &mut Figures::default());
            // One that does not start is a loss too, but not one that shows that tasks are looked for.
            let lost = look(program, place, &promised, &lengths, none).ok().flatten();
            figures.found += usize::from(lost.is_some());
        }
        // The next one works on what the last cut left.
        left.1.write(place)?;
        promises = left.0;
    }
    Ok(figures)
}

/// Whether the write-ahead log was put in its place in the database while there was load.
fn is_written_back(events: &[Event]) -> bool {
    let under_load = events.iter().skip_while(|event| !matches!(event.call, Call::Answer(_)));
    under_load.into_iter().any(|event| {
        matches!(&event.call, Call::Write(path, ..) if path.file_name().is_some_and(|name| name == DATABASE))
    })
}

/// At any call, and as often right behind an answer, when most is promised and least is flushed for other reasons.
fn chosen(events: &[Event], random: &mut Random) -> usize {
    let answers: Vec<&Event> = events.iter().filter(|event| matches!(event.call, Call::Answer(_))).collect();
    match answers.as_slice() {
        [_, ..] if random.index(2) == 0 => answers[random.index(answers.len())].start,
        _ => events.get(random.index(events.len().max(1))).map_or(0, |event| event.start),
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
fn watch(
    program: &Path,
    place: &Path,
    random: &mut Random,
) -> Result<(Vec<Event>, BTreeMap<String, usize>), String> {
    let file = trace_file(place);
    let name = file.to_string_lossy();
    let watched = ["-q", "-y", "-xx", "-s", "4194304", "-o", &name, "-e", trace::CALLS];
    let mut served = Served::start(program, place, &watched)?.ok_or("the watched server was killed")?;
    let settings = "{\"handler\": \"external\", \"max_queued\": 100000, \"max_concurrency\": 8}";
    match served.ask("PATCH", "/api/lanes/work", settings) {
        Some((200, _)) => {}
        other => return Err(format!("the lane was not made: {other:?}")),
    }
    let (answered, seed) = (Mutex::new(Answered::default()), random.number());
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (address, answered) = (&served.address, &answered);
            scope.spawn(move || load(address, &mut Random::new(seed ^ client as u64), answered));
        }
    });
    served.kill();
    let text = read_whole(&file, served.process.id())?;
    std::fs::remove_file(&file).map_err(|error| error.to_string())?;
    let events = trace::read(&text, place)?;
    let seen = Promises::default().with(&events, usize::MAX);
    let seen = (seen.accepted.len(), seen.completed.len());
    let answered = answered.into_inner().unwrap_or_else(PoisonError::into_inner);
    let told = (answered.lengths.len(), answered.completed);
    if seen != told || told.0 == 0 || told.1 == 0 {
        return Err(format!("{told:?} were answered (accepted, completed), and {seen:?} are in the trace"));
    }
    Ok((events, answered.lengths))
}

/// Outside the store, which each power cut replaces.
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
fn load(address: &str, random: &mut Random, answered: &Mutex<Answered>) {
    let tell =
        |tell: &dyn Fn(&mut Answered)| tell(&mut answered.lock().unwrap_or_else(PoisonError::into_inner));
    for _ in 0..TASKS / CLIENTS {
        let length = random.index(PAYLOAD_MAX);
        let payload = payload(length);
        let body = format!("{{\"kind\": \"index\", \"lanes\": [\"work\"], \"payload\": {payload}}}");
        if let Some((202, answer)) = ask(address, "POST", "/api/tasks", &body)
            && let Some(id) = field(&answer, "id")
        {
            tell(&|answered| answered.lengths.extend([(id.to_owned(), length)]));
        }
        if random.index(2) == 0 && complete_one(address) {
            tell(&|answered| answered.completed += 1);
        }
    }
}

/// What a task leaves that was done.
fn result(id: &str) -> String {
    format!("\"result\":\"{id} is done\"")
}

/// Whether there was one, and its completion was answered.
fn complete_one(address: &str) -> bool {
    let claim = "{\"worker\": \"hand\", \"lanes\": [\"work\"]}";
    let Some((200, claimed)) = ask(address, "POST", "/api/claim", claim) else { return false };
    let fence = claimed.split_once("\"fence\":").and_then(|(_, rest)| rest.split([',', '}']).next());
    let (Some(id), Some(fence)) = (field(&claimed, "id"), fence) else { return false };
    let report = format!("{{\"fence\": {fence}, \"success\": true, {}}}", result(id));
    matches!(ask(address, "POST", &format!("/api/tasks/{id}/complete"), &report), Some((200, _)))
}

/// A real server opens what is left; what it has lost of what was promised, if anything.
fn look(
    program: &Path,
    place: &Path,
    promised: &Promises,
    lengths: &BTreeMap<String, usize>,
    figures: &mut Figures,
) -> Result<Option<String>, String> {
    let mut served = Served::start(program, place, &[])?.ok_or("it does not start")?;
    for id in promised.accepted.union(&promised.completed) {
        let (status, task) = served.ask("GET", &format!("/api/tasks/{id}"), "").ok_or("no answer")?;
        let length = *lengths.get(id).ok_or_else(|| format!("no caller got an answer for {id}"))?;
        // Of what has ended the result is kept, and large payloads are not.
        let is_whole = match field(&task, "status") {
            Some("completed") => task.contains(&result(id)),
            _ => has_payload(&task, length),
        };
        if status != 200 || !is_whole {
            return Ok(Some(format!("{id} is gone: {status} {task:.300}")));
        }
        if promised.completed.contains(id) && field(&task, "status") != Some("completed") {
            return Ok(Some(format!("{id} was completed and is not: {task:.300}")));
        }
    }
    served.kill();
    figures.accepted = figures.accepted.max(promised.accepted.len());
    figures.completed = figures.completed.max(promised.completed.len());
    figures.looked_at += promised.accepted.len();
    Ok(None)
}
