//! The queues that are compared, and how each runs the workloads.

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::TcpStream;

use laneway_test_services::Redis;
use tempfile::TempDir;

use crate::Failed;
use crate::compare::child;
use crate::compare::node::Node;
use crate::compare::queue::{Kind, Queue};
use crate::compare::report::Kept;
use crate::compare::workloads::{self, FAN, SESSION_SLOTS, SESSIONS, Sessions, WIDTH};
use crate::lanes::runtime;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Memory,
    Disk,
    Redis,
    A3s,
    Apalis,
    PQueue,
    BullMq,
}

pub const ALL: [Who; 7] =
    [Who::Memory, Who::Disk, Who::Redis, Who::A3s, Who::Apalis, Who::PQueue, Who::BullMq];

impl Who {
    /// Its name in child processes and scripts.
    fn word(self) -> &'static str {
        match self {
            Who::Memory => "memory",
            Who::Disk => "disk",
            Who::Redis => "redis",
            Who::A3s => "a3s",
            Who::Apalis => "apalis",
            Who::PQueue => "p-queue",
            Who::BullMq => "bullmq",
        }
    }

    fn is_of_node(self) -> bool {
        matches!(self, Who::PQueue | Who::BullMq)
    }

    /// How many no-ops it gets, so that all queues take about as long.
    fn tasks(self) -> usize {
        match self {
            Who::Disk | Who::Redis => 5_000,
            _ => 50_000,
        }
    }
}

/// The settings of a fresh installation: a snapshot from time to time, no append-only file.
const REDIS_AS_INSTALLED: [&str; 4] = ["--appendonly", "no", "--save", "3600 1 300 100 60 10000"];
/// With an append-only file that is flushed each second.
const REDIS_WITH_LOG: [&str; 2] = ["--appendfsync", "everysec"];

/// What the queues need to run.
pub struct Field {
    pub node: Node,
    redis: Redis,
    spaces: Cell<u32>,
}

impl Field {
    pub fn open() -> Result<Field, Failed> {
        Ok(Field { node: Node::find()?, redis: Redis::start_with(&REDIS_WITH_LOG), spaces: Cell::new(0) })
    }

    pub fn name(&self, who: Who) -> String {
        let of_node = |name: &str, package: &str| {
            format!("{name} {}", self.node.version(package).unwrap_or_else(|error| error.to_string()))
        };
        match who {
            Who::Memory => "Laneway in memory".to_owned(),
            Who::Disk => "Laneway on disk".to_owned(),
            Who::Redis => "Laneway on Redis".to_owned(),
            Who::A3s => "a3s-lane 0.5.1".to_owned(),
            Who::Apalis => "apalis 1.0.0-rc.10".to_owned(),
            Who::PQueue => of_node("p-queue", "p-queue"),
            Who::BullMq => of_node("BullMQ", "bullmq"),
        }
    }

    /// Opens a queue in this process, passes it to `ask`, and closes it.
    fn with<T>(
        &self,
        who: Who,
        slots: u32,
        sessions: usize,
        ask: impl AsyncFnOnce(&Queue) -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        let place = tempfile::tempdir()?;
        let url = self.redis.url();
        self.spaces.set(self.spaces.get() + 1);
        let space = format!("compare{}", self.spaces.get());
        let kind = match who {
            Who::Memory => Kind::Memory,
            Who::Disk => Kind::Disk(place.path()),
            Who::Redis => Kind::Redis(&url, &space),
            Who::A3s => Kind::A3s,
            _ => Kind::Apalis,
        };
        runtime(1)?.block_on(async {
            let queue = Queue::open(kind, slots, sessions).await?;
            let answer = ask(&queue).await;
            queue.close().await;
            answer
        })
    }

    pub fn no_ops(&self, who: Who) -> Result<f64, Failed> {
        if who.is_of_node() {
            return self.node.number(who.word(), "no_ops", self.redis.port());
        }
        self.with(who, WIDTH, 0, async |queue| workloads::no_ops(queue, who.tasks()).await)
    }

    pub fn fan_out(&self, who: Who) -> Result<f64, Failed> {
        if who.is_of_node() {
            return self.node.number(who.word(), "fan_out", self.redis.port());
        }
        self.with(who, FAN, 0, async |queue| workloads::fan_out(queue).await)
    }

    pub fn idle(&self, who: Who) -> Result<f64, Failed> {
        if who.is_of_node() {
            return self.node.number(who.word(), "idle", self.redis.port());
        }
        self.with(who, 8, 0, async |queue| workloads::idle(queue, 300).await)
    }

    pub fn sessions(&self, who: Who) -> Result<Sessions, Failed> {
        if who.is_of_node() {
            let told = self.node.numbers(who.word(), "sessions", self.redis.port())?;
            let [times_bare, wrong] = told[..] else { return Err("not two numbers".into()) };
            return Ok(Sessions { times_bare, wrong: wrong as usize });
        }
        self.with(who, SESSION_SLOTS, SESSIONS, async |queue| workloads::sessions(queue).await)
    }

