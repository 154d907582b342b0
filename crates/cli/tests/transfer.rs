//! `laneway export` and `import` move a full store from the embedded one to Redis, to Postgres, and back.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod served;

use std::path::Path;

use laneway_test_services::{Postgres, Redis};
use served::{laneway, serve};

const CONFIG: &str = "\
lane \"gpu\" { handler = \"external\" }
handler \"shout\" { command = [\"tr\", \"a-z\", \"A-Z\"] }
handler \"broken\" { command = [\"false\"] }
agent \"slow\" { external = true }
";

/// The output and the exit code of a command.
fn run(dir: &Path, url: &str, words: &[&str]) -> (String, Option<i32>) {
    let output = laneway(dir).args(words).env("LANEWAY_URL", url).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8(text).unwrap(), output.status.code())
}

fn done(dir: &Path, url: &str, words: &[&str]) -> String {
    let (text, code) = run(dir, url, words);
    assert_eq!(code, Some(0), "laneway {}: {text}", words.join(" "));
    text
}

/// The arguments of a command in the reference, with another address.
fn documented(command: &str, address: &str, url: &str) -> Vec<String> {
    let guide = include_str!("../../../docs/reference/cli.md");
    let line = guide.lines().find(|line| line.starts_with(command)).expect("the command is in the reference");
    let line = line.split_once(" #").map_or(line, |(line, _)| line);
    assert!(line.contains(address), "{line}");
    line.split_whitespace().skip(1).map(|word| word.replace(address, url)).collect()
}

/// The content of a store, as the server's JSON.
fn contents(dir: &Path, url: &str) -> Vec<String> {
    let list = done(dir, url, &["tasks", "--json"]);
    let tasks: serde_json::Value = serde_json::from_str(&list).unwrap();
    let ids: Vec<&str> = tasks.as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 6, "{list}");
    let mut contents = vec![list.clone(), done(dir, url, &["dlq", "--json"])];
    contents.push(done(dir, url, &["sessions", "show", "ann", "--json"]));
    contents.push(done(dir, url, &["lanes", "show", "gpu", "--json"]));
    contents.extend(ids.iter().map(|id| done(dir, url, &["tasks", "show", id, "--json"])));
    contents
}

/// Leaves waiting, failed, ended and later tasks, a conversation and a pause.
fn fill(dir: &Path, url: &str) {
    for payload in ["{\"frame\": 1}", "{\"frame\": 2}"] {
        done(dir, url, &["submit", "render", payload, "--lane", "gpu"]);
    }
    done(dir, url, &["lanes", "pause", "gpu"]);
    done(dir, url, &["submit", "shout", "\"hello\"", "--wait"]);
    let (_, code) = run(dir, url, &["submit", "broken", "\"for ever\"", "--wait"]);
    assert_eq!(code, Some(1));
    done(dir, url, &["sessions", "send", "ann", "Begin", "--agent", "slow"]);
    done(dir, url, &["sessions", "send", "ann", "And another thing", "--agent", "slow"]);
    done(dir, url, &["submit", "later", "--run-after", "9d"]);
}

/// The drill of the guide: a Redis is lost with all its data, and a backup brings everything back.
#[test]
fn a_queue_whose_store_is_gone_comes_back_from_its_backup() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mut redis = Redis::start();
    std::fs::write(dir.join("laneway.hcl"), format!("store = \"{}\"\n{CONFIG}", redis.url())).unwrap();
    let before = {
        let served = serve(dir, "127.0.0.1:0");
        fill(dir, &served.url);
        contents(dir, &served.url)
    };
    done(dir, "", &["export", "backup-1"]);
    redis.restart_empty();
    done(dir, "", &["import", "backup-1"]);
    let served = serve(dir, "127.0.0.1:0");
    assert_eq!(contents(dir, &served.url), before);
    done(dir, &served.url, &["lanes", "resume", "gpu"]);
    done(dir, &served.url, &["submit", "shout", "\"again\"", "--wait"]);
}

#[test]
fn the_content_of_a_store_is_the_same_after_moves_between_all_stores() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("laneway.hcl"), CONFIG).unwrap();
    let before = {
        let served = serve(dir, "127.0.0.1:0");
        let url = served.url.as_str();
        fill(dir, url);
        let (used, code) = run(dir, url, &["export", "copy"]);
        assert_eq!(code, Some(1));
        assert!(used.contains("laneway-data") && used.contains("in use"), "{used}");
        assert!(!dir.join("copy").exists());
        contents(dir, url)
    };
    let (redis, postgres) = (Redis::start(), Postgres::start());
    let (redis, postgres) = (redis.url(), postgres.url());
    let words = documented("laneway import", "redis://127.0.0.1/", &redis);
    let copied = done(dir, "", &words.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(copied.contains("4 live tasks, 1 dead letter, 2 ended tasks."), "{copied}");
    let (refused, code) = run(dir, "", &["import", "laneway-data", "--store", &redis]);
    assert_eq!(code, Some(1));
    assert!(refused.contains("only an empty store is filled; nothing was changed"), "{refused}");
    done(dir, "", &["export", "from-redis", "--store", &redis, "--json"]);
    done(dir, "", &["import", "from-redis", "--store", &postgres]);
    let words = documented("laneway export", "postgres://localhost/lanes", &postgres);
    done(dir, "", &words.iter().map(String::as_str).collect::<Vec<_>>());
    std::fs::rename(dir.join("laneway-data"), dir.join("old")).unwrap();
    std::fs::rename(dir.join("backup"), dir.join("laneway-data")).unwrap();
    let served = serve(dir, "127.0.0.1:0");
    let after = contents(dir, &served.url);
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before, after);
    }
}

#[test]
fn a_refused_copy_names_the_reason_and_leaves_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::create_dir_all(dir.join("full/of")).unwrap();
    let samples: [(&[&str], i32, &str); 5] = [
        (&["export", "copy", "--store", "memory"], 2, "a store in memory exists only inside its server"),
        (&["export", "copy"], 2, "there is no store in ./laneway-data"),
        (&["export", "full"], 2, "full is not empty"),
        (&["import", "nowhere"], 2, "there is no store in nowhere"),
        (&["export", "copy", "--store", "redis://127.0.0.1:1"], 1, "127.0.0.1:1"),
    ];
    for (words, expected, why) in samples {
        let (output, code) = run(dir, "", words);
        assert_eq!(code, Some(expected), "{output}");
        assert!(output.contains(why), "{output}");
        let left = ["copy", "nowhere", "laneway-data"].map(|name| dir.join(name).exists());
        assert_eq!(left, [false; 3]);
    }
}
