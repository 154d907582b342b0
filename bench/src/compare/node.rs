//! The Node queues, driven by a script.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::Failed;

const SCRIPT: &str = include_str!("../../peers/peers.mjs");

/// The directory of the packages and the script.
pub struct Node(PathBuf);

impl Node {
    /// The directory in which `cargo xtask compare` installed the packages.
    pub fn find() -> Result<Node, Failed> {
        let place = std::env::var_os("LANEWAY_PEERS").map(PathBuf::from);
        let place = place.ok_or("run this by `cargo xtask compare`, which installs the Node queues")?;
        std::fs::write(place.join("peers.mjs"), SCRIPT)?;
        Ok(Node(place))
    }

    /// The installed version.
    pub fn version(&self, package: &str) -> Result<String, Failed> {
        let manifest = Path::new("node_modules").join(package).join("package.json");
        let manifest: Value = serde_json::from_slice(&std::fs::read(self.0.join(manifest))?)?;
        Ok(manifest["version"].as_str().unwrap_or("of unknown version").to_owned())
    }

    fn command(&self, peer: &str, workload: &str, port: u16) -> Command {
        let mut command = Command::new("node");
        command.args(["--expose-gc", "peers.mjs", peer, workload, &port.to_string()]);
        command.current_dir(&self.0);
        command
    }

    /// The result of a workload.
    pub fn ask(&self, peer: &str, workload: &str, port: u16) -> Result<Value, Failed> {
        let output = self.command(peer, workload, port).output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        let wrong = || {
            let error = String::from_utf8_lossy(&output.stderr);
            Failed::from(format!("{peer} did not finish {workload}: {said} {error}"))
        };
        serde_json::from_str(said.trim()).map_err(|_| wrong())
    }

    /// One number.
    pub fn number(&self, peer: &str, workload: &str, port: u16) -> Result<f64, Failed> {
        self.ask(peer, workload, port)?.as_f64().ok_or("not a number".into())
    }

    /// Several numbers.
    pub fn numbers(&self, peer: &str, workload: &str, port: u16) -> Result<Vec<f64>, Failed> {
        let answer = self.ask(peer, workload, port)?;
        let numbers = answer.as_array().ok_or("not a list")?;
        Ok(numbers.iter().filter_map(Value::as_f64).collect())
    }

    /// A process that accepts work and waits to be killed.
    pub fn accept(&self, peer: &str, port: u16) -> Result<Child, Failed> {
        Ok(self.command(peer, "accept", port).stdout(Stdio::piped()).spawn()?)
    }
}
