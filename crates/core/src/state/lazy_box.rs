//! A lazily allocated box that derefs to a shared default until written.

use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};

/// A type with a default value that all unwritten boxes share.
pub(crate) trait SharedDefault: Default + PartialEq + 'static {
    /// The shared value.
    fn shared_default() -> &'static Self;
}

/// Reads as the shared default until it is written to, and takes only eight bytes until then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct LazyBox<T>(Option<Box<T>>);

impl<T> Default for LazyBox<T> {
    fn default() -> LazyBox<T> {
        LazyBox(None)
    }
}

impl<T: SharedDefault> Deref for LazyBox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or_else(|| T::shared_default())
    }
}

impl<T: SharedDefault> DerefMut for LazyBox<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

impl<T: SharedDefault> LazyBox<T> {
    /// Drops the box if it holds the default. Call it after writing, so that equal values compare equal.
    pub(crate) fn tidy(&mut self) {
        if self.0.as_deref().is_some_and(|value| value == T::shared_default()) {
            self.0 = None;
        }
    }
}
