//! What the language says about wrong scripts, and how it tells what happened.
#![allow(clippy::unwrap_used)]

use laneway_scenario::{COMMANDS, play};

fn wrong(script: &str) -> String {
    play(script).unwrap_err().to_string()
}

fn played(script: &str) -> Vec<String> {
    play(script).unwrap().iter().map(ToString::to_string).collect()
}

#[test]
fn a_wrong_script_is_told_its_line_what_is_wrong_and_what_would_be_right() {
    let cases = [
        ("soon tick", "line 1: \"soon\" is not a time; a line starts with the time in milliseconds"),
        (
            "\n# fine\n5 tick\n4 tick",
            "line 4: the time goes back from 5 to 4; each line's time is that of the line",
        ),
        ("0", "line 1: the command is missing; there are lane, unset, submit"),
        ("0 sumbit a main", "line 1: \"sumbit\" is not a command; there are lane, unset, submit"),
        ("0 submit a", "line 1: submit: the lane is missing; write: 0 submit TASKS LANE[,LANE…]"),
        ("0 submit a main often", "line 1: submit: \"often\" is not key=value; write: 0 submit"),
        (
            "0 submit a main colour=red",
            "line 1: submit: \"colour\" is nothing that a task can ask for; there are kind,",
        ),
        ("0 submit a main priority=high", "line 1: submit: priority \"high\" is not a whole number"),
        ("0 submit t1..x9 main", "line 1: submit: t1..x9 is not a range such as t1..t31"),
        ("0 submit t9..t1 main", "line 1: submit: t9..t1 is not a range"),
        ("0 submit t1..t99999999999 main", "line 1: submit: t1..t99999999999 is not a range"),
        ("0 submit \"a main", "line 1: submit: a quotation mark is never closed"),
        ("0 submit a,,b main", "line 1: submit: \"a,,b\" is not the name of a task"),
        ("0 finish a now", "line 1: finish: \"now\" is one word too many; write: 0 finish TASKS [#FENCE]"),
        ("0 finish a #x", "line 1: finish: fence \"x\" is not a whole number"),
        ("0 place a,b", "line 1: place: \"a,b\" names more than one task"),
        ("0 redrive a b", "line 1: redrive: the new task is missing; write: 0 redrive LETTER as TASK"),
        ("0 cancel a why", "line 1: cancel: \"why\" is not a reason; write: 0 cancel TASKS [caller|cleared|"),
        ("0 batch ann read r1", "line 1: batch: the colon after the session is missing"),
        ("0 batch ann: bash/fast b1", "line 1: batch: \"fast\" is not control, query, execute or generate"),
        ("0 quietly", "line 1: \"quietly\" is not a command"),
    ];
    for (script, told) in cases {
        let error = wrong(script);
        assert!(error.starts_with(told), "{script:?}: {error}");
    }
}

#[test]
fn what_the_scheduler_refuses_is_part_of_the_play() {
    let lines =
        played("0 submit a \"x\\ny\"\n0 lane main lease=soon\n0 finish missing\n0 submit b main timeout=x");
    assert_eq!(lines[0], "0 rejected: a name has no control characters, this one has one as character 2");
    assert!(lines[1].starts_with("0 rejected: lease must be a duration"), "{}", lines[1]);
    assert_eq!(lines[2], "0 rejected: task missing is not live: it has ended or was never accepted");
    assert!(lines[3].starts_with("0 rejected: timeout must be a duration"), "{}", lines[3]);
}

#[test]
fn the_clock_stops_wherever_the_scheduler_wants_to_be_woken() {
    let lines = played("0 lane main max_concurrency=1\n0 submit a,b main wait_timeout=1500ms\n1h tick");
    let told =
        ["1500 wait timeout b", "10000 dead letter a after 1 attempt: the lease lapsed", "10000 lost a"];
    assert_eq!(lines[lines.len() - 3..], told);
}

#[test]
fn quietly_only_counts() {
    assert_eq!(played("0 quietly submit t1..t50 main"), ["0 44 queued, 4 granted, 6 rejected"]);
}

#[test]
fn every_command_is_listed_once() {
    let mut names: Vec<&str> = COMMANDS.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), COMMANDS.len());
    for (name, _) in COMMANDS {
        // With no arguments a command is complete or says what is missing; none is unknown.
        if let Err(error) = play(&format!("0 {name}")) {
            assert!(error.wrong.contains("missing"), "{name}: {error}");
        }
    }
}
