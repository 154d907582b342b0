//! The examples run, and say what they should.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

use std::path::PathBuf;
use std::process::Command;

/// Runs an example as `cargo test` has built it beside this test.
fn check(example: &str, expected: &str) {
    let here = std::env::current_exe().unwrap();
    let built: PathBuf = here.parent().unwrap().parent().unwrap().join("examples").join(example);
    assert!(built.exists(), "{example} is not built; `cargo build -p laneway --examples` builds it");
    let output = Command::new(built).output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    let expected: Vec<&str> = expected.trim().lines().map(str::trim).collect();
    assert_eq!(told.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn embedding() {
    check(
        "embedding",
        r#"
        alice gets an answer to "hello"
        side by side: an answer to "one", an answer to "two"; 1 turns long
        one by one: an answer to "one", an answer to "two"; 2 turns long
        while it is held: lane cron is full: 1/1 running, 0/10 waiting; come back in 5 s
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
