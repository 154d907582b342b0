//! A process that does not outlive the one that started it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a server may take to be ready.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// What a process can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Die now.
    Kill,
    /// Stand still.
    Stop,
    /// Go on.
    Continue,
    /// Please end.
    Term,
}

/// A process under our control. Dropping it kills it.
pub struct Process {
    pid: u32,
    /// Waits until it is gone; taken when it is.
    waiter: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts a program and waits until it prints a line, on either output, that contains `ready`.
    pub fn start(program: &str, arguments: &[&str], ready: &str) -> Result<Process, String> {
        Process::start_as(None, program, arguments, ready)
    }

    /// Starts a program as another user.
    pub fn start_as(
        user: Option<&str>,
        program: &str,
        arguments: &[&str],
        ready: &str,
    ) -> Result<Process, String> {
        let mut command = guarded(user, program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (told, started) = mpsc::channel();
        // The kernel kills the child when the thread that started it ends, so that thread waits for the child.
        let waiter = std::thread::spawn(move || {
            let mut child = match command.spawn() {
                Ok(child) => child,
                Err(error) => return drop(told.send(Err(error.to_string()))),
            };
            drop(told.send(Ok((child.id(), child.stdout.take(), child.stderr.take()))));
            assert!(child.wait().is_ok(), "a child can be waited for");
        });
        let (pid, stdout, stderr) = started
            .recv()
            .map_err(|_| "the thread ended".to_owned())?
            .map_err(|e| format!("{program}: {e}"))?;
        let process = Process { pid, waiter: Some(waiter) };
        let (line, lines) = mpsc::channel();
        read_lines(stdout, line.clone());
        read_lines(stderr, line);
        let mut said = String::new();
        loop {
            match lines.recv_timeout(READY_WITHIN) {
                Ok(line) if line.contains(ready) => break,
                Ok(line) => said = format!("{said}\n{line}"),
                Err(_) => return Err(format!("{program} did not become ready: {said}")),
            }
        }
        Ok(process)
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let name = match signal {
            Signal::Kill => "-KILL",
            Signal::Stop => "-STOP",
            Signal::Continue => "-CONT",
            Signal::Term => "-TERM",
        };
        if self.waiter.is_some() {
            let status = Command::new("kill").args([name, &self.pid.to_string()]).status();
            assert!(status.is_ok(), "there is a program named kill");
        }
    }

    /// Kills it and waits until it is gone.
    pub fn kill(&mut self) {
        self.signal(Signal::Kill);
        self.wait();
    }

    /// Waits until it is gone.
    pub fn wait(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            assert!(waiter.join().is_ok(), "a child can be waited for");
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A command that the kernel kills when whoever started it dies.
pub(crate) fn guarded(user: Option<&str>, program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if let Some(user) = user {
        command.args(["--reuid", user, "--regid", user, "--clear-groups"]);
    }
    command.args(["--", program]);
    command
}

/// Passes on every line, to its end, so that whoever writes them never has to wait.
fn read_lines(from: Option<impl Read + Send + 'static>, to: mpsc::Sender<String>) {
    let Some(from) = from else { return };
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            // Nobody listens any more when the process is ready.
            drop(to.send(line));
        }
    });
}
