//! Snapshots, in parts, so that a large one does not hold up appends; and trimming what they hold.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use laneway_store::{Damage, Head, Record, StoreError, StoredSnapshot, Version};
use redis::{Value, cmd};

use crate::failure::unavailable;
use crate::keys::{entry_id, head_bytes, head_of, version_of};
use crate::link::{Call, Lua};
use crate::store::Shared;

const PART_BYTES: usize = 1024 * 1024;
/// Parts of a snapshot that is never completed go after this.
const UNFINISHED_TTL: Duration = Duration::from_secs(600);
/// Batches that are trimmed at once.
const TRIM_STEP: u64 = 1000;
/// How often a snapshot that was replaced while it was read or written is tried again.
const TRIES: usize = 5;

/// The script that completes a snapshot.
pub(crate) fn script() -> Lua {
    Lua::new(include_str!("snapshot.lua"))
}

/// Which snapshot there is.
struct Kept {
    head: Head,
    parts: String,
    count: usize,
}

impl Shared {
    async fn kept(&self) -> Result<Option<Kept>, StoreError> {
        let fields = self.send(cmd("HMGET").arg(&self.keys.snapshot).arg("h").arg("k").arg("n")).await?;
        let Value::Array(fields) = fields else { return Err(self.nonsense("the snapshot")) };
        match <[Value; 3]>::try_from(fields) {
            Ok([Value::Nil, Value::Nil, Value::Nil]) => Ok(None),
            Ok([Value::BulkString(head), Value::BulkString(parts), Value::BulkString(count)]) => {
                let head = head_of(&head);
                let parts = String::from_utf8(parts).ok();
                let count = std::str::from_utf8(&count).ok().and_then(|count| count.parse().ok());
                let kept = head.zip(parts).zip(count);
                let kept = kept.map(|((head, parts), count)| Kept { head, parts, count });
                kept.map(Some).ok_or_else(|| self.nonsense("the snapshot"))
            }
            _ => Err(self.nonsense("the snapshot")),
        }
    }

    pub(crate) async fn snapshot(&self) -> Result<Option<StoredSnapshot>, StoreError> {
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
                let reason = format!("{found} of its {} parts are there", kept.count).into();
                return Err(StoreError::Corrupt {
                    store: self.link.name.as_str().into(),
                    record: Some(Record::Snapshot(kept.head.version)),
                    damage: Damage::Unreadable { reason },
                });
            }
        }
        Err(unavailable(&self.link.name, &"its snapshot is replaced faster than it can be read"))
    }

    pub(crate) async fn save_snapshot(&self, snapshot: StoredSnapshot) -> Result<(), StoreError> {
        let StoredSnapshot { head, record } = snapshot;
        let mut kept = self.kept().await?;
        if kept.as_ref().is_some_and(|kept| kept.head.version >= head.version) {
            return Ok(());
        }
        let parts = self.keys.parts(RandomState::new().hash_one(head));
        let mut count = 0;
        for start in (0..record.len()).step_by(PART_BYTES) {
            let part = &record[start..record.len().min(start + PART_BYTES)];
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
        Err(unavailable(&self.link.name, &"others save snapshots all the time"))
    }

    /// Makes the parts the snapshot; `false`: another one has come since `kept`.
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
        match self.link.run(&self.keys, &self.recent, &self.snapshot_script, &call).await? {
            Value::BulkString(word) if word == b"again" => Ok(false),
            Value::BulkString(_) => Ok(true),
            Value::Array(answer) => match answer.first() {
                Some(Value::BulkString(current)) => {
                    let current = head_of(current).ok_or_else(|| self.nonsense("the head"))?;
                    Err(StoreError::Conflict { expected: head, current })
                }
                _ => Err(self.nonsense("a snapshot")),
            },
            _ => Err(self.nonsense("a snapshot")),
        }
    }

    pub(crate) async fn trim(&self, through: Version) -> Result<(), StoreError> {
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
