//! Lists of tasks agree with a scan of all tasks, whatever the size of their pages.

#![allow(clippy::unwrap_used, reason = "a test stops at anything unexpected")]

use std::cmp::Reverse;

use laneway_core::{
    Block, Command, Fence, LaneName, LaneSettings, LiveTaskView, Millis, Name, Outcome, Parent, Pattern,
    Scheduler, Selector, TaskId, TaskSpec, TaskStatus, Timestamp,
};

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn lane(text: &str) -> LaneName {
    LaneName::new(text).unwrap()
}

/// A block in whose lanes many tasks may wait.
fn block(lanes: &str, key: &str, value: &str) -> Block {
    let mut settings = LaneSettings::default();
    settings.set("max_queued", "1000").unwrap();
    settings.set(key, value).unwrap();
    Block { lanes: Pattern::new(lanes).unwrap(), settings: Some(settings) }
}

const LANES: [&str; 4] = ["busy", "side", "out", "nowhere"];

/// Tasks that run, wait, were claimed, will be retried or have a delay. The lanes are home lanes of some and not of others.
fn scheduler_with_tasks() -> Scheduler {
    let mut scheduler = Scheduler::new(1);
    let mut step = |at: u64, command: Command| {
        scheduler.step(Timestamp(at), command, &mut Vec::new()).unwrap();
    };
    let blocks = vec![
        block("busy", "max_concurrency", "4"),
        block("side", "max_concurrency", "1"),
        block("out", "handler", "external"),
    ];
    step(0, Command::Configure(blocks));
    for number in 1..=60u128 {
        let lanes =
            [&["busy"][..], &["side", "busy"], &["busy", "side"], &["out"], &["busy"]][number as usize % 5];
        let mut spec = TaskSpec::new(
            name(["chat", "search"][number as usize % 2]),
            lanes.iter().map(|name| lane(name)).collect(),
        );
        spec.priority = Some((number * 7 % 3) as u8);
        spec.run_after = (number % 11 == 0).then_some(Millis(500));
        spec.group = (number % 3 == 0).then(|| name("third"));
        spec.retry = (number == 5).then_some(laneway_core::Retry::STANDARD);
        step(number as u64, Command::Submit { task: TaskId(number), spec: Box::new(spec) });
    }
    let mut child = TaskSpec::new(name("chat"), vec![lane("side")]);
    child.parent = Some(Parent { task: TaskId(1), detached: false });
    step(61, Command::Submit { task: TaskId(70), spec: Box::new(child) });
    let patterns = vec![Pattern::new("out").unwrap()];
    step(61, Command::Claim { worker: name("w"), lanes: patterns, kinds: vec![], max: 1, lease: None });
    // Task 5 fails and will be retried.
    let failed = Outcome::Failure { error: "not yet".into(), retryable: true };
    let fence = scheduler.task(TaskId(5)).unwrap().running.unwrap().fence;
    scheduler
        .step(
            Timestamp(62),
            Command::Finish { task: TaskId(5), fence, taken: vec![], outcome: failed },
            &mut Vec::new(),
        )
        .unwrap();
    scheduler
}

fn ids<'a>(views: impl IntoIterator<Item = &'a LiveTaskView>) -> Vec<u128> {
    views.into_iter().map(|view| view.id.0).collect()
}

fn is_in(view: &LiveTaskView, name: &str) -> bool {
    view.lanes.contains(&lane(name))
}

/// Sorts by level, then by arrival, which here is the order of the ids.
fn in_line(mut views: Vec<LiveTaskView>) -> Vec<LiveTaskView> {
    views.sort_by_key(|view| (Reverse(view.effective_priority), view.id));
    views
}

#[test]
fn pages_hold_each_matching_task_once() {
    let scheduler = scheduler_with_tasks();
    let all: Vec<LiveTaskView> = scheduler.tasks().collect();
    let statuses = [None, Some(TaskStatus::Queued), Some(TaskStatus::Running), Some(TaskStatus::Retrying)];
    let selectors = LANES.iter().map(|name| Selector { lane: Some(lane(name)), ..Selector::default() });
    let selectors = selectors.chain([
        Selector::default(),
        Selector { kind: Some(name("chat")), ..Selector::default() },
        Selector { group: Some(name("third")), ..Selector::default() },
        Selector { parent: Some(TaskId(1)), ..Selector::default() },
    ]);
    for (which, status) in selectors.flat_map(|which| statuses.map(|status| (which.clone(), status))) {
        let matches = |view: &&LiveTaskView| {
            status.is_none_or(|status| view.status == status)
                && which.lane.as_ref().is_none_or(|lane| view.lanes.contains(lane))
                && which.kind.as_ref().is_none_or(|kind| view.kind == *kind)
                && (which.group.is_none() || view.id.0.is_multiple_of(3))
                && (which.parent.is_none() || view.id == TaskId(70))
        };
        let mut expected = ids(all.iter().filter(matches));
        expected.sort_unstable();
        for size in [1, 2, 7, expected.len().max(1), 100] {
            let (mut found, mut from) = (Vec::new(), Some(0));
            while let Some(at) = from {
                let (page, next) = scheduler.page(&which, status, at, size);
                let page = ids(&page);
                assert!(page.is_sorted() && page.len() <= size && (next.is_none() || page.len() == size));
                found.extend(page);
                from = next;
            }
            found.sort_unstable();
            assert_eq!(found, expected, "{which:?} {status:?} {size}");
        }
    }
}

