//! Runs a program to its end, and says how it ended.

use std::collections::VecDeque;
use std::os::unix::process::ExitStatusExt;
use std::pin::pin;
use std::process::ExitStatus;

use bytes::Bytes;
use thiserror::Error;

use crate::program::{Program, StartError};
use crate::running::{ProgramEvent, RunningProgram};
use crate::text::Text;

/// The bytes that are kept of standard error: its end, which usually has the reason.
const TAIL_BYTES_MAX: usize = 8 * 1024;

/// How the first process of a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Exit {
    /// By itself, with this code.
    #[error("exit code {0}")]
    Code(i32),
    /// By this signal.
    #[error("signal {0}")]
    Signal(i32),
    /// Another part of this process reaped it, so its status is lost.
    #[error("an unknown status")]
    Unknown,
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramEnd {
    /// How it ended.
    pub exit: Exit,
    /// What it wrote, with `\u{fffd}` for bytes that are not text.
    pub stdout: String,
    /// The end of what it wrote to its standard error.
    pub stderr: String,
    /// Whether it was stopped before it ended by itself.
    pub stopped: bool,
    /// Whether it was stopped because it wrote too much.
    pub overflowed: bool,
}

impl Exit {
    /// Whether it ended with code 0.
    pub fn is_success(self) -> bool {
        self == Exit::Code(0)
    }
}

impl ProgramEnd {
    /// Why it did not succeed, in words; `None` if it did.
    pub fn error(&self) -> Option<String> {
        if self.overflowed {
            return Some("wrote more than it may".to_owned());
        }
        if self.exit.is_success() && !self.stopped {
            return None;
        }
        let last = self.stderr.trim();
        Some(if last.is_empty() { self.exit.to_string() } else { format!("{}: {last}", self.exit) })
    }
}

impl Program {
    /// Starts it, gives it `input`, and waits until nothing of it is left. Calls `on_text` with each piece of text. Stops
    /// the program when `stop` is ready.
    pub async fn run(
        &self,
        input: impl Into<Bytes>,
        stop: impl Future<Output = ()>,
        mut on_text: impl FnMut(&str),
    ) -> Result<ProgramEnd, StartError> {
        let mut running = self.start()?;
        let mut feeding = pin!(feed(&mut running, input.into()));
        let (mut stop, mut is_fed) = (pin!(stop), false);
        let (mut stopped, mut overflowed) = (false, false);
        let (mut text, mut stdout) = (Text::default(), String::new());
        let (exit, stderr) = loop {
            let event = tokio::select! {
                biased;
                () = stop.as_mut(), if !stopped => {
                    stopped = true;
                    running.stop();
                    continue;
                }
                event = running.next() => event,
                () = feeding.as_mut(), if !is_fed => {
                    is_fed = true;
                    continue;
                }
            };
            match event {
                ProgramEvent::Ended { exit, stderr } => break (exit, stderr),
                ProgramEvent::Output(_) if overflowed => {}
                ProgramEvent::Output(piece) if stdout.len() + piece.len() > self.output_max => {
                    (overflowed, stopped) = (true, true);
                    running.stop();
                }
                ProgramEvent::Output(piece) => {
                    let start = stdout.len();
                    text.push(&piece, &mut stdout);
                    if stdout.len() > start {
                        on_text(&stdout[start..]);
                    }
                }
            }
        };
        text.finish(&mut stdout);
        Ok(ProgramEnd { exit, stdout, stderr, stopped, overflowed })
    }
}

/// Writes all of the input and closes it. A program need not read it.
fn feed(running: &mut RunningProgram, bytes: Bytes) -> impl Future<Output = ()> + use<> {
    let input = running.input();
    async move {
        if let Some(mut input) = input {
            drop(input.write(&bytes).await);
        }
    }
}

/// The last bytes of a stream.
#[derive(Default)]
pub(crate) struct Tail(VecDeque<u8>);

impl Tail {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
        let excess = self.0.len().saturating_sub(TAIL_BYTES_MAX);
        self.0.drain(..excess);
    }

    pub(crate) fn text(&mut self) -> String {
        String::from_utf8_lossy(self.0.make_contiguous()).into_owned()
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Exit {
        match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, Some(signal)) => Exit::Signal(signal),
            (None, None) => Exit::Unknown,
        }
    }
}
