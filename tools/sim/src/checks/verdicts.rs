//! What is made of what happens: every batch is checked when it is written, and everybody who is in trouble is known.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use laneway_core::{Owner, Snapshot, TaskId};
use laneway_store::{Append, Author, Head, Store, StoreError, StoredSnapshot, Version};

use crate::checks::log_checker::Checker;
use crate::kind::Kind;
use crate::network::shared_log::now;
use crate::world::World;
use crate::{EPOCH_MS, LEASE_MS};

impl World {
    pub(crate) fn append(&mut self, replica: usize, life: u32, append: Append) -> Result<Head, StoreError> {
        let append = self.tamper_with_append(replica, append);
        let author = append.batch.author().0;
        self.authors.insert(author, (replica, life));
        let (before, expected, record) = (self.shared.head(), append.expected.version, append.record.clone());
        let (answer, has_grown) = self.shared.append(append);
        if has_grown {
            self.stir_bytes(&record);
            self.count_append_turn();
            self.check_program(replica, life, expected);
            self.hear_of(author, replica, life);
            self.check_after(before, replica);
            self.tell_all();
        }
        answer
    }

    /// A replica that dies or stands still does so in line for the append turn: the next batch passes it to one that does
    /// not take it.
    pub(crate) fn request_append_turn(&mut self, replica: usize) {
        let life = (replica, self.replicas[replica].life);
        if let Some((author, _)) = self.authors.iter().find(|(_, whose)| **whose == life) {
            let stands = now(self.shared.memory.request_append_turn(Author(*author)));
            debug_assert_eq!(stands, Ok(()));
        }
    }

    fn count_append_turn(&mut self) {
        let Some((_, Some(author))) = self.shared.memory.newest() else { return };
        self.append_turns.0 += 1;
        let is_alive = |(replica, life): &(usize, u32)| self.replicas[*replica].life == *life;
        if !self.authors.get(&author.0).is_some_and(is_alive) {
            self.append_turns.1 += 1;
        }
    }

    /// A program that has read what it does not understand appends nothing behind it.
    fn check_program(&mut self, replica: usize, life: u32, expected: Version) {
        // Not behind it is what was sent before, if the log has lost what was read since then.
        if let Some((reader, version)) = self.wires[replica].met_newer
            && reader == life
            && expected >= version
        {
            self.wrong(format!(
                "replica {replica} appends after {} although it is of an older version and has read {}",
                expected.0, version.0
            ));
        }
    }

    /// A batch of a replica that has died meanwhile: for the others it was alive until now.
    fn hear_of(&mut self, author: u64, replica: usize, life: u32) {
        if self.replicas[replica].life != life {
            let now = self.now();
            self.deaths.insert(author, now);
        }
    }

    fn check_after(&mut self, before: Head, replica: usize) {
        let batches = match self.shared.after(before) {
            Ok(batches) => batches,
            Err(error) => return self.wrong(format!("the log cannot be read: {error}")),
        };
        for (head, batch) in batches {
            self.note(|| {
                let events = batch.events.iter().map(crate::report::event);
                let events = events.collect::<Vec<_>>().join(", ");
                format!("replica {replica} appends {} at {}: {events}", head.version, batch.at.0 - EPOCH_MS)
            });
            // What this batch takes away was there until now.
            self.look_for_ghosts();
            self.checker.take(head, &batch);
            self.checker.look();
            self.collect_violations();
        }
        self.look_for_ghosts();
    }

    /// Until when something was wrong with anybody but this replica.
    fn trouble_beside(&self, author: Option<u64>) -> u64 {
        let dead = author.and_then(|author| self.authors.get(&author)).map(|(replica, _)| *replica);
        let others = self.replicas.iter().enumerate().filter(|(replica, _)| Some(*replica) != dead);
        let others = others.map(|(_, place)| place.trouble_until).max();
        // Without another replica, no replica can look.
        others.unwrap_or(u64::MAX).max(self.trouble_until).max(self.leaving_until)
    }

    /// Notes that a replica has died.
    pub(crate) fn reap_dead(&mut self, replica: usize) {
        let now = self.now();
        let authors = self.authors.iter().filter(|(_, (known, _))| *known == replica);
        let authors: Vec<u64> = authors.map(|(author, _)| *author).collect();
        for author in authors {
            self.deaths.entry(author).or_insert(now);
        }
    }

    /// If all other replicas are well, no task of a dead replica waits or runs for longer than a lease and a second. A
    /// waiting task ends a lease after the last batch of the dead replica. A running task has a lease from before its
    /// death.
    fn look_for_ghosts(&mut self) {
        if self.deaths.is_empty() {
            return;
        }
        let now = self.now();
        let have_one_time = self.have_one_time();
        let mut ghosts = Vec::new();
        for (task, seen) in &self.checker.live {
            let replica = match &seen.run {
                Some(run) if run.is_stopping => continue,
                Some(run) => run.owner.replica(),
                None => seen.slot_of().or(seen.caller_at),
            };
            let author = replica.map(|replica| replica.0);
            let Some(death) = author.and_then(|author| self.deaths.get(&author)) else { continue };
            let left = now - death;
            let trouble = self.trouble_beside(author);
            // What was wrong with others before the death is over; after it they may not have noticed in time.
            if trouble < *death {
                self.left_ms.0 = self.left_ms.0.max(left);
                match &seen.run {
                    _ if left <= LEASE_MS + 1000 => {}
                    None => ghosts.push(format!("{task} waits for a replica that died {left} ms ago")),
                    Some(run) if have_one_time => {
                        let fence = run.fence;
                        ghosts.push(format!("{task} #{fence} runs at a replica that died {left} ms ago"));
                    }
                    Some(_) => {}
                }
            } else {
                self.left_ms.1 = self.left_ms.1.max(left);
            }
        }
        ghosts.into_iter().for_each(|ghost| self.wrong(ghost));
    }

