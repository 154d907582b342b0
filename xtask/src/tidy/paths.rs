//! Paths in the pages that a newcomer reads first: every one exists.

use super::{Problem, area, tree::Tree};

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
                        area: area(path),
                        place: format!("{path}:{}", index + 1),
                        detail: format!("{token} does not exist"),
                    });
                }
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
}
