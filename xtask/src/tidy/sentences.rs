//! Sentences that are too long to be read once.

use super::{Problem, prose::paragraphs, tree::Tree};

/// The pages that a newcomer reads first have a stricter bound.
const FIRST_PAGES: [&str; 3] = ["README.md", "ARCHITECTURE.md", "GLOSSARY.md"];
const WORDS_MAX: usize = 40;
const WORDS_MAX_FIRST_PAGES: usize = 30;

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in &tree.files {
        let words_max = if FIRST_PAGES.contains(&path.as_str()) { WORDS_MAX_FIRST_PAGES } else { WORDS_MAX };
        for (line, paragraph) in paragraphs(path, text) {
            for sentence in sentences(&paragraph) {
                let words = sentence.split_whitespace().filter(|word| word.contains(char::is_alphanumeric));
                let count = words.count();
                if count > words_max {
                    let start: String = sentence.chars().take(60).collect();
                    problems.push(Problem {
                        rule: "sentence",
                        place: format!("{path}:{line}"),
                        detail: format!("{count} words, at most {words_max}: {start}…"),
                    });
                }
            }
        }
    }
    problems
}

/// Splits at a full stop, a question mark or an exclamation mark before a blank.
fn sentences(paragraph: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    for (at, _) in paragraph.match_indices(['.', '?', '!']) {
        let after = &paragraph[at + 1..];
        let close = after.len() - after.trim_start_matches([')', '"', '*', '`']).len();
        if after[close..].starts_with(' ') {
            sentences.push(&paragraph[start..=at]);
            start = at + 1;
        }
    }
    sentences.push(&paragraph[start..]);
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_ends_before_a_blank_and_not_inside_a_name() {
        assert_eq!(
            sentences("Read `a.rs` first. Then (b.) go on?"),
            ["Read `a.rs` first.", " Then (b.", ") go on?"]
        );
    }

    #[test]
    fn a_long_sentence_is_found_with_its_line() {
        let long = format!("//! Short.\n\n/// {}end.\n", "word ".repeat(40));
        let tree = Tree::of(&[("crates/core/src/a.rs", &long)]);
        let found = check(&tree);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place, "crates/core/src/a.rs:3");
    }
}
