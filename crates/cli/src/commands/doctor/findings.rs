//! What the checks found, and how it is printed.

use serde::Serialize;

use crate::error::CliError;
use crate::output::format;
use crate::output::{self, Rows};

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Ok,
    Warning,
    Wrong,
}

/// The result of one check.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) verdict: Verdict,
    pub(super) detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fix: Option<String>,
}

pub(super) fn well(check: &'static str, detail: impl Into<String>) -> Finding {
    Finding { check, verdict: Verdict::Ok, detail: detail.into(), fix: None }
}

pub(super) fn odd(check: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding { check, verdict: Verdict::Warning, detail: detail.into(), fix: Some(fix.into()) }
}

pub(super) fn wrong(check: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding { check, verdict: Verdict::Wrong, detail: detail.into(), fix: Some(fix.into()) }
}

/// Prints the findings, and what to do about them.
pub(super) fn print(findings: &[Finding]) -> Result<(), CliError> {
    let mut rows = Rows::under(&["CHECK", "", "FOUND"]);
    for finding in findings {
        let word = match finding.verdict {
            Verdict::Ok => "ok",
            Verdict::Warning => "warning",
            Verdict::Wrong => "WRONG",
        };
        for (number, line) in finding.detail.lines().enumerate() {
            let (check, word) = if number == 0 { (finding.check, word) } else { ("", "") };
            rows.add([check.to_owned(), word.to_owned(), line.to_owned()]);
        }
        rows.add_all(finding.fix.iter().map(|fix| [String::new(), String::new(), format!("→ {fix}")]));
    }
    rows.print("")?;
    let count = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count() as u64;
    let (warnings, wrongs) = (count(Verdict::Warning), count(Verdict::Wrong));
    output::line("")?;
    match (wrongs, warnings) {
        (0, 0) => output::line("Everything is fine."),
        (0, _) => {
            output::line(&format!("The server can run, with {}.", format::counted(warnings, "warning")))
        }
        _ => output::line(&format!("Fix {} first.", format::counted(wrongs, "problem"))),
    }
}
