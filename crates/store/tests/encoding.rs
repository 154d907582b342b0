//! What is written is what is read, in every format there ever was.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at anything unexpected"
)]

mod any;

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use laneway_core::{
    Block, Command, End, LaneName, LaneSettings, MessageId, Millis, Name, Outcome, Owner, Pattern, ReplicaId,
    Scheduler, Snapshot, Source, Switch, TaskId, TaskSpec, Timestamp,
};
use laneway_store::testing::in_format;
use laneway_store::{
    Append, BATCH_FORMAT, Batch, BatchId, Entry, ErrorKind, FINISHED_FORMAT, Finished, Head, HistoryPosition,
    Log, MemoryStore, Record, SNAPSHOT_FORMAT, StoreError, StoredFinished, StoredSnapshot, Version,
};
use proptest::prelude::*;

use crate::any::{Dice, SORTS, sort};

fn log() -> Log {
    Log::new(Arc::new(MemoryStore::new()))
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn events_come_back_as_they_were(seeds in prop::collection::vec((0..SORTS, any::<u64>()), 0..40), id: u128, at: u64) {
        let events = seeds.iter().map(|(sort, seed)| Dice::new(*seed, false).event(*sort)).collect();
        let batch = Batch { id: BatchId(id), at: Timestamp(at), events };
        block_on(async {
            let log = log();
            let head = log.append(Head::EMPTY, &Entry::of(batch.clone())).await.unwrap();
            prop_assert_eq!(log.read(Head::EMPTY).await.unwrap(), vec![(head, batch)]);
            Ok(())
        })?;
    }

    #[test]
    fn a_body_that_makes_no_sense_is_an_error_and_nothing_worse(sort in 0..SORTS, seed: u64, at: usize, byte: u8) {
        let event = Dice::new(seed, true).event(sort);
        let batch = Batch { id: BatchId(1), at: Timestamp(1), events: vec![event] };
        let append = log().seal(Head::EMPTY, &Entry::of(batch)).unwrap();
        let mut record = append.record.to_vec();
        let at = at % record.len();
        record[at] = byte;
        // With a right checksum, as if a program had written it so.
        let record = in_format(Record::Batch(Version(1)), 1, &record);
        block_on(async {
            let log = log();
            log.store().append(Append { record, ..append }).await.unwrap();
            if let Err(error) = log.read(Head::EMPTY).await {
                prop_assert_ne!(error.kind(), ErrorKind::Unavailable);
            }
            Ok(())
        })?;
    }
}

#[test]
fn the_events_above_are_of_every_sort() {
    for number in 0..SORTS {
        assert_eq!(sort(&Dice::new(1, false).event(number)), number);
    }
}

/// Checks the samples of the formats of a sort of record, from the oldest that was ever released: each must be readable, and writing what the newest one
/// says must give the very same bytes. A change of the type that is not a new format fails here.
fn check_formats(
    sort: &str,
    formats: RangeInclusive<u8>,
    sample: &Bytes,
    rewrite: impl Fn(Bytes) -> Result<Bytes, StoreError>,
) {
    let path = |format: u8| -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/formats/{sort}-{format}.hex"))
    };
    let newest = *formats.end();
    if !path(newest).exists() {
        fs::write(path(newest), to_hex(sample)).unwrap();
        panic!("there was no sample of {sort} format {newest}; there is now: keep it");
    }
    for format in formats {
        let bytes = from_hex(&fs::read_to_string(path(format)).unwrap());
        let again = rewrite(bytes.clone());
        assert!(
            again.is_ok() && (format < newest || again == Ok(bytes)),
            "{sort} format {format} is not what it was ({:?}). If it was ever released, raise the format number and \
             see to it that older records can still be read; if not, remove its sample and run this again",
            again.err()
        );
    }
}

fn to_hex(bytes: &[u8]) -> String {
    let line = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n";
    bytes.chunks(50).map(line).collect()
}

