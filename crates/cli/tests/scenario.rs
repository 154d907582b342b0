//! `laneway scenario`.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn laneway(arguments: &[&str], input: &str) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_laneway"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    program.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    program.wait_with_output().unwrap()
}

#[test]
fn the_tour_needs_no_arguments_and_has_no_colour_when_piped() {
    let output = laneway(&[], "");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    assert!(text.contains("cancelled hook-4: released") && !text.contains('\u{1b}'), "{text}");
    assert_eq!(text.as_bytes(), laneway(&["scenario"], "").stdout);
}

#[test]
fn a_script_is_shown_as_a_timeline() {
    let script = "0 submit a main\n0 say Done.\n9s finish a\n9s finish a";
    let output = laneway(&["scenario", "-"], script);
    let expected = [
        "0.000 s  queued a in main",
        "         granted a #1 until 10000",
        "",
        "Done.",
        "9.000 s  completed a",
        "         rejected: lease #1 on a is stale",
    ];
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().collect::<Vec<_>>(), expected);
}

#[test]
fn wrong_input_ends_with_exit_code_2_and_a_reason() {
    for (arguments, input, expected) in [
        (
            &["scenario", "-"][..],
            "0 submit a",
            "laneway: -, line 1: submit: the lane is missing; write: 0 submit",
        ),
        (&["scenario", "no/such/file"], "", "laneway: cannot read no/such/file: "),
        (&["fly"], "", "error: unrecognized subcommand 'fly'"),
    ] {
        let output = laneway(arguments, input);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(message.starts_with(expected) && output.stdout.is_empty(), "{message}");
    }
}
