//! Real programs: what they get, what they write, how they end, and how they are ended.

#![allow(clippy::unwrap_used, reason = "a test stops at anything unexpected")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use laneway_process::{Exit, Program, ProgramEnd, ProgramEvent, StartError};
use tokio::sync::Notify;

fn sh(script: &str) -> Program {
    Program::new(["sh", "-c", script]).unwrap()
}

async fn to_the_end(program: &Program, input: &str) -> ProgramEnd {
    program.run(input.to_owned(), std::future::pending(), |_| {}).await.unwrap()
}

/// Runs a program, stops it as soon as it has written something, and returns what came of it.
async fn stopped_when_ready(program: &Program) -> ProgramEnd {
    let ready = Arc::new(Notify::new());
    let told = Arc::clone(&ready);
    program.run("", async move { ready.notified().await }, |_| told.notify_one()).await.unwrap()
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

#[tokio::test]
async fn input_output_and_exit_code_are_told() {
    for (script, input, exit, stdout, error) in [
        ("cat", "hello", Exit::Code(0), "hello", None),
        ("cat; exit 7", "x", Exit::Code(7), "x", Some("exit code 7")),
        ("echo why >&2; exit 1", "", Exit::Code(1), "", Some("exit code 1: why")),
        ("kill -9 $$", "", Exit::Signal(9), "", Some("signal 9")),
        ("printf 'a\\377b'", "", Exit::Code(0), "a\u{fffd}b", None),
    ] {
        let done = to_the_end(&sh(script), input).await;
        assert_eq!((done.exit, done.stdout.as_str()), (exit, stdout), "{script}");
        assert_eq!(done.error().as_deref(), error, "{script}");
        assert!(!done.stopped, "{script}");
    }
}

#[tokio::test]
async fn a_program_need_not_read_what_it_is_given() {
    let done = to_the_end(&Program::new(["true"]).unwrap(), &"x".repeat(4 << 20)).await;
    assert!(done.exit.is_success());
}

#[tokio::test]
async fn more_than_a_pipe_holds_goes_through_both_ways() {
    let input = "0123456789abcdef".repeat(1 << 16);
    let done = to_the_end(&Program::new(["cat"]).unwrap(), &input).await;
    assert!(done.stdout == input);
}

#[tokio::test]
async fn words_are_arguments_and_no_shell_reads_them() {
    let program = Program::new(["printf", "%s|", "$(id)", "a b", "`ls`", "*"]).unwrap();
    assert_eq!(to_the_end(&program, "").await.stdout, "$(id)|a b|`ls`|*|");
}

#[tokio::test]
async fn a_program_gets_the_variables_that_were_allowed_or_given_and_no_others() {
    let all = Program::new(["env"]).unwrap();
    for (program, expected) in [
        (all.clone().allow(["CARGO_PKG_NAME"]), vec!["CARGO_PKG_NAME=laneway-process"]),
        (all.clone().allow(["NO_SUCH_VARIABLE"]).variable("A", "b=c"), vec!["A=b=c"]),
        (all.clone().allow(["CARGO_PKG_NAME"]).variable("CARGO_PKG_NAME", "x"), vec!["CARGO_PKG_NAME=x"]),
    ] {
        let done = to_the_end(&program, "").await;
        assert_eq!(done.stdout.lines().collect::<Vec<_>>(), expected);
    }
    let usual = to_the_end(&all, "").await.stdout;
    assert!(usual.contains("PATH=") && !usual.contains("CARGO"), "{usual}");
}

#[tokio::test]
async fn a_program_runs_where_it_should() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().canonicalize().unwrap();
    let done = to_the_end(&Program::new(["pwd"]).unwrap().dir(&place), "").await;
    assert_eq!(done.stdout.trim_end(), place.to_str().unwrap());
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let gone = tempfile::tempdir().unwrap().path().join("gone");
    let no_words: [&str; 0] = [];
    assert_eq!(Program::new(no_words).unwrap_err(), StartError::NoProgram);
    for (program, words) in [
        (Program::new(["no-such-program"]), "cannot start no-such-program: there is no such program"),
        (Program::new(["/etc/passwd"]), "cannot start /etc/passwd: it may not be run"),
        (Program::new(["true"]).map(|it| it.dir(&gone)), "there is no directory"),
        (Program::new(["true"]).map(|it| it.variable("A=B", "")), "the name of a variable"),
        (Program::new(["true"]).map(|it| it.variable("A", "\0")), "the value of a variable"),
        (Program::new(["true", "\0"]), "a word of a command"),
    ] {
        let error = program.and_then(|program| program.start().map(drop)).unwrap_err().to_string();
        assert!(error.starts_with(words), "{error}");
    }
}

