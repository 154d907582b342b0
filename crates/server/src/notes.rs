//! Notes in the log, which all replicas share: how the server changes them, reads them and follows their changes.

use std::sync::Arc;

use laneway_core::{Event, Note, NoteChange, Rejection, Scheduler};
use laneway_engine::{Error, Handle};

use crate::http::error::ApiResult;

/// Changes notes if they are as expected. Returns whether they were.
pub(crate) async fn change(handle: &Handle, expected: Vec<Note>, changes: Vec<Note>) -> ApiResult<bool> {
    match handle.note(NoteChange { expected, changes }).await {
        Ok(()) => Ok(true),
        Err(Error::Rejected(Rejection::NoteChanged { .. })) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The notes under a prefix, each by the rest of its key.
pub(crate) fn kept<'a>(
    lanes: &'a Scheduler,
    prefix: &'a str,
) -> impl Iterator<Item = (&'a str, &'a Arc<str>)> {
    lanes.notes(prefix).filter_map(move |(key, text)| Some((key.strip_prefix(prefix)?, text)))
}

/// The notes under a prefix that an event changes, each by the rest of its key. A removed note has no text.
pub(crate) fn changed<'a>(
    event: &'a Event,
    prefix: &'a str,
) -> impl Iterator<Item = (&'a str, Option<&'a Arc<str>>)> {
    let changes = match event {
        Event::Noted { changes } => &changes[..],
        _ => &[],
    };
    changes.iter().filter_map(move |(key, text)| Some((key.strip_prefix(prefix)?, text.as_ref())))
}
