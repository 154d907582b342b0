//! `laneway trace export` and `simulate` on a real server's store, and the commands of the guide.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod served;

use std::fs;
use std::path::Path;
use std::process::Command;

use laneway_test_services::{Postgres, Redis};
use serde_json::Value;
use served::{laneway, serve};

const CONFIG: &str = "\
lane \"slow\" {
  max_concurrency = 1
  max_queued = 50
}
handler \"nap\" { command = [\"sleep\", \"0.1\"] }
";

/// Standard output, standard error and the exit code of a command.
fn run(dir: &Path, url: &str, words: &[&str]) -> (String, String, Option<i32>) {
    let output = laneway(dir).args(words).env("LANEWAY_URL", url).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

fn done(dir: &Path, url: &str, words: &[&str]) -> String {
    let (out, err, code) = run(dir, url, words);
    assert_eq!(code, Some(0), "laneway {}: {err}", words.join(" "));
    out
}

/// Runs eight naps, one at a time. The lane is paused until seven of them wait. Returns after the last nap.
fn nap(dir: &Path, url: &str) {
    done(dir, url, &["lanes", "pause", "slow"]);
    for _ in 0..7 {
        done(dir, url, &["submit", "nap", "\"a secret\"", "--lane", "slow"]);
    }
    done(dir, url, &["lanes", "resume", "slow"]);
    done(dir, url, &["submit", "nap", "\"a secret\"", "--lane", "slow", "--wait"]);
}

fn exported(dir: &Path, store: &str) -> Vec<Value> {
    let text = done(dir, "", &["trace", "export", "--store", store]);
    assert!(!text.contains("a secret"), "{text}");
    fs::write(dir.join("trace.jsonl"), &text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Compares the recorded waits with those of two slots instead of one.
fn simulated(dir: &Path) -> Value {
    fs::write(dir.join("new.hcl"), CONFIG.replace("concurrency = 1", "concurrency = 2")).unwrap();
    let words = ["simulate", "--trace", "trace.jsonl", "--config", "new.hcl", "--svg", "plot.svg", "--json"];
    let report = done(dir, "", &words);
    let drawn = fs::read_to_string(dir.join("plot.svg")).unwrap();
    assert!(drawn.contains(">slow</text>"), "{drawn}");
    serde_json::from_str(&report).unwrap()
}

fn longest_wait(report: &Value) -> u64 {
    let lanes = report["lanes"].as_array().unwrap();
    let slow = lanes.iter().find(|lane| lane["lane"] == "slow").unwrap();
    assert_eq!((&slow["tasks"], &slow["ran"]), (&Value::from(8), &Value::from(8)));
    slow["wait_max_ms"].as_u64().unwrap()
}

fn check(dir: &Path, store: &str) {
    let lines = exported(dir, store);
    assert_eq!((lines.len(), &lines[0]["arrivals"]), (9, &Value::from(8)));
    let (arrival, report) = (&lines[8], simulated(dir));
    assert_eq!((&arrival["kind"], &arrival["outcome"]), (&Value::from("nap"), &Value::from("completed")));
    let (before, after) = (longest_wait(&report["before"]), longest_wait(&report["after"]));
    // The seventh nap waits for six others; with two slots it waits for three pairs.
    assert!(before >= 600 && after < before, "{before} {after}");
    assert_eq!(report["before"]["outcomes"], report["after"]["outcomes"]);
}

#[test]
fn a_trace_is_exported_from_a_directory_and_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("laneway.hcl"), CONFIG).unwrap();
    {
        let served = serve(dir, "127.0.0.1:0");
        nap(dir, &served.url);
        let (out, err, code) = run(dir, "", &["trace", "export", "--store", "laneway-data"]);
        assert_eq!((out.as_str(), code), ("", Some(1)));
        assert!(err.starts_with("laneway: store laneway-data is in use by process "), "{err}");
    }
    check(dir, "laneway-data");
    let since = ["trace", "export", "--store", "laneway-data", "--since", "7d"];
    assert_eq!(done(dir, "", &since).lines().count(), 9);
    let nameless = done(dir, "", &["trace", "export", "--store", "laneway-data", "--anonymous"]);
    assert!(!nameless.contains("nap") && nameless.contains("\"kind-1\"") && nameless.contains("\"slow\""));
}

#[test]
fn a_shared_store_is_exported_while_a_server_uses_it_and_stays_unchanged() {
    let (redis, postgres) = (Redis::start(), Postgres::start());
    for store in [redis.url(), postgres.url()] {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        fs::write(dir.join("laneway.hcl"), format!("store = \"{store}\"\n{CONFIG}")).unwrap();
        let served = serve(dir, "127.0.0.1:0");
        nap(dir, &served.url);
        check(dir, &store);
        // The server still works after the export.
        done(dir, &served.url, &["submit", "nap", "1", "--lane", "slow", "--wait"]);
        assert_eq!(exported(dir, &store).len(), 10);
    }
}

#[test]
fn wrong_input_is_refused_without_side_effects() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("good.hcl"), CONFIG).unwrap();
    fs::write(dir.join("bad.hcl"), "lane \"main\" { max_concurency = 2 }").unwrap();
    fs::write(dir.join("broken.jsonl"), "{\"laneway_trace\": 2}\n").unwrap();
    fs::copy(root().join("examples/what-if/monday.jsonl"), dir.join("monday.jsonl")).unwrap();
    let simulate = |trace, config| run(dir, "", &["simulate", "--trace", trace, "--config", config]);
    let export = |words: &[&str]| run(dir, "", &[&["trace", "export"], words].concat());
    let cases = [
        (
            simulate("broken.jsonl", "good.hcl"),
            "laneway: broken.jsonl, line 1: the trace has format 2, and this version of Laneway reads format 1\n",
        ),
        (
            simulate("none.jsonl", "good.hcl"),
            "laneway: cannot read none.jsonl: No such file or directory (os error 2)\n",
        ),
        (
            simulate("monday.jsonl", "bad.hcl"),
            "laneway: bad.hcl:1: lane \"main\": max_concurency is not a setting; did you mean max_concurrency?\n",
        ),
        (export(&["--store", "nowhere"]), "laneway: there is no store in nowhere\n"),
        (
            export(&["--store", "memory"]),
            "laneway: a store in memory exists only inside its server; name another with --store\n",
        ),
        (
            export(&["--since", "noon"]),
            "error: invalid value 'noon' for '--since <WHEN>': must be a moment, such as 2026-11-15T12:00:00Z, or a \
             duration, such as 30m, 2h or 7d\n\nFor more information, try '--help'.\n",
        ),
    ];
    for ((out, err, code), expected) in cases {
        assert_eq!((out.as_str(), err.as_str(), code), ("", expected, Some(2)));
    }
    assert!(!dir.join("nowhere").exists());
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Runs the commands of the guide with its examples. `UPDATE=1` writes their outputs and the picture.
#[test]
fn the_guide_shows_the_outputs_of_its_commands() {
    let (guide, picture) = (root().join("docs/guide/what-if.md"), root().join("docs/images/what-if.svg"));
    let page = fs::read_to_string(&guide).unwrap();
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root().join("examples").canonicalize().unwrap(), dir.path().join("examples"))
        .unwrap();
    let mut updated = String::new();
    let mut commands = 0;
    for (place, part) in page.split("```").enumerate() {
        let command = part.strip_prefix("console\n$ ").and_then(|part| part.lines().next());
        let part = command.map_or(part.to_owned(), |command| {
            commands += 1;
            let bin = Path::new(env!("CARGO_BIN_EXE_laneway")).parent().unwrap().display().to_string();
            let path = format!("{bin}:{}", std::env::var("PATH").unwrap());
            let mut shell = Command::new("sh");
            shell.args(["-c", command]).current_dir(dir.path()).env_clear().env("PATH", path);
            let output = shell.output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            format!("console\n$ {command}\n{}", String::from_utf8(output.stdout).unwrap())
        });
        updated.push_str(if place == 0 { "" } else { "```" });
        updated.push_str(&part);
    }
    assert!(commands >= 3, "the guide shows commands");
    let drawn = fs::read_to_string(dir.path().join("what-if.svg")).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&guide, updated).unwrap();
        fs::write(&picture, drawn).unwrap();
    } else {
        assert_eq!(updated, page);
        assert_eq!(drawn, fs::read_to_string(&picture).unwrap());
    }
}
