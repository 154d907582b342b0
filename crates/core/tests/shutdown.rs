//! A process that is about to end starts no further tasks, whatever happens in the meantime.
#![allow(clippy::unwrap_used)]

use laneway_core::{
    Block, Command, Event, Fence, Handler, LaneName, LaneSettings, Millis, Name, Outcome, Pattern, Scheduler,
    TaskId, TaskSpec, TaskStatus, Timestamp,
};

fn submit(task: u128, lane: &str, run_after: Option<Millis>) -> Command {
    let mut spec = TaskSpec::new(Name::new("work").unwrap(), vec![LaneName::new(lane).unwrap()]);
    spec.run_after = run_after;
    Command::Submit { task: TaskId(task), spec: Box::new(spec) }
}

#[test]
fn after_stop_granting_only_claimed_tasks_start() {
    let external = LaneSettings { handler: Some(Handler::External), ..LaneSettings::default() };
    let external = Block { lanes: Pattern::new("x").unwrap(), settings: Some(external) };
    let mut lanes = Scheduler::new(1);
    let mut events = Vec::new();
    let mut step = |lanes: &mut Scheduler, now: u64, command: Command| {
        events.clear();
        lanes.step(Timestamp(now), command, &mut events).unwrap();
        assert_eq!(lanes.violation(), None);
        events.iter().filter(|event| matches!(event, Event::Granted { .. })).count()
    };
    step(&mut lanes, 0, Command::Configure(vec![external]));
    assert_eq!(step(&mut lanes, 0, submit(1, "one", None)), 1);
    assert_eq!(step(&mut lanes, 0, submit(2, "one", None)), 0);
    assert_eq!(step(&mut lanes, 0, submit(3, "two", Some(Millis(50)))), 0);
    assert_eq!(step(&mut lanes, 0, submit(4, "x", None)), 0);
    lanes.stop_granting();
    // No task starts: not a new one, not one whose delay ends, and not one for which a slot becomes free.
    assert_eq!(step(&mut lanes, 10, submit(5, "main", None)), 0);
    assert_eq!(step(&mut lanes, 60, Command::Tick), 0);
    let finish =
        Command::Finish { task: TaskId(1), fence: Fence(1), taken: vec![], outcome: Outcome::Success };
    assert_eq!(step(&mut lanes, 70, finish), 0);
    assert_eq!(step(&mut lanes, 100_000, Command::Tick), 0);
    assert!(lanes.tasks().all(|task| task.status == TaskStatus::Queued));
    let claim = Command::Claim {
        worker: Name::new("worker").unwrap(),
        lanes: vec![Pattern::new("x").unwrap()],
        kinds: vec![],
        max: 1,
        lease: None,
    };
    assert_eq!(step(&mut lanes, 100_000, claim), 1);
    let status = |task: u128| lanes.status(TaskId(task));
    assert_eq!([1, 2, 4].map(status), [None, Some(TaskStatus::Queued), Some(TaskStatus::Running)]);
}

#[test]
fn a_task_submitted_after_stop_granting_waits_despite_a_free_slot() {
    let mut lanes = Scheduler::new(1);
    lanes.stop_granting();
    let mut events = Vec::new();
    lanes.step(Timestamp(0), submit(1, "one", None), &mut events).unwrap();
    assert!(matches!(events[..], [Event::Submitted { .. }]), "{events:?}");
    assert_eq!(lanes.position(TaskId(1)), Some(1));
    assert_eq!(
        lanes.lane(&LaneName::new("one").unwrap()).map(|view| (view.running, view.waiting)),
        Some((0, 1))
    );
    // A reader of the events has the same state, although it still grants.
    let mut reader = Scheduler::new(1);
    events.iter().for_each(|event| reader.apply(Timestamp(0), event));
    assert_eq!(reader.position(TaskId(1)), Some(1));
    assert_eq!(
        reader.lane(&LaneName::new("one").unwrap()).map(|view| (view.running, view.waiting)),
        Some((0, 1))
    );
}
