//! Claims that name their tasks, and what else workers rely on.
#![allow(clippy::unwrap_used, missing_docs)]

use laneway_core::{
    Block, Command, End, Event, Fence, Handler, LaneName, LaneSettings, Millis, Name, Owner, Pattern,
    Rejection, Reply, Retry, Scheduler, Switch, TaskId, TaskSpec, Timestamp,
};

fn step(lanes: &mut Scheduler, command: Command) -> Result<(Reply, Vec<Event>), Rejection> {
    let mut events = Vec::new();
    let reply = lanes.step(Timestamp(1000), command, &mut events)?;
    assert_eq!(lanes.violation(), None);
    Ok((reply, events))
}

/// Tasks 1 to 4 wait for a worker in a lane with two slots.
fn scheduler_with_four_tasks() -> Scheduler {
    let mut lanes = Scheduler::new(1);
    let settings = LaneSettings {
        handler: Some(Handler::External),
        max_concurrency: Some(Switch::On(2)),
        ..LaneSettings::default()
    };
    let block = Block { lanes: Pattern::new("out").unwrap(), settings: Some(settings) };
    step(&mut lanes, Command::Configure(vec![block])).unwrap();
    for task in 1..=4 {
        let spec = TaskSpec::new(Name::new("render").unwrap(), vec![LaneName::new("out").unwrap()]);
        step(&mut lanes, Command::Submit { task: TaskId(task), spec: Box::new(spec) }).unwrap();
    }
    lanes
}

fn claim(tasks: &[u128], lease: Option<Millis>) -> Command {
    let tasks = tasks.iter().copied().map(TaskId).collect();
    Command::ClaimThese { worker: Name::new("w").unwrap(), tasks, lease }
}

#[test]
fn a_claim_gets_only_the_tasks_that_it_names_up_to_the_limit() {
    let mut lanes = scheduler_with_four_tasks();
    let mut replica = scheduler_with_four_tasks();
    let (reply, events) = step(&mut lanes, claim(&[3, 9, 3, 2, 4], None)).unwrap();
    // Task 3 takes one slot, task 9 does not exist, and task 4 finds no slot.
    assert_eq!(reply, Reply::Claimed(vec![TaskId(3), TaskId(2)]));
    events.iter().for_each(|event| replica.apply(Timestamp(1000), event));
    assert_eq!((replica.violation(), replica.snapshot()), (None, lanes.snapshot()));
    let (reply, _) = step(&mut lanes, claim(&[1], None)).unwrap();
    assert_eq!(reply, Reply::Claimed(vec![]));
    let left: Vec<TaskId> = lanes.pending_external().iter().map(|task| task.id).collect();
    assert_eq!(left, [TaskId(1), TaskId(4)]);
}

#[test]
fn an_invalid_claim_is_refused() {
    let mut lanes = scheduler_with_four_tasks();
    let many: Vec<u128> = (1..=1001).collect();
    for wrong in [claim(&[], None), claim(&many, None), claim(&[1], Some(Millis(0)))] {
        assert!(matches!(step(&mut lanes, wrong), Err(Rejection::BadTask(_))));
    }
    assert_eq!(lanes.pending_external().len(), 4);
    let (reply, _) = step(&mut lanes, claim(&[1], Some(Millis::MAX))).unwrap();
    assert_eq!(reply, Reply::Claimed(vec![TaskId(1)]));
}

#[test]
fn fences_rise_above_a_known_fence_and_never_fall() {
    let mut lanes = scheduler_with_four_tasks();
    let mut replica = scheduler_with_four_tasks();
    let fence = |events: &[Event]| match events.last() {
        Some(Event::Granted { fence, .. }) => *fence,
        other => unreachable!("a grant, and not {other:?}"),
    };
    for (to, expected) in [(Fence(7), 1), (Fence(7), 0), (Fence(3), 0)] {
        let (reply, raised) = step(&mut lanes, Command::RaiseFences { to }).unwrap();
        assert_eq!((reply, raised.len()), (Reply::Done, expected));
        raised.iter().for_each(|event| replica.apply(Timestamp(1000), event));
    }
    assert_eq!((replica.violation(), replica.snapshot()), (None, lanes.snapshot()));
    assert_eq!(lanes.highest_fence(), Fence(7));
    let (_, events) = step(&mut lanes, claim(&[1], None)).unwrap();
    assert_eq!(fence(&events), Fence(8));
}

