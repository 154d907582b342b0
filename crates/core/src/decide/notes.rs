//! Notes: short texts that programs keep under keys, shared by all replicas of the log.

use std::ops::Bound;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::api::command::Reply;
use crate::api::event::Event;
use crate::api::rejection::Rejection;
use crate::scheduler::Scheduler;
use crate::state::notes::bytes;
use crate::step::Step;

/// The longest note, its key with its text, in bytes.
pub const NOTE_BYTES_MAX: usize = 512 * 1024;
/// All notes together, in bytes.
pub const NOTES_BYTES_MAX: u64 = 64 << 20;
/// The most notes that are changed at once.
pub const NOTE_CHANGES_MAX: usize = 10_000;

/// A key and its text; `None`: it has none.
pub type Note = (Arc<str>, Option<Arc<str>>);

/// A change of notes. It is made whole if all `expected` notes match, and else not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteChange {
    /// The notes that must match.
    pub expected: Vec<Note>,
    /// The notes to set or remove.
    pub changes: Vec<Note>,
}

impl Step<'_> {
    pub(super) fn change_notes(&mut self, change: NoteChange) -> Result<Reply, Rejection> {
        let NoteChange { expected, mut changes } = change;
        if changes.len() > NOTE_CHANGES_MAX {
            return Err(Rejection::NotesFull);
        }
        let is_so = |(key, text): &Note| self.state.notes.get(key) == text.as_ref();
        if let Some((key, _)) = expected.iter().find(|note| !is_so(note)) {
            return Err(Rejection::NoteChanged { key: Arc::clone(key) });
        }
        changes.retain(|note| !is_so(note));
        let mut after = self.state.notes.bytes;
        for (key, text) in &changes {
            let new = text.as_ref().map_or(0, |text| bytes(key, text));
            if new > NOTE_BYTES_MAX as u64 {
                return Err(Rejection::NotesFull);
            }
            let old = self.state.notes.get(key).map_or(0, |text| bytes(key, text));
            after = (after + new).saturating_sub(old);
        }
        if after > NOTES_BYTES_MAX && after > self.state.notes.bytes {
            return Err(Rejection::NotesFull);
        }
        if !changes.is_empty() {
            self.emit(Event::Noted { changes });
        }
        Ok(Reply::Done)
    }
}

impl Scheduler {
    /// The text under a key.
    pub fn note(&self, key: &str) -> Option<&Arc<str>> {
        self.state.notes.get(key)
    }

    /// The notes whose keys begin with `prefix`, in the order of their keys.
    pub fn notes(&self, prefix: &str) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        self.state.notes.texts.range::<str, _>(from).take_while(move |(key, _)| key.starts_with(prefix))
    }
}
