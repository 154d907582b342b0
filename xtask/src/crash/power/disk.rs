//! A disk that keeps what was flushed, and of everything else whatever it likes.
//!
//! A write is safe when a flush of its file that began after it has ended; a name (made, moved, removed) when a flush of its
//! directory has. At a power cut each write that is not safe is there, gone, or there in some of its sectors, in any
//! combination. Names that are not safe are kept up to some one of them, in their order, as file systems with a journal do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::files::Files;
use super::trace::{Call, Event};
use laneway_seeded::Random;

/// The least that a disk writes as a whole, and what most files are written in.
const SECTORS: [usize; 2] = [512, 4096];

#[derive(Clone)]
enum Change {
    Write(Option<u64>, Vec<u8>),
    Resize(u64),
}

/// A file, whatever its name is now: what is safe, and what came since, each with the number of its call.
#[derive(Clone, Default)]
struct File {
    safe: Vec<u8>,
    since: Vec<(usize, Change)>,
}

#[derive(Clone)]
enum Naming {
    File(PathBuf, usize),
    Directory(PathBuf),
    Move(PathBuf, PathBuf),
    Remove(PathBuf),
}

/// The disk at some moment of a trace.
struct Disk {
    files: Vec<File>,
    /// The names as programs see them.
    names: BTreeMap<PathBuf, usize>,
    /// What was done to names, by which call, and whether it is safe.
    namings: Vec<(usize, Naming, bool)>,
    before: Files,
    /// Calls that have ended.
    ended: BTreeSet<usize>,
    /// What each flush under way will have made safe.
    flushing: BTreeMap<usize, BTreeSet<usize>>,
}

/// What is left when the power goes at line `cut`.
pub(crate) fn after_power_cut(before: &Files, events: &[Event], cut: usize, random: &mut Random) -> Files {
    let mut disk = Disk::new(before);
    let mut moments: Vec<(usize, bool, usize)> = Vec::new();
    for (number, event) in events.iter().enumerate() {
        moments.push((event.start, true, number));
        moments.extend(event.end.map(|end| (end, false, number)));
    }
    // A call that is one line begins before it ends.
    moments.sort_by_key(|(line, is_start, number)| (*line, !is_start, *number));
    for (_, is_start, number) in moments.into_iter().take_while(|(line, ..)| *line <= cut) {
        if is_start {
            disk.begin(number, &events[number].call)
        } else {
            disk.end(number, &events[number].call)
        }
    }
    disk.left(random)
}

impl Disk {
    fn new(before: &Files) -> Disk {
        let files =
            before.files.values().map(|safe| File { safe: safe.clone(), since: Vec::new() }).collect();
        let names = before.files.keys().cloned().enumerate().map(|(number, path)| (path, number)).collect();
        let (namings, ended, flushing) = (Vec::new(), BTreeSet::new(), BTreeMap::new());
        Disk { files, names, namings, before: before.clone(), ended, flushing }
    }

    fn begin(&mut self, number: usize, call: &Call) {
        let naming = match call {
            Call::Create(path) if !self.names.contains_key(path) => {
                self.files.push(File::default());
                self.names.insert(path.clone(), self.files.len() - 1);
                Some(Naming::File(path.clone(), self.files.len() - 1))
            }
            Call::Directory(path) => Some(Naming::Directory(path.clone())),
            Call::Rename(from, to) => self.names.remove(from).map(|file| {
                self.names.insert(to.clone(), file);
                Naming::Move(from.clone(), to.clone())
            }),
            Call::Remove(path) => self.names.remove(path).map(|_| Naming::Remove(path.clone())),
            _ => None,
        };
        self.namings.extend(naming.map(|naming| (number, naming, false)));
        let change = match call {
            Call::Write(path, at, bytes) => Some((path, Change::Write(*at, bytes.clone()))),
            Call::Resize(path, length) => Some((path, Change::Resize(*length))),
            _ => None,
        };
        // A write to a file without a name is lost.
        if let Some((path, change)) = change
            && let Some(file) = self.names.get(path)
        {
            self.files[*file].since.push((number, change));
        }
        if let Call::Flush(path) = call {
            self.flushing.insert(number, self.ended_on(path));
        }
    }

    fn end(&mut self, number: usize, call: &Call) {
        self.ended.insert(number);
        let Call::Flush(path) = call else { return };
        let Some(safe) = self.flushing.remove(&number) else { return };
        if let Some(file) = self.names.get(path) {
            let file = &mut self.files[*file];
            let since = std::mem::take(&mut file.since);
            for (number, change) in since {
                if safe.contains(&number) {
                    change.make(&mut file.safe, |_| true)
                } else {
                    file.since.push((number, change))
                }
            }
        }
        for (number, _, is_safe) in &mut self.namings {
            *is_safe |= safe.contains(number);
        }
    }

