//! What was told against what is there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use laneway::{End, TaskId};
use laneway_core::Scheduler;
use laneway_store::Log;
use laneway_store_sqlite::SqliteStore;
use serde_json::Value;

use crate::child::{LANES, payload};

/// Everything that the children told, by number of the task.
#[derive(Default)]
pub(crate) struct Ledger {
    tasks: BTreeMap<u64, Told>,
    kills: u64,
    opened: u64,
    under_way: u64,
    waiting: u64,
    lost: u64,
    again: u64,
}

#[derive(Default)]
struct Told {
    lane: String,
    acknowledged: Option<TaskId>,
    starts: BTreeSet<u32>,
    done: bool,
    /// The end that the store knew at the last look.
    end: Option<End>,
}

impl Ledger {
    /// The number of the next task.
    pub(crate) fn next(&self) -> u64 {
        self.tasks.last_key_value().map_or(0, |(number, _)| number + 1)
    }

    /// Takes down what a child told.
    pub(crate) fn read(&mut self, told: &str) -> Result<(), String> {
        self.kills += 1;
        for line in told.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["open"] => self.opened += 1,
                [verb, lane, number, ref rest @ ..] if LANES.contains(&lane) => {
                    let number = number.parse().map_err(|_| format!("what is {line:?}?"))?;
                    let task = self.tasks.entry(number).or_default();
                    task.lane = lane.to_owned();
                    task.take(verb, rest).map_err(|problem| format!("task {number} in {lane} {problem}"))?;
                }
                _ => return Err(format!("the child said {line:?}")),
            }
        }
        Ok(())
    }

    /// Opens the store, which no process has now, and compares.
    pub(crate) fn compare(&mut self, dir: &Path) -> Result<(), String> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(|e| e.to_string())?;
        let store = SqliteStore::open(dir).map_err(|error| error.to_string())?;
        let log = Log::new(Arc::new(store));
        runtime.block_on(self.compare_log(&log))
    }

    async fn compare_log(&mut self, log: &Log) -> Result<(), String> {
        let (_, scheduler) = log.restore(0).await.map_err(|error| error.to_string())?;
        let live = live_numbers(log, &scheduler).await?;
        self.waiting += live.len() as u64;
        for (number, told) in &mut self.tasks {
            let Some(id) = told.acknowledged else { continue };
            match live.get(&id) {
                Some(_) if told.end.is_some() => {
                    return Err(format!("task {number} is live after its end"));
                }
                Some(kept) if kept == number => {}
                Some(_) => return Err(format!("task {number} has another payload")),
                None if told.end.is_none() => {
                    let finished = log.finished(id).await.map_err(|error| error.to_string())?;
                    let (finished, _) = finished.ok_or(format!("task {number} is gone"))?;
                    let is_lost = finished.end == End::Lost;
                    self.lost += u64::from(is_lost);
                    told.check_end(&finished.end).map_err(|problem| format!("task {number} {problem}"))?;
                    told.end = Some(finished.end);
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Everything must have ended.
    pub(crate) fn close(&mut self) -> Result<(), String> {
        let acknowledged = self.tasks.iter().filter(|(_, told)| told.acknowledged.is_some());
        for (number, told) in acknowledged {
            if told.end.is_none() {
                return Err(format!("task {number} never ended"));
            }
        }
        self.again = self.tasks.values().map(|told| told.starts.len().saturating_sub(1) as u64).sum();
        self.under_way =
            self.tasks.values().filter(|told| told.starts.len() > 1 || told.is_lost()).count() as u64;
        Ok(())
    }

    pub(crate) fn figures(&self) -> String {
        let acknowledged = self.tasks.values().filter(|told| told.acknowledged.is_some()).count();
        let completed = self.tasks.values().filter(|told| told.end == Some(End::Completed)).count();
        format!(
            "{} kills, {} of them after the store was open; {acknowledged} tasks acknowledged, none gone, none \
             out of order; {completed} completed, {} lost by their lane's rule, {} started again by theirs",
            self.kills.saturating_sub(1),
            self.opened.saturating_sub(1),
            self.lost,
            self.again
        )
    }

    /// A run in which nothing was under way when it was killed shows nothing.
    pub(crate) fn is_telling(&self, rounds: u64) -> Result<(), String> {
        let is_telling =
            rounds < 50 || self.under_way > 0 && self.lost > 0 && self.again > 0 && self.waiting > 0;
        is_telling.then_some(()).ok_or("no kill struck while work was under way".to_owned())
    }
}

impl Told {
    fn take(&mut self, verb: &str, rest: &[&str]) -> Result<(), String> {
        let number = |index: usize| rest.get(index).and_then(|word| word.parse::<u128>().ok());
        match (verb, number(0)) {
            ("try", _) => Ok(()),
            ("ack", Some(id)) => {
                self.acknowledged = Some(TaskId(id));
                Ok(())
            }
            ("start", Some(attempt)) => {
                if self.end.is_some() {
                    return Err("was started after its end".into());
                }
                if !self.starts.insert(attempt as u32) {
                    return Err(format!("had attempt {attempt} twice"));
                }
                if self.lane == "once" && self.starts.len() > 1 {
                    Err("was started twice".into())
                } else {
                    Ok(())
                }
            }
            ("done", Some(_)) => {
                self.done = true;
                Ok(())
            }
            _ => Err(format!("{verb}?")),
        }
    }

    fn is_lost(&self) -> bool {
        self.end == Some(End::Lost)
    }

    fn check_end(&self, end: &End) -> Result<(), String> {
        match (end, self.lane.as_str()) {
            (End::Completed, _) if self.done => Ok(()),
            (End::Completed, _) => Err("is completed and was never done".into()),
            (End::Lost, "once") => Ok(()),
            (other, lane) => Err(format!("of lane {lane} ended as {other:?}")),
        }
    }
}

/// The number in the payload of each live task; those that wait must be in their order of acceptance.
async fn live_numbers(log: &Log, scheduler: &Scheduler) -> Result<BTreeMap<TaskId, u64>, String> {
    let mut live = BTreeMap::new();
    let mut last: BTreeMap<String, u64> = BTreeMap::new();
    for view in scheduler.tasks().filter(|view| LANES.contains(&view.kind.as_str())) {
        let blob = view.payload.ok_or("a task without a payload")?;
        let bytes = log.payload(blob).await.map_err(|error| error.to_string())?;
        let kept: Value = bytes
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .ok_or(format!("the payload of {:?} is gone", view.id))?;
        let number = kept["number"].as_u64().ok_or("a payload without its number")?;
        if kept != payload(number) {
            return Err(format!("the payload of task {number} has changed"));
        }
        let before = last.insert(view.kind.to_string(), number);
        if before.is_some_and(|before| before > number) {
            return Err(format!("task {number} is out of order"));
        }
        live.insert(view.id, number);
    }
    Ok(live)
}
