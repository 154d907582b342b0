//! Several replicas: which one runs the tasks of a caller, and how they restore ends that the log has lost.

#![allow(clippy::unwrap_used, reason = "a test stops at anything unexpected")]

use laneway_core::{
    Block, CancelReason, Command, End, Event, Fence, Idempotency, LaneName, LaneSettings, Name, Outcome,
    Owner, Pattern, Rejection, ReplicaId, Reply, Retry, Scheduler, TaskId, TaskSpec, Timestamp,
};

const A: ReplicaId = ReplicaId(1);
const B: ReplicaId = ReplicaId(2);
const C: ReplicaId = ReplicaId(3);
const D: ReplicaId = ReplicaId(4);

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// A lane with one slot, and tasks that are tried twice.
fn scheduler_of(replica: ReplicaId) -> Scheduler {
    let mut lanes = Scheduler::new(1);
    lanes.run_as(replica);
    let mut settings = LaneSettings::default();
    settings.set("max_concurrency", "1").unwrap();
    let block = Block { lanes: Pattern::new("work").unwrap(), settings: Some(settings) };
    lanes.step(Timestamp(0), Command::Configure(vec![block]), &mut Vec::new()).unwrap();
    lanes
}

fn spec(caller_at: Option<ReplicaId>) -> Box<TaskSpec> {
    let mut spec = TaskSpec::new(name("work"), vec![LaneName::new("work").unwrap()]);
    spec.caller_at = caller_at;
    spec.retry = Some(Retry::STANDARD);
    Box::new(spec)
}

/// Who was granted what by this command.
fn grants(lanes: &mut Scheduler, at: u64, command: Command) -> Vec<(u128, Owner)> {
    let mut events = Vec::new();
    lanes.step(Timestamp(at), command, &mut events).unwrap();
    let grant = |event: &Event| match event {
        Event::Granted { task, owner, .. } => Some((task.0, owner.clone())),
        _ => None,
    };
    events.iter().filter_map(grant).collect()
}

fn submit(task: u128, caller_at: Option<ReplicaId>) -> Command {
    Command::Submit { task: TaskId(task), spec: spec(caller_at) }
}

fn finish(lanes: &Scheduler, task: u128, outcome: Outcome) -> Command {
    let fence = lanes.task(TaskId(task)).unwrap().running.unwrap().fence;
    Command::Finish { task: TaskId(task), fence, taken: vec![], outcome }
}

#[test]
fn the_first_attempt_is_run_where_the_caller_is_and_later_ones_anywhere() {
    let mut lanes = scheduler_of(A);
    assert_eq!(grants(&mut lanes, 0, submit(1, None)), [(1, Owner::Replica(A))]);
    assert_eq!(grants(&mut lanes, 0, submit(2, Some(B))), []);
    // A restored scheduler knows it too.
    let mut lanes = Scheduler::restore(1, &lanes.snapshot());
    lanes.run_as(C);
    assert_eq!(lanes.task(TaskId(2)).unwrap().caller_at, Some(B));
    let done = finish(&lanes, 1, Outcome::Success);
    assert_eq!(grants(&mut lanes, 10, done), [(2, Owner::Replica(B))]);
    let failed = finish(&lanes, 2, Outcome::Failure { error: "no".into(), retryable: true });
    assert_eq!(grants(&mut lanes, 20, failed), []);
    let again = lanes.next_wakeup().unwrap();
    assert_eq!(grants(&mut lanes, again.0, Command::Tick), [(2, Owner::Replica(C))]);
}

#[test]
fn a_late_report_comes_before_what_became_due_since() {
    let mut lanes = scheduler_of(A);
    grants(&mut lanes, 0, submit(1, None));
    grants(&mut lanes, 0, submit(2, None));
    let lease_until = lanes.next_wakeup().unwrap();
    let late = Timestamp(lease_until.0 + 60_000);
    let (done, mut events) = (finish(&lanes, 1, Outcome::Success), Vec::new());
    lanes.step_late(late, done, &mut events).unwrap();
    assert_eq!(events, [Event::Ended { task: TaskId(1), end: End::Completed }]);
    // The next one starts in the present, with the command after it.
    assert_eq!(grants(&mut lanes, late.0, Command::Tick), [(2, Owner::Replica(A))]);
    assert_eq!(lanes.task(TaskId(2)).unwrap().running.unwrap().started, late);

    let later = Timestamp(late.0 + 60_000);
    lanes.step_late(later, Command::RenewLeases { replica: None }, &mut Vec::new()).unwrap();
    assert_eq!(grants(&mut lanes, later.0, Command::Tick), []);
    assert!(lanes.task(TaskId(2)).unwrap().running.is_some());
}

