//! What is stored with the events of a batch: payloads, and what the history tells of tasks that ended.

use std::collections::HashSet;

use laneway_core::{DeadLetterRemoval, End, Event, LiveTaskView, Running, Timestamp};
use laneway_store::{Batch as StoredBatch, Entry, Finished, Try};

use crate::driver::batch::Batch;
use crate::driver::engine::Engine;
use crate::replica::batch_of;

impl Engine {
    /// What is stored of a batch with its events.
    pub(crate) fn entry(&mut self, batch: &Batch) -> Entry {
        let chance = self.resources.ids.batch();
        let id = self.replica.as_ref().map_or(chance, |replica| batch_of(replica.id, chance.0 as u64));
        let mut entry = Entry::of(StoredBatch { id, at: batch.at, events: Vec::new() });
        entry.payloads.clone_from(&batch.payloads);
        let mut departed = batch.departed.iter().peekable();
        let mut dead_lettered = HashSet::new();
        for event in &batch.events {
            match event {
                Event::Retrying { task, fence, error, .. } => {
                    self.note_try(*task, *fence, error, batch.ended_at(*task), &mut entry);
                }
                Event::Redelivered { task, fence } => {
                    self.note_try(*task, *fence, &"the lease lapsed".into(), batch.at, &mut entry);
                }
                Event::DeadLettered { task, .. } => drop(dead_lettered.insert(*task)),
                Event::DeadLetterRemoved { dead_letter, why } => {
                    let payload = self.storage.dead_letter_payloads.remove(dead_letter);
                    entry.dropped.extend(payload.filter(|_| !matches!(why, DeadLetterRemoval::Redriven(_))));
                }
                Event::Ended { task, end } => {
                    let Some(view) = departed.next_if(|view| view.id == *task) else { continue };
                    match view.payload {
                        Some(payload) if dead_lettered.contains(task) => {
                            self.storage.dead_letter_payloads.insert(*task, payload);
                        }
                        Some(payload) => entry.dropped.push(payload),
                        None => {}
                    }
                    if !view.is_slot() {
                        let result = batch.result_of(*task, end);
                        let tries = self.take_tries(*task, &mut entry);
                        let payload = batch.ended_payloads.get(task).cloned();
                        let ended = batch.ended_at(*task);
                        let finished = Finished { payload, ..finished(view, end, ended, tries) };
                        entry.finished.push((finished, result));
                    }
                }
                _ => {}
            }
        }
        entry
    }
}

fn finished(view: &LiveTaskView, end: &End, at: Timestamp, tries: Vec<Try>) -> Finished {
    Finished {
        task: view.id,
        kind: view.kind.clone(),
        lanes: view.lanes.clone(),
        source: view.source,
        priority: view.priority,
        group: view.group.clone(),
        parent: view.parent,
        worker: view.running.as_ref().and_then(Running::worker).cloned(),
        submitted: view.submitted,
        started: view.running.as_ref().map(|running| running.started),
        ended: at,
        attempts: view.attempts,
        end: end.clone(),
        tries,
        caller: view.caller.clone(),
        trace: view.trace.clone(),
        label: view.label.clone(),
        payload: None,
    }
}
