//! Paths in the pages that a newcomer reads first, and names of source files in the comments of a crate: every one exists.

use super::{Problem, tree::Tree};

const PAGES: [&str; 4] = ["README.md", "ARCHITECTURE.md", "GLOSSARY.md", "CONTRIBUTING.md"];
/// A path may be written from the root, or from the sources of one of these crates.
const BASES: [&str; 5] = ["", "crates/", "crates/core/src/", "crates/engine/src/", "crates/server/src/"];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.files.iter().filter(|(path, _)| PAGES.contains(&path.as_str())) {
        for (index, line) in text.lines().enumerate() {
            for token in line.split('`').skip(1).step_by(2).filter(|token| is_path(token)) {
                if !exists(tree, token) {
                    problems.push(Problem {
                        rule: "path",
                        place: format!("{path}:{}", index + 1),
                        detail: format!("{token} does not exist"),
                    });
                }
            }
        }
    }
    problems.extend(tree.files.iter().flat_map(|(path, text)| unknown_sources(tree, path, text)));
    problems
}

/// The source files that the comments of a crate name, and that it does not have.
fn unknown_sources(tree: &Tree, path: &str, text: &str) -> Vec<Problem> {
    let package: String = path.split('/').take(2).collect::<Vec<_>>().join("/");
    if !path.ends_with(".rs") || !tree.has(&format!("{package}/Cargo.toml")) {
        return Vec::new();
    }
    let is_comment = |line: &&str| line.starts_with("///") || line.starts_with("//!");
    let is_own = |token: &str| {
        let suffix = format!("/{token}");
        tree.paths.iter().any(|path| path.starts_with(&format!("{package}/")) && path.ends_with(&suffix))
    };
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let comment = Some(line.trim_start()).filter(is_comment).unwrap_or_default();
        let tokens = comment.split('`').skip(1).step_by(2);
        for token in tokens.filter(|token| token.ends_with(".rs") && is_path(token)) {
            if !is_own(token) && !tree.has(token) && !tree.has(&format!("crates/{token}")) {
                problems.push(Problem {
                    rule: "path",
                    place: format!("{path}:{}", index + 1),
                    detail: format!("{token} does not exist"),
                });
            }
        }
    }
    problems
}

/// A bare file name belongs to the folder that its line speaks of, so any file of that name will do.
fn exists(tree: &Tree, token: &str) -> bool {
    let suffix = format!("/{token}");
    BASES.iter().any(|base| tree.has(&format!("{base}{token}")))
        || (!token.contains('/') && tree.paths.iter().any(|path| path.ends_with(&suffix)))
}

/// Whether quoted text is a path: the name of a source file, or a folder that ends with a slash.
fn is_path(token: &str) -> bool {
    let is_plain = token.chars().all(|char| char.is_ascii_alphanumeric() || "._-/".contains(char));
    let is_file = [".rs", ".md", ".toml", ".txt", ".scenario"].iter().any(|kind| token.ends_with(kind));
    is_plain && !token.starts_with('.') && !token.starts_with('/') && (is_file || token.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_begin_at_the_root_or_in_a_crate() {
        let page =
            "`crates/core/src/scheduler.rs` `scheduler.rs` `decide/` `gone.rs` `/api/tasks` `a + b.rs`";
        let files = [
            ("ARCHITECTURE.md", page),
            ("crates/core/src/scheduler.rs", ""),
            ("crates/core/src/decide/a.rs", ""),
        ];
        let details: Vec<String> =
            check(&Tree::of(&files)).into_iter().map(|problem| problem.detail).collect();
        assert_eq!(details, ["gone.rs does not exist"]);
    }

    #[test]
    fn a_comment_names_only_sources_of_its_crate() {
        let files = [
            ("crates/a/Cargo.toml", ""),
            (
                "crates/a/src/lib.rs",
                "//! | what | `one.rs`, `two.rs` |\n/// `b/src/two.rs`\n// `gone.rs`\n//! `a.b.rs()`",
            ),
            ("crates/a/src/one.rs", ""),
            ("crates/b/src/two.rs", ""),
        ];
        let found: Vec<(String, String)> =
            check(&Tree::of(&files)).into_iter().map(|problem| (problem.place, problem.detail)).collect();
        assert_eq!(found, [("crates/a/src/lib.rs:1".to_owned(), "two.rs does not exist".to_owned())]);
    }
}