#[test]
fn any_replica_runs_the_waiting_tasks_of_one_that_ends() {
    let mut lanes = scheduler_of(A);
    grants(&mut lanes, 0, submit(1, None));
    grants(&mut lanes, 0, submit(2, Some(B)));
    grants(&mut lanes, 0, submit(3, Some(D)));
    let mut events = Vec::new();
    for replica in [B, B, C] {
        lanes.step(Timestamp(1), Command::Unbind { replica }, &mut events).unwrap();
    }
    assert_eq!(events, [Event::Unbound { replica: B }], "once, and only if there is something");
    let callers_at = |lanes: &Scheduler| [2, 3].map(|task| lanes.task(TaskId(task)).unwrap().caller_at);
    assert_eq!(callers_at(&lanes), [None, Some(D)]);
    let done = finish(&lanes, 1, Outcome::Success);
    assert_eq!(grants(&mut lanes, 10, done), [(2, Owner::Replica(A))]);
}

/// What a replica's program asks for when it wants a slot.
fn slot(task: u128, replica: ReplicaId) -> Command {
    let mut spec = spec(None);
    spec.kind = name("slot");
    spec.owner = Some(Owner::Replica(replica));
    spec.retry = Some(Retry::NONE);
    Command::Submit { task: TaskId(task), spec }
}

#[test]
fn a_slot_belongs_to_the_replica_that_asked_for_it_and_is_no_kind_that_a_handler_runs() {
    let mut lanes = scheduler_of(A);
    assert_eq!(grants(&mut lanes, 0, slot(1, B)), [(1, Owner::Replica(B))]);
    grants(&mut lanes, 0, slot(2, B));
    grants(&mut lanes, 0, slot(3, A));
    grants(&mut lanes, 0, submit(4, None));
    // A restored scheduler knows it too.
    let lanes = Scheduler::restore(1, &lanes.snapshot());
    let owners = [1, 2, 3, 4].map(|task| lanes.task(TaskId(task)).unwrap().owner);
    assert_eq!(owners, [Some(B), Some(B), Some(A), None].map(|owner| owner.map(Owner::Replica)));
    assert_eq!([2, 4].map(|task| lanes.task(TaskId(task)).unwrap().is_slot()), [true, false]);
    assert_eq!(lanes.kinds().map(Name::as_str).collect::<Vec<_>>(), ["work"]);
    assert_eq!(lanes.violation(), None);
}

#[test]
fn what_waits_for_a_replica_that_is_gone_goes_with_it_and_what_others_wait_for_stays() {
    let mut lanes = scheduler_of(A);
    let mut events = Vec::new();
    let mut step = |command| lanes.step(Timestamp(1), command, &mut events).unwrap();
    step(slot(1, B));
    for (task, replica) in [(2, B), (3, A)] {
        step(slot(task, replica));
    }
    for (task, caller_at) in [(4, Some(B)), (5, Some(D)), (6, Some(B))] {
        let Command::Submit { task, mut spec } = submit(task, caller_at) else { return };
        let key = "key".into();
        spec.idempotency =
            (task == TaskId(6)).then_some(Idempotency { key, fingerprint: 1, until_end: false });
        let again = Command::Submit { task: TaskId(7), spec: spec.clone() };
        step(Command::Submit { task, spec });
        if task == TaskId(6) {
            assert_eq!(step(again), Reply::Accepted { task, joined: true });
        }
    }
    events.clear();
    let gone = Command::ReplicaGone { replica: B };
    lanes.step(Timestamp(2), gone.clone(), &mut events).unwrap();
    let reason = CancelReason::Caller;
    let cancelled = |task| Event::Ended { task: TaskId(task), end: End::Cancelled { reason } };
    let expected = [
        cancelled(2),
        Event::Unbound { replica: B },
        cancelled(4),
        Event::Left { task: TaskId(6) },
        cancelled(1),
    ];
    assert_eq!(events[..5], expected, "{events:?}");
    assert!(matches!(events[5..], [Event::Granted { task: TaskId(3), .. }]), "{events:?}");
    let callers_at = [5, 6].map(|task| lanes.task(TaskId(task)).unwrap().caller_at);
    assert_eq!(callers_at, [Some(D), None]);
    events.clear();
    lanes.step(Timestamp(3), gone, &mut events).unwrap();
    assert_eq!((events, lanes.violation()), (vec![], None), "once is enough");
}