#[tokio::test]
async fn text_is_told_as_it_comes() {
    let mut running = sh("echo one; read line; echo two $line").start().unwrap();
    let mut input = running.input().unwrap();
    assert_eq!(running.next().await, ProgramEvent::Output("one\n".into()));
    input.write(b"three\n").await.unwrap();
    assert_eq!(running.next().await, ProgramEvent::Output("two three\n".into()));
    let end = ProgramEvent::Ended { exit: Exit::Code(0), stderr: String::new() };
    assert_eq!(running.next().await, end);
    assert_eq!(running.next().await, end);
}

#[tokio::test]
async fn a_program_that_is_asked_to_stop_may_say_its_last_words() {
    let polite = sh("trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done");
    let done = stopped_when_ready(&polite).await;
    assert_eq!((done.exit, done.stdout.as_str(), done.stopped), (Exit::Code(3), "ready\nbye\n", true));
}

#[tokio::test]
async fn whatever_does_not_stop_is_ended_with_its_grandchildren() {
    // The first process, a child and a grandchild, and none of them listens.
    let deaf = "trap '' TERM; sh -c 'sleep 1000 & echo $$ $! && wait' & echo $$; wait";
    let deaf = sh(deaf).grace(Duration::from_millis(150));
    let ready = Arc::new(Notify::new());
    let (told, mut seen) = (Arc::clone(&ready), 0);
    let lines = |text: &str| text.matches('\n').count();
    let stop = async move { ready.notified().await };
    let done = deaf.run("", stop, |text| {
        seen += lines(text);
        if seen == 2 {
            told.notify_one();
        }
    });
    let done = done.await.unwrap();
    assert_eq!(done.exit, Exit::Signal(9));
    let pids: Vec<&str> = done.stdout.split_whitespace().collect();
    assert_eq!(pids.len(), 3, "{done:?}");
    assert!(!pids.iter().any(|pid| is_alive(pid)), "{pids:?}");
}

#[tokio::test]
async fn what_a_program_leaves_behind_goes_with_it() {
    for (how, grace) in [("", 60_000), ("trap '' TERM; ", 150)] {
        let script = format!("{how}sleep 1000 & echo $!");
        let done = to_the_end(&sh(&script).grace(Duration::from_millis(grace)), "").await;
        assert!(done.exit.is_success() && !done.stopped);
        assert!(!is_alive(done.stdout.trim()), "{script}");
    }
}

#[tokio::test]
async fn what_left_the_group_does_not_keep_the_run_open() {
    let done = to_the_end(&sh("setsid sleep 2 & echo gone"), "").await;
    assert_eq!((done.exit, done.stdout.as_str()), (Exit::Code(0), "gone\n"));
}

#[tokio::test]
async fn a_program_that_writes_too_much_is_stopped() {
    let done = to_the_end(&Program::new(["yes"]).unwrap().output_max(100_000), "").await;
    assert!(done.overflowed && done.stdout.len() <= 100_000, "{}", done.stdout.len());
    assert_eq!(done.error().as_deref(), Some("wrote more than it may"));
}

/// A pipe with a name: reading it ends when the last process that has it open for writing is gone.
fn named_pipe(dir: &Path) -> String {
    let path = dir.join("pipe").to_str().unwrap().to_owned();
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

#[tokio::test]
async fn a_dropped_program_is_ended_with_all_its_processes() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = named_pipe(dir.path());
    let script = format!("trap '' TERM; exec 3>{pipe}; sleep 1000 & echo ready >&3; wait");
    let running = sh(&script).grace(Duration::from_millis(50)).start().unwrap();
    let read = tokio::task::spawn_blocking(move || {
        use std::io::{BufRead, BufReader, Read};
        let mut reader = BufReader::new(std::fs::File::open(pipe).unwrap());
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        drop(running);
        reader.read_to_string(&mut line).unwrap();
        line
    });
    assert_eq!(read.await.unwrap(), "ready\n");
}

#[test]
fn the_end_of_the_runtime_ends_programs_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = named_pipe(dir.path());
    let script = format!("trap '' TERM; exec 3>{pipe}; sleep 1000 & echo ready >&3; wait");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.spawn(async move { to_the_end(&sh(&script).grace(Duration::from_secs(3600)), "").await });
    let mut file = std::fs::File::open(pipe).unwrap();
    std::io::Read::read_exact(&mut file, &mut [0; 6]).unwrap();
    drop(runtime);
    assert_eq!(std::io::Read::read(&mut file, &mut [0; 1]).unwrap(), 0);
}
