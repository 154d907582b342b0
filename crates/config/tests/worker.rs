//! The file of a worker: values, defaults and errors.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::time::Duration;

use laneway_config::{Protocol, WorkerConfig, WorkerProgram, WorkerRunner, parse_worker};

fn read(text: &str) -> WorkerConfig {
    parse_worker("worker.hcl", text).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

fn program(config: &WorkerConfig) -> &WorkerProgram {
    match &config.handlers[0].runner {
        WorkerRunner::Program(program) => program,
        other => panic!("{other:?}"),
    }
}

#[test]
fn given_values_are_used_and_missing_ones_have_defaults() {
    let config = read("handler \"k\" { command = [\"cat\"] }");
    assert_eq!((config.concurrency, config.lease, config.lanes.len()), (None, None, 0));
    let plain = program(&config);
    assert!(plain.stdin && !plain.limits.is_any() && plain.protocol == Protocol::Text);

    let config = read(
        "url = \"http://h:1\"\nlanes = [\"a\", \"session:*/execute\"]\nconcurrency = 3\nlease = \"2s\"\ndrainGraceMs = 500\n\
         handler \"k\" {
           command = [\"a\", \"{{payload.x}}\"]
           stdin = false
           grace = \"1s\"
           limits = { memory_mb = 2, open_files = 9 }
         }",
    );
    assert_eq!(config.lanes, ["a", "session:*/execute"]);
    assert_eq!((config.concurrency, config.lease), (Some(3), Some(Duration::from_secs(2))));
    assert_eq!(config.drain_grace, Some(Duration::from_millis(500)));
    let said = program(&config);
    assert_eq!((said.stdin, said.grace), (false, Some(Duration::from_secs(1))));
    assert_eq!((said.limits.memory_bytes, said.limits.open_files), (Some(2 * 1024 * 1024), Some(9)));
    assert!(!said.command[1].is_fixed());
}

#[test]
fn all_formats_have_the_same_values() {
    let hcl = read("lanes = [\"a\"]\nhandler \"k\" { url = \"http://h/x\" }");
    let json5 = parse_worker("w.json5", "{lanes: ['a'], handler: {k: {url: 'http://h/x'}}}").unwrap();
    let toml = parse_worker("w.toml", "lanes = ['a']\n[handler.k]\nurl = 'http://h/x'").unwrap();
    assert_eq!(hcl, json5);
    assert_eq!(hcl, toml);
}

#[test]
fn an_error_names_its_place() {
    let samples = [
        ("lanes = [\"a\"]", "a handler \"<kind>\" block for at least one kind"),
        (
            "\nhandler \"k\" { command = [\"{{payload.x}}\"] }",
            "worker.hcl:2: handler \"k\": command: the program itself must be the same",
        ),
        (
            "handler \"k\" { command = [\"bash\", \"-c\", \"ls {{payload}}\"] }",
            "is code that tasks could change",
        ),
        ("handler \"k\" { command = [\"a\", \"{{payload.x\"] }", "has {{ without }}"),
        (
            "handler \"k\" { command = [\"a\", \"{{pay.x}}\"] }",
            "{{pay.x}} is not a field of a task; there are payload",
        ),
        (
            "handler \"k\" {\ncommand = [\"a\"]\ncwd = \"/srv/{{payload.dir}}\"\n}",
            "cwd must be the same directory for every task",
        ),
        ("handler \"k\" { command = [] }", "command must name a program"),
        ("handler \"k\" {\ncommand = [\"a\"]\nurl = \"http://h\"\n}", "only one of command or url"),
        ("handler \"k\" { external = true }", "external is not a setting"),
        ("handler \"k\" {\nurl = \"http://h\"\nlimits { cpu_seconds = 1 }\n}", "limits needs a command"),
        (
            "handler \"k\" {\ncommand = [\"a\"]\nlimits { cpu_secs = 1 }\n}",
            "limits.cpu_secs is not a setting; did you mean limits.cpu_seconds?",
        ),
        (
            "handler \"k\" {\ncommand = [\"a\"]\nlimits { open_files = 2 }\n}",
            "limits.open_files must be a whole number from 3",
        ),
        ("lane = [\"a\"]\nhandler \"k\" { command = [\"a\"] }", "lane is not a setting; did you mean lanes?"),
        ("lanes = [\"a\\nb\"]\nhandler \"k\" { command = [\"a\"] }", "worker.hcl:1: lanes"),
        ("concurrency = 0\nhandler \"k\" { command = [\"a\"] }", "concurrency must be a whole number from 1"),
        ("lease = \"1ms\"\nhandler \"k\" { command = [\"a\"] }", "lease"),
        ("url = \"ftp://h\"\nhandler \"k\" { command = [\"a\"] }", "url must be an http:// or https:// URL"),
        ("handler \"k\" {\ncommand = [\"a\"]\nenv = [\"A=b\"]\n}", "must be a list of names"),
    ];
    for (text, expected) in samples {
        let told = parse_worker("worker.hcl", text).unwrap_err().to_string();
        assert!(told.contains(expected), "{text}\n{told}");
    }
}
