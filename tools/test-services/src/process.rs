//! A process that does not outlive the one that started it.

use std::io::{BufRead, BufReader, Read};
use std::process::{ChildStdin, Command, Stdio};
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
        command.args(arguments).stdin(Stdio::null());
        let (process, lines, _) = Process::spawn(command)?;
        let mut said = String::new();
        loop {
            match lines.recv_timeout(READY_WITHIN) {
                Ok(line) if line.contains(ready) => return Ok(process),
                Ok(line) => said = format!("{said}\n{line}"),
                Err(_) => return Err(format!("{program} did not become ready: {said}")),
            }
        }
    }

    /// Starts a program to talk with: its lines, of both outputs, and its input.
    pub fn talk(
        program: &str,
        arguments: &[&str],
    ) -> Result<(Process, mpsc::Receiver<String>, Option<ChildStdin>), String> {
        let mut command = guarded(None, program);
        command.args(arguments).stdin(Stdio::piped());
        Process::spawn(command)
    }

    fn spawn(mut command: Command) -> Result<(Process, mpsc::Receiver<String>, Option<ChildStdin>), String> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let (told, started) = mpsc::channel();
        // The kernel kills the child when the thread that started it ends, so that thread waits for the child.
        let waiter = std::thread::spawn(move || {
            let mut child = match command.spawn() {
                Ok(child) => child,
                Err(error) => return drop(told.send(Err(error.to_string()))),
            };
            let (input, pid) = (child.stdin.take(), child.id());
            drop(told.send(Ok((pid, child.stdout.take(), child.stderr.take(), input))));
            assert!(child.wait().is_ok(), "a child can be waited for");
        });
        let (pid, stdout, stderr, input) =
            started.recv().map_err(|_| "the thread that starts it ended".to_owned())??;
        let (line, lines) = mpsc::channel();
        read_lines(stdout, line.clone());
        read_lines(stderr, line);
        Ok((Process { pid, waiter: Some(waiter) }, lines, input))
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
        if self.waiter.as_ref().is_some_and(|waiter| !waiter.is_finished()) {
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

/// A command that the kernel kills when its parent dies.
pub(crate) fn guarded(user: Option<&str>, program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if let Some(user) = user {
        command.args(["--reuid", user, "--regid", user, "--clear-groups"]);
    }
    command.args(["--", program]);
    command
}

/// Passes on every line to the end, so that the writer never waits for a full pipe.
fn read_lines(from: Option<impl Read + Send + 'static>, to: mpsc::Sender<String>) {
    let Some(from) = from else { return };
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            // The receiver is gone once the process is ready.
            drop(to.send(line));
        }
    });
}