#[test]
fn the_line_of_a_lane_holds_all_its_waiting_tasks_with_their_places() {
    let scheduler = scheduler_with_tasks();
    for name in LANES {
        let here: Vec<LiveTaskView> = scheduler.tasks().filter(|view| is_in(view, name)).collect();
        let queued = here.into_iter().filter(|view| view.status == TaskStatus::Queued);
        let (waiting, later): (Vec<LiveTaskView>, Vec<LiveTaskView>) =
            queued.partition(|view| scheduler.position(view.id).is_some());
        let places = (1..=waiting.len()).map(Some).chain(std::iter::repeat(None));
        let expected: Vec<(u128, Option<usize>)> =
            ids(in_line(waiting).iter().chain(&in_line(later))).into_iter().zip(places).collect();
        for (from, size) in [
            (0, 1),
            (0, 3),
            (3, 5),
            (0, 500),
            (10, 2),
            (0, expected.len()),
            (0, expected.len().saturating_sub(1)),
            (expected.len(), 3),
        ] {
            let (items, next) = scheduler.line_in(&lane(name), from, size);
            let items: Vec<(u128, Option<usize>)> =
                items.iter().map(|(view, place)| (view.id.0, *place)).collect();
            let end = expected.len().min(from + size);
            assert_eq!(items, expected[from.min(end)..end], "{name} {from} {size}");
            assert_eq!(next, (expected.len() > from + size).then_some(from + size), "{name} {from} {size}");
        }
    }
}

#[test]
fn a_long_line_comes_in_pages() {
    let mut scheduler = Scheduler::new(1);
    let long = vec![block("long", "max_concurrency", "1")];
    scheduler.step(Timestamp(0), Command::Configure(long), &mut Vec::new()).unwrap();
    for number in 1..=21u128 {
        let spec = TaskSpec::new(name("work"), vec![lane("long")]);
        let submit = Command::Submit { task: TaskId(number), spec: Box::new(spec) };
        scheduler.step(Timestamp(number as u64), submit, &mut Vec::new()).unwrap();
    }
    for (from, size, first, next) in
        [(0, 5, 2, Some(5)), (5, 5, 7, Some(10)), (15, 5, 17, None), (0, 20, 2, None)]
    {
        let (items, more) = scheduler.line_in(&lane("long"), from, size);
        let items: Vec<(u128, Option<usize>)> =
            items.iter().map(|(view, place)| (view.id.0, *place)).collect();
        let expected: Vec<(u128, Option<usize>)> =
            (0..size).map(|at| (first + at as u128, Some(from + at + 1))).collect();
        assert_eq!((items, more), (expected, next), "{from} {size}");
    }
    assert_eq!(scheduler.oldest_waiting(&lane("long")), Some(Timestamp(2)));
    assert_eq!(scheduler.oldest_waiting(&lane("nowhere")), None);
}

#[test]
fn running_waiting_and_claimed_tasks_agree_with_a_scan() {
    let scheduler = scheduler_with_tasks();
    for name in LANES {
        let all: Vec<LiveTaskView> = scheduler.tasks().collect();
        let mut running: Vec<LiveTaskView> =
            all.iter().filter(|view| is_in(view, name) && view.running.is_some()).cloned().collect();
        running.sort_by_key(|view| view.running.as_ref().map(|running| running.fence));
        let at_home =
            |view: &&LiveTaskView| view.lanes[0] == lane(name) && scheduler.position(view.id).is_some();
        let waiting = in_line(all.iter().filter(at_home).cloned().collect());
        for max in [1, 3, 100] {
            let (runs, waits) = scheduler.line_of(&lane(name), max);
            assert_eq!(ids(&runs), ids(running.iter().take(max)), "{name} {max}");
            assert_eq!(ids(&waits), ids(waiting.iter().take(max)), "{name} {max}");
        }
        let oldest = waiting.iter().map(|view| view.submitted).min();
        assert_eq!(scheduler.oldest_waiting(&lane(name)), oldest, "{name}");
    }
    assert_eq!(ids(&scheduler.claimed()).len(), 1);
    assert!(is_in(&scheduler.claimed()[0], "out"));
    assert_eq!([TaskId(1), TaskId(60), TaskId(61)].map(|task| scheduler.has(task)), [true, true, false]);
    assert_eq!(scheduler.status(TaskId(5)), Some(TaskStatus::Retrying));
    assert!(scheduler.highest_fence() > Fence(4));
}
