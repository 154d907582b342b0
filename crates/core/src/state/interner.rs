//! The kinds of live tasks, each name kept once.

use crate::api::name::Name;
use crate::state::index::Index;
use crate::state::ready_tree::NONE;
use crate::state::table::Table;

pub(crate) struct Kinds {
    /// Each with how many tasks are of it.
    kinds: Table<(Name, u32)>,
    index: Index,
    /// The kind of the last task that came: most often of the next one too. Kept although no task may be of it.
    recent: u32,
}

impl Kinds {
    pub(crate) fn new(seed: u64) -> Kinds {
        Kinds { kinds: Table::default(), index: Index::new(seed), recent: NONE }
    }

    pub(crate) fn name(&self, kind: u32) -> &Name {
        &self.kinds[kind as usize].0
    }

    /// One more task is of the kind called `name`.
    #[inline]
    pub(crate) fn join(&mut self, name: &Name) -> u32 {
        if let Some((recent, tasks)) = self.kinds.get_mut(self.recent as usize)
            && recent == name
        {
            *tasks += 1;
            return self.recent;
        }
        self.join_another(name)
    }

    /// The same for a name other than the last one.
    #[inline(never)]
    fn join_another(&mut self, name: &Name) -> u32 {
        let hash = self.index.hash(name);
        let kind = self.index.find(hash, |kind| self.kinds[kind as usize].0 == *name);
        let kind = kind.unwrap_or_else(|| self.add(name, hash));
        self.kinds[kind as usize].1 += 1;
        let last = std::mem::replace(&mut self.recent, kind);
        self.drop_if_unused(last);
        kind
    }

    fn add(&mut self, name: &Name, hash: u64) -> u32 {
        let kind = self.kinds.insert((name.clone(), 0)) as u32;
        self.index.insert(hash, kind);
        kind
    }

    /// One task less is of this kind.
    pub(crate) fn leave(&mut self, kind: u32) {
        let tasks = &mut self.kinds[kind as usize].1;
        *tasks -= 1;
        if *tasks == 0 && kind != self.recent {
            self.drop_if_unused(kind);
        }
    }

    fn drop_if_unused(&mut self, kind: u32) {
        if self.kinds.get(kind as usize).is_some_and(|(_, tasks)| *tasks == 0) {
            let (name, _) = self.kinds.remove(kind as usize);
            self.index.remove(self.index.hash(&name), kind);
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &Name> {
        self.kinds.iter().filter(|(_, (_, tasks))| *tasks > 0).map(|(_, (name, _))| name)
    }

    /// For the checks: how many kinds there are tasks of.
    pub(crate) fn len(&self) -> usize {
        let is_unused = self.kinds.get(self.recent as usize).is_some_and(|(_, tasks)| *tasks == 0);
        self.kinds.len() - usize::from(is_unused)
    }
}
