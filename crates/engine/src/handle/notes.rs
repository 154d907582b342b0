//! Notes: short texts that programs keep with the work.

use std::sync::Arc;

use laneway_core::{Command, NoteChange};

use crate::error::Error;
use crate::handle::Handle;

impl Handle {
    /// Changes notes, which all programs that share the queue see. If one is not as the change expects, none changes
    /// ([`Rejection::NoteChanged`](laneway_core::Rejection)).
    pub async fn note(&self, change: NoteChange) -> Result<(), Error> {
        self.ask(Command::Note(Box::new(change))).await.map(drop)
    }

    /// The notes whose keys begin so, in the order of their keys.
    pub async fn notes(&self, prefix: impl Into<String>) -> Result<Vec<(Arc<str>, Arc<str>)>, Error> {
        let prefix = prefix.into();
        let own = |(key, text): (&Arc<str>, &Arc<str>)| (Arc::clone(key), Arc::clone(text));
        self.read(move |lanes| lanes.notes(&prefix).map(own).collect()).await
    }
}
