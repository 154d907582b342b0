//! A table whose entries are called by small numbers, and keep theirs until they go.

use std::ops::{Index, IndexMut};

const END: usize = usize::MAX;

/// A number that is free is the next one to be given, so what came last is found where the last one went: in the cache.
pub(crate) struct Table<T> {
    entries: Vec<Entry<T>>,
    len: usize,
    /// The first of the free numbers, which are a linked list, or `END`.
    free: usize,
}

/// Where in an entry it is told that it is used: in this, since it leaves more to tell than anything else does. What is
/// needed most is beside it, in one line of the cache.
#[derive(Clone, Copy, Default)]
#[repr(u8)]
pub(crate) enum Mark {
    #[default]
    Used,
}

enum Entry<T> {
    Free(usize),
    Used(T),
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { entries: Vec::new(), len: 0, free: END }
    }
}

impl<T> Table<T> {
    pub(crate) fn insert(&mut self, value: T) -> usize {
        self.len += 1;
        match self.entries.get_mut(self.free) {
            Some(entry) => {
                let number = self.free;
                if let Entry::Free(next) = entry {
                    self.free = *next;
                }
                *entry = Entry::Used(value);
                number
            }
            None => {
                self.entries.push(Entry::Used(value));
                self.entries.len() - 1
            }
        }
    }

    /// Takes out an entry, which must be there.
    pub(crate) fn remove(&mut self, number: usize) -> T {
        let entry = std::mem::replace(&mut self.entries[number], Entry::Free(self.free));
        match entry {
            Entry::Used(value) => {
                (self.free, self.len) = (number, self.len - 1);
                value
            }
            Entry::Free(_) => missing(number),
        }
    }

    pub(crate) fn get(&self, number: usize) -> Option<&T> {
        match self.entries.get(number)? {
            Entry::Used(value) => Some(value),
            Entry::Free(_) => None,
        }
    }

    pub(crate) fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        match self.entries.get_mut(number)? {
            Entry::Used(value) => Some(value),
            Entry::Free(_) => None,
        }
    }

    /// Entries in the order of their numbers.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (usize, &T)> {
        self.entries.iter().enumerate().filter_map(|(number, entry)| match entry {
            Entry::Used(value) => Some((number, value)),
            Entry::Free(_) => None,
        })
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        self.entries.iter_mut().enumerate().filter_map(|(number, entry)| match entry {
            Entry::Used(value) => Some((number, value)),
            Entry::Free(_) => None,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    /// Gives back what nothing is in.
    pub(crate) fn shrink_to_fit(&mut self) {
        if self.is_empty() {
            *self = Table::default();
        }
        self.entries.shrink_to_fit();
    }
}

impl<T> Index<usize> for Table<T> {
    type Output = T;

    fn index(&self, number: usize) -> &T {
        match &self.entries[number] {
            Entry::Used(value) => value,
            Entry::Free(_) => missing(number),
        }
    }
}

impl<T> IndexMut<usize> for Table<T> {
    fn index_mut(&mut self, number: usize) -> &mut T {
        match &mut self.entries[number] {
            Entry::Used(value) => value,
            Entry::Free(_) => missing(number),
        }
    }
}

#[cold]
#[expect(clippy::panic, reason = "numbers come from this very table, as indexes of a slice do")]
fn missing(number: usize) -> ! {
    panic!("there is no entry {number}")
}
