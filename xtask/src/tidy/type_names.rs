//! A public type name has one meaning in the workspace.

use std::collections::BTreeMap;

use super::{Problem, tree::Tree};

/// Names that several crates share, and why that is no second meaning.
const SHARED: [(&str, &str); 4] = [
    ("Error", "each crate's own error, written with the crate's name"),
    ("Options", "how to open one kind of store or engine, written with the crate's name"),
    ("Postgres", "the backend; in tools, a real server of it for tests"),
    ("Redis", "the backend; in tools, a real server of it for tests"),
];

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (path, text) in &tree.files {
        let is_source = path.ends_with(".rs") && path.contains("/src/");
        if !is_source || !(path.starts_with("crates/") || path.starts_with("tools/")) {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            if let Some(name) = type_name(line.trim_start()) {
                places.entry(name).or_default().push(format!("{path}:{}", index + 1));
            }
        }
    }
    places.retain(|name, places| places.len() > 1 && !SHARED.iter().any(|(shared, _)| shared == name));
    let problem = |(name, places): (&str, Vec<String>)| Problem {
        rule: "type-name",
        place: places.join(" "),
        detail: format!("{name} is {} public types", places.len()),
    };
    places.into_iter().map(problem).collect()
}

/// The public type that a line declares.
fn type_name(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("pub ")?;
    let rest =
        ["struct ", "enum ", "trait ", "type ", "union "].iter().find_map(|kind| rest.strip_prefix(kind))?;
    rest.split(|char: char| !char.is_alphanumeric() && char != '_').next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_be_declared_once() {
        let files = [
            ("crates/a/src/lib.rs", "pub struct Place<'a> {\npub(crate) struct Own;"),
            ("crates/b/src/lib.rs", "    pub enum Place {\npub struct Own;"),
        ];
        let details: Vec<String> =
            check(&Tree::of(&files)).into_iter().map(|problem| problem.detail).collect();
        assert_eq!(details, ["Place is 2 public types"]);
    }
}