fn from_hex(text: &str) -> Bytes {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

#[test]
fn every_format_of_batches_can_be_read() {
    let events = (0..SORTS).map(|sort| Dice::new(sort, true).event(sort)).collect();
    let sample = Batch { id: BatchId(1 << 100), at: Timestamp(1_790_000_000_000), events };
    let sample = log().seal(Head::EMPTY, &Entry::of(sample)).unwrap().record;
    check_formats("batch", 3..=BATCH_FORMAT, &sample, |record| {
        block_on(async {
            let log = log();
            let append = Append {
                expected: Head::EMPTY,
                batch: BatchId(1 << 100),
                record,
                blobs: [].into(),
                dropped: [].into(),
                finished: [].into(),
                requeue: false,
            };
            log.store().append(append).await.unwrap();
            let (_, batch) = log.read(Head::EMPTY).await?.remove(0);
            assert!(!batch.events.is_empty());
            log.seal(Head::EMPTY, &Entry::of(batch)).map(|append| append.record)
        })
    });
}

/// Something of everything: work that waits, runs, is delayed and has failed; settings; a pause; a key; a
/// session with messages that wait and some that were dropped.
fn busy() -> Scheduler {
    let mut scheduler = Scheduler::new(0);
    let mut events = Vec::new();
    let mut step = |at, command| drop(scheduler.step(Timestamp(at), command, &mut events).unwrap());
    let settings = LaneSettings { max_concurrency: Some(Switch::On(2)), ..LaneSettings::default() };
    let lanes = Pattern::new("main").unwrap();
    step(1000, Command::Configure(vec![Block { lanes, settings: Some(settings) }]));
    for number in 1..=6 {
        let lanes = vec![LaneName::main(), LaneName::session(&format!("user {number}")).unwrap()];
        let mut spec = TaskSpec::new(Name::new("chat").unwrap(), lanes);
        spec.group = Some(Name::new("group").unwrap());
        spec.caller = Some(Name::new("token-1").unwrap());
        spec.trace = Some("00-0af7".into());
        match number {
            2 => spec.owner = Some(Owner::Replica(ReplicaId(7))),
            3 => (spec.owner, spec.lease) = (Some(Owner::Worker(Name::new("w").unwrap())), Some(Millis(50))),
            4 => spec.caller_at = Some(ReplicaId(7)),
            _ => {}
        }
        let key = format!("key {number}").into();
        let until_end = number == 2;
        spec.idempotency = Some(laneway_core::Idempotency { key, fingerprint: number as u64, until_end });
        step(1000 + number as u64, Command::Submit { task: TaskId(number), spec: Box::new(spec) });
    }
    for number in 11..=15 {
        let agent = laneway_core::Agent::new(Name::new("coder").unwrap());
        let mut message =
            laneway_core::Incoming::new(MessageId(number), "chat", agent, format!("text {number}"));
        message.message_id = Some(format!("id {number}").into());
        message.queue.cap = Some(2);
        let command = laneway_core::SessionCommand::Send(Box::new(message));
        step(1900, Command::Session(Box::new(command)));
    }
    step(2000, Command::Pause { lane: LaneName::new("agent:x").unwrap() });
    let error = "it broke".into();
    let outcome = Outcome::Failure { error, retryable: false };
    step(3000, Command::Finish { task: TaskId(1), fence: laneway_core::Fence(1), taken: vec![], outcome });
    scheduler
}

/// A log with one batch, for a snapshot to stand on.
async fn log_of_one() -> (Log, Head) {
    let log = log();
    let batch = Batch { id: BatchId(1), at: Timestamp(0), events: vec![] };
    let head = log.append(Head::EMPTY, &Entry::of(batch)).await.unwrap();
    (log, head)
}

async fn seal_state(state: &Snapshot) -> Bytes {
    let (log, head) = log_of_one().await;
    log.save(head, state).await.unwrap();
    log.store().snapshot().await.unwrap().unwrap().record
}

#[test]
fn every_format_of_snapshots_can_be_read() {
    let sample = block_on(seal_state(&busy().snapshot()));
    check_formats("snapshot", 3..=SNAPSHOT_FORMAT, &sample, |record| {
        block_on(async {
            let (log, head) = log_of_one().await;
            log.store().save_snapshot(StoredSnapshot { head, record }).await.unwrap();
            let (_, state) = log.load().await?.unwrap();
            Ok(seal_state(&state).await)
        })
    });
}

#[test]
fn every_format_of_finished_tasks_can_be_read() {
    let finished = Finished {
        task: TaskId(1 << 90),
        kind: Name::new("chat").unwrap(),
        lanes: vec![LaneName::main(), LaneName::session("alice").unwrap()],
        source: Source::Agent,
        priority: 3,
        group: Some(Name::new("group").unwrap()),
        parent: Some(TaskId(7)),
        worker: Some(Name::new("worker-1").unwrap()),
        submitted: Timestamp(1_790_000_000_000),
        started: Some(Timestamp(1_790_000_000_010)),
        ended: Timestamp(1_790_000_005_000),
        attempts: 3,
        end: End::Failed { error: "it broke".into() },
        payload: None,
        tries: vec![laneway_store::Try {
            fence: laneway_core::Fence(7),
            started: Some(Timestamp(1_790_000_000_005)),
            ended: Timestamp(1_790_000_000_007),
            worker: None,
            error: "it broke first".into(),
        }],
        caller: Some(Name::new("token-1").unwrap()),
        trace: Some("00-0af7".into()),
        label: Some(Name::new("Refactor").unwrap()),
    };
    let batch = || Batch { id: BatchId(1), at: Timestamp(0), events: vec![] };
    let seal = |finished: Finished| {
        let entry = Entry { finished: vec![(finished, None)], ..Entry::of(batch()) };
        log().seal(Head::EMPTY, &entry).unwrap().finished[0].record.clone()
    };
    check_formats("finished", 1..=FINISHED_FORMAT, &seal(finished.clone()), |record| {
        block_on(async {
            let log = log();
            let stored = StoredFinished {
                task: finished.task,
                ended: finished.ended,
                place: HistoryPosition::default(),
                record,
                result: None,
                labels: Vec::new(),
            };
            let append = log.seal(Head::EMPTY, &Entry::of(batch())).unwrap();
            log.store().append(Append { finished: [stored].into(), ..append }).await.unwrap();
            Ok(seal(log.finished(finished.task).await?.unwrap().0))
        })
    });
}
