//! A server and workers in their own processes, which end with the test.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use laneway_client::protocol::{AcceptedTask, TaskRequest, TaskView};
use laneway_client::{Client, Watch};
use serde_json::Value;

/// How long a test waits. Only a failure reaches it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn laneway(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_laneway"));
    command.current_dir(dir);
    for name in ["LANEWAY_STORE", "LANEWAY_LISTEN", "LANEWAY_URL", "LANEWAY_TOKEN"] {
        command.env_remove(name);
    }
    command
}

/// A process that ends with the test.
pub(crate) struct Process {
    child: Child,
    /// The lines of standard error.
    lines: mpsc::Receiver<String>,
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Process {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (tell, lines) = mpsc::channel();
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        Process { child, lines }
    }

    pub(crate) fn signal(&self, signal: &str) {
        signal_to(signal, self.child.id());
    }

    /// The lines that the process has written since the last read.
    pub(crate) fn said(&self) -> Vec<String> {
        self.lines.try_iter().collect()
    }

    /// All further lines, until the process ends.
    pub(crate) fn says_until_its_end(&self) -> Vec<String> {
        self.lines.iter().collect()
    }

    /// Waits for a line that contains `words`.
    pub(crate) fn says(&self, words: &str) -> String {
        let end = Instant::now() + PATIENCE;
        let mut said = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            if line.contains(words) {
                return line;
            }
            said.push(line);
        }
        panic!("no line contains {words:?}: {said:#?}");
    }

    /// Waits for the end of the process, and returns its exit code and standard output.
    pub(crate) fn ends(mut self) -> (Option<i32>, String) {
        let mut stdout = String::new();
        std::io::Read::read_to_string(&mut self.child.stdout.take().unwrap(), &mut stdout).unwrap();
        (self.child.wait().unwrap().code(), stdout)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(crate) fn signal_to(signal: &str, process: u32) -> bool {
    let process = process.to_string();
    Command::new("kill").args([signal, &process]).stderr(Stdio::null()).status().unwrap().success()
}

/// A server and a client of it.
pub(crate) struct Served {
    pub(crate) process: Process,
    pub(crate) address: String,
    pub(crate) client: Client,
}

pub(crate) fn serve(dir: &Path, config: &str) -> Served {
    std::fs::write(dir.join("laneway.hcl"), config).unwrap();
    serve_at(dir, "127.0.0.1:0")
}

/// Starts a server at an address, with the file in `dir`.
pub(crate) fn serve_at(dir: &Path, listen: &str) -> Served {
    let mut command = laneway(dir);
    command.args(["serve", "--listen", listen, "--log", "error"]);
    let mut process = Process::start(command);
    let mut lines = BufReader::new(process.child.stdout.take().unwrap()).lines();
    let greeting = lines.next().expect("it did not start").unwrap();
    let address = greeting.rsplit_once("http://").expect("it says where it listens").1.to_owned();
    let client = Client::new(&format!("http://{address}"), None).unwrap();
    Served { process, address, client }
}

/// Starts a worker with a configuration.
pub(crate) fn worker(dir: &Path, served: &Served, name: &str, config: &str) -> Process {
    let file = dir.join(format!("{name}.hcl"));
    std::fs::write(&file, config).unwrap();
    worker_with(dir, &served.address, name, &file)
}

pub(crate) fn worker_with(dir: &Path, address: &str, name: &str, file: &Path) -> Process {
    let mut command = laneway(dir);
    command.args(["worker", "--lanes", "external", "--name", name, "--url", &format!("http://{address}")]);
    command.arg("--config").arg(file).env("SECRET_OF_THE_WORKER", "do not tell");
    Process::start(command)
}

pub(crate) fn task(kind: &str, payload: Value) -> TaskRequest {
    serde_json::from_value(serde_json::json!({ "kind": kind, "payload": payload })).unwrap()
}

pub(crate) async fn submit(client: &Client, kind: &str, payload: Value) -> AcceptedTask {
    client.submit(&task(kind, payload), None).await.unwrap()
}

/// Waits for the end of a task.
pub(crate) async fn ended(client: &Client, id: &str) -> TaskView {
    let follow = async {
        let mut events = client.events(Watch::task(id).lasting()).await.unwrap();
        while events.next().await.unwrap().is_some() {}
        client.task(id).await.unwrap()
    };
    tokio::time::timeout(PATIENCE, follow).await.unwrap_or_else(|_| panic!("task {id} does not end"))
}

/// A named pipe: its reader waits for its writer, and its writer for its reader.
pub(crate) fn fifo(dir: &Path, name: &str) -> PathBuf {
    let path = dir.join(name);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

/// A handler that runs until the test writes a line to the pipe in its payload.
pub(crate) const HELD: &str = r#"handler "held" { command = ["sh", "-c", "read line < \"$1\"; echo \"$line\"", "--", "{{payload.pipe}}"] }"#;
