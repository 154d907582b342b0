//! Whoever reads the same events comes to the same state, whatever else he did.

#![allow(clippy::unwrap_used, reason = "a test stops at anything unexpected")]

use laneway_core::{Command, Event, LaneName, Millis, Name, Scheduler, TaskId, TaskSpec, Timestamp};

fn submit(number: u128, run_after: u64) -> Command {
    let mut spec = TaskSpec::new(Name::new("work").unwrap(), vec![LaneName::new("work").unwrap()]);
    spec.run_after = (run_after > 0).then_some(Millis(run_after));
    Command::Submit { task: TaskId(number), spec: Box::new(spec) }
}

#[test]
fn a_look_that_changed_nothing_leaves_no_trace_in_what_is_read_after_it() {
    let mut decider = Scheduler::new(1);
    let mut batches: Vec<(Timestamp, Vec<Event>)> = Vec::new();
    for (at, command) in [(1000, submit(1, 0)), (1253, submit(2, 0)), (1260, submit(3, 500))] {
        let mut events = Vec::new();
        decider.step(Timestamp(at), command, &mut events).unwrap();
        batches.push((Timestamp(at), events));
    }
    // One reads as it comes. The other looks at its own clock in between, which is a little ahead.
    let (mut reader, mut looker) = (Scheduler::new(2), Scheduler::new(3));
    for (at, events) in &batches {
        let mut nothing = Vec::new();
        looker.step(*at + Millis(3), Command::Tick, &mut nothing).unwrap();
        assert_eq!(nothing, vec![]);
        for event in events {
            reader.apply(*at, event);
            looker.apply(*at, event);
        }
    }
    assert_eq!(reader.state(), looker.state());
    assert_eq!(reader.state(), decider.state());
}
