//! Everything that the replicas, the store and the way between them hold, and which of it is alike.

pub(crate) const REPLICAS: usize = 3;
pub(crate) const TASKS: u8 = 3;
/// Histories of this many batches at most are looked at, by how much has gone wrong in them: six are a grant and an end
/// of each task.
pub(crate) const LOG_MAX: [usize; 5] = [6, 6, 4, 0, 0];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum What {
    Grant {
        task: u8,
        fence: u8,
    },
    Lapse {
        task: u8,
        fence: u8,
    },
    /// Reported under this fence.
    Done {
        task: u8,
        fence: u8,
    },
}

impl What {
    pub(crate) fn task(self) -> u8 {
        let (What::Grant { task, .. } | What::Lapse { task, .. } | What::Done { task, .. }) = self;
        task
    }
}

/// A batch, told apart from every other: by whom, at which version, in which of its lives, and before or after the loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Batch {
    pub(crate) by: u8,
    pub(crate) version: u8,
    pub(crate) era: u8,
    pub(crate) what: What,
    /// The one that it was decided on: by whom and when.
    pub(crate) after: Option<(u8, u8)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Replica {
    pub(crate) is_down: bool,
    /// What it has read.
    pub(crate) seen: Vec<Batch>,
    /// What it runs, even if no other process believes so.
    pub(crate) runs: Option<(u8, u8)>,
    /// What is under way to the store, and awaited.
    pub(crate) sent: Option<Batch>,
    /// What it gave up on: it may find that in the log yet.
    pub(crate) unsure: Option<Batch>,
    /// How often it has crashed or given up: it never uses a batch's name twice.
    pub(crate) lives: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct State {
    pub(crate) log: Vec<Batch>,
    pub(crate) replicas: [Replica; REPLICAS],
    /// Requests on their way whose sender died or gave up.
    pub(crate) late: Vec<Batch>,
    pub(crate) troubles: u8,
    pub(crate) has: Troubles,
}

/// What has gone wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Troubles {
    pub(crate) crash: bool,
    pub(crate) lapse: bool,
    pub(crate) given_up: bool,
    pub(crate) loss: bool,
}

impl State {
    /// Every batch that anybody knows of.
    pub(crate) fn batches(&self) -> impl Iterator<Item = &Batch> {
        let replicas = self.replicas.iter();
        let known =
            replicas.flat_map(|replica| replica.seen.iter().chain(&replica.sent).chain(&replica.unsure));
        self.log.iter().chain(&self.late).chain(known)
    }

    /// Whether a replica has done nothing that anybody could know of.
    pub(crate) fn is_fresh(&self, number: usize) -> bool {
        let is_its = |batch: &Batch| batch.by as usize == number;
        self.replicas[number] == Replica::default() && !self.batches().any(is_its)
    }

    /// Whether no process knows that this task was granted.
    pub(crate) fn is_untouched(&self, task: u8) -> bool {
        let runs = self.replicas.iter().filter_map(|replica| replica.runs);
        !self.batches().any(|batch| batch.what.task() == task) && runs.clone().all(|(run, _)| run != task)
    }

    /// Forgets requests that can never be accepted, as the log is longer for good.
    pub(crate) fn forget(&mut self) {
        let shortest = self.log.len() - usize::from(!self.has.loss && !self.log.is_empty());
        self.late.retain(|batch| batch.version as usize >= shortest);
        for replica in &mut self.replicas {
            let may_be_found = |batch: &Batch| self.log.contains(batch) || self.late.contains(batch);
            replica.unsure = replica.unsure.filter(may_be_found);
        }
    }

    /// The same with replicas and tasks numbered by what they have done, so that states that differ in numbers alone
    /// are one.
    pub(crate) fn renumbered(mut self) -> State {
        let mut replicas: Vec<u8> = (0..REPLICAS as u8).collect();
        replicas.sort_by_cached_key(|number| {
            let Replica { is_down, seen, runs, sent, unsure, lives } = &self.replicas[*number as usize];
            let asked = [sent, unsure].map(|batch| batch.map(|batch| (batch.version, batch.era, batch.what)));
            let its = |batches: &[Batch]| batches.iter().map(|batch| batch.by == *number).collect::<Vec<_>>();
            (its(&self.log), seen.len(), its(seen), *runs, asked, *is_down, *lives)
        });
        let mut tasks: Vec<u8> = (0..TASKS).collect();
        tasks.sort_by_key(|task| {
            let granted = self.log.iter().position(|batch| batch.what.task() == *task);
            (granted.unwrap_or(usize::MAX), *task)
        });
        if replicas.is_sorted() && tasks.is_sorted() {
            return self;
        }
        let place = |numbers: &[u8], number: u8| {
            numbers.iter().position(|other| *other == number).map_or(number, |place| place as u8)
        };
        let rename = |batch: &mut Batch| {
            batch.by = place(&replicas, batch.by);
            batch.after = batch.after.map(|(by, era)| (place(&replicas, by), era));
            let (What::Grant { task, .. } | What::Lapse { task, .. } | What::Done { task, .. }) =
                &mut batch.what;
            *task = place(&tasks, *task);
        };
        self.log.iter_mut().chain(&mut self.late).for_each(rename);
        for replica in &mut self.replicas {
            replica.seen.iter_mut().chain(&mut replica.sent).chain(&mut replica.unsure).for_each(rename);
            replica.runs = replica.runs.map(|(task, fence)| (place(&tasks, task), fence));
        }
        let mut old = std::mem::replace(&mut self.replicas, std::array::from_fn(|_| Replica::default()));
        for (place, number) in replicas.iter().enumerate() {
            self.replicas[place] = std::mem::take(&mut old[*number as usize]);
        }
        self
    }

    pub(crate) fn may_go_wrong(&self, has: bool) -> bool {
        !has && LOG_MAX[self.troubles as usize + 1] >= self.log.len().max(1)
    }
}
