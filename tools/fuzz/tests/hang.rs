//! An input that hangs its reader is told, and ends the run.
#![allow(clippy::unwrap_used)]

use std::process::Command;
use std::time::Duration;

use laneway_fuzz::{Target, try_input, watch_for_hangs};

/// Makes this test the process that hangs, and says where it leaves its input.
const HANGS: &str = "LANEWAY_FUZZ_HANGS";

struct Hanging;

impl Target for Hanging {
    fn name(&self) -> &'static str {
        "hanging"
    }

    fn words(&self) -> Vec<String> {
        Vec::new()
    }

    fn read(&mut self, input: &[u8]) -> Result<String, String> {
        if input == b"never done" {
            loop {
                std::thread::park();
            }
        }
        Ok("done".to_owned())
    }
}

#[test]
fn an_input_that_is_never_done_is_told_and_kept() {
    if let Some(file) = std::env::var_os(HANGS) {
        watch_for_hangs(Duration::from_secs(3), Some(file.into()));
        assert_eq!(try_input(&mut Hanging, b"soon done"), Ok("done".to_owned()));
        drop(try_input(&mut Hanging, b"never done"));
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("current");
    let name = "an_input_that_is_never_done_is_told_and_kept";
    let mut child = Command::new(std::env::current_exe().unwrap());
    let ended = child.args(["--exact", name, "--nocapture"]).env(HANGS, &file).output().unwrap();
    assert_eq!(ended.status.code(), None, "a signal ends it, and not the test: {ended:?}");
    let told = String::from_utf8_lossy(&ended.stderr);
    assert!(told.contains("never done"), "{told}");
    assert_eq!(std::fs::read(&file).unwrap(), b"never done");
}
