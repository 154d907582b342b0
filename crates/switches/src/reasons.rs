//! The list of changes that no test needs to notice, each with its reason, and whether it is true.

use std::collections::BTreeMap;

use crate::change::Change;

/// How the list differs from what was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Compared {
    /// Survivors that it does not explain.
    pub(crate) unexplained: Vec<String>,
    /// What it explains, and a test notices, or nobody can make, or is not there any more.
    pub(crate) needless: Vec<String>,
}

impl Compared {
    pub(crate) fn outcome(&self) -> Result<(), String> {
        let mut wrong = String::new();
        if !self.unexplained.is_empty() {
            wrong = format!(
                "no test notices, and xtask/survivors.txt does not say why that is right:\n  {}\n",
                self.unexplained.join("\n  ")
            );
        }
        if !self.needless.is_empty() {
            let lines = self.needless.join("\n  ");
            wrong.push_str(&format!(
                "xtask/survivors.txt gives a reason for what does not survive:\n  {lines}\n"
            ));
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }
}

/// Compares the list with the survivors among some changes. What is listed once explains one survivor. When these changes
/// are all there are, whatever else is listed explains nothing.
pub(crate) fn compare(
    list: &str,
    changes: &[Change],
    are_all: bool,
    survivors: &[&Change],
) -> Result<Compared, String> {
    let mut explained: BTreeMap<String, usize> = BTreeMap::new();
    for name in names(list)? {
        *explained.entry(name).or_default() += 1;
    }
    let mut compared = Compared::default();
    for survivor in survivors {
        match explained.get_mut(&survivor.lasting_name()) {
            Some(left) if *left > 0 => *left -= 1,
            _ => compared.unexplained.push(survivor.name.clone()),
        }
    }
    let is_looked_at = |name: &str| are_all || changes.iter().any(|change| change.lasting_name() == name);
    explained.retain(|name, left| *left > 0 && is_looked_at(name));
    compared.needless = explained.into_keys().collect();
    Ok(compared)
}

/// The changes that are listed. Above each stand the lines of its reason, which begin with `#`.
fn names(list: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let mut has_reason = false;
    for line in list.lines() {
        match line.trim() {
            "" => has_reason = false,
            line if line.starts_with('#') => has_reason = true,
            line if has_reason => names.push(line.to_owned()),
            line => return Err(format!("xtask/survivors.txt: {line:?} has no reason above it")),
        }
    }
    Ok(names)
}
