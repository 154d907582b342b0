//! A worker that asks for the very tasks that it means.
#![allow(clippy::unwrap_used, missing_docs)]

use laneway_core::{
    Block, Command, Event, Fence, Handler, LaneName, LaneSettings, Millis, Name, Pattern, Rejection, Reply,
    Scheduler, Switch, TaskId, TaskSpec, Timestamp,
};

fn step(lanes: &mut Scheduler, command: Command) -> Result<(Reply, Vec<Event>), Rejection> {
    let mut events = Vec::new();
    let reply = lanes.step(Timestamp(1000), command, &mut events)?;
    assert_eq!(lanes.violation(), None);
    Ok((reply, events))
}

/// Four tasks, 1 to 4, wait for a worker in a lane with two slots.
fn waiting() -> Scheduler {
    let mut lanes = Scheduler::new(1);
    let settings = LaneSettings {
        handler: Some(Handler::External),
        max_concurrency: Some(Switch::On(2)),
        ..LaneSettings::default()
    };
    let block = Block { lanes: Pattern::new("out").unwrap(), settings: Some(settings) };
    step(&mut lanes, Command::Configure(vec![block])).unwrap();
    for task in 1..=4 {
        let spec = TaskSpec::new(Name::new("job").unwrap(), vec![LaneName::new("out").unwrap()]);
        step(&mut lanes, Command::Submit { task: TaskId(task), spec: Box::new(spec) }).unwrap();
    }
    lanes
}

fn claim(tasks: &[u128], lease: Option<Millis>) -> Command {
    let tasks = tasks.iter().copied().map(TaskId).collect();
    Command::ClaimThese { worker: Name::new("w").unwrap(), tasks, lease }
}

#[test]
fn those_that_are_named_are_handed_out_up_to_the_limit_and_no_others() {
    let mut lanes = waiting();
    let mut replica = waiting();
    let (reply, events) = step(&mut lanes, claim(&[3, 9, 3, 2, 4], None)).unwrap();
    // The third has a slot once, the ninth is nobody, and the fourth finds no slot.
    assert_eq!(reply, Reply::Claimed(vec![TaskId(3), TaskId(2)]));
    events.iter().for_each(|event| replica.apply(Timestamp(1000), event));
    assert_eq!((replica.violation(), replica.state()), (None, lanes.state()));
    let (reply, _) = step(&mut lanes, claim(&[1], None)).unwrap();
    assert_eq!(reply, Reply::Claimed(vec![]));
    let left: Vec<TaskId> = lanes.pending_external().iter().map(|task| task.id).collect();
    assert_eq!(left, [TaskId(1), TaskId(4)]);
}

#[test]
fn what_is_no_claim_is_refused() {
    let mut lanes = waiting();
    let many: Vec<u128> = (1..=1001).collect();
    for wrong in [claim(&[], None), claim(&many, None), claim(&[1], Some(Millis(0)))] {
        assert!(matches!(step(&mut lanes, wrong), Err(Rejection::BadTask(_))));
    }
    assert_eq!(lanes.pending_external().len(), 4);
}

#[test]
fn fences_rise_above_what_somebody_knows_of_and_never_fall() {
    let mut lanes = waiting();
    let mut replica = waiting();
    let fence = |events: &[Event]| match events.last() {
        Some(Event::Granted { fence, .. }) => *fence,
        other => unreachable!("a grant, and not {other:?}"),
    };
    for (to, events) in [(Fence(7), 1), (Fence(7), 0), (Fence(3), 0)] {
        let (reply, raised) = step(&mut lanes, Command::RaiseFences { to }).unwrap();
        assert_eq!((reply, raised.len()), (Reply::Done, events));
        raised.iter().for_each(|event| replica.apply(Timestamp(1000), event));
    }
    assert_eq!((replica.violation(), replica.state()), (None, lanes.state()));
    assert_eq!(lanes.highest_fence(), Fence(7));
    let (_, events) = step(&mut lanes, claim(&[1], None)).unwrap();
    assert_eq!(fence(&events), Fence(8));
}
