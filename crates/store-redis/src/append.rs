//! Appending: one script, which happens as a whole or not at all.

use laneway_store::{Append, Head, StoreError};
use laneway_store_remote::Backend;
use redis::{Cmd, Value, cmd};

use crate::backend::Redis;
use crate::keys::{Member, author_bytes, author_of, entry_id, head_bytes, head_of, joined};
use crate::log::page_of;
use crate::script::Call;

/// The most batches that the answer to the loser of a race contains.
const MISSED_MAX: usize = 64;

impl Redis {
    pub(crate) async fn append_batch(&self, append: Append) -> Result<Head, StoreError> {
        let (call, script) = (&self.append_call(&append), &self.append_script);
        let wait = &self.wait_for_replicas();
        // Over one connection, because the wait is for the writes of its own connection.
        let appending = self.link.send(async |mut to| {
            let answer = script.run(&mut to.redis, call).await?;
            let reached = match wait {
                Some(wait) if is_appended(&answer) => wait.query_async(&mut to.redis).await?,
                _ => u32::MAX,
            };
            Ok((answer, reached))
        });
        let (answer, reached) = appending.await?;
        let wanted = self.options.replicas;
        if reached < wanted {
            let reason = format!("{reached} of {wanted} replicas had the write in time");
            return Err(StoreError::unavailable(self.name(), reason));
        }
        let Value::Array(answer) = answer else { return Err(self.malformed("an append")) };
        let mut answer = answer.into_iter();
        match (answer.next(), answer.next(), answer.next()) {
            (Some(Value::Int(1)), Some(Value::BulkString(next)), None) => {
                let head = append.outcome();
                self.recent().note(head.version, author_of(&next));
                Ok(head)
            }
            (Some(Value::Int(0)), Some(Value::BulkString(head)), Some(missed)) => {
                let current = head_of(&head).ok_or_else(|| self.malformed("the head"))?;
                let missed = page_of(missed).ok_or_else(|| self.malformed("the log"))?;
                self.recent().replace(missed);
                Err(StoreError::Conflict { expected: append.expected, current })
            }
            _ => Err(self.malformed("an append")),
        }
    }

    fn append_call(&self, append: &Append) -> Call {
        let head = append.outcome();
        let mut call = Call::default();
        let keys = [&self.keys.head, &self.keys.log, &self.keys.history, &self.keys.line];
        keys.into_iter().for_each(|key| call.key(key));
        append.blobs.iter().for_each(|(id, _)| call.key(&self.keys.blob(*id)));
        append.dropped.iter().for_each(|id| call.key(&self.keys.blob(*id)));
        append.finished.iter().for_each(|finished| call.key(&self.keys.done(finished.task)));
        call.argument(head_bytes(append.expected));
        call.argument(head_bytes(head));
        call.argument(entry_id(head.version));
        call.argument(append.batch.0.to_be_bytes());
        call.argument(&append.record[..]);
        call.argument(author_bytes(append.batch.author()));
        call.number(append.blobs.len());
        call.number(append.dropped.len());
        call.number(append.finished.len());
        call.number(self.options.history_ttl.map_or(0, |ttl| ttl.as_millis().max(1)));
        call.number(MISSED_MAX);
        call.number(u8::from(append.requeue));
        append.blobs.iter().for_each(|(_, record)| call.argument(&record[..]));
        for (place, finished) in append.places().zip(append.finished.iter()) {
            let member = Member { place, ended: finished.ended, task: finished.task };
            call.argument(member.bytes());
            call.argument(&finished.record[..]);
            call.argument(joined(&finished.labels));
            call.number(u8::from(finished.result.is_some()));
            call.argument(finished.result.as_deref().unwrap_or_default());
        }
        call
    }

    /// What waits until as many replicas have the write as the options ask for.
    fn wait_for_replicas(&self) -> Option<Cmd> {
        // A little less than our own timeout, so that Redis gives up first.
        let timeout = self.options.timeout.mul_f64(0.75).as_millis().max(1);
        let wanted = self.options.replicas;
        (wanted > 0).then(|| cmd("WAIT").arg(wanted).arg(timeout as u64).to_owned())
    }
}

/// Whether the batch is in the log.
fn is_appended(answer: &Value) -> bool {
    matches!(answer, Value::Array(answer) if answer.first() == Some(&Value::Int(1)))
}
