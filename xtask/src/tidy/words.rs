//! Words that have a plainer form.

use super::{Problem, area, tree::Tree};

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

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in &tree.files {
        for (index, line) in text.lines().enumerate() {
            let lower = line.to_lowercase();
            for (word, instead) in WORDS.iter().filter(|(word, _)| holds(&lower, word)) {
                problems.push(Problem {
                    rule: "word",
                    area: area(path),
                    place: format!("{path}:{}", index + 1),
                    detail: format!("{word:?}; write: {instead}"),
                });
            }
        }
    }
    problems
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
}