    /// Takes over what the checker found.
    pub(crate) fn collect_violations(&mut self) {
        let is_leaving = self.now() < self.leaving_until;
        for wrong in std::mem::take(&mut self.checker.wrong) {
            // A replica that shuts down grants nothing; the others do when they look.
            if !(is_leaving && wrong.ends_with("could run")) {
                self.wrong(wrong);
            }
        }
        for lapse in std::mem::take(&mut self.checker.lapses) {
            if self.is_sound(&lapse.owner) {
                let (task, fence, owner) = (lapse.task, lapse.fence, lapse.owner);
                self.wrong(format!("the lease of {task} #{fence} lapsed although {owner:?} was well"));
            }
        }
    }

    /// Whether all go by one time. Where they do not, a lease is as long as the clocks of those who look at it say.
    fn have_one_time(&self) -> bool {
        let aheads = || self.replicas.iter().map(|place| place.ahead.load(Ordering::Relaxed));
        self.has_clock || aheads().min() == aheads().max()
    }

    /// Whether no machine had a fault for longer than a lease and a second.
    fn is_sound(&self, owner: &Owner) -> bool {
        if !self.have_one_time() {
            return false;
        }
        let (place, until) = match owner {
            Owner::Replica(replica) => match self.authors.get(&replica.0) {
                Some((replica, life)) if self.replicas[*replica].life == *life => {
                    (&self.replicas[*replica], self.trouble_until)
                }
                _ => return false,
            },
            Owner::Worker(name) => {
                let mut words = name.as_str().split('-').skip(1).map(str::parse::<u32>);
                let (Some(Ok(worker)), Some(Ok(life))) = (words.next(), words.next()) else { return false };
                // A worker speaks through any replica.
                let replicas = self.replicas.iter().map(|place| place.trouble_until).max().unwrap_or(0);
                match self.workers.get(worker as usize) {
                    Some(place) if place.life == life => {
                        (place, self.trouble_until.max(self.calls_until).max(replicas))
                    }
                    _ => return false,
                }
            }
        };
        !place.host.is_paused() && self.now() > place.trouble_until.max(until) + LEASE_MS + 1000
    }

    /// Who appends under this number, if it is alive.
    pub(crate) fn is_alive(&self, author: u64) -> bool {
        let known = self.authors.get(&author);
        known.is_some_and(|(replica, life)| self.replicas[*replica].life == *life)
    }

    /// A replica saves its state: it must be the one that the log leads to.
    pub(crate) fn save(&mut self, replica: usize, snapshot: StoredSnapshot) -> Result<(), StoreError> {
        self.compare(replica, &snapshot)?;
        let wire = &mut self.wires[replica];
        if std::mem::take(&mut wire.loses_snapshot) {
            self.count(Kind::SnapshotLost);
            return Ok(());
        }
        self.shared.save(snapshot)
    }

    /// Compares what a replica saves with what the log says, whatever becomes of it.
    fn compare(&mut self, replica: usize, snapshot: &StoredSnapshot) -> Result<(), StoreError> {
        let (head, saved) = match self.shared.decoded(snapshot) {
            Ok(Some(decoded)) => decoded,
            Ok(None) => return Ok(()),
            Err(error) => {
                self.wrong(format!("what replica {replica} saves cannot be read: {error}"));
                return Ok(());
            }
        };
        let mut known = Checker::new();
        for (at, batch) in self.shared.all()?.into_iter().take_while(|(at, _)| at.version <= head.version) {
            known.take(at, &batch);
        }
        if let Some(difference) = difference(&saved, &known.state()) {
            let version = head.version;
            self.wrong(format!(
                "the state of replica {replica} at {version} is not that of the log: {difference}"
            ));
        }
        Ok(())
    }

    /// The store forgets the end of its log.
    pub(crate) fn lose_tail(&mut self, batches: usize) -> usize {
        let lost = self.shared.lose_tail(batches);
        let mut checker = Checker::new();
        for (head, batch) in self.shared.all().unwrap_or_default() {
            checker.take(head, &batch);
        }
        let gone: BTreeSet<TaskId> = self.checker.missing_in(&checker);
        let messages = self.checker.messages.keys().filter(|id| !checker.messages.contains_key(id));
        let messages = messages.copied().collect();
        let head = checker.head.version;
        self.note(|| format!("the log is back at {head}; lost {gone:?}"));
        self.ledger.lose_log(gone, messages);
        checker.forgotten.append(&mut self.checker.forgotten);
        checker.forgotten.append(&mut self.checker.ended);
        self.checker = checker;
        self.tell_all();
        lost
    }
}

/// Where two states differ, except in the time of the last look. A replica that only looks, or is refused, appends nothing.
fn difference(saved: &Snapshot, known: &Snapshot) -> Option<String> {
    let words = |state: &Snapshot| format!("{state:?}").split_once(", ").map(|(_, rest)| rest.to_owned());
    let (saved, known) = (words(saved)?, words(known)?);
    let at = saved.bytes().zip(known.bytes()).position(|(one, other)| one != other);
    let at = at.or((saved.len() != known.len()).then(|| saved.len().min(known.len())))?;
    let part = |text: &str| text.chars().skip(at.saturating_sub(200)).take(260).collect::<String>();
    Some(format!("{} | and not | {}", part(&saved), part(&known)))
}
