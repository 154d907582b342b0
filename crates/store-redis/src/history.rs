//! Finished tasks.

use bytes::Bytes;
use laneway_core::TaskId;
use laneway_store::{HistoryPosition, HistoryQuery, Retention, StoreError, StoredFinished};
use laneway_store_remote::Backend;
use redis::{Cmd, Value, cmd};

use crate::backend::Redis;
use crate::keys::{Member, joined, place_bytes};

/// The most tasks that one step forgets.
const TRIM_STEP: usize = 512;
/// The most tasks that one step of a search by label reads.
const SEARCH_STEP: usize = 256;

impl Redis {
    pub(crate) async fn read_finished(&self, task: TaskId) -> Result<Option<StoredFinished>, StoreError> {
        let mut command = cmd("HMGET");
        command.arg(self.keys.done(task)).arg("m").arg("r").arg("s");
        self.finished_of(self.send(&command).await?)
    }

    pub(crate) async fn read_results(&self, tasks: &[TaskId]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let command = |task: &TaskId| cmd("HGET").arg(self.keys.done(*task)).arg("s").to_owned();
        let commands: Vec<Cmd> = tasks.iter().map(command).collect();
        let result = |answer| match answer {
            Value::Nil => Ok(None),
            Value::BulkString(result) => Ok(Some(result.into())),
            _ => Err(self.malformed("a finished task")),
        };
        self.send_all(&commands).await?.into_iter().map(result).collect()
    }

    pub(crate) async fn list_finished(&self, query: HistoryQuery) -> Result<Vec<StoredFinished>, StoreError> {
        let mut listed = Vec::new();
        let (mut before, max) = (query.before, query.max as usize);
        // The list still contains tasks that have expired, and tasks with other labels.
        while listed.len() < max {
            let wanted = if query.labels.is_empty() { max - listed.len() } else { SEARCH_STEP };
            let members = self.members_before(before, wanted).await?;
            let Some(last) = members.last() else { break };
            before = Some(last.place);
            listed.extend(self.without_results(&members, &query.labels).await?);
        }
        listed.truncate(max);
        Ok(listed)
    }

    async fn members_before(
        &self,
        before: Option<HistoryPosition>,
        max: usize,
    ) -> Result<Vec<Member>, StoreError> {
        let end = match before {
            Some(place) => [b"(", &place_bytes(place)[..]].concat(),
            None => b"+".to_vec(),
        };
        let mut command = cmd("ZREVRANGEBYLEX");
        command.arg(&self.keys.history).arg(end).arg("-").arg("LIMIT").arg(0).arg(max);
        self.members_of(self.send(&command).await?)
    }

    fn members_of(&self, value: Value) -> Result<Vec<Member>, StoreError> {
        let Value::Array(members) = value else { return Err(self.malformed("the history")) };
        let member = |value| match value {
            Value::BulkString(bytes) => Member::of(&Bytes::from(bytes)),
            _ => None,
        };
        let members: Option<Vec<Member>> = members.into_iter().map(member).collect();
        members.ok_or_else(|| self.malformed("the history"))
    }

    async fn without_results(
        &self,
        members: &[Member],
        labels: &[Box<str>],
    ) -> Result<Vec<StoredFinished>, StoreError> {
        let mut listed = Vec::with_capacity(members.len());
        let commands: Vec<_> = members
            .iter()
            .map(|member| {
                let key = self.keys.done(member.task);
                cmd("HMGET").arg(key).arg("m").arg("r").arg("l").to_owned()
            })
            .collect();
        for fields in self.send_all(&commands).await? {
            // The labels are in the place of the result.
            let Some(found) = self.finished_of(fields)? else { continue };
            let text = found.result.unwrap_or_default();
            if labels.iter().all(|label| contains(&text, joined(std::slice::from_ref(label)).as_bytes())) {
                listed.push(StoredFinished { result: None, ..found });
            }
        }
        Ok(listed)
    }

    /// A task from its fields: its member, its record and, optionally, its result.
    fn finished_of(&self, fields: Value) -> Result<Option<StoredFinished>, StoreError> {
        let Value::Array(fields) = fields else { return Err(self.malformed("a finished task")) };
        let mut fields = fields.into_iter();
        let result = |value: Option<Value>| match value {
            Some(Value::BulkString(result)) => Some(Bytes::from(result)),
            _ => None,
        };
        match (fields.next(), fields.next()) {
            (Some(Value::Nil), Some(Value::Nil)) => Ok(None),
            (Some(Value::BulkString(member)), Some(Value::BulkString(record))) => {
                let member = Member::of(&member.into()).ok_or_else(|| self.malformed("a finished task"))?;
                let Member { place, ended, task } = member;
                let (record, result) = (record.into(), result(fields.next()));
                Ok(Some(StoredFinished { task, ended, place, record, result, labels: Vec::new() }))
            }
            _ => Err(self.malformed("a finished task")),
        }
    }

    pub(crate) async fn trim_finished(&self, keep: Retention) -> Result<u64, StoreError> {
        let mut removed = 0;
        loop {
            let Value::Int(count) = self.send(cmd("ZCARD").arg(&self.keys.history)).await? else {
                return Err(self.malformed("the history"));
            };
            let surplus = keep.count_max.map_or(0, |max| (count as u64).saturating_sub(max));
            let oldest = self.send(cmd("ZRANGE").arg(&self.keys.history).arg(0).arg(TRIM_STEP - 1)).await?;
            let oldest = self.members_of(oldest)?;
            let goes = |(index, member): &(usize, &Member)| {
                (*index as u64) < surplus || keep.ended_since.is_some_and(|since| member.ended < since)
            };
            let gone: Vec<&Member> =
                oldest.iter().enumerate().take_while(goes).map(|(_, member)| member).collect();
            if gone.is_empty() {
                return Ok(removed);
            }
            removed += self.forget(&gone).await?;
            if gone.len() < oldest.len() || oldest.len() < TRIM_STEP {
                return Ok(removed);
            }
        }
    }

    /// Removes the tasks before the list that names them: a list may name tasks that are gone.
    async fn forget(&self, gone: &[&Member]) -> Result<u64, StoreError> {
        let mut unlink = cmd("UNLINK");
        let mut remove = cmd("ZREM");
        remove.arg(&self.keys.history);
        for member in gone {
            unlink.arg(self.keys.done(member.task));
            remove.arg(member.bytes());
        }
        self.send(&unlink).await?;
        match self.send(&remove).await? {
            Value::Int(removed) => Ok(removed as u64),
            _ => Err(self.malformed("the history")),
        }
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
