//! A server and workers in processes of their own, which end with the test.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use laneway_client::protocol::{AcceptedTask, TaskRequest, TaskView};
use laneway_client::{Client, Watch};
use serde_json::Value;

/// Patience of the tests: only what hangs takes so long.
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
    /// What it says on standard error, line by line.
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

    /// All that it has said and nobody has read.
    pub(crate) fn said(&self) -> Vec<String> {
        self.lines.try_iter().collect()
    }

    /// All that it says until it ends.
    pub(crate) fn says_until_its_end(&self) -> Vec<String> {
        self.lines.iter().collect()
    }

    /// Waits until it says something that contains `words`.
    pub(crate) fn says(&self, words: &str) -> String {
        let end = Instant::now() + PATIENCE;
        let mut said = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            if line.contains(words) {
                return line;
            }
            said.push(line);
        }
        panic!("never said {words:?}, but: {said:#?}");
    }

    /// Waits for its end: the exit code and what it wrote to standard output.
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

/// A server in a directory of its own.
pub(crate) struct Served {
    pub(crate) process: Process,
    pub(crate) address: String,
    pub(crate) client: Client,
}

pub(crate) fn serve(dir: &Path, config: &str) -> Served {
    std::fs::write(dir.join("laneway.hcl"), config).unwrap();
    serve_at(dir, "127.0.0.1:0")
}

/// A server at a given address, with the file that is there.
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

/// A worker with this file.
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

/// A pipe with a name: whoever reads it waits for whoever writes it, and the other way round.
pub(crate) fn fifo(dir: &Path, name: &str) -> PathBuf {
    let path = dir.join(name);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

/// A handler that reads a line from the pipe in its payload: it runs for as long as the test wants.
pub(crate) const HELD: &str = r#"handler "held" { command = ["sh", "-c", "read line < \"$1\"; echo \"$line\"", "--", "{{payload.pipe}}"] }"#;
