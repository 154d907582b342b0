//! The text files of the repository.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Third-party code, generated code, and data that tests read.
const SKIPPED: [&str; 8] = [
    "dashboard/app/vendor/",
    "sdk/python/src/laneway/_sync/",
    "sdk/python/src/laneway/types.py",
    "sdk/typescript/src/wire.ts",
    "tools/fuzz/corpus/",
    "fixtures/",
    // Names the words that nothing else may use.
    "xtask/src/tidy/",
    "package-lock.json",
];
const KINDS: [&str; 14] = [
    ".rs",
    ".md",
    ".py",
    ".ts",
    ".js",
    ".mjs",
    ".toml",
    ".hcl",
    ".scenario",
    ".sql",
    ".lua",
    ".css",
    ".sh",
    "xtask/mutants.txt",
];

pub(super) struct Tree {
    /// Path from the root, and text.
    pub(super) files: Vec<(String, String)>,
    /// Every path that git knows or would add, of any kind.
    pub(super) paths: Vec<String>,
}

impl Tree {
    pub(super) fn read(root: &Path) -> Result<Tree, String> {
        let list = ["ls-files", "--cached", "--others", "--exclude-standard"];
        let output = Command::new("git").args(list).current_dir(root).output();
        let output = output.map_err(|error| format!("git did not start: {error}"))?;
        let listed = String::from_utf8_lossy(&output.stdout);
        let paths: Vec<String> =
            listed.lines().filter(|path| root.join(path).is_file()).map(str::to_owned).collect();
        if paths.is_empty() {
            return Err("git lists no files here".to_owned());
        }
        let is_text = |path: &&String| KINDS.iter().any(|kind| path.ends_with(kind));
        let mut files = Vec::new();
        for path in paths.iter().filter(is_text).filter(|path| is_ours(path)) {
            let text = fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))?;
            files.push((path.clone(), text));
        }
        Ok(Tree { files, paths })
    }

    /// A tree of these files, for tests.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Tree {
        let owned = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
        Tree {
            files: files.iter().map(owned).collect(),
            paths: files.iter().map(|(path, _)| (*path).to_owned()).collect(),
        }
    }

    /// The paths of all files, of any kind, that the rules are for.
    pub(super) fn own_paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str).filter(|path| is_ours(path))
    }

    /// Whether a file or a folder has this path.
    pub(super) fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let is_below = |other: &String| other.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
        path.is_empty() || self.paths.iter().any(|other| other == path || is_below(other))
    }
}

fn is_ours(path: &str) -> bool {
    !SKIPPED.iter().any(|skipped| path.contains(skipped))
}