    /// Bytes per waiting task, in the process and in its Redis.
    pub fn memory(&self, who: Who) -> Result<f64, Failed> {
        let place = tempfile::tempdir()?;
        let redis = matches!(who, Who::Redis | Who::BullMq).then(|| Redis::start_with(&REDIS_WITH_LOG));
        let before = redis.as_ref().map(used_memory).transpose()?;
        let (grown, count) = if who.is_of_node() {
            let port = redis.as_ref().map_or(self.redis.port(), Redis::port);
            let told = self.node.numbers(who.word(), "memory", port)?;
            let [grown, count] = told[..] else { return Err("not two numbers".into()) };
            (grown, count)
        } else {
            let url = redis.as_ref().map(Redis::url);
            let mut child = child::start(["memory", who.word(), &found(url, &place)])?;
            let grown = child::number(&mut child)?;
            child.wait()?;
            (grown, child::WAITING as f64)
        };
        let there = match (&redis, before) {
            (Some(redis), Some(before)) => used_memory(redis)?.saturating_sub(before) as f64 / count,
            _ => 0.0,
        };
        Ok(grown + there)
    }

    /// How many of a thousand accepted tasks a new process finds after a kill.
    pub fn kept(&self, who: Who) -> Result<Vec<Kept>, Failed> {
        let accepted = child::ACCEPTED;
        match who {
            // A kill leaves nothing of a process's memory, so there is nothing to open.
            Who::Memory | Who::Apalis | Who::PQueue => Ok(vec![Kept { how: "", there: 0, accepted }]),
            Who::Disk => Ok(vec![Kept { how: "", there: self.killed(who, None)?, accepted }]),
            Who::A3s => Ok(vec![
                Kept { how: "in its lanes", there: 0, accepted },
                Kept { how: "in `LocalJobQueue`", there: self.killed(who, None)?, accepted },
            ]),
            Who::Redis | Who::BullMq => {
                let with_log = self.killed(who, Some(Redis::start_with(&REDIS_WITH_LOG)))?;
                let installed = self.killed(who, Some(Redis::start_with(&REDIS_AS_INSTALLED)))?;
                Ok(vec![
                    Kept { how: "with `appendonly`", there: with_log, accepted },
                    Kept { how: "as installed", there: installed, accepted },
                ])
            }
        }
    }

    /// Kills the process that accepted the tasks, and its Redis. Counts what the next process finds.
    fn killed(&self, who: Who, mut redis: Option<Redis>) -> Result<usize, Failed> {
        let place = tempfile::tempdir()?;
        let port = redis.as_ref().map_or(0, Redis::port);
        let found = found(redis.as_ref().map(Redis::url), &place);
        let mut process = if who.is_of_node() {
            self.node.accept(who.word(), port)?
        } else {
            child::start(["accept", who.word(), &found])?
        };
        let told = child::number(&mut process)?;
        process.kill()?;
        process.wait()?;
        if told != child::ACCEPTED as f64 {
            return Err(format!("only {told} tasks were accepted").into());
        }
        if let Some(redis) = &mut redis {
            redis.restart();
        }
        if who.is_of_node() {
            return Ok(self.node.number(who.word(), "count", port)? as usize);
        }
        let mut counting = child::start(["count", who.word(), &found])?;
        let there = child::number(&mut counting)?;
        counting.wait()?;
        Ok(there as usize)
    }

    pub fn survived(&self, who: Who) -> Result<usize, Failed> {
        if who.is_of_node() {
            return Ok(self.node.number(who.word(), "panics", self.redis.port())? as usize);
        }
        self.with(who, 2, 0, async |queue| workloads::panics(queue).await)
    }

    pub fn light(&self, who: Who) -> Result<Vec<usize>, Failed> {
        if who.is_of_node() {
            let places = self.node.numbers(who.word(), "flood", self.redis.port())?;
            return Ok(places.into_iter().map(|place| place as usize).collect());
        }
        self.with(who, 4, 0, async |queue| workloads::flood(queue).await)
    }
}

/// Where a child finds its store.
fn found(url: Option<String>, place: &TempDir) -> String {
    url.unwrap_or_else(|| place.path().to_string_lossy().into_owned())
}

/// The bytes that a Redis uses.
fn used_memory(redis: &Redis) -> Result<u64, Failed> {
    let mut stream = TcpStream::connect(("127.0.0.1", redis.port()))?;
    stream.write_all(b"INFO memory\r\nQUIT\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let bytes = text.lines().find_map(|line| line.strip_prefix("used_memory:"));
    Ok(bytes.ok_or("no used_memory in INFO")?.trim().parse()?)
}
