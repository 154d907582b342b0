//! A server in its own process, which ends with the test.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

pub(crate) struct Served {
    process: Child,
    /// `http://127.0.0.1:port`.
    pub(crate) url: String,
}

/// The program, with no variable of the test's environment but `PATH`.
pub(crate) fn laneway(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_laneway"));
    command.current_dir(dir).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// Starts a server with `laneway.hcl` in `dir`.
pub(crate) fn serve(dir: &Path, listen: &str) -> Served {
    let mut command = laneway(dir);
    command.args(["serve", "--json", "--log", "error", "--listen", listen]);
    let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let greeting: serde_json::Value = serde_json::from_str(&line).expect("the server did not start");
    Served { url: greeting["url"].as_str().unwrap().to_owned(), process }
}

impl Drop for Served {
    fn drop(&mut self) {
        // SIGTERM lets the server stop its programs, within the grace of its configuration.
        let pid = self.process.id().to_string();
        drop(Command::new("kill").args(["-TERM", &pid]).status());
        drop(self.process.wait());
    }
}
