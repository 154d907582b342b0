//! Redis as a backend: what each method of a store sends to it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use laneway_core::{BlobId, TaskId, Timestamp};
use laneway_store::{
    Append, Author, Durability, Head, HistoryQuery, Retention, StoreError, StoredFinished, StoredSnapshot,
    Version,
};
use laneway_store_remote::{Backend, Link, LogPage, PAGE_BATCHES, Recent};
use redis::{Cmd, Value, cmd};
use tokio::sync::mpsc;

use crate::address::Address;
use crate::check::{Info, durability};
use crate::connect::Connector;
use crate::error::from_redis;
use crate::keys::{Keys, author_bytes, entry_id, head_of};
use crate::log::{page_of, page_of_stream};
use crate::nodes::Nodes;
use crate::options::Options;
use crate::script::{Call, Lua};

/// How long Redis holds a blocking read open when nothing comes. In between, the follower checks the end of the log.
const BLOCK: Duration = Duration::from_secs(4);
/// The most entries of one blocking read.
const ENTRIES_MAX: usize = 256;
/// The most commands that are sent before the first answer is read.
const PIPELINE_MAX: usize = 64;

/// A log in one namespace of a Redis.
pub struct Redis {
    pub(crate) options: Options,
    pub(crate) keys: Arc<Keys>,
    pub(crate) link: Link<Connector>,
    pub(crate) append_script: Lua,
    pub(crate) snapshot_script: Lua,
    append_turn_script: Lua,
}

impl Redis {
    pub(crate) async fn send(&self, command: &Cmd) -> Result<Value, StoreError> {
        self.link.send(async |mut to| command.query_async(&mut to.redis).await).await
    }

    /// Sends commands that do not depend on each other's answers.
    pub(crate) async fn send_all(&self, commands: &[Cmd]) -> Result<Vec<Value>, StoreError> {
        let mut answers = Vec::with_capacity(commands.len());
        for some in commands.chunks(PIPELINE_MAX) {
            let mut pipeline = redis::pipe();
            for command in some {
                pipeline.add_command(command.clone());
            }
            let pipeline = &pipeline;
            let sent: Vec<Value> =
                self.link.send(|mut to| async move { pipeline.query_async(&mut to.redis).await }).await?;
            answers.extend(sent);
        }
        Ok(answers)
    }

    pub(crate) async fn run(&self, script: &Lua, call: &Call) -> Result<Value, StoreError> {
        self.link.send(|mut to| async move { script.run(&mut to.redis, call).await }).await
    }
}

impl Backend for Redis {
    type Options = Options;
    /// A connection of its own, because a blocking read would hold up all other commands.
    type Follower = Link<Connector>;

    async fn open(url: &str, options: Options) -> Result<(Redis, Durability), StoreError> {
        let address = Address::parse(url, &options.namespace)?;
        let options = Options { replicas: address.replicas.unwrap_or(options.replicas), ..options };
        let (keys, name) = (Arc::new(Keys::of(&options.namespace)), address.name.as_str().into());
        let connector = Connector::new(name, Arc::clone(&keys), Nodes::of(address), options.timeout);
        let redis = Redis {
            keys,
            link: Link::new(connector),
            append_script: Lua::new(include_str!("append.lua")),
            snapshot_script: Lua::new(include_str!("snapshot.lua")),
            append_turn_script: Lua::new(include_str!("request_append_turn.lua")),
            options,
        };
        if let Some(reason) = redis.warning().await? {
            return Err(StoreError::unfit(redis.name(), reason));
        }
        let mut connection = redis.link.connection().await?;
        let durability = durability(&mut connection.redis, redis.options.replicas).await;
        Ok((redis, durability))
    }

    fn name(&self) -> &str {
        &self.link.connector().name
    }

    async fn warning(&self) -> Result<Option<String>, StoreError> {
        let info = self.link.send(async |mut to| Info::read(&mut to.redis).await).await?;
        Ok(info.eviction())
    }

    fn recent(&self) -> &Recent {
        &self.link.connector().recent
    }

    async fn time(&self) -> Result<Timestamp, StoreError> {
        let Value::Array(parts) = self.send(&cmd("TIME")).await? else {
            return Err(self.malformed("the time"));
        };
        let number = |part: &Value| match part {
            Value::BulkString(digits) => std::str::from_utf8(digits).ok()?.parse::<u64>().ok(),
            _ => None,
        };
        match parts.iter().map(number).collect::<Option<Vec<u64>>>().as_deref() {
            Some([seconds, micros]) => Ok(Timestamp(seconds * 1000 + micros / 1000)),
            _ => Err(self.malformed("the time")),
        }
    }

    async fn head(&self) -> Result<Head, StoreError> {
        match self.send(cmd("GET").arg(&self.keys.head)).await? {
            Value::Nil => Ok(Head::EMPTY),
            Value::BulkString(bytes) => head_of(&bytes).ok_or_else(|| self.malformed("the head")),
            _ => Err(self.malformed("the head")),
        }
    }

