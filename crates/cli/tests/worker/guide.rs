//! The guide for workers: what it shows is read, checked and run.

use serde_json::json;

use crate::common::{ended, laneway, serve, submit, worker};

const GUIDE: &str = include_str!("../../../../docs/worker.md");

fn samples(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    GUIDE.split(&*fence).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn every_file_in_the_guide_is_read() {
    let files = samples("hcl");
    assert!(files.len() >= 3);
    for file in files {
        if let Err(errors) = laneway_config::parse_worker("worker.hcl", file) {
            panic!("{errors}\n{file}");
        }
    }
}

#[test]
fn the_refusals_in_the_guide_are_those_that_are_given() {
    let dir = tempfile::tempdir().unwrap();
    let file = "handler \"say\" { command = [\"sh\", \"-c\", \"echo {{payload.text}}\"] }";
    std::fs::write(dir.path().join("worker.hcl"), file).unwrap();
    let output = laneway(dir.path()).args(["worker", "--check"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(samples("text"), [String::from_utf8(output.stderr).unwrap()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_file_does_what_the_guide_says() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), "store = \"memory\"");
    let _worker = worker(dir.path(), &served, "w", samples("hcl")[0]);
    let greeted = submit(&served.client, "greet", json!({ "name": "Ann; rm -rf /" })).await;
    let view = ended(&served.client, &greeted.id).await;
    assert_eq!((view.status.as_str(), view.result), ("completed", Some(json!("hello Ann; rm -rf /\n"))));
    let sorted = submit(&served.client, "sort", json!("b\na\n")).await;
    assert_eq!(ended(&served.client, &sorted.id).await.result, Some(json!("a\nb\n")));
}
