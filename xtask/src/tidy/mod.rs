//! Rules about the text of the repository: words, sentences, folders, links, paths, dependencies, type names, conditions, and the
//! places of planted bugs.

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

use tree::Tree;

use crate::mutants;

/// A place that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
struct Problem {
    rule: &'static str,
    /// The path, and the line where there is one.
    place: String,
    detail: String,
}

/// Checks every rule, prints each place that breaks one, and fails if there is any.
pub(crate) fn tidy(root: &Path) -> Result<(), String> {
    let tree = Tree::read(root)?;
    let mut problems = words::check(&tree);
    problems.extend(sentences::check(&tree));
    problems.extend(folders::check(&tree));
    problems.extend(links::check(&tree));
    problems.extend(paths::check(&tree));
    problems.extend(dependencies::check(&tree));
    problems.extend(type_names::check(&tree));
    problems.extend(bool_match::check(&tree));
    for Problem { place, rule, detail } in &problems {
        eprintln!("{place}: {rule}: {detail}");
    }
    let lost_places = mutants::lost_places(root)?;
    lost_places.iter().for_each(|problem| eprintln!("{problem}"));
    if problems.is_empty() && lost_places.is_empty() {
        Ok(())
    } else {
        Err("tidy: fix the places above".to_owned())
    }
}
