//! What ships does not depend on what checks it, except in its tests.

use super::{Problem, tree::Tree};

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let manifests = |group: &'static str| {
        let depth = group.matches('/').count() + 1;
        tree.files.iter().filter(move |(path, _)| {
            path.starts_with(group) && path.ends_with("/Cargo.toml") && path.matches('/').count() == depth
        })
    };
    let tools: Vec<&str> = manifests("tools/").filter_map(|(_, text)| package_name(text)).collect();
    let mut problems = Vec::new();
    for (path, text) in manifests("crates/") {
        let mut is_shipped = false;
        for (index, line) in text.lines().enumerate() {
            if line.starts_with('[') {
                is_shipped = line.contains("dependencies") && !line.contains("dev-dependencies");
            }
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            if is_shipped && tools.contains(&name) {
                problems.push(Problem {
                    rule: "dependency",
                    place: format!("{path}:{}", index + 1),
                    detail: format!("{name} is a tool; only tests may depend on it"),
                });
            }
        }
    }
    problems
}

fn package_name(manifest: &str) -> Option<&str> {
    let line = manifest.lines().find(|line| line.starts_with("name"))?;
    line.split('"').nth(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tests_may_depend_on_a_tool() {
        let shipped =
            "[package]\nname = \"a\"\n[dependencies]\nsim.workspace = true\n[dev-dependencies]\nsim = \"1\"";
        let files = [("crates/a/Cargo.toml", shipped), ("tools/sim/Cargo.toml", "[package]\nname = \"sim\"")];
        let places: Vec<String> = check(&Tree::of(&files)).into_iter().map(|problem| problem.place).collect();
        assert_eq!(places, ["crates/a/Cargo.toml:4"]);
    }
}
