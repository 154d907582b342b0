//! Words that have a plainer form, and words that the glossary replaces, in texts and in the names of files.

use super::{Problem, tree::Tree};

const WORDS: [(&str, &str); 9] = [
    ("whoever", "name the actor"),
    ("anew", "again"),
    ("is told", "say who tells, or name the message"),
    ("who waits", "the waiting caller, task or session"),
    ("nobody", "no caller, no reader"),
    ("somebody", "name the actor"),
    ("so many", "give the number or its name"),
    ("any more", "no longer"),
    ("beside", "next to, with, or compared with"),
];

/// Words with another name here, the name, and where other programs use them.
const OTHER_NAMES: [(&str, &str, &[&str]); 4] = [
    ("baton", "append turn", &[]),
    ("set aside", "parked", &[]),
    ("job", "task", OF_OTHER_QUEUES),
    ("jobs", "tasks", OF_OTHER_QUEUES),
];
const GLOSSARY: &str = "GLOSSARY.md";
const OF_OTHER_QUEUES: &[&str] =
    &["bench/", "docs/benchmarks/", "docs/guide/coming-from", "tools/chaos/benches/"];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in &tree.files {
        for (index, line) in text.lines().enumerate() {
            for (word, instead) in found(path, line) {
                problems.push(Problem {
                    rule: "word",
                    place: format!("{path}:{}", index + 1),
                    detail: format!("{word:?}; write: {instead}"),
                });
            }
        }
    }
    for path in tree.own_paths() {
        for (word, instead) in found(path, &path.replace(['/', '.', '-', '_'], " ")) {
            problems.push(Problem {
                rule: "file-name",
                place: path.to_owned(),
                detail: format!("{word:?} in a name; write: {instead}"),
            });
        }
    }
    problems
}

/// The words of a line of a file that have a better form, and that form.
fn found(path: &str, line: &str) -> Vec<(&'static str, &'static str)> {
    let line = line.to_lowercase();
    let is_named = |allowed: &[&str]| path != GLOSSARY && !allowed.iter().any(|part| path.starts_with(part));
    let others = OTHER_NAMES.iter().filter(|(.., allowed)| is_named(allowed));
    let words = WORDS.iter().copied().chain(others.map(|(word, instead, _)| (*word, *instead)));
    words.filter(|(word, _)| holds(&line, word)).collect()
}

/// Whether the line holds the word as a whole.
fn holds(line: &str, word: &str) -> bool {
    let is_letter =
        |char: Option<char>| char.is_some_and(|char| char.is_alphanumeric() || char == '_' || char == '-');
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !is_letter(before) && !is_letter(after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_as_a_whole_and_in_any_case() {
        let tree = Tree::of(&[(
            "crates/core/src/a.rs",
            "/// Whoever asks\nlet x = besides;\n// so_many\n// beside it",
        )]);
        let places: Vec<String> = check(&tree).into_iter().map(|problem| problem.place).collect();
        assert_eq!(places, ["crates/core/src/a.rs:1", "crates/core/src/a.rs:4"]);
    }

    #[test]
    fn the_glossary_and_pages_about_other_queues_may_name_other_words() {
        let line = "| **task** | job, baton |";
        let tree = Tree::of(&[("GLOSSARY.md", line), ("docs/benchmarks/a.md", "a job"), ("docs/a.md", line)]);
        let found: Vec<(String, String)> =
            check(&tree).into_iter().map(|problem| (problem.place, problem.detail)).collect();
        let place = || "docs/a.md:1".to_owned();
        let baton = (place(), "\"baton\"; write: append turn".to_owned());
        assert_eq!(found, [baton, (place(), "\"job\"; write: task".to_owned())]);
    }

    #[test]
    fn the_name_of_a_file_or_folder_is_checked_too() {
        let tree =
            Tree::of(&[("crates/a/src/set_aside.rs", ""), ("docs/who-waits/b.png", ""), ("besides.rs", "")]);
        let places: Vec<String> = check(&tree).into_iter().map(|problem| problem.place).collect();
        assert_eq!(places, ["crates/a/src/set_aside.rs", "docs/who-waits/b.png"]);
    }
}
