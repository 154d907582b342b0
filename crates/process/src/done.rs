//! How a program ended, and running one to its end.

use std::collections::VecDeque;
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::pin::pin;
use std::process::ExitStatus;

use bytes::Bytes;

use crate::program::{Program, StartError};
use crate::running::{News, Running};
use crate::text::Text;

/// So much of what a program writes to its standard error is kept: the end, where the reason mostly is.
const TAIL_BYTES_MAX: usize = 8 * 1024;

/// How the first process of a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Somebody else reaped it, so that nobody knows.
    Unknown,
}

/// A program that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// How it ended.
    pub exit: Exit,
    /// What it wrote; what is no text is shown as `\u{fffd}`.
    pub stdout: String,
    /// The end of what it wrote to its standard error.
    pub stderr: String,
    /// Whether it was stopped, and did not end by itself.
    pub stopped: bool,
    /// Whether it was stopped because it wrote too much.
    pub overflowed: bool,
}

impl Exit {
    /// Whether it did what it should: code 0.
    pub fn is_success(self) -> bool {
        self == Exit::Code(0)
    }
}

impl Done {
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
    /// Starts it, gives it `input`, and waits until nothing of it is left. `told` hears each piece of text as it
    /// comes. When `stop` is ready it is stopped.
    pub async fn run(
        &self,
        input: impl Into<Bytes>,
        stop: impl Future<Output = ()>,
        mut told: impl FnMut(&str),
    ) -> Result<Done, StartError> {
        let mut running = self.start()?;
        let mut feeding = pin!(feed(&mut running, input.into()));
        let (mut stop, mut is_fed) = (pin!(stop), false);
        let (mut stopped, mut overflowed) = (false, false);
        let (mut text, mut stdout) = (Text::default(), String::new());
        let (exit, stderr) = loop {
            let news = tokio::select! {
                biased;
                () = stop.as_mut(), if !stopped => {
                    stopped = true;
                    running.stop();
                    continue;
                }
                news = running.next() => news,
                () = feeding.as_mut(), if !is_fed => {
                    is_fed = true;
                    continue;
                }
            };
            match news {
                News::Ended { exit, stderr } => break (exit, stderr),
                News::Output(_) if overflowed => {}
                News::Output(piece) if stdout.len() + piece.len() > self.output_max => {
                    (overflowed, stopped) = (true, true);
                    running.stop();
                }
                News::Output(piece) => {
                    let start = stdout.len();
                    text.push(&piece, &mut stdout);
                    if stdout.len() > start {
                        told(&stdout[start..]);
                    }
                }
            }
        };
        text.finish(&mut stdout);
        Ok(Done { exit, stdout, stderr, stopped, overflowed })
    }
}

/// Writes all of the input and closes it. A program need not read what it is given.
fn feed(running: &mut Running, bytes: Bytes) -> impl Future<Output = ()> + use<> {
    let input = running.input();
    async move {
        if let Some(mut input) = input {
            drop(input.write(&bytes).await);
        }
    }
}

/// The last bytes of something.
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

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exit code {code}"),
            Exit::Signal(signal) => write!(f, "signal {signal}"),
            Exit::Unknown => write!(f, "nobody knows what"),
        }
    }
}
