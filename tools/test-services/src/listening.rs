//! A program that listens on a port of this machine, with a directory of its own.

use std::net::TcpStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use tempfile::TempDir;

use crate::free_port;
use crate::process::Process;

/// The pause between two looks whether a port is open.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Ends with the value.
pub(crate) struct Listening {
    pub(crate) port: u16,
    _dir: TempDir,
    _process: Process,
}

impl Listening {
    /// Starts a program on a free port. `command` may write files into the directory and says what to run.
    pub(crate) fn start(
        program: &str,
        package: &str,
        command: impl Fn(&Path, u16) -> Vec<String>,
    ) -> Listening {
        let mut last = String::new();
        // Another process may take the port before the start.
        for _ in 0..10 {
            let (port, dir) = (free_port(), TempDir::new().expect("there is room for a directory"));
            let command = command(dir.path(), port);
            let words: Vec<&str> = command[1..].iter().map(String::as_str).collect();
            let started = Process::talk(&command[0], &words);
            match started.and_then(|(process, lines, _)| until_open(port, process, &lines)) {
                Ok(process) => return Listening { port, _dir: dir, _process: process },
                Err(error) => last = error,
            }
        }
        panic!(
            "{program} did not start; `cargo xtask test` installs it, or `apt-get install {package}`: {last}"
        )
    }
}

pub(crate) fn write(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, text).expect("there is room for a file");
    path.display().to_string()
}

/// Waits until the process listens on the port, or has ended.
fn until_open(port: u16, process: Process, lines: &Receiver<String>) -> Result<Process, String> {
    let mut said = String::new();
    loop {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            // A process that found the port taken ends at once.
            return match lines.recv_timeout(LOOK_EVERY) {
                Err(RecvTimeoutError::Disconnected) => Err(said),
                _ => Ok(process),
            };
        }
        match lines.recv_timeout(LOOK_EVERY) {
            Ok(line) => said = format!("{said}\n{line}"),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(said),
        }
    }
}
