//! A table whose entries are called by small numbers, and keep theirs until they go.

use std::ops::{Index, IndexMut};

use slab::Slab;

/// A slab: a freed number is the next one to be given, so a new entry lies where the last one was freed.
pub(crate) struct Table<T>(Slab<T>);

/// A byte of an entry in which the slab tells free entries from used ones, so that entries stay as small as their values.
#[derive(Clone, Copy, Default)]
#[repr(u8)]
pub(crate) enum Mark {
    #[default]
    Used,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table(Slab::new())
    }
}

impl<T> Table<T> {
    pub(crate) fn insert(&mut self, value: T) -> usize {
        self.0.insert(value)
    }

    /// Takes out an entry, which must be there.
    pub(crate) fn remove(&mut self, number: usize) -> T {
        self.0.remove(number)
    }

    pub(crate) fn get(&self, number: usize) -> Option<&T> {
        self.0.get(number)
    }

    pub(crate) fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        self.0.get_mut(number)
    }

    /// Entries in the order of their numbers.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (usize, &T)> {
        self.0.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        self.0.iter_mut()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Frees the memory behind the last entry.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.0.shrink_to_fit();
    }
}

impl<T> Index<usize> for Table<T> {
    type Output = T;

    fn index(&self, number: usize) -> &T {
        &self.0[number]
    }
}

impl<T> IndexMut<usize> for Table<T> {
    fn index_mut(&mut self, number: usize) -> &mut T {
        &mut self.0[number]
    }
}
