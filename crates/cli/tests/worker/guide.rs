//! The worker guide: the tests check and run its samples.

use serde_json::json;

use crate::common::{Process, ended, laneway, serve, submit};

const GUIDE: &str = include_str!("../../../../docs/guide/worker.md");

fn samples(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    GUIDE.split(&*fence).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn every_file_in_the_guide_is_valid() {
    let files = samples("hcl");
    assert!(files.len() >= 3);
    for file in files {
        if let Err(errors) = laneway_config::parse_worker("worker.hcl", file) {
            panic!("{errors}\n{file}");
        }
    }
}

#[test]
fn the_guide_shows_the_refusals_of_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let file = "handler \"say\" { command = [\"sh\", \"-c\", \"echo {{payload.text}}\"] }";
    std::fs::write(dir.path().join("worker.hcl"), file).unwrap();
    let output = laneway(dir.path()).args(["worker", "--check"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(samples("text"), [String::from_utf8(output.stderr).unwrap()]);
}

/// The documentation test of the client compiles the same sample.
#[test]
fn the_rust_sample_compiles() {
    let source = include_str!("../../../client/src/worker/mod.rs");
    let compiled: String = source
        .lines()
        .filter_map(|line| line.strip_prefix("///"))
        .map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line)))
        .collect();
    let [sample] = samples("rust")[..] else { panic!("one sample in Rust") };
    assert!(compiled.contains(sample), "{compiled}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_file_and_the_first_commands_of_the_guide_work() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), "store = \"memory\"");
    std::fs::write(dir.path().join("worker.hcl"), samples("hcl")[0]).unwrap();
    let commands = samples("sh")[0].replace("127.0.0.1:7717", &served.address);
    let (start, ask) = commands.trim().split_once('\n').unwrap();
    let mut worker = laneway(dir.path());
    worker.args(start.split(' ').skip(1));
    let _worker = Process::start(worker);
    let asked = std::process::Command::new("sh").args(["-c", ask]).output().unwrap();
    let accepted: serde_json::Value = serde_json::from_slice(&asked.stdout).unwrap();
    let view = ended(&served.client, accepted["id"].as_str().unwrap()).await;
    assert_eq!((view.status.as_str(), view.result), ("completed", Some(json!("hello Ann\n"))));
    let sorted = submit(&served.client, "sort", json!("b\na\n")).await;
    assert_eq!(ended(&served.client, &sorted.id).await.result, Some(json!("a\nb\n")));
}
