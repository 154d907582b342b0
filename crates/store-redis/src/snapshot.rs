//! Snapshots, in parts, so that a large one does not hold up appends; and trimming the batches that they hold.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use laneway_store::{Head, StoreError, StoredSnapshot, Version};
use laneway_store_remote::Backend;
use redis::{Value, cmd};

use crate::backend::Redis;
use crate::keys::{entry_id, head_bytes, head_of, version_of};
use crate::script::Call;

const PART_BYTES: usize = 1024 * 1024;
/// When the parts of a snapshot that is never completed expire.
const UNFINISHED_TTL: Duration = Duration::from_secs(600);
/// The most batches that one step trims.
const TRIM_STEP: u64 = 1000;
/// How often a snapshot is read or written again, because another replica has replaced it meanwhile.
const TRIES: usize = 5;

/// The snapshot that Redis has.
struct Kept {
    head: Head,
    parts: String,
    count: usize,
}

impl Redis {
    async fn kept(&self) -> Result<Option<Kept>, StoreError> {
        let fields = self.send(cmd("HMGET").arg(&self.keys.snapshot).arg("h").arg("k").arg("n")).await?;
        let Value::Array(fields) = fields else { return Err(self.malformed("the snapshot")) };
        match <[Value; 3]>::try_from(fields) {
            Ok([Value::Nil, Value::Nil, Value::Nil]) => Ok(None),
            Ok([Value::BulkString(head), Value::BulkString(parts), Value::BulkString(count)]) => {
                let head = head_of(&head);
                let parts = String::from_utf8(parts).ok();
                let count = std::str::from_utf8(&count).ok().and_then(|count| count.parse().ok());
                let kept = head.zip(parts).zip(count);
                let kept = kept.map(|((head, parts), count)| Kept { head, parts, count });
                kept.map(Some).ok_or_else(|| self.malformed("the snapshot"))
            }
            _ => Err(self.malformed("the snapshot")),
        }
    }

    pub(crate) async fn read_snapshot(&self) -> Result<Option<StoredSnapshot>, StoreError> {
        for _ in 0..TRIES {
            let Some(kept) = self.kept().await? else { return Ok(None) };
            let mut record = Vec::new();
            let mut found = 0;
            while found < kept.count {
                match self.send(cmd("LINDEX").arg(&kept.parts).arg(found)).await? {
                    Value::BulkString(part) => record.extend_from_slice(&part),
                    _ => break,
                }
                found += 1;
            }
            if found == kept.count {
                return Ok(Some(StoredSnapshot { head: kept.head, record: record.into() }));
            }
            // A newer one may have replaced it meanwhile.
            if self.kept().await?.is_some_and(|now| now.head == kept.head) {
                return Err(StoreError::incomplete_snapshot(
                    self.name(),
                    kept.head.version,
                    found,
                    kept.count,
                ));
            }
        }
        Err(StoreError::unavailable(self.name(), "its snapshot is replaced faster than it can be read"))
    }

    pub(crate) async fn write_snapshot(&self, snapshot: StoredSnapshot) -> Result<(), StoreError> {
        let StoredSnapshot { head, record } = snapshot;
        let mut kept = self.kept().await?;
        if kept.as_ref().is_some_and(|kept| kept.head.version >= head.version) {
            return Ok(());
        }
        let parts = self.keys.parts(RandomState::new().hash_one(head));
        let mut count = 0;
        for part in record.chunks(PART_BYTES) {
            self.send(cmd("RPUSH").arg(&parts).arg(part)).await?;
            self.send(cmd("PEXPIRE").arg(&parts).arg(UNFINISHED_TTL.as_millis() as u64)).await?;
            count += 1;
        }
        for _ in 0..TRIES {
            if self.complete(head, &parts, count, kept.as_ref()).await? {
                return Ok(());
            }
            kept = self.kept().await?;
        }
        Err(StoreError::unavailable(self.name(), "other replicas save snapshots all the time"))
    }

    /// Makes the parts the snapshot; `false`: another replica has replaced `kept`.
    async fn complete(
        &self,
        head: Head,
        parts: &str,
        count: usize,
        kept: Option<&Kept>,
    ) -> Result<bool, StoreError> {
        let mut call = Call::default();
        [&self.keys.head, &self.keys.log, &self.keys.snapshot].into_iter().for_each(|key| call.key(key));
        call.key(parts);
        call.key(kept.map_or(parts, |kept| &kept.parts));
        call.argument(head_bytes(head));
        call.argument(entry_id(head.version));
        call.argument(head.batch.0.to_be_bytes());
        call.number(count);
        call.argument(kept.map(|kept| head_bytes(kept.head)).unwrap_or_default());
        match self.run(&self.snapshot_script, &call).await? {
            Value::BulkString(word) if word == b"again" => Ok(false),
            Value::BulkString(_) => Ok(true),
            Value::Array(answer) => match answer.first() {
                Some(Value::BulkString(current)) => {
                    let current = head_of(current).ok_or_else(|| self.malformed("the head"))?;
                    Err(StoreError::Conflict { expected: head, current })
                }
                _ => Err(self.malformed("a snapshot")),
            },
            _ => Err(self.malformed("a snapshot")),
        }
    }

    pub(crate) async fn trim_log(&self, through: Version) -> Result<(), StoreError> {
        let saved = self.kept().await?.map_or(Version(0), |kept| kept.head.version);
        let through = through.min(saved);
        let first =
            self.send(cmd("XRANGE").arg(&self.keys.log).arg("-").arg("+").arg("COUNT").arg(1)).await?;
        let Some(mut oldest) = first_version(&first) else { return Ok(()) };
        while oldest <= through {
            let keep_from = Version((oldest.0 + TRIM_STEP).min(through.0 + 1));
            let mut command = cmd("XTRIM");
            command.arg(&self.keys.log).arg("MINID").arg("=").arg(entry_id(keep_from));
            self.send(&command).await?;
            oldest = keep_from;
        }
        Ok(())
    }
}

fn first_version(entries: &Value) -> Option<Version> {
    let Value::Array(entries) = entries else { return None };
    let Some(Value::Array(first)) = entries.first() else { return None };
    let Some(Value::BulkString(id)) = first.first() else { return None };
    version_of(id)
}
