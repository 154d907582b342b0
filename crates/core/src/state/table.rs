//! Tables whose entries have a typed index, which they keep as long as they live.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::num::NonZeroU32;

use slab::Slab;

/// Where an entry is in a `Table<T>`. It indexes no other table, and an `Option` of it is as small as the index.
pub struct Idx<T> {
    /// Its number plus one, so that there is a value left for `None`.
    one_based: NonZeroU32,
    table: PhantomData<fn() -> T>,
}

impl<T> Idx<T> {
    pub(crate) const fn new(number: usize) -> Idx<T> {
        Idx { one_based: NonZeroU32::MIN.saturating_add(number as u32), table: PhantomData }
    }

    pub(super) fn number(self) -> usize {
        self.one_based.get() as usize - 1
    }
}

impl<T> Clone for Idx<T> {
    fn clone(&self) -> Idx<T> {
        *self
    }
}

impl<T> Copy for Idx<T> {}

impl<T> PartialEq for Idx<T> {
    fn eq(&self, other: &Idx<T>) -> bool {
        self.one_based == other.one_based
    }
}

impl<T> Eq for Idx<T> {}

impl<T> PartialOrd for Idx<T> {
    fn partial_cmp(&self, other: &Idx<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Idx<T> {
    fn cmp(&self, other: &Idx<T>) -> Ordering {
        self.one_based.cmp(&other.one_based)
    }
}

impl<T> Hash for Idx<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.one_based.hash(state);
    }
}

impl<T> fmt::Debug for Idx<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.number())
    }
}

/// A slab: the next entry takes the place that was freed last, so that it is in the cache.
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
    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> Idx<T> {
        Idx::new(self.0.insert(value))
    }

    /// Takes out an entry, which must be there.
    pub(crate) fn remove(&mut self, index: Idx<T>) -> T {
        self.0.remove(index.number())
    }

    pub(crate) fn get(&self, index: Idx<T>) -> Option<&T> {
        self.0.get(index.number())
    }

    /// Entries in the order of their indexes.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (Idx<T>, &T)> {
        self.0.iter().map(|(number, value)| (Idx::new(number), value))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (Idx<T>, &mut T)> {
        self.0.iter_mut().map(|(number, value)| (Idx::new(number), value))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Frees the memory behind the last entry.
    pub(super) fn shrink_to_fit(&mut self) {
        self.0.shrink_to_fit();
    }
}

impl<T> std::ops::Index<Idx<T>> for Table<T> {
    type Output = T;

    fn index(&self, index: Idx<T>) -> &T {
        &self.0[index.number()]
    }
}

impl<T> std::ops::IndexMut<Idx<T>> for Table<T> {
    fn index_mut(&mut self, index: Idx<T>) -> &mut T {
        &mut self.0[index.number()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_optional_index_takes_four_bytes() {
        assert_eq!(size_of::<Option<Idx<String>>>(), 4);
    }
}
