//! Payloads and kinds that try to inject commands, options or variables.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::{Served, ended, serve, submit, task, worker};

/// Prints its arguments, its directory and its standard input, each followed by a unit separator.
const SHOW: &str =
    "#!/bin/sh\nfor word in \"$@\"; do printf '%s\\037' \"$word\"; done\nprintf '%s\\037' \"$PWD\"\ncat\n";

/// Values that must arrive unchanged in every position.
fn corpus() -> Vec<String> {
    let mut corpus: Vec<String> = [
        "; touch CANARY",
        "$(touch CANARY)",
        "`touch CANARY`",
        "| touch CANARY",
        "|| touch CANARY",
        "&& touch CANARY",
        "& touch CANARY &",
        "a\ntouch CANARY\n",
        "a\r\ntouch CANARY",
        "'; touch CANARY; '",
        "\"; touch CANARY; \"",
        "$'\\n'touch CANARY",
        "<(touch CANARY)",
        "> CANARY",
        ">> CANARY",
        "< /etc/passwd",
        "$IFS$9touch${IFS}CANARY",
        "${x:=`touch CANARY`}",
        "$((`touch CANARY`))",
        "#{`touch CANARY`}",
        "%x(touch CANARY)",
        "() { :; }; touch CANARY",
        "{{payload.y}}",
        "{{id}}{{kind}}",
        "}}{{",
        "${payload.y}",
        "%{payload}",
        "../../../../etc/passwd",
        "..",
        "/",
        "~root",
        "*",
        "{a,b}",
        "%s%n%x",
        "\\",
        "\\\\; touch CANARY",
        "!!",
        "#",
        "=CANARY",
        "A=b touch CANARY",
        " ",
        "\t-x",
        "\u{202e}YRANAC hcuot",
        "\u{1b}]0;CANARY\u{7}",
        "ä; touch CANARY",
    ]
    .map(str::to_owned)
    .to_vec();
    corpus.push("x; touch CANARY ".repeat(4000));
    corpus
}

/// Values that look like options. The worker refuses them where the program would read an option.
const OPTIONS: &[&str] =
    &["-", "--", "-rf", "--help", "-o CANARY", "--output=CANARY", "-c touch CANARY", "-\n", "--=x"];

struct Room {
    dir: tempfile::TempDir,
    work: PathBuf,
    served: Served,
    _worker: crate::common::Process,
}

