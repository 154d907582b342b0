//! What most have not: a box that is only there when something in it is out of the ordinary.

use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};

/// Something with an ordinary value that all who have nothing else share.
pub(crate) trait SharedDefault: Default + PartialEq + 'static {
    /// That value.
    fn shared_default() -> &'static Self;
}

/// Reads as the ordinary value until it is written to, and takes eight bytes as long.
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
    /// Gives the box back if there is nothing in it any more. Needed after writing, so that equal things are equal.
    pub(crate) fn tidy(&mut self) {
        if self.0.as_deref().is_some_and(|value| value == T::shared_default()) {
            self.0 = None;
        }
    }
}
