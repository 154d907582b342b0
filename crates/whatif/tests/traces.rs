//! Traces that make no sense: which line, and what would be right.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

use laneway_whatif::read_trace;

const HEADER: &str =
    r#"{"laneway_trace":1,"from":"2026-11-15T12:00:00.000Z","to":"2026-11-15T12:01:00.000Z","arrivals":2}"#;
const FIRST: &str = r#"{"id":1,"at_ms":5,"kind":"work","lanes":["main"],"outcome":"live"}"#;

fn refused(lines: &[&str]) -> String {
    read_trace(&lines.join("\n")).unwrap_err().to_string()
}

#[test]
fn a_trace_that_makes_no_sense_is_refused_with_its_line() {
    let second = |text: &str| refused(&[HEADER, FIRST, text]);
    let cases = [
        (refused(&[]), "line 1: the trace is empty; its first line must be the header"),
        (
            refused(&["hello"]),
            "line 1: expected the header of a trace, {\"laneway_trace\": 1, …}, as `laneway trace export` writes it",
        ),
        (
            refused(&[&HEADER.replace("e\":1", "e\":9")]),
            "line 1: the trace has format 9, and this version of Laneway reads format 1",
        ),
        (
            refused(&[&HEADER.replace("12:00:00.000Z", "noon")]),
            "line 1: the header makes no sense: a moment is written as 2026-11-15T12:03:15.042Z",
        ),
        (
            refused(&[&HEADER.replace(":2}", ":0}")]),
            "line 1: there are no arrivals, so there is nothing to replay",
        ),
        (
            refused(&[HEADER, FIRST]),
            "line 2: the header promises 2 arrivals, and there are 1; was the file cut off?",
        ),
        (second(&FIRST[..40]), "line 3: expected one arrival as a JSON object: EOF while parsing a value"),
        (
            second(&FIRST.replace("outcome", "outcom")),
            "line 3: expected one arrival as a JSON object: unknown field `outcom`, expected one of `id`, `at_ms`, `kind`, \
             `lanes`, `session`, `source`, `priority`, `fair_key`, `parent`, `after`, `wait_timeout_ms`, `timeout_ms`, \
             `deadline_ms`, `run_after_ms`, `retry`, `attempts`, `outcome`, `reason`, `ended_ms`",
        ),
        (
            second(&FIRST.replace("live", "lively")),
            "line 3: expected one arrival as a JSON object: unknown variant `lively`, expected one of `completed`, `failed`, \
             `timed_out`, `cancelled`, `expired`, `wait_timeout`, `lost`, `refused`, `live`",
        ),
        (
            second(&FIRST.replace("main", "m*n")),
            "line 3: expected one arrival as a JSON object: '*' belongs in patterns, not in the name of a lane",
        ),
        (second(FIRST), "line 3: id 1 is used twice"),
        (
            second(&FIRST.replace("1,\"at_ms\":5", "2,\"at_ms\":4")),
            "line 3: at_ms is 4, before the arrival above it at 5; arrivals must be in order",
        ),
        (
            second(&FIRST.replace("\"id\":1", "\"id\":2,\"parent\":{\"id\":7}")),
            "line 3: parent names arrival 7, which does not stand above it",
        ),
        (
            second(&FIRST.replace("\"id\":1", "\"id\":2,\"priority\":10")),
            "line 3: priority must be a whole number from 0 to 9",
        ),
        (
            second(&FIRST.replace("5,", "99999999999999999,").replace("\"id\":1", "\"id\":2")),
            "line 3: times must be at most 15000000000000 (the year 2445)",
        ),
        (
            second(
                r#"{"id":2,"at_ms":5,"kind":"work","lanes":["main"],"outcome":"refused","attempts":[{"start_ms":0,"run_ms":1,"end":"cut"}]}"#,
            ),
            "line 3: a task that was refused cannot have attempts",
        ),
    ];
    for (told, expected) in cases {
        assert_eq!(told, expected);
    }
}

#[test]
fn what_was_written_is_read_again_as_it_was() {
    let text = format!("{HEADER}\n{FIRST}\n{}\n", FIRST.replace("\"id\":1", "\"id\":2"));
    let trace = read_trace(&text).unwrap();
    assert_eq!(read_trace(&trace.to_text().unwrap()), Ok(trace));
}
