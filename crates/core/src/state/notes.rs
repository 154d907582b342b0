//! Notes: short texts that programs keep with the queue.

use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) texts: BTreeMap<Arc<str>, Arc<str>>,
    pub(crate) bytes: u64,
}

pub(crate) fn bytes(key: &str, text: &str) -> u64 {
    (key.len() + text.len()) as u64
}

impl Notes {
    pub(crate) fn get(&self, key: &str) -> Option<&Arc<str>> {
        self.texts.get(key)
    }

    pub(crate) fn set(&mut self, key: &Arc<str>, text: Option<&Arc<str>>) {
        if let Some(old) = self.texts.remove(key) {
            self.bytes -= bytes(key, &old);
        }
        if let Some(text) = text {
            self.bytes += bytes(key, text);
            self.texts.insert(Arc::clone(key), Arc::clone(text));
        }
    }

    pub(super) fn save(&self) -> Vec<(Arc<str>, Arc<str>)> {
        self.texts.iter().map(|(key, text)| (Arc::clone(key), Arc::clone(text))).collect()
    }

    pub(super) fn restore(saved: &[(Arc<str>, Arc<str>)]) -> Notes {
        let mut notes = Notes::default();
        saved.iter().for_each(|(key, text)| notes.set(key, Some(text)));
        notes
    }
}
