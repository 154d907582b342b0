//! The examples run, and say what they should.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Runs an example as `cargo test` has built it.
fn check(example: &str, expected: &str) {
    check_with(example, &[], "", expected);
}

/// The same, with arguments and something to read.
fn check_with(example: &str, arguments: &[&str], typed: &str, expected: &str) {
    let here = std::env::current_exe().unwrap();
    let built: PathBuf = here.parent().unwrap().parent().unwrap().join("examples").join(example);
    assert!(built.exists(), "{example} is not built; `cargo build -p laneway --examples` builds it");
    let mut child = Command::new(built)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    let expected: Vec<&str> = expected.trim().lines().map(str::trim).collect();
    assert_eq!(told.lines().map(str::trim).collect::<Vec<_>>(), expected);
}

#[test]
fn embedding() {
    check(
        "embedding",
        r#"
        alice gets an answer to "hello"
        side by side: an answer to "one", an answer to "two"; 1 turns long
        one by one: an answer to "one", an answer to "two"; 2 turns long
        while it is held: lane cron is busy: 1/1 running, 0/10 waiting; come back in 1 s
        afterwards: free
        "#,
    );
}

#[test]
fn priorities() {
    check(
        "priorities",
        "
        Background came with priority 0 and waits at place 3
        Schedule came with priority 1 and waits at place 2
        User came with priority 2 and waits at place 1
        User runs
        Schedule runs
        Background runs
        ",
    );
}

#[test]
fn rate_limit() {
    check(
        "rate_limit",
        "
        call 1 after 0 x 200 ms
        call 2 after 0 x 200 ms
        call 3 after 0 x 200 ms
        call 4 after 0 x 200 ms
        call 5 after 0 x 200 ms
        call 6 after 1 x 200 ms
        call 7 after 2 x 200 ms
        ",
    );
}

#[test]
fn external_worker() {
    check(
        "external_worker",
        r#"
        3 tasks wait for a worker
        "frame 1 rendered"
        "frame 2 rendered"
        "frame 3 rendered"
        the worker did 3 tasks
        "#,
    );
}

#[test]
fn kill_and_recover() {
    check(
        "kill_and_recover",
        "
        killed after letter 1, letter 2
        letter 2, attempt 2
        letter 3, attempt 1
        letter 4, attempt 1
        letter 5, attempt 1
        ",
    );
}

#[test]
fn agent_loop() {
    check(
        "agent_loop",
        r#"
        read: "some text"
        read: "some text"
        bash: "3 tests passed"
        bash: refused, removing is not allowed
        write: "written"
        alice: "done"
        "#,
    );
}

/// Types at a slow agent in one mode.
fn chat(typed: &str, expected: &str) {
    let typed: String = typed.trim().lines().map(|line| format!("{}\n", line.trim())).collect();
    check_with("chat", &["--script"], &typed, expected);
}

#[test]
fn chat_collects() {
    chat(
        "
        hello
        .
        one
        two
        ",
        r##"
        you: hello
          started
        agent: works on "hello"
        you: one
          queued
        you: two
          queued
        agent: is done
        agent: works on "[Queued messages while agent was busy]\n\n---\nQueued #1\none\n\n---\nQueued #2\ntwo"
        agent: is done
        "##,
    );
}

#[test]
fn chat_follows_up() {
    chat(
        "
        /queue followup
        hello
        one
        two
        ",
        r#"
        you: /queue followup
          Queue set for this session: mode followup.
        you: hello
          started
        you: one
          queued
        you: two
          queued
        agent: works on "hello"
        agent: is done
        agent: works on "one"
        agent: is done
        agent: works on "two"
        agent: is done
        "#,
    );
}

#[test]
fn chat_steers() {
    chat(
        "
        /queue steer
        hello
        .
        turn left
        .
        and right /queue steer-backlog
        ",
        r#"
        you: /queue steer
          Queue set for this session: mode steer.
        you: hello
          started
        agent: works on "hello"
        you: turn left
          steered
        agent: looks up, "turn left"
        you: and right /queue steer-backlog
          steered_and_queued
        agent: looks up, "and right"
        agent: is done
        agent: works on "and right"
        agent: is done
        "#,
    );
}

#[test]
fn chat_interrupts() {
    chat(
        "
        hello
        .
        no, this /queue abort
        ",
        r#"
        you: hello
          started
        agent: works on "hello"
        you: no, this /queue abort
          interrupted
        agent: drops that
        agent: works on "no, this"
          cancelled
        agent: is done
        "#,
    );
}

#[test]
fn chat_rejects_keeps_the_latest_and_stops() {
    chat(
        "
        hello
        .
        one /queue reject
        two /queue latest
        three /queue latest
        /queue
        /stop
        .
        /new four
        ",
        r#"
        you: hello
          started
        agent: works on "hello"
        you: one /queue reject
          refused: SESSION_BUSY
        you: two /queue latest
          queued
        you: three /queue latest
          queued
          dropped by the rule latest
        you: /queue
          Queue: mode collect (default), debounce 1s (default), max_wait 10s (default), cap 20 (default), drop summarize (default), depth 1.
        you: /stop
          Stopped: 1 turn and 1 waiting message cancelled.
          cancelled
        agent: drops that
          cancelled
        you: /new four
          started
        agent: works afresh on "four"
        agent: is done
        "#,
    );
}
