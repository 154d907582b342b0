//! The kinds of live tasks, each name kept once.

use crate::api::name::Name;
use crate::state::hash_index::HashIndex;
use crate::state::table::{Idx, Table};

pub(crate) type KindIdx = Idx<Kind>;

pub(crate) struct Kind {
    name: Name,
    /// How many tasks are of this kind.
    tasks: u32,
}

pub(crate) struct Kinds {
    kinds: Table<Kind>,
    by_name: HashIndex<Kind>,
    /// The kind of the last task that came: most often of the next one too. Kept although no task may be of it.
    recent: Option<KindIdx>,
}

impl Kinds {
    pub(crate) fn new(seed: u64) -> Kinds {
        Kinds { kinds: Table::default(), by_name: HashIndex::new(seed), recent: None }
    }

    pub(crate) fn name(&self, kind: KindIdx) -> &Name {
        &self.kinds[kind].name
    }

    /// One more task is of the kind called `name`.
    #[inline]
    pub(crate) fn join(&mut self, name: &Name) -> KindIdx {
        if let Some(recent) = self.recent
            && self.kinds[recent].name == *name
        {
            self.kinds[recent].tasks += 1;
            return recent;
        }
        self.join_another(name)
    }

    /// The same for a name other than the last one.
    #[inline(never)]
    fn join_another(&mut self, name: &Name) -> KindIdx {
        let hash = self.by_name.hash(name);
        let kind = self.by_name.find(hash, |kind| self.kinds[kind].name == *name);
        let kind = kind.unwrap_or_else(|| self.add(name, hash));
        self.kinds[kind].tasks += 1;
        if let Some(last) = self.recent.replace(kind) {
            self.drop_if_unused(last);
        }
        kind
    }

    fn add(&mut self, name: &Name, hash: u64) -> KindIdx {
        let kind = self.kinds.insert(Kind { name: name.clone(), tasks: 0 });
        self.by_name.insert(hash, kind);
        kind
    }

    /// One task less is of this kind.
    pub(crate) fn leave(&mut self, kind: KindIdx) {
        let tasks = &mut self.kinds[kind].tasks;
        *tasks -= 1;
        if *tasks == 0 && self.recent != Some(kind) {
            self.drop_if_unused(kind);
        }
    }

    fn drop_if_unused(&mut self, kind: KindIdx) {
        if self.kinds[kind].tasks == 0 {
            let gone = self.kinds.remove(kind);
            self.by_name.remove(self.by_name.hash(&gone.name), kind);
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &Name> {
        self.kinds.iter().filter(|(_, kind)| kind.tasks > 0).map(|(_, kind)| &kind.name)
    }

    /// For the checks: how many kinds there are tasks of.
    pub(crate) fn len(&self) -> usize {
        let is_unused = self.recent.is_some_and(|recent| self.kinds[recent].tasks == 0);
        self.kinds.len() - usize::from(is_unused)
    }
}
