//! The packaging: the systemd units, the image and the example configurations start the program.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_laneway");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn run(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).current_dir(dir).env_remove("LANEWAY_STORE").env_remove("LANEWAY_LISTEN");
    command
}

/// Starts a server, and kills it once it has printed its address.
fn starts(dir: &Path, arguments: &[&str]) {
    let (stdout, stderr) = (Stdio::piped(), Stdio::piped());
    let mut process = run(dir, arguments).stdout(stdout).stderr(stderr).spawn().unwrap();
    let first = BufReader::new(process.stdout.take().unwrap()).lines().next();
    process.kill().unwrap();
    let output = process.wait_with_output().unwrap();
    let first = first.unwrap_or_else(|| panic!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)));
    assert!(first.unwrap().contains("listens on http://"), "{arguments:?}");
}

#[test]
fn systemd_accepts_the_unit_and_its_command_starts() {
    let unit = read("packaging/laneway.service");
    let command = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let words: Vec<&str> = command.split(' ').collect();
    assert_eq!(words[0], "/usr/bin/laneway");
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().join("laneway.service");
    std::fs::write(&here, unit.replace(words[0], PROGRAM)).unwrap();
    let verified = Command::new("systemd-analyze").arg("verify").arg(&here).output();
    let verified = verified.expect("systemd-analyze is missing; `cargo xtask test` installs it");
    let warnings = String::from_utf8_lossy(&verified.stderr).into_owned();
    assert!(verified.status.success() && warnings.is_empty(), "{warnings}");
    let config = root().join("examples/editor-agent.hcl");
    let config = config.to_str().unwrap();
    let words = words[1..].iter().map(|word| if word.ends_with(".hcl") { config } else { word });
    let words: Vec<&str> = words.chain(["--listen", "127.0.0.1:0", "--store", "memory"]).collect();
    assert!(words.contains(&config), "{words:?}");
    starts(dir.path(), &words);
}

#[test]
fn systemd_stops_only_the_program_and_not_its_children() {
    for unit in ["packaging/laneway.service", "packaging/laneway-worker.service"] {
        assert!(read(unit).lines().any(|line| line == "KillMode=mixed"), "{unit}");
    }
}

#[test]
fn the_image_builds_existing_files_and_its_command_starts_once_there_is_a_token() {
    let dockerfile = read("packaging/Dockerfile");
    let manifest = read("Cargo.toml");
    let line = |start: &str| {
        let found = dockerfile.lines().find_map(|line| line.strip_prefix(start));
        found.unwrap_or_else(|| panic!("no {start}")).to_owned()
    };
    let after = |text: &str, word: &str| {
        let mut words = text.split_whitespace().skip_while(|found| *found != word);
        words.nth(1).unwrap_or_else(|| panic!("no {word} in {text}")).to_owned()
    };
    let build = line("RUN cargo build ");
    assert!(build.contains("--locked") && root().join("Cargo.lock").exists());
    let (profile, package) = (after(&build, "--profile"), after(&build, "--package"));
    assert!(manifest.contains(&format!("[profile.{profile}]")));
    assert!(read("crates/cli/Cargo.toml").contains(&format!("name = \"{package}\"")));
    let built = Path::new(PROGRAM).file_name().unwrap().to_str().unwrap();
    assert_eq!(line("COPY --from=build "), format!("/src/target/{profile}/{built} /usr/bin/{built}"));
    let version = line("FROM rust:").split('-').next().unwrap().to_owned();
    assert!(manifest.contains(&format!("rust-version = \"{version}\"")), "the image has Rust {version}");
    for source in line("COPY ").split(' ').rev().skip(1) {
        assert!(root().join(source).exists(), "{source}");
    }
    for ignored in ["target", "**/node_modules"] {
        assert!(read(".dockerignore").lines().any(|line| line == ignored), "{ignored} would be copied");
    }

    let words = |start: &str| -> Vec<String> {
        let list = line(start);
        list.trim_matches(['[', ']']).split(", ").map(|word| word.trim_matches('"').to_owned()).collect()
    };
    assert_eq!(words("ENTRYPOINT "), [built]);
    let command: Vec<String> = words("CMD ").iter().map(|word| word.replace(":7717", ":0")).collect();
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    assert!(command.contains(&"0.0.0.0:0") && dockerfile.contains("EXPOSE 7717"));
    let dir = tempfile::tempdir().unwrap();
    let refused = run(dir.path(), &command).output().unwrap();
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("laneway token create"), "{refused:?}");
    let made = run(dir.path(), &["token", "create", "--subject", "me", "--scope", "admin"]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    starts(dir.path(), &command);
}

#[test]
fn every_example_configuration_starts() {
    let mut started = 0;
    for entry in std::fs::read_dir(root().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "hcl") {
            let dir = tempfile::tempdir().unwrap();
            let config = path.to_str().unwrap();
            starts(
                dir.path(),
                &["serve", "--config", config, "--listen", "127.0.0.1:0", "--store", "memory"],
            );
            started += 1;
        }
    }
    assert_eq!(started, 5);
}
