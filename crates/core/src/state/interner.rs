//! What sort of work the live tasks are, each sort kept once.

use crate::api::name::Name;
use crate::api::owner::ReplicaId;
use crate::state::hash_index::HashIndex;
use crate::state::table::{Idx, Table};

pub(super) type KindIdx = Idx<Kind>;

pub(crate) struct Kind {
    name: Name,
    /// The replica whose program holds slots of this kind. It is kept here, because many tasks share it.
    slot_of: Option<ReplicaId>,
    /// How many tasks are of this kind.
    tasks: u32,
}

pub(crate) struct Kinds {
    kinds: Table<Kind>,
    by_name: HashIndex<Kind>,
    /// The kind of the last task that came: most often of the next one too. Kept although no task may be of it.
    recent: Option<KindIdx>,
}

impl Kind {
    fn is(&self, name: &Name, slot_of: Option<ReplicaId>) -> bool {
        self.name == *name && self.slot_of == slot_of
    }
}

impl Kinds {
    pub(super) fn new(seed: u64) -> Kinds {
        Kinds { kinds: Table::default(), by_name: HashIndex::new(seed), recent: None }
    }

    pub(crate) fn name(&self, kind: KindIdx) -> &Name {
        &self.kinds[kind].name
    }

    /// The replica whose program holds the tasks of this kind as slots.
    pub(crate) fn slot_of(&self, kind: KindIdx) -> Option<ReplicaId> {
        self.kinds[kind].slot_of
    }

    /// One more task is of the kind called `name`; `slot_of`: as a slot of this replica's program.
    #[inline]
    pub(crate) fn join(&mut self, name: &Name, slot_of: Option<ReplicaId>) -> KindIdx {
        if let Some(recent) = self.recent
            && self.kinds[recent].is(name, slot_of)
        {
            self.kinds[recent].tasks += 1;
            return recent;
        }
        self.join_another(name, slot_of)
    }

    /// The same for a kind other than the last one.
    #[inline(never)]
    fn join_another(&mut self, name: &Name, slot_of: Option<ReplicaId>) -> KindIdx {
        let hash = self.by_name.hash((name, slot_of));
        let kind = self.by_name.find(hash, |kind| self.kinds[kind].is(name, slot_of));
        let kind = kind.unwrap_or_else(|| self.add(name, slot_of, hash));
        self.kinds[kind].tasks += 1;
        if let Some(last) = self.recent.replace(kind) {
            self.drop_if_unused(last);
        }
        kind
    }

    fn add(&mut self, name: &Name, slot_of: Option<ReplicaId>, hash: u64) -> KindIdx {
        let kind = self.kinds.insert(Kind { name: name.clone(), slot_of, tasks: 0 });
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
            self.by_name.remove(self.by_name.hash((&gone.name, gone.slot_of)), kind);
        }
    }

    /// The names of the kinds of which there are tasks, slots not counted.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Name> {
        let kinds = self.kinds.iter().map(|(_, kind)| kind);
        kinds.filter(|kind| kind.tasks > 0 && kind.slot_of.is_none()).map(|kind| &kind.name)
    }

    /// For the checks: how many kinds there are tasks of.
    pub(crate) fn len(&self) -> usize {
        let is_unused = self.recent.is_some_and(|recent| self.kinds[recent].tasks == 0);
        self.kinds.len() - usize::from(is_unused)
    }
}