    async fn append(&self, append: Append) -> Result<Head, StoreError> {
        self.append_batch(append).await
    }

    async fn request_append_turn(&self, author: Author) -> Result<(), StoreError> {
        let mut call = Call::default();
        call.key(&self.keys.line);
        call.argument(author_bytes(author));
        self.run(&self.append_turn_script, &call).await.map(drop)
    }

    async fn publish(&self, text: Arc<str>) -> Result<(), StoreError> {
        self.send(cmd("PUBLISH").arg(&self.keys.published).arg(&*text)).await.map(drop)
    }

    async fn subscribe(&self, subscriber: mpsc::Sender<Arc<str>>) -> Result<bool, StoreError> {
        let to = self.link.connection().await?;
        let mut connection = self.link.connector().messages(&to).await?;
        let subscribed = connection.subscribe(&self.keys.published).await;
        subscribed.map_err(|error| from_redis(self.name(), &error))?;
        let mut owner = self.link.connector().nodes.owner();
        tokio::spawn(async move {
            let mut messages = connection.into_on_message();
            loop {
                tokio::select! {
                    message = messages.next() => match message.map(|message| message.get_payload::<String>()) {
                        // A slow subscriber misses it.
                        Some(Ok(text)) => drop(subscriber.try_send(text.into())),
                        Some(Err(_)) => {}
                        None => return,
                    },
                    // The others publish where the log is.
                    _ = owner.wait_for(|owner| owner.as_ref() != Some(&to.node)) => return,
                    () = subscriber.closed() => return,
                }
            }
        });
        Ok(true)
    }

    async fn page(&self, after: Version) -> Result<LogPage, StoreError> {
        let mut command = cmd("XRANGE");
        command.arg(&self.keys.log).arg(entry_id(after.next())).arg("+");
        command.arg("COUNT").arg(PAGE_BATCHES);
        page_of(self.send(&command).await?).ok_or_else(|| self.malformed("the log"))
    }

    fn follower(&self) -> Link<Connector> {
        Link::new(self.link.connector().with_timeout(BLOCK + self.options.timeout))
    }

    async fn grown(&self, link: &mut Link<Connector>, last: Option<Version>) -> Result<Version, StoreError> {
        let Some(last) = last else { return Ok(self.head().await?.version) };
        let mut command = cmd("XREAD");
        command.arg("COUNT").arg(ENTRIES_MAX).arg("BLOCK").arg(BLOCK.as_millis() as u64);
        command.arg("STREAMS").arg(&self.keys.log).arg(entry_id(last));
        let connection = link.connection().await?;
        let mut owner = link.connector().nodes.owner();
        let reading = link.send(async |mut to| command.query_async(&mut to.redis).await);
        let page = tokio::select! {
            answer = reading => page_of_stream(answer?).ok_or_else(|| self.malformed("the log"))?,
            // Another connection has found the log elsewhere, and this one would wait in vain.
            Ok(_) = owner.wait_for(|owner| owner.as_ref() != Some(&connection.node)) => LogPage::default(),
        };
        if let Some(newest) = page.batches.last().map(|newest| newest.version) {
            self.recent().add(page);
            return Ok(newest);
        }
        let head = self.head().await?;
        if head.version < last { Err(StoreError::beyond_end(last, head)) } else { Ok(head.version) }
    }

    async fn snapshot(&self) -> Result<Option<StoredSnapshot>, StoreError> {
        self.read_snapshot().await
    }

    async fn save_snapshot(&self, snapshot: StoredSnapshot) -> Result<(), StoreError> {
        self.write_snapshot(snapshot).await
    }

    async fn trim(&self, through: Version) -> Result<(), StoreError> {
        self.trim_log(through).await
    }

    async fn blob(&self, id: BlobId) -> Result<Option<Bytes>, StoreError> {
        match self.send(cmd("GET").arg(self.keys.blob(id))).await? {
            Value::Nil => Ok(None),
            Value::BulkString(bytes) => Ok(Some(bytes.into())),
            _ => Err(self.malformed("a payload")),
        }
    }

    async fn remove_blobs(&self, ids: &[BlobId]) -> Result<(), StoreError> {
        let mut command = cmd("UNLINK");
        for id in ids {
            command.arg(self.keys.blob(*id));
        }
        self.send(&command).await.map(drop)
    }

    async fn finished(&self, task: TaskId) -> Result<Option<StoredFinished>, StoreError> {
        self.read_finished(task).await
    }

    async fn results(&self, tasks: Vec<TaskId>) -> Result<Vec<Option<Bytes>>, StoreError> {
        self.read_results(&tasks).await
    }

    async fn history(&self, query: HistoryQuery) -> Result<Vec<StoredFinished>, StoreError> {
        self.list_finished(query).await
    }

    async fn trim_history(&self, keep: Retention) -> Result<u64, StoreError> {
        self.trim_finished(keep).await
    }
}
