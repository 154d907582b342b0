//! The queues that run in this process, behind one interface, so that each workload is written once.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use a3s_lane::{Command, EventEmitter, LaneConfig, QueueManager, QueueManagerBuilder};
use apalis_core::backend::memory::{MemorySink, MemoryStorage};
use apalis_core::task::Task as ApalisTask;
use apalis_core::worker::builder::WorkerBuilder;
use async_trait::async_trait;
use futures_util::future::BoxFuture;
use futures_util::{SinkExt, StreamExt};
use laneway_engine::{Context, Handle, Options, Task};
use laneway_store::Store;
use laneway_store_redis::RedisStore;
use laneway_store_sqlite::SqliteStore;
use tower::limit::ConcurrencyLimitLayer;

use crate::Failed;
use crate::lanes::block;

/// What a task does.
pub type Body = BoxFuture<'static, ()>;

/// Which queue, and where it stores what it accepts.
#[derive(Clone, Copy)]
pub enum Kind<'a> {
    Memory,
    Disk(&'a Path),
    /// Its address and a namespace of its own.
    Redis(&'a str, &'a str),
    A3s,
    Apalis,
}

/// One piece of work, with its user and its conversation.
pub struct Work {
    pub user: &'static str,
    pub session: Option<usize>,
    pub body: Body,
}

impl Work {
    pub fn new(body: impl Future<Output = ()> + Send + 'static) -> Work {
        Work { user: "user", session: None, body: Box::pin(body) }
    }
}

/// The next number, and the bodies by number. A handler gets only the number of the body that it runs.
#[derive(Clone, Default)]
pub struct Bodies(Arc<Mutex<(u64, HashMap<u64, Body>)>>);

impl Bodies {
    fn put(&self, body: Body) -> u64 {
        let mut bodies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        bodies.0 += 1;
        let number = bodies.0;
        bodies.1.insert(number, body);
        number
    }

    fn take(&self, number: u64) -> Option<Body> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&number)
    }
}

/// A queue with one lane.
#[derive(Clone)]
pub enum Queue {
    /// Bodies run as closures, as in programs that embed the library.
    InMemory(Handle),
    /// A handler runs them, because a store keeps no future.
    Stored(Handle, Bodies),
    /// The lane and, if there are conversations, a lane of one slot for each in front of it.
    A3s(Arc<QueueManager>, Option<Arc<QueueManager>>),
    Apalis(MemorySink<Apart>),
}

/// A task of apalis, which must be `Sync`.
pub struct Apart(Mutex<Option<Body>>);

const LANE: &str = "lane";

impl Queue {
    pub async fn open(kind: Kind<'_>, slots: u32, sessions: usize) -> Result<Queue, Failed> {
        match kind {
            Kind::Memory => {
                let lanes = Handle::in_memory(Options::default());
                configure(&lanes, slots).await?;
                Ok(Queue::InMemory(lanes))
            }
            Kind::Disk(place) => stored(Arc::new(SqliteStore::open(place)?), slots).await,
            Kind::Redis(url, space) => {
                let options =
                    laneway_store_redis::Options { namespace: space.to_owned(), ..Default::default() };
                stored(Arc::new(RedisStore::open_with(url, options).await?), slots).await
            }
            Kind::A3s => {
                let lane = a3s([LANE.to_owned()], slots).await?;
                let each = (0..sessions).map(|session| session.to_string());
                let before = if sessions == 0 { None } else { Some(a3s(each, 1).await?) };
                Ok(Queue::A3s(lane, before))
            }
            Kind::Apalis => Ok(Queue::Apalis(apalis(slots))),
        }
    }

    /// Returns when the work is accepted.
    pub async fn submit(&self, work: Work) -> Result<(), Failed> {
        match self {
            Queue::InMemory(lanes) => {
                let (lanes, task) = (lanes.clone(), task(&work));
                // A panic on purpose is an error here. The workload notices tasks that never run.
                tokio::spawn(async move { drop(lanes.run(task, work.body).await) });
                Ok(())
            }
            Queue::Stored(lanes, bodies) => {
                let task = task(&work).kind("body").payload(bodies.put(work.body));
                lanes.submit(task).await?.detach();
                Ok(())
            }
            Queue::A3s(lane, before) => {
                let body = Box::new(A3sBody(Mutex::new(Some(work.body))));
                match (before, work.session) {
                    (Some(before), Some(session)) => {
                        let nested = Box::new(A3sNested(Arc::clone(lane), Mutex::new(Some(body))));
                        drop(before.submit(&session.to_string(), nested).await?);
                    }
                    _ => drop(lane.submit(LANE, body).await?),
                }
                Ok(())
            }
            Queue::Apalis(sink) => {
                let task = ApalisTask::new(Apart(Mutex::new(Some(work.body))));
                sink.clone().send(task).await.map_err(|error| error.to_string().into())
            }
        }
    }

