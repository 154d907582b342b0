//! One log, written to by programs of different ages.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

use std::sync::Arc;

use laneway_core::{Block, Event, LaneSettings, Pattern, Scheduler, Timestamp};
use laneway_store::testing::in_format;
use laneway_store::{
    Append, BATCH_FORMAT, Batch, BatchId, Damage, Entry, ErrorKind, Head, Log, OLDEST_FORMAT, Record,
    StoreError, Version,
};
use laneway_store_redis::RedisStore;
use laneway_test_services::Redis;

async fn open(redis: &Redis) -> Log {
    Log::new(Arc::new(RedisStore::open(&redis.url()).await.unwrap()))
}

/// A batch that sets the limit of a lane. What such an event looks like is the same in all formats.
fn batch(number: u128) -> Batch {
    let mut settings = LaneSettings::default();
    settings.set("max_concurrency", &number.to_string()).unwrap();
    let block = Block { lanes: Pattern::new("work").unwrap(), settings: Some(settings) };
    Batch { id: BatchId(number), at: Timestamp(0), events: vec![Event::Configured { blocks: vec![block] }] }
}

/// The batch as a program of another format would append it.
fn sealed_in(log: &Log, format: u8, head: Head, number: u128) -> Append {
    let mut append = log.seal(head, &Entry::of(batch(number))).unwrap();
    append.record = in_format(Record::Batch(append.outcome().version), format, &append.record);
    append
}

#[tokio::test]
async fn what_an_older_program_appends_between_ours_is_read_and_built_upon() {
    let redis = Redis::start();
    let (ours, older) = (open(&redis).await, open(&redis).await);
    let mut head = Head::EMPTY;
    for number in (1..=10).step_by(2) {
        head = ours.append(head, &Entry::of(batch(number))).await.unwrap();
        // It raced with us for this version, and lost.
        let late = older.store().append(sealed_in(&older, OLDEST_FORMAT, Head::EMPTY, 99)).await;
        assert_eq!(late.err().map(|error| error.kind()), Some(ErrorKind::Conflict));
        let append = sealed_in(&older, OLDEST_FORMAT, head, number + 1);
        head = older.store().append(append).await.unwrap();
    }
    let mut lanes = Scheduler::new(0);
    let read = open(&redis).await.read(Head::EMPTY).await.unwrap();
    for (_, batch) in &read {
        batch.events.iter().for_each(|event| lanes.apply(batch.at, event));
    }
    let ids: Vec<u128> = read.iter().map(|(_, batch)| batch.id.0).collect();
    assert_eq!(ids, (1..=10).collect::<Vec<_>>());
    let held: Vec<_> = lanes.blocks().map(|(lanes, settings)| (lanes.as_str(), settings.clone())).collect();
    let Event::Configured { blocks } = &batch(10).events[0] else { panic!("that is what it is") };
    assert_eq!(held, [("work", blocks[0].settings.clone().unwrap())]);
}

#[tokio::test]
async fn what_a_newer_program_appended_is_not_read_and_nothing_of_it_is_guessed() {
    let redis = Redis::start();
    let log = open(&redis).await;
    let head = log.append(Head::EMPTY, &Entry::of(batch(1))).await.unwrap();
    log.store().append(sealed_in(&log, BATCH_FORMAT + 1, head, 2)).await.unwrap();
    for log in [log, open(&redis).await] {
        let refused = log.read(head).await.unwrap_err();
        let StoreError::Corrupt { damage, record, .. } = &refused else { panic!("{refused}") };
        let (found, known) = (u32::from(BATCH_FORMAT) + 1, u32::from(BATCH_FORMAT));
        assert_eq!(*damage, Damage::UnknownFormat { found, known });
        assert_eq!(*record, Some(Record::Batch(Version(2))));
        assert!(refused.to_string().contains("by a newer version of Laneway"), "{refused}");
    }
}
