//! Schedulers that read the same events reach the same state, whatever else they did.

#![allow(clippy::unwrap_used, reason = "a test stops at anything unexpected")]

use laneway_core::{
    Block, Command, Event, Fence, LaneName, LaneSettings, Millis, Name, Outcome, Pattern, Scheduler, TaskId,
    TaskSpec, Timestamp,
};

fn submit(number: u128, run_after: u64) -> Command {
    let mut spec = TaskSpec::new(Name::new("work").unwrap(), vec![LaneName::new("work").unwrap()]);
    spec.run_after = (run_after > 0).then_some(Millis(run_after));
    Command::Submit { task: TaskId(number), spec: Box::new(spec) }
}

#[test]
fn a_tick_that_changed_nothing_does_not_affect_later_events() {
    let mut decider = Scheduler::new(1);
    let mut batches: Vec<(Timestamp, Vec<Event>)> = Vec::new();
    for (at, command) in [(1000, submit(1, 0)), (1253, submit(2, 0)), (1260, submit(3, 500))] {
        let mut events = Vec::new();
        decider.step(Timestamp(at), command, &mut events).unwrap();
        batches.push((Timestamp(at), events));
    }
    // `reader` only reads. `ticker` also ticks in between, by its own clock, which is a little ahead.
    let (mut reader, mut ticker) = (Scheduler::new(2), Scheduler::new(3));
    for (at, events) in &batches {
        let mut nothing = Vec::new();
        ticker.step(*at + Millis(3), Command::Tick, &mut nothing).unwrap();
        assert_eq!(nothing, vec![]);
        for event in events {
            reader.apply(*at, event);
            ticker.apply(*at, event);
        }
    }
    assert_eq!(reader.snapshot(), ticker.snapshot());
    assert_eq!(reader.snapshot(), decider.snapshot());
}

/// A bucket fills and its lane disappears without an event. A reader must see this at the next event.
#[test]
fn a_reader_follows_changes_by_time_alone() {
    let rated = LaneName::new("rated").unwrap();
    let mut settings = LaneSettings::default();
    settings.set("rate_limit", "1/second").unwrap();
    let block = Block { lanes: Pattern::new("rat*").unwrap(), settings: Some(settings) };
    let spec = TaskSpec::new(Name::new("work").unwrap(), vec![rated.clone()]);
    let (mut decider, mut reader) = (Scheduler::new(1), Scheduler::new(2));
    for (at, command) in [
        (0, Command::Configure(vec![block])),
        (0, Command::Submit { task: TaskId(1), spec: Box::new(spec) }),
        (1, Command::Finish { task: TaskId(1), fence: Fence(1), taken: vec![], outcome: Outcome::Success }),
        // This command emits only one event.
        (5000, submit(2, 500)),
    ] {
        let mut events = Vec::new();
        decider.step(Timestamp(at), command, &mut events).unwrap();
        events.iter().for_each(|event| reader.apply(Timestamp(at), event));
        assert_eq!(reader.snapshot(), decider.snapshot());
        let is_there = [&reader, &decider].map(|scheduler| scheduler.lane(&rated).is_some());
        let expected = at < 5000 && decider.highest_fence() > Fence(0);
        assert_eq!(is_there, [expected; 2], "at {at}");
    }
}
