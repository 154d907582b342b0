//! How many places older code still has, by rule and area.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use super::Problem;

const HEADER: &str = "# Places that break a rule of the tidy test, as `rule area count`. A count may only shrink:\n\
    # `cargo xtask tidy --update` lowers it. A new entry is never right.\n";

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Baseline(BTreeMap<(String, String), usize>);

impl Baseline {
    pub(super) fn read(root: &Path) -> Result<Baseline, String> {
        let path = file(root);
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Baseline::parse(&text)
    }

    fn parse(text: &str) -> Result<Baseline, String> {
        let mut counts = BTreeMap::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let words: Vec<&str> = line.split(' ').collect();
            let [rule, area, count] = words[..] else { return Err(format!("not `rule area count`: {line}")) };
            let count = count.parse().map_err(|_| format!("not a count: {line}"))?;
            counts.insert((rule.to_owned(), area.to_owned()), count);
        }
        Ok(Baseline(counts))
    }

    /// The baseline lowered to what is left, and the problems of each rule and area that has more than its count.
    pub(super) fn compare<'a>(&self, problems: &'a [Problem]) -> (Baseline, Vec<&'a Problem>) {
        let mut found: BTreeMap<(String, String), Vec<&Problem>> = BTreeMap::new();
        for problem in problems {
            found.entry((problem.rule.to_owned(), problem.area.clone())).or_default().push(problem);
        }
        let mut lowered = BTreeMap::new();
        let mut unknown = Vec::new();
        for (key, problems) in found {
            let allowed = self.0.get(&key).copied().unwrap_or(0);
            if allowed > 0 {
                lowered.insert(key, problems.len().min(allowed));
            }
            if problems.len() > allowed {
                unknown.extend(problems);
            }
        }
        (Baseline(lowered), unknown)
    }

    pub(super) fn write(&self, root: &Path) -> Result<(), String> {
        let mut text = HEADER.to_owned();
        for ((rule, area), count) in &self.0 {
            writeln!(text, "{rule} {area} {count}").map_err(|error| error.to_string())?;
        }
        fs::write(file(root), text).map_err(|error| error.to_string())
    }

    pub(super) fn total(&self) -> usize {
        self.0.values().sum()
    }
}

fn file(root: &Path) -> PathBuf {
    root.join("xtask/tidy-baseline.txt")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(area: &str) -> Problem {
        Problem { rule: "word", area: area.to_owned(), place: String::new(), detail: String::new() }
    }

    #[test]
    fn a_count_may_shrink_and_not_grow() {
        let baseline = Baseline::parse("# why\nword a 2\nword b 1\n").unwrap_or_default();
        let fewer = [problem("a")];
        let (lowered, unknown) = baseline.compare(&fewer);
        assert_eq!(lowered, Baseline::parse("word a 1").unwrap_or_default());
        assert!(unknown.is_empty());
        let more = [problem("b"), problem("b"), problem("c")];
        assert_eq!(baseline.compare(&more).1.len(), 3);
    }
}