    /// The calls on this file, or on names in this directory, that have ended.
    fn ended_on(&self, path: &Path) -> BTreeSet<usize> {
        let file = self.names.get(path).map(|file| &self.files[*file]);
        let changes = file.into_iter().flat_map(|file| file.since.iter().map(|(number, _)| *number));
        let names = self.namings.iter().filter(|(_, naming, _)| naming.directory() == Some(path));
        let names = names.map(|(number, ..)| *number);
        changes.chain(names).filter(|number| self.ended.contains(number)).collect()
    }

    fn left(&self, random: &mut Random) -> Files {
        let mut names: BTreeMap<PathBuf, usize> =
            self.before.files.keys().cloned().enumerate().map(|(number, path)| (path, number)).collect();
        let mut directories = self.before.directories.clone();
        let unsafe_ones = self.namings.iter().filter(|(.., is_safe)| !is_safe).count();
        let mut kept = random.index(unsafe_ones + 1);
        for (_, naming, is_safe) in &self.namings {
            if !is_safe {
                if kept == 0 {
                    continue;
                }
                kept -= 1;
            }
            naming.make(&mut names, &mut directories);
        }
        let manner = Manner::of(random);
        let files = names
            .into_iter()
            .filter(|(path, _)| path.parent().is_none_or(|parent| directories.contains(parent)));
        let files = files.map(|(path, file)| {
            let bytes = manner.contents(&self.files[file], random);
            (path, bytes)
        });
        Files { files: files.collect(), directories }
    }
}

impl Naming {
    fn directory(&self) -> Option<&Path> {
        match self {
            Naming::File(path, _)
            | Naming::Directory(path)
            | Naming::Move(_, path)
            | Naming::Remove(path) => path.parent(),
        }
    }

    fn make(&self, names: &mut BTreeMap<PathBuf, usize>, directories: &mut BTreeSet<PathBuf>) {
        match self {
            Naming::File(path, file) => drop(names.insert(path.clone(), *file)),
            Naming::Directory(path) => drop(directories.insert(path.clone())),
            Naming::Move(from, to) => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
            Naming::Remove(path) => drop(names.remove(path)),
        }
    }
}

impl Change {
    /// Makes those sectors of it that `keeps` says, by their place in the file.
    fn make(&self, contents: &mut Vec<u8>, mut keeps: impl FnMut(usize) -> bool) {
        match self {
            Change::Resize(length) => {
                if keeps(0) {
                    contents.resize(*length as usize, 0);
                }
            }
            Change::Write(at, bytes) => {
                let at = at.map_or(contents.len(), |at| at as usize);
                let mut done = 0;
                while done < bytes.len() {
                    let from = at + done;
                    let length = (SECTORS[0] - from % SECTORS[0]).min(bytes.len() - done);
                    if keeps(from) {
                        if contents.len() < from + length {
                            contents.resize(from + length, 0);
                        }
                        contents[from..from + length].copy_from_slice(&bytes[done..done + length]);
                    }
                    done += length;
                }
            }
        }
    }
}

/// How a disk treats what was not flushed.
enum Manner {
    KeepsAll,
    LosesAll,
    /// Each write is there or not.
    Some,
    /// Each sector of this size is there or not.
    Torn(usize),
    /// Only the last one is there.
    Last,
}

impl Manner {
    fn of(random: &mut Random) -> Manner {
        match random.index(8) {
            0 => Manner::KeepsAll,
            1 => Manner::LosesAll,
            2 | 3 => Manner::Some,
            4 => Manner::Last,
            which => Manner::Torn(SECTORS[which % 2]),
        }
    }

    fn contents(&self, file: &File, random: &mut Random) -> Vec<u8> {
        let mut contents = file.safe.clone();
        for (place, (_, change)) in file.since.iter().enumerate() {
            let is_last = place + 1 == file.since.len();
            let whole = match self {
                Manner::KeepsAll => true,
                Manner::LosesAll => false,
                Manner::Some => random.index(2) == 0,
                Manner::Last => is_last,
                Manner::Torn(sector) => {
                    let salt = random.number();
                    // Pieces of one sector share its fate.
                    let fate = |from: usize| {
                        (Random::new(salt ^ (from / sector) as u64).number() >> 40).is_multiple_of(2)
                    };
                    change.make(&mut contents, fate);
                    continue;
                }
            };
            change.make(&mut contents, |_| whole);
        }
        contents
    }
}
