//! Relative links of pages that lead nowhere.

use super::{Problem, tree::Tree};

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in tree.files.iter().filter(|(path, _)| path.ends_with(".md")) {
        for (index, line) in text.lines().enumerate() {
            for target in targets(line).filter(|target| !tree.has(&resolve(path, target))) {
                problems.push(Problem {
                    rule: "link",
                    place: format!("{path}:{}", index + 1),
                    detail: format!("{target} does not exist"),
                });
            }
        }
    }
    problems
}

/// The relative targets of the links in a line, without their anchors.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let ends = line.match_indices("](").map(|(at, _)| &line[at + 2..]);
    let targets = ends.filter_map(|rest| rest.split_once([')', ' ']).map(|(target, _)| target));
    let relative = targets.filter(|target| !target.contains(':') && !target.starts_with(['#', '/', '<']));
    relative.map(|target| target.split_once('#').map_or(target, |(file, _)| file))
}

/// The path from the root of what `page` calls `target`.
fn resolve(page: &str, target: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_resolved_from_their_page() {
        let page = "[a](../README.md#top) [b](https://x.y/z) [c](gone.md) ![d](images/a.png) [e](#here)";
        let tree = Tree::of(&[("README.md", ""), ("docs/page.md", page), ("docs/images/a.png", "")]);
        let details: Vec<String> = check(&tree).into_iter().map(|problem| problem.detail).collect();
        assert_eq!(details, ["gone.md does not exist"]);
    }
}
