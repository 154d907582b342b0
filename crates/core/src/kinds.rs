//! The kinds of live tasks, each name kept once.

use std::hash::BuildHasher;

use slab::Slab;

use crate::index::Index;
use crate::name::Name;

pub(crate) struct Kinds {
    kinds: Slab<(Name, u32)>,
    index: Index,
}

impl Kinds {
    pub(crate) fn new(seed: u64) -> Kinds {
        Kinds { kinds: Slab::new(), index: Index::new(seed) }
    }

    pub(crate) fn name(&self, kind: u32) -> &Name {
        &self.kinds[kind as usize].0
    }

    /// One more task is of the kind called `name`.
    pub(crate) fn join(&mut self, name: &Name) -> u32 {
        let hash = self.index.hash(name);
        let kind = self.index.find(hash, |kind| self.kinds[kind as usize].0 == *name);
        let kind = kind.unwrap_or_else(|| {
            let kind = self.kinds.insert((name.clone(), 0)) as u32;
            let kinds = &self.kinds;
            self.index.insert(hash, kind, |hasher, kind| hasher.hash_one(&kinds[kind as usize].0));
            kind
        });
        self.kinds[kind as usize].1 += 1;
        kind
    }

    /// One task less is of this kind.
    pub(crate) fn leave(&mut self, kind: u32) {
        self.kinds[kind as usize].1 -= 1;
        if self.kinds[kind as usize].1 == 0 {
            let (name, _) = self.kinds.remove(kind as usize);
            self.index.remove(self.index.hash(&name), kind);
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &Name> {
        self.kinds.iter().map(|(_, (name, _))| name)
    }

    pub(crate) fn len(&self) -> usize {
        self.kinds.len()
    }
}
