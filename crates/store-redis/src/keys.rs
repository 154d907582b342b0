//! What is stored under which key, and in which form.
//!
//! | key | type | holds |
//! |---|---|---|
//! | `laneway:{ns}:layout` | string | the number of this layout |
//! | `laneway:{ns}:head` | string | where the log ends: version (8 bytes, big endian), batch (16) |
//! | `laneway:{ns}:log` | stream | batches; the id of an entry is `<version>-0`, its fields `b` (batch, and then to whom it passed the append turn) and `r` (record) |
//! | `laneway:{ns}:line` | list | the authors (8 bytes each) in line for the append turn |
//! | `laneway:{ns}:snapshot` | hash | the newest complete snapshot: `h` (head), `k` (key of its parts), `n` (how many) |
//! | `laneway:{ns}:parts:<random>` | list | the parts of a snapshot; expires if it is never completed |
//! | `laneway:{ns}:blob:<id>` | string | a payload |
//! | `laneway:{ns}:history` | sorted set | the finished tasks by place; see [`Member`] |
//! | `laneway:{ns}:done:<task>` | hash | a finished task: `m` (its member), `r` (record), `l` (labels), `s` (result) |
//!
//! What replicas publish goes over the channel `laneway:{ns}:published`.
//!
//! The braces make a cluster keep all keys of a namespace on one node, where a script can reach them.

use bytes::Bytes;
use laneway_core::{BlobId, TaskId, Timestamp};
use laneway_store::{Author, BatchId, Head, HistoryPosition, Version};
use laneway_store_remote::escape;

/// The layout that this program makes and reads. Another one is refused.
pub(crate) const LAYOUT: u32 = 1;

/// The keys of one namespace.
pub(crate) struct Keys {
    prefix: String,
    pub(crate) layout: String,
    pub(crate) head: String,
    pub(crate) log: String,
    pub(crate) line: String,
    pub(crate) snapshot: String,
    pub(crate) history: String,
    /// A channel, no key.
    pub(crate) published: String,
}

impl Keys {
    /// The keys of a namespace. Letters, digits, `.`, `_` and `-` of its name stay as they are.
    pub(crate) fn of(namespace: &str) -> Keys {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let prefix = format!("laneway:{{{}}}:", escape(namespace, '%', is_plain));
        let key = |name| format!("{prefix}{name}");
        Keys {
            layout: key("layout"),
            head: key("head"),
            log: key("log"),
            line: key("line"),
            snapshot: key("snapshot"),
            history: key("history"),
            published: key("published"),
            prefix,
        }
    }

    pub(crate) fn blob(&self, id: BlobId) -> String {
        format!("{}blob:{:032x}", self.prefix, id.0)
    }

    pub(crate) fn done(&self, task: TaskId) -> String {
        format!("{}done:{:032x}", self.prefix, task.0)
    }

    pub(crate) fn parts(&self, random: u64) -> String {
        format!("{}parts:{random:016x}", self.prefix)
    }
}

/// The id of the entry that brings the log to this version.
pub(crate) fn entry_id(version: Version) -> String {
    format!("{}-0", version.0)
}

/// The version that an entry with this id brings the log to.
pub(crate) fn version_of(id: &[u8]) -> Option<Version> {
    let id = std::str::from_utf8(id).ok()?.strip_suffix("-0")?;
    id.parse().ok().map(Version)
}

/// A head as it is stored. That of an empty log is empty: there is no such key.
pub(crate) fn head_bytes(head: Head) -> Vec<u8> {
    if head == Head::EMPTY {
        return Vec::new();
    }
    [&head.version.0.to_be_bytes()[..], &head.batch.0.to_be_bytes()].concat()
}

/// A head from its bytes; `None`: they are something else.
pub(crate) fn head_of(bytes: &[u8]) -> Option<Head> {
    if bytes.is_empty() {
        return Some(Head::EMPTY);
    }
    let (version, batch) = bytes.split_first_chunk()?;
    let batch = batch.try_into().ok()?;
    let head =
        Head { version: Version(u64::from_be_bytes(*version)), batch: BatchId(u128::from_be_bytes(batch)) };
    Some(head)
}

/// An author as the scripts take it; that of no replica is empty.
pub(crate) fn author_bytes(author: Author) -> Vec<u8> {
    match author {
        Author(0) => Vec::new(),
        Author(author) => author.to_be_bytes().to_vec(),
    }
}

/// An author from its bytes.
pub(crate) fn author_of(bytes: &[u8]) -> Option<Author> {
    bytes.try_into().ok().map(u64::from_be_bytes).map(Author)
}

/// A finished task in the sorted set, where the order of bytes is the order of places: version (8 bytes), index (4),
/// when it ended (8), task (16), all big endian.
pub(crate) struct Member {
    pub(crate) place: HistoryPosition,
    pub(crate) ended: Timestamp,
    pub(crate) task: TaskId,
}

impl Member {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let start = place_bytes(self.place);
        [&start[..], &self.ended.0.to_be_bytes(), &self.task.0.to_be_bytes()].concat()
    }

    pub(crate) fn of(bytes: &Bytes) -> Option<Member> {
        let (version, rest) = bytes.split_first_chunk()?;
        let (index, rest) = rest.split_first_chunk()?;
        let (ended, task) = rest.split_first_chunk()?;
        let place = HistoryPosition {
            version: Version(u64::from_be_bytes(*version)),
            index: u32::from_be_bytes(*index),
        };
        let task = TaskId(u128::from_be_bytes(task.try_into().ok()?));
        Some(Member { place, ended: Timestamp(u64::from_be_bytes(*ended)), task })
    }
}

/// Labels in one text, each between two line ends. A label has no control characters.
pub(crate) fn joined(labels: &[Box<str>]) -> String {
    labels.iter().fold("\n".to_owned(), |all, label| all + label + "\n")
}

/// What the member of a place begins with.
pub(crate) fn place_bytes(place: HistoryPosition) -> Vec<u8> {
    [&place.version.0.to_be_bytes()[..], &place.index.to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_only_text() {
        assert_eq!(Keys::of("team-1").log, "laneway:{team-1}:log");
        assert_eq!(Keys::of("a}:b{ \u{e9}").log, "laneway:{a%7d%3ab%7b%20%c3%a9}:log");
        assert_ne!(Keys::of("a%7d").log, Keys::of("a}").log);
    }

    #[test]
    fn heads_and_members_come_back() {
        let head = Head { version: Version(7), batch: BatchId(u128::MAX - 1) };
        assert_eq!(head_of(&head_bytes(head)), Some(head));
        assert_eq!(head_of(&head_bytes(Head::EMPTY)), Some(Head::EMPTY));
        assert_eq!(head_of(b"short"), None);
        let place = HistoryPosition { version: Version(3), index: 9 };
        let member = Member { place, ended: Timestamp(5), task: TaskId(77) };
        let back = Member::of(&member.bytes().into()).unwrap();
        assert_eq!((back.place, back.ended, back.task), (place, Timestamp(5), TaskId(77)));
    }
}