#[test]
fn survives_its_owner_predicts_whether_a_task_outlives_a_silent_owner() {
    for handler in [Handler::Internal, Handler::External] {
        for (retry, redeliveries) in [(Retry::NONE, 0), (Retry::NONE, 2), (Retry::STANDARD, 0)] {
            let mut lanes = Scheduler::new(1);
            let settings = LaneSettings {
                handler: Some(handler),
                retry: Some(retry),
                max_redelivery: Some(redeliveries),
                ..LaneSettings::default()
            };
            let block = Block { lanes: Pattern::new("out").unwrap(), settings: Some(settings) };
            step(&mut lanes, Command::Configure(vec![block])).unwrap();
            assert!(!lanes.survives_its_owner(TaskId(1)), "an unknown task");
            let spec = TaskSpec::new(Name::new("render").unwrap(), vec![LaneName::new("out").unwrap()]);
            step(&mut lanes, Command::Submit { task: TaskId(1), spec: Box::new(spec) }).unwrap();
            let mut now = 1000;
            for lapses in 0.. {
                if lanes.task(TaskId(1)).unwrap().running.is_none() {
                    assert!(lanes.survives_its_owner(TaskId(1)), "a waiting task");
                    // Longer than any delay of a retry.
                    now += 10_000_000;
                    let mut wake = |command| lanes.step(Timestamp(now), command, &mut Vec::new()).unwrap();
                    wake(Command::Tick);
                    wake(claim(&[1], None));
                }
                let survives = lanes.survives_its_owner(TaskId(1));
                // Longer than any lease.
                now += 10_000_000;
                lanes.step(Timestamp(now), Command::Tick, &mut Vec::new()).unwrap();
                assert_eq!(
                    lanes.status(TaskId(1)).is_some(),
                    survives,
                    "{handler:?} {retry:?} {redeliveries}"
                );
                if !survives {
                    let expected = match handler {
                        Handler::External => redeliveries,
                        _ => retry.max_retries,
                    };
                    assert_eq!(lapses, expected);
                    break;
                }
            }
        }
    }
}

/// A claim of one kind gets all tasks of the kind, one lane after another, however many other tasks wait.
#[test]
fn a_claim_of_one_kind_finds_its_tasks_behind_others() {
    let mut lanes = Scheduler::new(1);
    let mut settings = LaneSettings { handler: Some(Handler::External), ..LaneSettings::default() };
    settings.set("max_concurrency", "9").unwrap();
    let block = Block { lanes: Pattern::new("out:*").unwrap(), settings: Some(settings) };
    step(&mut lanes, Command::Configure(vec![block])).unwrap();
    // The first lane has more tasks than the others, and the claim gets those last.
    let names = (0..30).flat_map(|lane| (0..if lane == 0 { 3 } else { 1 }).map(move |_| lane));
    let (mut first_of_lanes, mut more_of_first_lane) = (Vec::new(), Vec::new());
    for (number, lane) in names.enumerate() {
        for kind in ["other", "render"] {
            let task = TaskId(2 * number as u128 + u128::from(kind == "render"));
            let out = LaneName::new(format!("out:{lane}")).unwrap();
            let spec = TaskSpec::new(Name::new(kind).unwrap(), vec![out]);
            step(&mut lanes, Command::Submit { task, spec: Box::new(spec) }).unwrap();
            if kind == "render" {
                let is_more = lane == 0 && number > 0;
                if is_more { &mut more_of_first_lane } else { &mut first_of_lanes }.push(task);
            }
        }
    }
    let (worker, patterns) = (Name::new("w").unwrap(), vec![Pattern::new("out:*").unwrap()]);
    let kinds = vec![Name::new("render").unwrap()];
    let claim = Command::Claim { worker, lanes: patterns, kinds, max: 100, lease: None };
    let (reply, _) = step(&mut lanes, claim).unwrap();
    assert_eq!(reply, Reply::Claimed([first_of_lanes, more_of_first_lane].concat()));
}

#[test]
fn a_task_of_a_given_worker_starts_in_order_and_ends_with_its_lease() {
    let mut lanes = Scheduler::new(1);
    for task in 1..=2 {
        let mut spec = TaskSpec::new(Name::new("render").unwrap(), vec![LaneName::new("one").unwrap()]);
        spec.owner = Some(Owner::Worker(Name::new("caller").unwrap()));
        spec.lease = Some(Millis(50));
        step(&mut lanes, Command::Submit { task: TaskId(task), spec: Box::new(spec) }).unwrap();
    }
    let owner = |lanes: &Scheduler, task| {
        let running = lanes.task(TaskId(task)).and_then(|view| view.running);
        running.map(|running| (running.worker().unwrap().to_string(), running.lease_until))
    };
    assert_eq!(owner(&lanes, 1), Some(("caller".to_owned(), Timestamp(1050))));
    assert_eq!(owner(&lanes, 2), None);
    assert_eq!(step(&mut lanes, claim(&[2], None)).unwrap().0, Reply::Claimed(vec![]));
    let mut events = Vec::new();
    lanes.step(Timestamp(1050), Command::Tick, &mut events).unwrap();
    let error = "its owner sent no heartbeat".into();
    assert!(events.contains(&Event::Ended { task: TaskId(1), end: End::Failed { error } }), "{events:?}");
    assert_eq!(owner(&lanes, 2), Some(("caller".to_owned(), Timestamp(1100))));
    assert_eq!(lanes.violation(), None);
}
