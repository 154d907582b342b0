//! A change to the program, as cargo-mutants lists it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// One change: what stands at one place, and what would stand there instead.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Change {
    pub(crate) name: String,
    pub(crate) file: PathBuf,
    pub(crate) genre: Genre,
    pub(crate) replacement: String,
    pub(crate) span: Span,
    pub(crate) function: Option<Function>,
}

/// What kind of thing is changed.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Genre {
    FnValue,
    BinaryOperator,
    UnaryOperator,
    MatchArm,
    MatchArmGuard,
    StructField,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Span {
    pub(crate) start: Place,
}

/// A place in a file; lines and columns count from 1.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Function {
    pub(crate) return_type: String,
}

impl Change {
    /// Whether it gives another value where only the body tells the type of the value, so that both cannot be in one body.
    pub(crate) fn is_of_hidden_type(&self) -> bool {
        let hides = |function: &Function| function.return_type.contains("impl ");
        self.genre == Genre::FnValue && self.function.as_ref().is_some_and(hides)
    }

    /// Its name without line and column, which move with every edit.
    pub(crate) fn lasting_name(&self) -> String {
        let (file, rest) = self.name.split_once(".rs:").unwrap_or((&self.name, ""));
        let what = rest.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == ':');
        format!("{file}.rs:{what}")
    }
}

/// All changes that the program at `program` knows to make to a package.
pub(crate) fn all(program: &Path, root: &Path, package: &str) -> Result<Vec<Change>, String> {
    let listed = Command::new(program)
        .args(["mutants", "--list", "--json", "--package", package])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cargo-mutants did not start: {error}"))?;
    if !listed.status.success() {
        return Err(format!("cargo-mutants lists nothing: {}", String::from_utf8_lossy(&listed.stderr)));
    }
    serde_json::from_slice(&listed.stdout).map_err(|error| format!("cargo-mutants' list: {error}"))
}
