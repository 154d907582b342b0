//! What a process did to its files, and what it answered, in order: read from what strace wrote.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The calls that matter: those that change files, those that flush, those that answer.
pub(crate) const CALLS: &str = "trace=openat,open,creat,pwrite64,pwritev,write,writev,sendto,sendmsg,fsync,fdatasync,\
                                ftruncate,truncate,fallocate,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat";

#[derive(Clone, Debug)]
pub(crate) enum Call {
    Create(PathBuf),
    Directory(PathBuf),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
    /// Without a place it goes to the end.
    Write(PathBuf, Option<u64>, Vec<u8>),
    Resize(PathBuf, u64),
    Flush(PathBuf),
    /// What goes to a client.
    Answer(String),
}

/// A call, and between which lines of the trace it was under way. A kill may come before its end.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) call: Call,
    pub(crate) start: usize,
    pub(crate) end: Option<usize>,
}

/// Reads all that concerns files below `place`, and all answers.
pub(crate) fn read(text: &str, place: &Path) -> Result<Vec<Event>, String> {
    let mut events = Vec::new();
    // Calls of each thread that another one's line has cut in two.
    let mut begun: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        if let Some(beginning) = rest.strip_suffix("<unfinished ...>") {
            begun.insert(thread, (number, beginning.trim_end()));
        } else if rest.starts_with("<... ") {
            let (Some((start, beginning)), Some((_, end))) =
                (begun.remove(thread), rest.split_once("resumed>"))
            else {
                return Err(format!("line {} of the trace resumes nothing", number + 1));
            };
            add(&mut events, &format!("{beginning}{end}"), place, start, Some(number))?;
        } else {
            add(&mut events, rest, place, number, Some(number))?;
        }
    }
    for (start, beginning) in begun.into_values() {
        add(&mut events, beginning, place, start, None)?;
    }
    events.sort_by_key(|event| event.start);
    Ok(events)
}

fn add(
    events: &mut Vec<Event>,
    line: &str,
    place: &Path,
    start: usize,
    end: Option<usize>,
) -> Result<(), String> {
    // A call without an outcome may have done anything or nothing.
    let outcome =
        line.rsplit_once(") = ").map(|(_, outcome)| outcome.split(['<', ' ']).next().unwrap_or_default());
    if outcome.is_some_and(|outcome| outcome.starts_with('-')) {
        return Ok(());
    }
    let Some((name, rest)) = line.split_once('(') else { return Ok(()) };
    let texts = quoted(rest);
    let file =
        rest.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map(|(path, _)| unescaped(path));
    let is_of_a_file = rest.starts_with(|first: char| first.is_ascii_digit());
    let below = |bytes: &[u8]| {
        let path = place.join(PathBuf::from(String::from_utf8_lossy(bytes).into_owned()));
        path.starts_with(place).then_some(path)
    };
    let named = |which: usize| texts.get(which).and_then(|path| below(path));
    let opened = || file.as_deref().filter(|_| is_of_a_file).and_then(below);
    let number = |which: usize| {
        let arguments = rest.rsplit_once(')').map_or(rest, |(arguments, _)| arguments);
        arguments.rsplit(", ").nth(which).and_then(|word| word.trim().parse::<u64>().ok())
    };
    let call = match name {
        "openat" | "open" | "creat" if rest.contains("O_CREAT") || name == "creat" => {
            named(0).map(Call::Create)
        }
        "mkdir" | "mkdirat" => named(0).map(Call::Directory),
        "rename" | "renameat" | "renameat2" => {
            named(0).zip(named(1)).map(|(from, to)| Call::Rename(from, to))
        }
        "unlink" | "unlinkat" => named(0).map(Call::Remove),
        "ftruncate" => opened().zip(number(0)).map(|(file, length)| Call::Resize(file, length)),
        "fsync" | "fdatasync" => opened().map(Call::Flush),
        "pwrite64" | "write" | "writev" | "sendto" | "sendmsg" => {
            let mut bytes = texts.concat();
            if let Some(written) = outcome.and_then(|outcome| outcome.parse::<usize>().ok()) {
                bytes.truncate(written);
            }
            match file.as_deref() {
                Some(file) if file.starts_with(b"socket:") || file.starts_with(b"TCP") => {
                    Some(Call::Answer(String::from_utf8_lossy(&bytes).into_owned()))
                }
                _ => opened().map(|file| Call::Write(file, number(0).filter(|_| name == "pwrite64"), bytes)),
            }
        }
        "pwritev" | "fallocate" | "truncate" if opened().is_some() || named(0).is_some() => {
            return Err(format!("the store uses {name}, which this does not replay"));
        }
        _ => None,
    };
    if let Some(call) = call {
        events.push(Event { call, start, end });
    }
    Ok(())
}

/// All texts between quotation marks, as bytes.
fn quoted(line: &str) -> Vec<Vec<u8>> {
    line.split('"').skip(1).step_by(2).map(unescaped).collect()
}

/// The bytes of `\x2f\x74…`, which is how strace writes everything here.
fn unescaped(text: &str) -> Vec<u8> {
    let digit = |letter: u8| char::from(letter).to_digit(16).unwrap_or_default() as u8;
    if text.starts_with("\\x") {
        text.as_bytes().chunks_exact(4).map(|code| digit(code[2]) * 16 + digit(code[3])).collect()
    } else {
        text.as_bytes().to_vec()
    }
}
