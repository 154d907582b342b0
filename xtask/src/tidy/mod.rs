//! Rules about the text of the repository: words, sentences, folders, links, paths, dependencies, type names, conditions.
//!
//! What older code still breaks is counted in `xtask/tidy-baseline.txt`, by rule and area. A count may only shrink.

mod baseline;
mod bool_match;
mod dependencies;
mod folders;
mod links;
mod paths;
mod prose;
mod sentences;
mod tree;
mod type_names;
mod words;

use std::path::Path;

use baseline::Baseline;
use tree::Tree;

/// A place that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
struct Problem {
    rule: &'static str,
    /// The crate, package or page that the baseline counts it under.
    area: String,
    /// The path, and the line where there is one.
    place: String,
    detail: String,
}

/// Checks every rule and fails on what the baseline does not cover. With `update`, lowers the baseline to what is left.
pub(crate) fn tidy(root: &Path, update: bool) -> Result<(), String> {
    let tree = Tree::read(root)?;
    let mut problems = words::check(&tree);
    problems.extend(sentences::check(&tree));
    problems.extend(folders::check(&tree));
    problems.extend(links::check(&tree));
    problems.extend(paths::check(&tree));
    problems.extend(dependencies::check(&tree));
    problems.extend(type_names::check(&tree));
    problems.extend(bool_match::check(&tree));
    let baseline = Baseline::read(root)?;
    let (lowered, unknown) = baseline.compare(&problems);
    for problem in &unknown {
        eprintln!("{}: {}: {}", problem.place, problem.rule, problem.detail);
    }
    if !unknown.is_empty() {
        return Err(
            "tidy: fix the places above, or at least as many others of the same rule and area".to_owned()
        );
    }
    if update {
        lowered.write(root)?;
    }
    println!("tidy: {} places are left in xtask/tidy-baseline.txt", lowered.total());
    Ok(())
}

/// The crate, package or page of a path.
fn area(path: &str) -> String {
    if path.ends_with(".md") {
        return path.to_owned();
    }
    let depth = if ["crates/", "tools/", "sdk/"].iter().any(|group| path.starts_with(group)) { 2 } else { 1 };
    path.split('/').take(depth).collect::<Vec<_>>().join("/")
}