#[test]
fn what_a_replica_ran_is_tried_again_when_it_is_gone() {
    let mut lanes = scheduler_of(B);
    grants(&mut lanes, 0, submit(1, None));
    lanes.run_as(A);
    let mut events = Vec::new();
    lanes.step(Timestamp(1), Command::ReplicaGone { replica: C }, &mut events).unwrap();
    assert_eq!(events, []);
    lanes.step(Timestamp(2), Command::ReplicaGone { replica: B }, &mut events).unwrap();
    assert!(matches!(events[..], [Event::Retrying { task: TaskId(1), fence: Fence(1), .. }]), "{events:?}");
    let again = lanes.next_wakeup().unwrap();
    assert_eq!(grants(&mut lanes, again.0, Command::Tick), [(1, Owner::Replica(A))]);
}

#[test]
fn what_a_replica_is_granted_in_the_moment_in_which_it_is_gone_goes_with_it() {
    let mut lanes = scheduler_of(A);
    grants(&mut lanes, 0, submit(1, None));
    grants(&mut lanes, 0, submit(2, Some(B)));
    let mut events = Vec::new();
    // The lease of the first task lapses, which makes room for the second one.
    let gone = Command::ReplicaGone { replica: B };
    lanes.step(Timestamp(30_000), gone, &mut events).unwrap();
    let owner = Owner::Replica(B);
    let is_granted =
        |event: &Event| matches!(event, Event::Granted { task: TaskId(2), owner: to, .. } if *to == owner);
    assert!(events.iter().any(is_granted), "{events:?}");
    let end = Event::Ended { task: TaskId(2), end: End::Cancelled { reason: CancelReason::Caller } };
    assert_eq!(events[events.len() - 2..], [Event::Unbound { replica: B }, end]);
    assert_eq!(lanes.violation(), None);
}

#[test]
fn a_lost_end_is_restored_for_waiting_and_lost_tasks_and_never_for_running_ones() {
    let mut lanes = scheduler_of(A);
    grants(&mut lanes, 0, submit(1, None));
    grants(&mut lanes, 0, submit(2, None));
    let mut restore_end = |task: u128, spec: Option<Box<TaskSpec>>, end: End| {
        let mut events = Vec::new();
        let command = Command::RestoreOutcome { task: TaskId(task), spec, end };
        let reply = lanes.step(Timestamp(5), command, &mut events);
        (reply, events, lanes.violation())
    };
    let (reply, events, _) = restore_end(1, None, End::Completed);
    assert_eq!((reply, events), (Err(Rejection::IdTaken { task: TaskId(1) }), vec![]), "a running task");
    let ended = |task: u128, end: End| Event::Ended { task: TaskId(task), end };
    let (reply, events, wrong) = restore_end(2, None, End::Completed);
    assert_eq!(
        (reply, events, wrong),
        (Ok(Reply::Done), vec![ended(2, End::Completed)], None),
        "a waiting task"
    );
    let (reply, events, _) = restore_end(3, None, End::Lost);
    assert_eq!(
        (reply, events),
        (Err(Rejection::NotLive { task: TaskId(3) }), vec![]),
        "a lost task without a spec"
    );
    let (reply, events, wrong) = restore_end(3, Some(spec(Some(B))), End::Lost);
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
    let mut lanes = scheduler_of(A);
    lanes.advance_to(Timestamp(100));
    lanes.advance_to(Timestamp(50));
    assert_eq!(lanes.now(), Timestamp(100));
}