fn room() -> Room {
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let show = dir.path().join("show");
    std::fs::write(&show, SHOW).unwrap();
    std::fs::set_permissions(&show, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (show, cwd) = (show.display(), work.display());
    let served = serve(dir.path(), "store = \"memory\"\nlane \"global\" { max_concurrency = 64 }");
    let file = format!(
        r#"
        concurrency = 8
        handler "show" {{
          command = ["{show}", "{{{{payload.x}}}}", "in={{{{payload.x}}}}.", "--", "{{{{payload.y}}}}"]
          cwd = "{cwd}"
        }}
        handler "stdin" {{
          command = ["{show}"]
          cwd = "{cwd}"
        }}
        handler "shell" {{
          command = ["sh", "-c", "printf 'x%s' \"$1\"", "--", "{{{{payload.x}}}}"]
          cwd = "{cwd}"
        }}
        handler "env" {{
          command = ["env"]
          env = ["PATH"]
          cwd = "{cwd}"
        }}
        handler "limit" {{
          command = ["sh", "-c", "ulimit -n; ulimit -t; ulimit -v; ulimit -f; ulimit -c"]
          cwd     = "{cwd}"
          limits {{
            open_files = 20
            cpu_seconds = 7
            memory_mb = 512
            file_mb = 1
          }}
        }}
        "#
    );
    let worker = worker(dir.path(), &served, "w", &file);
    Room { work, served, _worker: worker, dir }
}

/// Everything in a directory and below, by name.
fn listing(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut rest = vec![dir.to_owned()];
    while let Some(dir) = rest.pop() {
        for entry in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap()) {
            if entry.file_type().unwrap().is_dir() {
                rest.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

impl Room {
    async fn run(&self, kind: &str, payload: Value) -> (String, Value, String) {
        let accepted = submit(&self.served.client, kind, payload).await;
        let view = ended(&self.served.client, &accepted.id).await;
        (view.status, view.result.unwrap_or_default(), view.error.unwrap_or_default())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_cannot_change_the_command() {
    let room = room();
    let before = listing(room.dir.path());
    for value in corpus() {
        // The worker ignores commands, directories and variables in a payload.
        let payload = json!({
            "x": value, "y": value, "command": ["touch", "CANARY"], "cwd": "/", "dir": "..", "shell": true,
            "env": { "PATH": "/nowhere", "LD_PRELOAD": "CANARY" },
        });
        let (status, result, error) = room.run("show", payload).await;
        let cwd = room.work.canonicalize().unwrap();
        let shown: Vec<&str> = result.as_str().unwrap_or_default().split('\u{1f}').collect();
        let inside = format!("in={value}.");
        let expected = [value.as_str(), &inside, "--", &value, cwd.to_str().unwrap()];
        assert_eq!(status, "completed", "{value:.60}: {error}");
        assert_eq!(shown.get(..5), Some(&expected[..]), "{value:.60}");

        let (status, result, error) = room.run("shell", json!({ "x": value })).await;
        assert_eq!(
            (status.as_str(), result),
            ("completed", json!(format!("x{value}"))),
            "{value:.60}: {error}"
        );
        let (_, result, _) = room.run("stdin", json!(value)).await;
        let stdin = result.as_str().unwrap().split_once('\u{1f}').unwrap().1;
        assert_eq!(stdin, value, "standard input is the text itself");
    }
    for value in OPTIONS {
        let (status, _, error) = room.run("show", json!({ "x": value, "y": "y" })).await;
        assert_eq!(status, "failed", "{value}");
        assert!(error.contains("payload.x begins with '-'"), "{value}: {error}");
        let (status, result, error) = room.run("show", json!({ "x": "x", "y": value })).await;
        assert_eq!(status, "completed", "{value}: {error}");
        assert_eq!(
            result.as_str().unwrap().split('\u{1f}').nth(3),
            Some(*value),
            "after -- it is an argument"
        );
    }
    for (payload, why) in [
        (json!({ "x": "a\u{0}b", "y": "y" }), "payload.x must not hold a NUL"),
        (json!({ "y": "y" }), "no payload.x"),
        (json!("x"), "no payload.x"),
    ] {
        let (status, _, error) = room.run("show", payload).await;
        assert!(status == "failed" && error.contains(why), "{error}");
    }
    assert_eq!(listing(room.dir.path()), before, "no file was created");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_claims_no_kind_without_a_handler() {
    let room = room();
    let client = &room.served.client;
    let before = listing(room.dir.path());
    let kinds = [
        "show; touch CANARY",
        "../show",
        "sh",
        "touch",
        "SHOW",
        "show ",
        "*",
        "{{payload.x}}",
        "-c",
        "/bin/sh",
    ];
    let mut waiting = Vec::new();
    for kind in kinds {
        // The server may refuse a name. An accepted task must stay in its lane.
        if let Ok(accepted) = client.submit(&task(kind, json!("touch CANARY")), None).await {
            waiting.push(accepted.id);
        }
    }
    assert!(waiting.len() >= 5, "only {} kinds were tried", waiting.len());
    // The worker runs this later task, so it has skipped the others.
    assert_eq!(room.run("stdin", json!("last")).await.0, "completed");
    for id in waiting {
        let view = client.task(&id).await.unwrap();
        assert_eq!((view.status.as_str(), view.attempts), ("queued", 0), "{}", view.kind);
    }
    assert_eq!(listing(room.dir.path()), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_get_only_allowed_variables_and_run_under_their_limits() {
    let room = room();
    let (_, result, _) = room.run("env", json!({ "SECRET": 1 })).await;
    let mut names: Vec<&str> =
        result.as_str().unwrap().lines().map(|line| line.split('=').next().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["LANEWAY_ATTEMPT", "LANEWAY_FENCE", "LANEWAY_TASK_ID", "LANEWAY_URL", "PATH"]);

    let (status, result, error) = room.run("limit", Value::Null).await;
    let limits: Vec<&str> = result.as_str().unwrap_or_default().split_whitespace().collect();
    // `ulimit -f` counts blocks of 512 bytes, as POSIX requires.
    assert_eq!(limits, ["20", "7", "524288", "2048", "0"], "{status} {error}");
}
