//! A program that runs: what it writes, and how it ends.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use crate::group::Group;
use crate::outcome::{Exit, Tail};
use crate::program::{Program, StartError};

/// The most that is read at once.
const PIECE_BYTES_MAX: usize = 16 * 1024;
/// How often to look whether what is left of a group is gone; there is no signal for it.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long to wait for the end of the output when the group is gone: something that left the group may hold the
/// pipe open for ever.
const LAST_OUTPUT: Duration = Duration::from_millis(200);

/// A program that runs. Dropping it asks it to stop and ends it after its grace, in the background.
pub struct RunningProgram {
    /// Taken when it is dropped, to be ended elsewhere.
    inner: Option<Inner>,
}

/// What a running program does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramEvent {
    /// It wrote this to its standard output.
    Output(Bytes),
    /// It is over: nothing of its group is alive, and all of its output was returned.
    Ended {
        /// How its first process ended.
        exit: Exit,
        /// The end of what it wrote to its standard error.
        stderr: String,
    },
}

/// A program's standard input; closed when this is dropped.
pub struct Input(ChildStdin);

impl Input {
    /// Writes all of it. Waits as long as the program does not read.
    pub async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.write_all(bytes).await?;
        self.0.flush().await
    }
}

struct Inner {
    group: Group,
    input: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    tail: Tail,
    /// Notified when a child of this process has ended.
    children: Signal,
    grace: Duration,
    stage: Stage,
}

#[derive(Clone, Copy)]
enum Stage {
    Works,
    /// Asked to stop; ended at this time.
    Stops(Instant),
    Killed,
    /// Nothing of it is alive; the rest of its output is read until this time.
    Gone(Instant),
}

impl RunningProgram {
    pub(crate) fn start(program: &Program) -> Result<RunningProgram, StartError> {
        let refused = |error: std::io::Error| program.refused(&error);
        // Before the start, so that no end is missed.
        let children = signal(SignalKind::child()).map_err(refused)?;
        let mut leader = program.command()?.spawn().map_err(refused)?;
        let pipes = (leader.stdin.take(), leader.stdout.take(), leader.stderr.take());
        // Ends what was started should something fail from here on.
        let group = Group::of(leader);
        let inner = Inner {
            group,
            input: pipes.0.map(ChildStdin::from_std).transpose().map_err(refused)?,
            stdout: pipes.1.map(ChildStdout::from_std).transpose().map_err(refused)?,
            stderr: pipes.2.map(ChildStderr::from_std).transpose().map_err(refused)?,
            tail: Tail::default(),
            children,
            grace: program.grace,
            stage: Stage::Works,
        };
        Ok(RunningProgram { inner: Some(inner) })
    }

    /// The number of its first process and of its group.
    pub fn id(&self) -> u32 {
        self.inner.as_ref().map_or(0, |inner| inner.group.number())
    }

    /// Its standard input, once.
    pub fn input(&mut self) -> Option<Input> {
        self.inner.as_mut().and_then(|inner| inner.input.take()).map(Input)
    }

    /// Asks it to stop, and kills it when its grace is over; [`next`](RunningProgram::next) returns the rest. A second
    /// call changes nothing.
    pub fn stop(&mut self) {
        if let Some(inner) = &mut self.inner {
            inner.stop();
        }
    }

    /// Waits for the next event. Dropping the future loses nothing. After the end it returns the end again.
    pub async fn next(&mut self) -> ProgramEvent {
        match &mut self.inner {
            Some(inner) => inner.next().await,
            None => std::future::pending().await,
        }
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        let Some(mut inner) = self.inner.take().filter(|inner| inner.group.is_alive()) else { return };
        inner.stop();
        inner.input = None;
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            // Should the runtime end before, the group is killed with this future.
            runtime.spawn(async move { while let ProgramEvent::Output(_) = inner.next().await {} });
        }
    }
}

impl Inner {
    fn stop(&mut self) {
        if let Stage::Works = self.stage {
            self.group.ask_to_stop();
            self.stage = Stage::Stops(Instant::now() + self.grace);
        }
    }

    async fn next(&mut self) -> ProgramEvent {
        let (mut out, mut err) = ([0; PIECE_BYTES_MAX], [0; 1024]);
        loop {
            self.look();
            if let Stage::Gone(until) = self.stage {
                let is_read = self.stdout.is_none() && self.stderr.is_none();
                if is_read || until <= Instant::now() {
                    return self.ended();
                }
            }
            let alarm = pin!(wait_until(self.alarm()));
            tokio::select! {
                biased;
                read = read(&mut self.stdout, &mut out) => if read > 0 {
                    return ProgramEvent::Output(Bytes::copy_from_slice(&out[..read]));
                },
                read = read(&mut self.stderr, &mut err) => self.tail.push(&err[..read]),
                _ = self.children.recv() => {}
                () = alarm => if let Stage::Stops(at) = self.stage && at <= Instant::now() {
                    self.group.kill();
                    self.stage = Stage::Killed;
                },
            }
        }
    }

    /// Looks whether the first process, and then the whole group, has ended.
    fn look(&mut self) {
        if matches!(self.stage, Stage::Gone(_)) || !self.group.has_leader_ended() {
            return;
        }
        if self.group.is_alive() {
            // What it left behind goes too.
            self.stop();
        } else {
            self.stage = Stage::Gone(Instant::now() + LAST_OUTPUT);
        }
    }

    fn alarm(&self) -> Option<Instant> {
        let soon = || Instant::now() + LOOK_EVERY;
        match self.stage {
            Stage::Works => None,
            Stage::Stops(at) if self.group.has_leader_ended() => Some(at.min(soon())),
            Stage::Stops(at) | Stage::Gone(at) => Some(at),
            Stage::Killed => Some(soon()),
        }
    }

    fn ended(&mut self) -> ProgramEvent {
        let exit = self.group.reap().map_or(Exit::Unknown, Exit::from);
        ProgramEvent::Ended { exit, stderr: self.tail.text() }
    }
}

/// Reads some bytes; a pipe that has ended or cannot be read is put away.
async fn read<R: AsyncRead + Unpin>(pipe: &mut Option<R>, buffer: &mut [u8]) -> usize {
    let Some(open) = pipe else { return std::future::pending().await };
    let bytes = open.read(buffer).await.unwrap_or(0);
    if bytes == 0 {
        *pipe = None;
    }
    bytes
}

async fn wait_until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
