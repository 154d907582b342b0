//! A condition is an `if`, and not a `match` on a bool.

use super::{Problem, tree::Tree};

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.files.iter().filter(|(path, _)| path.ends_with(".rs")) {
        for (index, line) in text.lines().enumerate().filter(|(_, line)| has_bool_arm(line)) {
            problems.push(Problem {
                rule: "bool-match",
                place: format!("{path}:{}", index + 1),
                detail: format!("{}; write: if", line.trim()),
            });
        }
    }
    problems
}

/// Whether an arm of a `match` begins in this line whose whole pattern is `true` or `false`.
fn has_bool_arm(line: &str) -> bool {
    let begins_arm = |before: &str| before.is_empty() || before.ends_with(['{', ',', '|']);
    let ends_pattern = |after: &str| after.starts_with("=> ") || after.starts_with("if ");
    let is_arm = |word: &str| {
        line.match_indices(word).any(|(at, _)| {
            let (before, after) = (line[..at].trim(), line[at + word.len()..].trim_start());
            begins_arm(before) && ends_pattern(after)
        })
    };
    !line.trim_start().starts_with("//") && ["true ", "false "].into_iter().any(is_arm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_pattern_is_one() {
        let text = "match a {\n    true if b => 1,\n    true => 2,\n    false => 3,\n}\n\
            match (a, b) { (true, false) => 1, (_, true) => 2, _ => 3 }\nmatch a { true => 1, false => 2 }\n\
            Some(true) => 1,\n// true => 2\n[a, true] => 3,\nmatch c { x => true, y => false }";
        let places: Vec<String> =
            check(&Tree::of(&[("crates/a/src/a.rs", text)])).into_iter().map(|found| found.place).collect();
        assert_eq!(places, [2, 3, 4, 7].map(|line| format!("crates/a/src/a.rs:{line}")));
    }
}
