//! Finished work.

use laneway_core::{TaskId, Timestamp};

use super::{Site, append_all, batch, finished, open};
use crate::{Entry, Head, Log, Retention};

/// Five batches with which four tasks end each: tasks 1 to 20, in that order, the last ones at 500.
async fn twenty(log: &Log) -> Head {
    let mut head = Head::EMPTY;
    for number in 1..=5_u128 {
        let tasks = (number * 4 - 3)..=(number * 4);
        let ended =
            tasks.map(|task| (finished(task, number as u64 * 100), Some(format!("result {task}").into())));
        let entry = Entry { finished: ended.collect(), ..batch(number) };
        head = log.append(head, &entry).await.expect("appended");
    }
    head
}

async fn tasks(log: &Log) -> Vec<u128> {
    let all = log.history(None, 1000).await.expect("the history can be read");
    all.iter().map(|(_, finished)| finished.task.0).collect()
}

pub(super) async fn finished_work_is_listed_newest_first(site: &impl Site) {
    let log = open(site).await;
    assert_eq!(log.history(None, 10).await, Ok(vec![]));
    assert_eq!(log.finished(TaskId(1)).await, Ok(None));
    let head = twenty(&log).await;
    assert_eq!(log.finished(TaskId(7)).await, Ok(Some((finished(7, 200), Some("result 7".into())))));
    let (mut listed, mut before) = (Vec::new(), None);
    loop {
        let page = log.history(before, 3).await.expect("the history can be read");
        let Some((last, _)) = page.last() else { break };
        before = Some(*last);
        listed.extend(page.iter().map(|(_, finished)| finished.task.0));
    }
    assert_eq!(listed, (1..=20).rev().collect::<Vec<_>>());
    // A batch that is refused tells nothing; an id that ends again is told once, as the newer.
    let refused = Entry { finished: vec![(finished(99, 1), None)], ..batch(99) };
    assert!(log.append(Head::EMPTY, &refused).await.is_err());
    assert_eq!(log.finished(TaskId(99)).await, Ok(None));
    let again = Entry { finished: vec![(finished(3, 600), None)], ..batch(6) };
    let head = log.append(head, &again).await.expect("appended");
    assert_eq!(log.finished(TaskId(3)).await, Ok(Some((finished(3, 600), None))));
    let expected: Vec<u128> = [3].into_iter().chain((1..=20).rev().filter(|task| *task != 3)).collect();
    assert_eq!(tasks(&log).await, expected);
    append_all(&log, head, [7]).await;
}

pub(super) async fn old_and_surplus_history_goes(site: &impl Site) {
    let log = open(site).await;
    twenty(&log).await;
    let store = log.store();
    assert_eq!(store.trim_history(Retention::default()).await, Ok(0));
    let since = |at| Retention { ended_since: Some(Timestamp(at)), count_max: None };
    assert_eq!(store.trim_history(since(100)).await, Ok(0), "what ended at that moment stays");
    assert_eq!(store.trim_history(since(101)).await, Ok(4));
    assert_eq!(tasks(&log).await, (5..=20).rev().collect::<Vec<_>>());
    assert_eq!(log.finished(TaskId(4)).await, Ok(None));
    let at_most = |count| Retention { ended_since: None, count_max: Some(count) };
    assert_eq!(store.trim_history(at_most(16)).await, Ok(0));
    assert_eq!(store.trim_history(at_most(10)).await, Ok(6));
    assert_eq!(tasks(&log).await, (11..=20).rev().collect::<Vec<_>>());
    let both = Retention { ended_since: Some(Timestamp(401)), count_max: Some(6) };
    assert_eq!(store.trim_history(both).await, Ok(6));
    assert_eq!(tasks(&log).await, [20, 19, 18, 17]);
    assert_eq!(store.trim_history(at_most(0)).await, Ok(4));
    assert_eq!(log.history(None, 10).await, Ok(vec![]));
}
