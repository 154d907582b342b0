//! Tasks of callers that are connected to a replica, and the ends of tasks that a log has lost.

#![allow(clippy::unwrap_used, reason = "a test stops at anything unexpected")]

use laneway_core::{
    Block, CancelReason, Command, End, Event, LaneName, LaneSettings, Name, Outcome, Pattern, Rejection,
    Reply, Retry, Scheduler, TaskId, TaskSpec, Timestamp,
};

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// A lane with one slot, and tasks that are tried twice.
fn lanes(runner: &str) -> Scheduler {
    let mut lanes = Scheduler::new(1);
    lanes.run_as(Some(name(runner)));
    let mut settings = LaneSettings::default();
    settings.set("max_concurrency", "1").unwrap();
    let block = Block { lanes: Pattern::new("work").unwrap(), settings: Some(settings) };
    lanes.step(Timestamp(0), Command::Configure(vec![block]), &mut Vec::new()).unwrap();
    lanes
}

fn spec(home: Option<&str>) -> Box<TaskSpec> {
    let mut spec = TaskSpec::new(name("work"), vec![LaneName::new("work").unwrap()]);
    spec.home = home.map(name);
    spec.retry = Some(Retry::STANDARD);
    Box::new(spec)
}

/// Who was granted what by this command.
fn granted(lanes: &mut Scheduler, at: u64, command: Command) -> Vec<(u128, String)> {
    let mut events = Vec::new();
    lanes.step(Timestamp(at), command, &mut events).unwrap();
    let grant = |event: &Event| match event {
        Event::Granted { task, worker, .. } => Some((task.0, worker.as_ref().unwrap().to_string())),
        _ => None,
    };
    events.iter().filter_map(grant).collect()
}

fn submit(task: u128, home: Option<&str>) -> Command {
    Command::Submit { task: TaskId(task), spec: spec(home) }
}

fn finish(lanes: &Scheduler, task: u128, outcome: Outcome) -> Command {
    let fence = lanes.task(TaskId(task)).unwrap().running.unwrap().fence;
    Command::Finish { task: TaskId(task), fence, taken: vec![], outcome }
}

#[test]
fn the_first_attempt_is_run_where_the_caller_is_and_later_ones_anywhere() {
    let mut lanes = lanes("a");
    assert_eq!(granted(&mut lanes, 0, submit(1, None)), [(1, "a".to_owned())]);
    assert_eq!(granted(&mut lanes, 0, submit(2, Some("b"))), []);
    // A restored scheduler knows it too.
    let mut lanes = Scheduler::restore(1, &lanes.snapshot());
    lanes.run_as(Some(name("c")));
    assert_eq!(lanes.task(TaskId(2)).unwrap().home, Some(name("b")));
    let done = finish(&lanes, 1, Outcome::Success);
    assert_eq!(granted(&mut lanes, 10, done), [(2, "b".to_owned())]);
    let failed = finish(&lanes, 2, Outcome::Failure { error: "no".into(), retryable: true });
    assert_eq!(granted(&mut lanes, 20, failed), []);
    let again = lanes.next_wakeup().unwrap();
    assert_eq!(granted(&mut lanes, again.0, Command::Tick), [(2, "c".to_owned())]);
}

#[test]
fn any_replica_runs_the_waiting_tasks_of_one_that_ends() {
    let mut lanes = lanes("a");
    granted(&mut lanes, 0, submit(1, None));
    granted(&mut lanes, 0, submit(2, Some("b")));
    granted(&mut lanes, 0, submit(3, Some("d")));
    let mut events = Vec::new();
    for home in ["b", "b", "z"] {
        lanes.step(Timestamp(1), Command::Unbind { home: name(home) }, &mut events).unwrap();
    }
    assert_eq!(events, [Event::Unbound { home: name("b") }], "once, and only if there is something");
    let homes = |lanes: &Scheduler| [2, 3].map(|task| lanes.task(TaskId(task)).unwrap().home);
    assert_eq!(homes(&lanes), [None, Some(name("d"))]);
    let done = finish(&lanes, 1, Outcome::Success);
    assert_eq!(granted(&mut lanes, 10, done), [(2, "a".to_owned())]);
}

#[test]
fn a_lost_end_is_restored_for_waiting_and_lost_tasks_and_never_for_running_ones() {
    let mut lanes = lanes("a");
    granted(&mut lanes, 0, submit(1, None));
    granted(&mut lanes, 0, submit(2, None));
    let mut recount = |task: u128, spec: Option<Box<TaskSpec>>, end: End| {
        let mut events = Vec::new();
        let command = Command::Recount { task: TaskId(task), spec, end };
        let reply = lanes.step(Timestamp(5), command, &mut events);
        (reply, events, lanes.violation())
    };
    let (reply, events, _) = recount(1, None, End::Completed);
    assert_eq!((reply, events), (Err(Rejection::IdTaken { task: TaskId(1) }), vec![]), "it runs");
    let ended = |task: u128, end: End| Event::Ended { task: TaskId(task), end };
    let (reply, events, wrong) = recount(2, None, End::Completed);
    assert_eq!((reply, events, wrong), (Ok(Reply::Done), vec![ended(2, End::Completed)], None), "it waited");
    let (reply, events, _) = recount(3, None, End::Lost);
    assert_eq!(
        (reply, events),
        (Err(Rejection::NotLive { task: TaskId(3) }), vec![]),
        "its spec is not known"
    );
    let (reply, events, wrong) = recount(3, Some(spec(Some("b"))), End::Lost);
    assert!(
        matches!(&events[..], [Event::Submitted { .. }, end] if *end == ended(3, End::Lost)),
        "{events:?}"
    );
    assert_eq!((reply, wrong), (Ok(Reply::Done), None));
    assert_eq!(lanes.live_tasks(), 1);
    let cancel = Command::Cancel { task: TaskId(1), reason: CancelReason::Caller };
    lanes.step(Timestamp(6), cancel, &mut Vec::new()).unwrap();
}

#[test]
fn advancing_never_moves_the_time_back() {
    let mut lanes = lanes("a");
    lanes.advance_to(Timestamp(100));
    lanes.advance_to(Timestamp(50));
    assert_eq!(lanes.now(), Timestamp(100));
}
