//! Batches in the answers of Redis.

use laneway_store::{Author, StoredBatch};
use laneway_store_remote::LogPage;
use redis::Value;

use crate::keys::{author_of, version_of};

/// The batches in an answer of XRANGE; `None`: it contains something else.
pub(crate) fn page_of(value: Value) -> Option<LogPage> {
    let Value::Array(entries) = value else { return None };
    let mut page = LogPage::default();
    for entry in entries {
        let (batch, append_turn) = batch_of(entry)?;
        page.batches.push(batch);
        page.append_turn = append_turn;
    }
    Some(page)
}

fn batch_of(entry: Value) -> Option<(StoredBatch, Option<Author>)> {
    let Value::Array(entry) = entry else { return None };
    let [Value::BulkString(id), Value::Array(fields)] = <[Value; 2]>::try_from(entry).ok()? else {
        return None;
    };
    let [_, Value::BulkString(batch), Value::BulkString(field), Value::BulkString(record)] =
        <[Value; 4]>::try_from(fields).ok()?
    else {
        return None;
    };
    let version = version_of(&id)?;
    let append_turn = batch.get(16..).and_then(author_of);
    (field == b"r").then(|| (StoredBatch { version, record: record.into() }, append_turn))
}

/// The batches in an answer of XREAD from one stream: none when nothing came in time.
pub(crate) fn page_of_stream(value: Value) -> Option<LogPage> {
    let Value::Array(streams) = value else { return matches!(value, Value::Nil).then(LogPage::default) };
    let [Value::Array(stream)] = <[Value; 1]>::try_from(streams).ok()? else { return None };
    let [_, entries] = <[Value; 2]>::try_from(stream).ok()?;
    page_of(entries)
}
