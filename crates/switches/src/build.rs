//! One build with every change that can be in it, each behind its switch.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::change::Change;
use crate::sites::{self, Sites};
use crate::written::Written;

/// What the program asks whether a change is on.
const SWITCHES: &str = include_str!("switch.rs.txt");
/// Whoever calls something with a change in it where only constants may be called, hears this.
const NOT_CONSTANT: &str = "E0015";

/// A copy of the repository with switches in the sources of one package.
pub(crate) struct Build<'a> {
    copy: &'a Path,
    package: &'a str,
    changes: &'a [Change],
    sources: BTreeMap<PathBuf, String>,
    /// Changes that do not compile, in this or in any build.
    pub(crate) broken: BTreeSet<u32>,
    /// Changes that compile only in a build of their own, perhaps.
    pub(crate) apart: BTreeSet<u32>,
}

impl<'a> Build<'a> {
    /// Reads what is to be changed in a fresh copy.
    pub(crate) fn new(copy: &'a Path, package: &'a str, changes: &'a [Change]) -> Result<Build<'a>, String> {
        let mut sources = BTreeMap::new();
        for change in changes {
            let path = copy.join(&change.file);
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            sources.insert(change.file.clone(), text);
        }
        let hidden = (1..).zip(changes).filter(|(_, change)| change.is_of_hidden_type());
        let apart = hidden.map(|(switch, _)| switch).collect();
        Ok(Build { copy, package, changes, sources, broken: BTreeSet::new(), apart })
    }

    /// Writes the changes, and sorts out those that do not compile or not beside the others.
    pub(crate) fn write_all(&mut self, root_file: &Path) -> Result<(), String> {
        let mut all = BTreeMap::new();
        for (file, text) in &self.sources {
            let theirs = (1..).zip(self.changes).filter(|(_, change)| change.file == *file);
            let sites = sites::find(text, theirs).map_err(|error| format!("{}: {error}", file.display()))?;
            self.broken.extend(&sites.impossible);
            all.insert(file.clone(), sites);
        }
        let root_text = self.copy.join(root_file);
        let root_text = fs::read_to_string(&root_text).map_err(|error| format!("{error}"))?;
        let all_switches: BTreeSet<u32> = (1..).zip(self.changes).map(|(switch, _)| switch).collect();
        loop {
            let mut written = BTreeMap::new();
            for (file, sites) in &all {
                written.insert(file.clone(), self.write(&self.sources[file], sites));
            }
            let root = written
                .entry(root_file.to_path_buf())
                .or_insert_with(|| Written { text: root_text.clone(), parts: Vec::new() });
            root.text.push_str(&SWITCHES.replace("COUNT", &(self.changes.len() + 1).to_string()));
            for (file, written) in &written {
                write_if_changed(&self.copy.join(file), &written.text)?;
            }
            if self.compiles(&written)? {
                let inside: BTreeSet<u32> = written
                    .values()
                    .flat_map(|written| written.parts.iter().map(|(switch, _)| *switch))
                    .collect();
                let outside = all_switches.difference(&inside).filter(|switch| !self.broken.contains(switch));
                self.apart.extend(outside.copied().collect::<Vec<u32>>());
                return Ok(());
            }
        }
    }

    fn write(&self, text: &str, sites: &Sites) -> Written {
        let leave_out = |switch: u32| self.broken.contains(&switch) || self.apart.contains(&switch);
        Written::new(text, sites.edits.iter().collect(), &leave_out)
    }

    /// Checks the sources, and sorts out the changes that the compiler complains about.
    fn compiles(&mut self, written: &BTreeMap<PathBuf, Written>) -> Result<bool, String> {
        let (messages, success) = self.cargo(&["check", "--lib"])?;
        if success {
            return Ok(true);
        }
        let before = self.broken.len() + self.apart.len();
        let mut unclear = String::new();
        for message in
            messages.iter().map(|message| &message["message"]).filter(|message| message["level"] == "error")
        {
            match blamed(message, written) {
                Some(switch) => {
                    let is_apart = message["code"]["code"] == NOT_CONSTANT;
                    if is_apart { &mut self.apart } else { &mut self.broken }.insert(switch);
                }
                None => unclear.push_str(message["rendered"].as_str().unwrap_or_default()),
            }
        }
        if self.broken.len() + self.apart.len() == before {
            return Err(format!("the copy with switches does not compile:\n{unclear}"));
        }
        Ok(false)
    }

    /// The package's test programs.
    pub(crate) fn programs(&self) -> Result<Vec<PathBuf>, String> {
        let (messages, success) = self.cargo(&["test", "--no-run", "--lib", "--tests"])?;
        if !success {
            return Err("the tests of the copy with switches do not compile".to_owned());
        }
        let programs = messages.iter().filter(|message| message["profile"]["test"] == true);
        Ok(programs.filter_map(|message| message["executable"].as_str()).map(PathBuf::from).collect())
    }

    /// Runs cargo in the copy, and returns what it says.
    fn cargo(&self, words: &[&str]) -> Result<(Vec<Value>, bool), String> {
        let output = Command::new("cargo")
            .args(words)
            .args(["--quiet", "--message-format=json", "--package", self.package])
            .env("CARGO_TARGET_DIR", self.copy.with_file_name("build"))
            .current_dir(self.copy)
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| format!("cargo did not start: {error}"))?;
        let lines = String::from_utf8_lossy(&output.stdout);
        Ok((
            lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
            output.status.success(),
        ))
    }
}

/// The change that an error is about: the first that the compiler points at.
fn blamed(message: &Value, written: &BTreeMap<PathBuf, Written>) -> Option<u32> {
    let spans = message["spans"].as_array()?;
    let (primary, others): (Vec<&Value>, Vec<&Value>) =
        spans.iter().partition(|span| span["is_primary"] == true);
    primary.into_iter().chain(others).find_map(|span| {
        let place = |key: &str| span[key].as_u64().and_then(|at| usize::try_from(at).ok());
        let range: Range<usize> = place("byte_start")?..place("byte_end")?;
        written.get(Path::new(span["file_name"].as_str()?))?.at(&range)
    })
}

fn write_if_changed(path: &Path, text: &str) -> Result<(), String> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
