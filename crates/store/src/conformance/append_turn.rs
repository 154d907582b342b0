//! The append turn: which author may append next.

use super::{Site, batch, open};
use crate::{Author, BatchId, Entry, Head, Log, StoreError};

/// A batch by this author, told apart by its number.
fn by(author: u64, number: u64) -> Entry {
    let id = BatchId(u128::from(author) << 64 | u128::from(number));
    let mut entry = batch(number.into());
    entry.batch.id = id;
    entry
}

async fn append(log: &Log, head: Head, entry: &Entry) -> Head {
    log.append(head, entry).await.expect("the batch is appended")
}

/// To whom the newest batch, which is this one, passed the append turn.
fn append_turn(log: &Log, head: Head) -> Option<Author> {
    let (version, append_turn) = log.store().newest().expect("it was appended or read here");
    assert_eq!(version, head.version);
    append_turn
}

pub(super) async fn an_append_passes_it_to_the_first_in_line(site: &impl Site) {
    if !site.has_append_turn() {
        return;
    }
    let log = open(site).await;
    let append_turn = |head| append_turn(&log, head);
    let mut head = append(&log, Head::EMPTY, &by(1, 1)).await;
    assert_eq!(append_turn(head), None, "no author is in line");
    for author in [2, 3, 2, 4, 3] {
        log.store().request_append_turn(Author(author)).await.expect("it stands in line");
    }
    let entry = log.seal(head, &by(1, 2)).expect("it can be encoded");
    head = log.store().append(entry.clone()).await.expect("appended");
    assert_eq!(append_turn(head), Some(Author(2)));
    let again = log.store().append(entry).await;
    assert_eq!(
        (again, append_turn(head)),
        (Ok(head), Some(Author(2))),
        "the same batch once more passes nothing"
    );
    // An author in line that appends leaves the line.
    head = append(&log, head, &by(3, 3)).await;
    assert_eq!(append_turn(head), Some(Author(4)));
    head = append(&log, head, &by(4, 4)).await;
    assert_eq!(append_turn(head), None, "each stood there once");
    // An author that re-queues itself goes to the end of the line; alone, it gets nothing.
    for (author, number, passed) in [(1, 5, None), (2, 6, Some(1)), (1, 7, Some(2)), (2, 8, None)] {
        let mut entry = log.seal(head, &by(author, number)).expect("it can be encoded");
        entry.requeue = number < 7;
        head = log.store().append(entry).await.expect("appended");
        assert_eq!(append_turn(head), passed.map(Author), "after batch {number}");
    }
}

pub(super) async fn the_loser_of_a_race_stands_in_line(site: &impl Site) {
    if !site.has_append_turn() {
        return;
    }
    let log = open(site).await;
    let head = append(&log, Head::EMPTY, &by(1, 1)).await;
    for author in [2, 3] {
        let lost = log.append(Head::EMPTY, &by(author, 2)).await;
        assert_eq!(lost, Err(StoreError::Conflict { expected: Head::EMPTY, current: head }));
    }
    // Another replica reads it from the log.
    let other = open(site).await;
    let next = append(&log, head, &by(1, 2)).await;
    let read = other.read(Head::EMPTY).await.expect("the log can be read");
    assert_eq!(read.last().map(|(head, _)| *head), Some(next));
    assert_eq!(append_turn(&other, next), Some(Author(2)));
    let last = append(&other, next, &by(2, 3)).await;
    assert_eq!(append_turn(&other, last), Some(Author(3)));
}
