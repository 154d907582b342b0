//! What every store must do. A store's test calls [`run`].

#![allow(clippy::expect_used, clippy::panic, reason = "these are tests, which other crates run")]

mod append_turn;
mod blobs;
mod damage;
mod history;
mod log;
mod publish;
mod snapshot;

use std::num::NonZeroU128;
use std::sync::Arc;

use bytes::Bytes;
use laneway_core::{
    BlobId, Command, End, Event, LaneName, Name, Scheduler, Source, TaskId, TaskSpec, Timestamp,
};

use crate::{Answer, Batch, BatchId, Entry, Finished, Head, Log, Record, Store};

/// Where a store's data lives: a directory, a namespace of a backend. Each case gets a new one.
pub trait Site: Send + Sync {
    /// Opens the store that is there. Every store that was opened before has been dropped.
    fn open(&self) -> Answer<'_, Arc<dyn Store>>;

    /// Opens a store that has room for a few hundred kilobytes, if that can be arranged.
    fn open_small(&self) -> Option<Answer<'_, Arc<dyn Store>>> {
        None
    }

    /// Changes the bytes of a record while the store is closed; returns whether that record was there.
    fn tamper(&self, record: Record, change: &(dyn Fn(&mut Vec<u8>) + Sync)) -> bool;

    /// Whether the store has a line for the append turn.
    fn has_append_turn(&self) -> bool {
        false
    }

    /// Whether data survives closing the store.
    fn lasts(&self) -> bool {
        true
    }
}

/// Runs every case, each on a site of its own, and panics at the first that fails.
pub async fn run<S: Site>(new_site: impl Fn() -> S) {
    log::batches_come_back_in_order(&new_site()).await;
    log::a_stale_append_changes_nothing(&new_site()).await;
    log::a_lost_reply_never_writes_twice(&new_site()).await;
    log::the_tail_wakes_its_waiters(&new_site()).await;
    log::exactly_one_of_many_wins_each_version(&new_site()).await;
    log::long_logs_are_read_in_pieces(&new_site()).await;
    log::a_version_that_never_was_is_a_conflict(&new_site()).await;
    append_turn::an_append_passes_it_to_the_first_in_line(&new_site()).await;
    append_turn::the_loser_of_a_race_stands_in_line(&new_site()).await;
    publish::every_subscriber_gets_what_is_published(&new_site()).await;
    blobs::payloads_come_and_go_with_their_batch(&new_site()).await;
    blobs::large_payloads_come_back_whole(&new_site()).await;
    snapshot::a_snapshot_and_the_rest_of_the_log_give_the_state(&new_site()).await;
    snapshot::only_what_the_snapshot_holds_is_trimmed(&new_site()).await;
    snapshot::an_older_snapshot_never_replaces_a_newer_one(&new_site()).await;
    snapshot::a_large_snapshot_comes_back_whole(&new_site()).await;
    snapshot::everything_is_there_after_reopening(&new_site()).await;
    history::finished_work_is_listed_newest_first(&new_site()).await;
    history::very_many_may_come_and_end_together(&new_site()).await;
    history::finished_work_is_listed_by_its_labels(&new_site()).await;
    history::old_and_surplus_history_goes(&new_site()).await;
    damage::every_changed_byte_is_noticed(&new_site()).await;
    damage::a_newer_format_is_refused(&new_site()).await;
    damage::an_older_format_is_refused_with_what_to_do(&new_site()).await;
    damage::a_full_store_says_so_and_recovers(&new_site()).await;
}

/// The log at a site.
async fn open(site: &impl Site) -> Log {
    Log::new(site.open().await.expect("the store opens"))
}

/// A batch with one event, told apart by its number.
fn batch(number: u128) -> Entry {
    let lane = LaneName::new(format!("lane {number}")).expect("a name");
    Entry::of(Batch {
        id: BatchId(number),
        at: Timestamp(number as u64),
        events: vec![Event::Paused { lane }],
    })
}

/// Appends batches with these numbers after `head`.
async fn append_all(log: &Log, mut head: Head, numbers: impl IntoIterator<Item = u128>) -> Head {
    for number in numbers {
        head = log.append(head, &batch(number)).await.expect("the batch is appended");
    }
    head
}

/// All batches after `head`.
async fn read_all(log: &Log, mut head: Head) -> Vec<Batch> {
    let mut all = Vec::new();
    loop {
        let batches = log.read(head).await.expect("the log can be read");
        let Some((last, _)) = batches.last() else { return all };
        head = *last;
        all.extend(batches.into_iter().map(|(_, batch)| batch));
    }
}

fn blob_id(number: u128) -> BlobId {
    BlobId(NonZeroU128::new(number).expect("not zero"))
}

/// Bytes that look like nothing in particular.
fn noise(len: usize) -> Bytes {
    let mut x = 0x2545_F491_4F6C_DD1D_u64;
    let next = |_| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x as u8
    };
    (0..len).map(next).collect()
}

fn finished(number: u128, ended: u64) -> Finished {
    Finished {
        task: TaskId(number),
        kind: Name::new("chat").expect("a name"),
        lanes: vec![LaneName::main()],
        source: Source::User,
        priority: 2,
        group: None,
        parent: None,
        worker: None,
        submitted: Timestamp(1),
        started: Some(Timestamp(2)),
        ended: Timestamp(ended),
        attempts: 1,
        end: End::Completed,
        tries: Vec::new(),
        caller: None,
        trace: None,
        label: None,
        payload: None,
    }
}

/// Submits tasks to a scheduler and appends what happens.
async fn submit(log: &Log, scheduler: &mut Scheduler, head: Head, numbers: std::ops::Range<u128>) -> Head {
    let mut head = head;
    for number in numbers {
        let at = Timestamp(number as u64);
        let spec = TaskSpec::new(Name::new("chat").expect("a name"), vec![LaneName::main()]);
        let mut events = Vec::new();
        let command = Command::Submit { task: TaskId(number), spec: Box::new(spec) };
        scheduler.step(at, command, &mut events).expect("the task is accepted");
        let entry = Entry::of(Batch { id: BatchId(number), at, events });
        head = log.append(head, &entry).await.expect("the batch is appended");
    }
    head
}