    /// Stops its running tasks, so that the next measurement has the machine for itself.
    pub async fn close(self) {
        match self {
            Queue::InMemory(lanes) | Queue::Stored(lanes, _) => {
                lanes.shutdown(std::time::Duration::ZERO).await;
            }
            Queue::A3s(lane, before) => {
                lane.shutdown().await;
                if let Some(before) = before {
                    before.shutdown().await;
                }
            }
            Queue::Apalis(mut sink) => drop(sink.close().await),
        }
    }
}

fn task(work: &Work) -> Task {
    let task = Task::new(LANE).fair_key(work.user);
    match work.session {
        Some(session) => task.session(session.to_string()),
        None => task,
    }
}

async fn configure(lanes: &Handle, slots: u32) -> Result<(), Failed> {
    Ok(lanes.configure(vec![block("global", 1_000_000)?, block(LANE, slots)?]).await?)
}

async fn stored(store: Arc<dyn Store>, slots: u32) -> Result<Queue, Failed> {
    let bodies = Bodies::default();
    let known = bodies.clone();
    let run = move |_: Context, number: u64| {
        let body = known.take(number);
        async move {
            if let Some(body) = body {
                body.await;
            }
            Ok(())
        }
    };
    let lanes = Handle::join(store, Options::default().handler("body", run)?).await?;
    configure(&lanes, slots).await?;
    Ok(Queue::Stored(lanes, bodies))
}

async fn a3s(lanes: impl IntoIterator<Item = String>, slots: u32) -> Result<Arc<QueueManager>, Failed> {
    let mut builder = QueueManagerBuilder::new(EventEmitter::new(16));
    for lane in lanes {
        builder = builder.with_lane(lane, LaneConfig::new(1, slots as usize), 1);
    }
    let manager = builder.build().await?;
    manager.start().await?;
    Ok(Arc::new(manager))
}

struct A3sBody(Mutex<Option<Body>>);

#[async_trait]
impl Command for A3sBody {
    async fn execute(&self) -> a3s_lane::Result<serde_json::Value> {
        let body = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(body) = body {
            body.await;
        }
        Ok(serde_json::Value::Null)
    }

    fn command_type(&self) -> &str {
        "body"
    }
}

/// Holds the slot of its conversation while it waits for a slot of the lane.
struct A3sNested(Arc<QueueManager>, Mutex<Option<Box<A3sBody>>>);

#[async_trait]
impl Command for A3sNested {
    async fn execute(&self) -> a3s_lane::Result<serde_json::Value> {
        let body = self.1.lock().unwrap_or_else(PoisonError::into_inner).take();
        match body {
            Some(body) => self
                .0
                .submit(LANE, body)
                .await?
                .await
                .map_err(|error| a3s_lane::LaneError::Other(error.to_string()))?,
            None => Ok(serde_json::Value::Null),
        }
    }

    fn command_type(&self) -> &str {
        "turn"
    }
}

fn apalis(slots: u32) -> MemorySink<Apart> {
    let (sender, receiver) = futures_channel::mpsc::unbounded();
    let sender = sender.sink_map_err(Into::into);
    let sink = MemorySink::new(Arc::new(futures_util::lock::Mutex::new(Box::new(sender))));
    let store = MemoryStorage::new_with(sink.clone(), receiver.boxed());
    async fn run(apart: Apart) {
        let body = apart.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(body) = body {
            body.await;
        }
    }
    let worker = WorkerBuilder::new("compare").backend(store);
    let worker = worker.layer(ConcurrencyLimitLayer::new(slots as usize)).build(run);
    tokio::spawn(async move { drop(worker.run().await) });
    sink
}
