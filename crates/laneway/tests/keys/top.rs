//! The keys at the top, handlers, and the environment.

use std::time::Duration;

use laneway::{ConfigError, Durability, Task};
use serde_json::{Value, json};

use crate::{open, queue};

#[tokio::test]
async fn the_store_is_where_the_file_says_and_the_environment_stands_above_it() {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (lanes, _) = open(dir.path(), "store = \"memory\"").await;
    assert_eq!(lanes.durability(), Durability::Memory);
    let (lanes, _) = open(dir.path(), &format!("store = {:?}", place("a"))).await;
    assert_eq!(lanes.durability(), Durability::Disk);
    assert!(dir.path().join("a").is_dir());
    lanes.shutdown(Duration::ZERO).await;
    let (opening, _) = queue(dir.path(), &format!("store = {:?}", place("b")));
    let lanes = opening.environment([("LANEWAY_STORE", place("c"))]).await.unwrap();
    assert!(!dir.path().join("b").exists() && dir.path().join("c").is_dir());
    lanes.shutdown(Duration::ZERO).await;
}

#[tokio::test]
async fn a_variable_limits_all_lanes_together() {
    let dir = tempfile::tempdir().unwrap();
    for (variables, expected) in [(vec![], 5), (vec![("LANEWAY_MAX_CONCURRENT_TASKS", "3")], 3)] {
        let (opening, _) = queue(dir.path(), "store = \"memory\"");
        let lanes = opening.environment(variables).await.unwrap();
        for number in 0..5 {
            lanes.submit(Task::new(format!("lane-{number}")).kind("forever")).await.unwrap().detach();
        }
        assert_eq!(lanes.inflight().await.unwrap(), expected);
    }
}

#[tokio::test]
async fn a_program_runs_tasks_of_its_kind_as_its_block_says() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().canonicalize().unwrap();
    for (block, payload, expected) in [
        ("command = [\"cat\"]", json!({"a": [1]}), Ok(json!({"a": [1]}))),
        ("command = [\"echo\", \"hello\"]", Value::Null, Ok(json!("hello\n"))),
        ("command = [\"sh\", \"-c\", \"echo no >&2; exit 3\"]", Value::Null, Err("failed: exit code 3: no")),
        ("command = [\"no-such-program\"]", Value::Null, Err("failed: cannot start no-such-program")),
        ("command = [\"env\"]\nenv = []", Value::Null, Ok(json!("NO_SUCH_THING"))),
        ("command = [\"pwd\"]\ncwd = \"DIR\"", Value::Null, Ok(json!("DIR\n"))),
    ] {
        let put = |text: &str| text.replace("DIR", place.to_str().unwrap());
        let text = format!("store = \"memory\"\nhandler \"x\" {{\n{}\n}}", put(block));
        let (lanes, _) = open(dir.path(), &text).await;
        let done = lanes.submit(Task::new("main").kind("x").payload(payload)).await.unwrap().wait().await;
        match (done, expected) {
            (Ok(Value::String(told)), Ok(_)) if block.contains("env = []") => {
                let names: Vec<&str> = told.lines().filter_map(|line| line.split('=').next()).collect();
                assert_eq!(names, ["LANEWAY_FENCE", "LANEWAY_TASK_ID"].map(|name| name).to_vec(), "{told}");
            }
            (Ok(value), Ok(expected)) => assert_eq!(value.to_string(), put(&expected.to_string()), "{block}"),
            (Err(error), Err(expected)) => assert!(error.to_string().starts_with(expected), "{error}"),
            (done, expected) => panic!("{block}: {done:?}, not {expected:?}"),
        }
    }
}

#[tokio::test]
async fn what_only_the_server_can_do_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    for (text, words) in [
        ("handler \"x\" { url = \"http://127.0.0.1:9/\" }", "handler \"x\": only the server calls a url"),
        (
            "handler \"x\" {\ncommand = [\"x\"]\nprotocol = \"jsonl\"\n}",
            "handler \"x\": only the server speaks",
        ),
        ("store = \"redis://localhost/\"", "the store redis://localhost/ needs a store"),
        ("lane \"main\" { max_concurency = 1 }", "DIR/laneway.hcl:1: lane \"main\": max_concurency is not"),
    ] {
        let (opening, _) = queue(dir.path(), text);
        let error = opening.await.err().unwrap();
        assert!(
            error.to_string().starts_with(&words.replace("DIR", dir.path().to_str().unwrap())),
            "{error}"
        );
        assert_eq!(matches!(error, ConfigError::Wrong(_)), text.starts_with("lane"));
    }
    // A program that runs the kind itself needs nothing of the file.
    let (opening, _) =
        queue(dir.path(), "store = \"memory\"\nhandler \"note\" { url = \"http://127.0.0.1:9/\" }");
    let lanes = opening.await.unwrap();
    lanes.submit(Task::new("main").kind("note").payload("x")).await.unwrap().wait().await.unwrap();
}
