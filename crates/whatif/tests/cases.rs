//! Small traces with a configuration each, and the whole output. `UPDATE=1 cargo test -p laneway-whatif --test cases`
//! rewrites the outputs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]
#![allow(clippy::disallowed_methods, reason = "only the replay does no I/O")]

use std::path::Path;

use laneway_config::{Profile, parse};
use laneway_whatif::{Comparison, Report, Timeline, plot, read_trace, replay, table};

/// A case: what it shows, a configuration, a trace, and what comes of it, each after a line of dashes.
fn told(case: &str) -> String {
    let parts: Vec<&str> = case.split("---\n").collect();
    let [_, hcl, lines, _] = parts.as_slice() else { panic!("a case has four parts") };
    let none: [(&str, &str); 0] = [];
    let config = parse("new.hcl", hcl, Profile::LIBRARY, none).unwrap();
    let header = format!(
        "{{\"laneway_trace\":1,\"from\":\"1970-01-01T00:00:00.000Z\",\"to\":\"1970-01-01T00:01:00.000Z\",\"arrivals\":{}}}\n",
        lines.lines().count()
    );
    let trace = read_trace(&format!("{header}{lines}")).unwrap();
    let played = replay(&trace, config.lane_blocks()).unwrap();
    assert_eq!(played, replay(&trace, config.lane_blocks()).unwrap(), "a replay gives the same each time");
    let comparison = Comparison {
        arrivals: trace.arrivals.len(),
        from: trace.header.from,
        to: trace.header.to,
        missing: Vec::new(),
        before: Report::new("recorded", &trace, &Timeline::recorded(&trace)),
        after: Report::new("new.hcl", &trace, &played),
    };
    let drawn = plot(&comparison);
    assert!(drawn.starts_with("<svg ") && drawn.ends_with("</svg>\n") && !drawn.contains("NaN"), "{drawn}");
    let mut text = table(&comparison);
    for (task, arrival) in played.tasks.iter().zip(&trace.arrivals) {
        let runs: Vec<String> = task.runs.iter().map(|run| format!("{}-{}", run.start, run.end)).collect();
        let ended = task.ended.map_or_else(|| "-".to_owned(), |ended| ended.to_string());
        let line =
            format!("{} at {} ran {:?} until {ended}: {:?}", arrival.id, task.arrived, runs, task.fate);
        text = format!("{text}{}\n", line.replace('"', ""));
    }
    text
}

#[test]
fn each_case_is_told_as_written() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 8, "cases are missing");
    for file in files {
        let case = std::fs::read_to_string(&file).unwrap();
        let told = told(&case);
        let (given, expected) = case.rsplit_once("---\n").unwrap();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&file, format!("{given}---\n{told}")).unwrap();
        } else {
            assert_eq!(told, expected, "{}", file.display());
        }
    }
}
