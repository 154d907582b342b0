//! Finished work.

use bytes::Bytes;
use laneway_core::{End, LaneName, Name, TaskId, Timestamp};

use super::{Site, append_all, batch, blob_id, finished, open};
use crate::{Entry, Finished, Head, HistoryQuery, Log, Retention, label};

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

fn newest(max: u32) -> HistoryQuery {
    HistoryQuery { max, ..HistoryQuery::default() }
}

async fn tasks(log: &Log) -> Vec<u128> {
    let all = log.history(newest(1000)).await.expect("the history can be read");
    all.iter().map(|(_, finished)| finished.task.0).collect()
}

pub(super) async fn finished_work_is_listed_newest_first(site: &impl Site) {
    let log = open(site).await;
    assert_eq!(log.history(newest(10)).await, Ok(vec![]));
    assert_eq!(log.finished(TaskId(1)).await, Ok(None));
    let head = twenty(&log).await;
    assert_eq!(log.finished(TaskId(7)).await, Ok(Some((finished(7, 200), Some("result 7".into())))));
    let results = log.results([7, 99, 2].map(TaskId).to_vec()).await;
    assert_eq!(results, Ok(vec![Some("result 7".into()), None, Some("result 2".into())]));
    let (mut listed, mut before) = (Vec::new(), None);
    loop {
        let page = log.history(HistoryQuery { before, ..newest(3) }).await.expect("the history can be read");
        let Some((last, _)) = page.last() else { break };
        before = Some(*last);
        listed.extend(page.iter().map(|(_, finished)| finished.task.0));
    }
    assert_eq!(listed, (1..=20).rev().collect::<Vec<_>>());
    // A refused batch adds nothing; a task that ends again is listed once, with its newer end.
    let refused = Entry { finished: vec![(finished(99, 1), None)], ..batch(99) };
    assert!(log.append(Head::EMPTY, &refused).await.is_err());
    assert_eq!(log.finished(TaskId(99)).await, Ok(None));
    // A payload comes with the task, and not in lists.
    let told = Finished { payload: Some("work".into()), ..finished(3, 600) };
    let again = Entry { finished: vec![(told.clone(), None)], ..batch(6) };
    let head = log.append(head, &again).await.expect("appended");
    assert_eq!(log.finished(TaskId(3)).await, Ok(Some((told, None))));
    assert_eq!(log.history(newest(1)).await.map(|page| page[0].1.clone()), Ok(finished(3, 600)));
    let expected: Vec<u128> = [3].into_iter().chain((1..=20).rev().filter(|task| *task != 3)).collect();
    assert_eq!(tasks(&log).await, expected);
    append_all(&log, head, [7]).await;
}

/// As many as when a long line is cleared: a backend may have to take them in pieces.
pub(super) async fn very_many_may_come_and_end_together(site: &impl Site) {
    const MANY: u128 = 4_500;
    let log = open(site).await;
    let payload = |number: u128| (blob_id(number), Bytes::from(format!("payload {number}")));
    let coming = Entry { payloads: (1..=MANY).map(payload).collect(), ..batch(1) };
    let head = log.append(Head::EMPTY, &coming).await.expect("appended");
    for number in [1, 2_000, 2_001, 4_000, 4_001, MANY] {
        assert_eq!(log.payload(blob_id(number)).await, Ok(Some(payload(number).1)));
    }
    let ended = (1..=MANY).map(|number| (finished(number, 100), None));
    let going = Entry { dropped: (1..=MANY).map(blob_id).collect(), finished: ended.collect(), ..batch(2) };
    log.append(head, &going).await.expect("appended");
    for number in [1, 2_000, 2_001, 4_000, 4_001, MANY] {
        assert_eq!(log.payload(blob_id(number)).await, Ok(None));
        assert_eq!(log.finished(TaskId(number)).await, Ok(Some((finished(number, 100), None))));
    }
    let listed = log.history(newest(MANY as u32 + 1)).await.expect("the history can be read");
    assert_eq!(listed.len() as u128, MANY);
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
    assert_eq!(log.history(newest(10)).await, Ok(vec![]));
}

pub(super) async fn finished_work_is_listed_by_its_labels(site: &impl Site) {
    let log = open(site).await;
    let name = |text: &str| Name::new(text).expect("a name");
    let lanes = |names: &[&str]| names.iter().map(|lane| LaneName::new(lane).expect("a name")).collect();
    let parent = TaskId(99).to_string();
    let mut head = Head::EMPTY;
    for number in 1..=12_u128 {
        let failed = End::Failed { error: "no".into() };
        // Names that a backend without quoting would take for syntax.
        let told = Finished {
            end: if number % 3 == 0 { failed } else { End::Completed },
            kind: name(if number % 2 == 0 { "bash" } else { "ba%' OR 1=1 --" }),
            lanes: lanes(if number > 6 { &["main", "session:ann"] } else { &["gpu_%"] }),
            group: (number == 5).then(|| name("plan")),
            parent: (number % 4 == 0).then_some(TaskId(99)),
            ..finished(number, 100)
        };
        let entry = Entry { finished: vec![(told, None)], ..batch(number) };
        head = log.append(head, &entry).await.expect("appended");
    }
    for (labels, expected) in [
        (vec![], vec![12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]),
        (vec![("state", "failed")], vec![12, 9, 6, 3]),
        (vec![("kind", "ba%' OR 1=1 --")], vec![11, 9, 7, 5, 3, 1]),
        (vec![("kind", "ba")], vec![]),
        (vec![("kind", "bas_")], vec![]),
        (vec![("lane", "gpu_%")], vec![6, 5, 4, 3, 2, 1]),
        (vec![("session", "ann")], vec![12, 11, 10, 9, 8, 7]),
        (vec![("session", "an")], vec![]),
        (vec![("group", "plan")], vec![5]),
        (vec![("parent", &parent)], vec![12, 8, 4]),
        (vec![("state", "failed"), ("kind", "bash"), ("lane", "main")], vec![12]),
        (vec![("lane", "main"), ("lane", "gpu_%")], vec![]),
    ] {
        let labels: Vec<Box<str>> = labels.into_iter().map(|(what, name)| label(what, name)).collect();
        // In pages of two, so that what does not fit counts for nothing.
        let (mut listed, mut before) = (Vec::new(), None);
        loop {
            let asked = HistoryQuery { before, labels: labels.clone(), max: 2 };
            let page = log.history(asked).await.expect("the history can be read");
            listed.extend(page.iter().map(|(_, finished)| finished.task.0));
            before = page.last().map(|(place, _)| *place);
            if page.len() < 2 {
                break;
            }
        }
        assert_eq!(listed, expected, "{labels:?}");
    }
}
