//! Folders with too many files to be taken in at a glance.

use std::collections::BTreeMap;

use super::{Problem, tree::Tree};

const FILES_MAX: usize = 20;

pub(super) fn check(tree: &Tree) -> Vec<Problem> {
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    // A folder of scenarios is a list: each of them is a behaviour.
    for (path, _) in tree.files.iter().filter(|(path, _)| !path.ends_with(".scenario")) {
        *folders.entry(path.rsplit_once('/').map_or("", |(folder, _)| folder)).or_default() += 1;
    }
    let crowded = folders.into_iter().filter(|(_, count)| *count > FILES_MAX);
    crowded
        .map(|(folder, count)| Problem {
            rule: "folder",
            place: folder.to_owned(),
            detail: format!("{count} files, at most {FILES_MAX}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_twenty_first_file_is_one_too_many() {
        let paths: Vec<String> = (0..21).map(|number| format!("crates/core/src/{number}.rs")).collect();
        let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "")).collect();
        assert_eq!(check(&Tree::of(&files[..20])), []);
        assert_eq!(check(&Tree::of(&files)).len(), 1);
    }
}
