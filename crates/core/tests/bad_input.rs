//! Invalid commands of every kind: each gets a typed rejection and changes nothing, and none panics.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use laneway_core::{
    BATCH_CALLS_MAX, BadTask, Block, CHAIN_DEPTH_MAX, CancelReason, Command, Event, Fence, Idempotency,
    KEY_BYTES_MAX, LaneName, LaneSettings, Millis, Name, NameError, Outcome, Parent, Pattern, RateLimit,
    Rejection, Retry, SETTING_KEYS, Scheduler, Selector, Switch, TaskId, TaskSpec, Timestamp, ToolBatch,
    ToolCall, ToolLane,
};

fn lane(name: &str) -> LaneName {
    LaneName::new(name).unwrap()
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn spec(lanes: &[&str]) -> TaskSpec {
    TaskSpec::new(name("work"), lanes.iter().map(|name| lane(name)).collect())
}

fn submit(task: u128, spec: TaskSpec) -> Command {
    Command::Submit { task: TaskId(task), spec: Box::new(spec) }
}

fn finish(task: u128, fence: u64) -> Command {
    Command::Finish { task: TaskId(task), fence: Fence(fence), taken: vec![], outcome: Outcome::Success }
}

/// At 1000: task 1 runs in `one`, a lane with one slot, and task 2 waits for it. Task 3 is a dead letter. Lane `closing`
/// drains.
fn busy() -> Scheduler {
    let mut lanes = Scheduler::new(7);
    let failure = Outcome::Failure { error: "broken".into(), retryable: true };
    for command in [
        submit(3, spec(&["task:dying"])),
        Command::Finish { task: TaskId(3), fence: Fence(1), taken: vec![], outcome: failure },
        submit(1, spec(&["one"])),
        submit(2, spec(&["one"])),
        Command::Drain { lane: lane("closing") },
    ] {
        lanes.step(Timestamp(1000), command, &mut Vec::new()).unwrap();
    }
    lanes
}

/// The rejection of `command`, which must change nothing.
fn refused(lanes: &mut Scheduler, command: Command) -> Rejection {
    let before = lanes.snapshot();
    let mut events = Vec::new();
    let shown = format!("{command:?}");
    let Err(rejection) = lanes.step(lanes.now(), command, &mut events) else {
        unreachable!("accepted: {shown}");
    };
    assert_eq!(events, []);
    assert!(lanes.snapshot() == before, "{rejection} changed something: {shown}");
    assert_eq!(lanes.violation(), None);
    assert!(!rejection.to_string().is_empty() && !rejection.code().is_empty());
    rejection
}

/// Each change makes a task invalid, for the reason next to it.
#[test]
fn invalid_tasks_are_refused() {
    let too_long = Millis(Millis::MAX.0 + 1);
    let never = Retry { initial_delay: Millis(u64::MAX), ..Retry::STANDARD };
    let key = |text: &str| Some(Idempotency { key: text.into(), fingerprint: 0, until_end: false });
    let long_key = "k".repeat(KEY_BYTES_MAX + 1);
    type Change<'a> = &'a dyn Fn(&mut TaskSpec);
    let cases: &[(Change<'_>, BadTask)] = &[
        (&|spec| spec.priority = Some(10), BadTask::Priority),
        (&|spec| spec.priority = Some(u8::MAX), BadTask::Priority),
        (&|spec| spec.timeout = Some(Millis(0)), BadTask::Zero("timeout")),
        (&|spec| spec.timeout = Some(Millis(u64::MAX)), BadTask::TooLong("timeout")),
        (&|spec| spec.wait_timeout = Some(too_long), BadTask::TooLong("wait_timeout")),
        (&|spec| spec.deadline = Some(too_long), BadTask::TooLong("deadline")),
        (&|spec| spec.run_after = Some(Millis(u64::MAX)), BadTask::TooLong("run_after")),
        (&|spec| spec.retry = Some(never), BadTask::TooLong("retry.initial_delay")),
        (&|spec| spec.idempotency = key(""), BadTask::Key),
        (&|spec| spec.idempotency = key(&long_key), BadTask::Key),
        (&|spec| spec.after = Some(TaskId(99)), BadTask::After),
        (&|spec| spec.lanes = (0..65).map(|n| lane(&format!("l{n}"))).collect(), BadTask::TooManyLanes(65)),
    ];
    let mut lanes = busy();
    for (change, bad) in cases {
        let mut task = spec(&["main"]);
        change(&mut task);
        assert_eq!(refused(&mut lanes, submit(10, task)), Rejection::BadTask(*bad));
    }
    let mut most = spec(&[]);
    most.lanes = (0..64).map(|n| lane(&format!("l{n}"))).collect();
    lanes.step(Timestamp(1000), submit(10, most), &mut Vec::new()).unwrap();
}

#[test]
fn unknown_ids_and_stale_fences_are_refused() {
    let mut lanes = busy();
    let not_live = |task: u128| Rejection::NotLive { task: TaskId(task) };
    for task in [1, 2, 3] {
        let taken = Rejection::IdTaken { task: TaskId(task) };
        assert_eq!(refused(&mut lanes, submit(task, spec(&["main"]))), taken);
    }
    // The scheduler remembers the last attempts that ended, so their leases are stale.
    assert_eq!(refused(&mut lanes, finish(3, 2)), Rejection::StaleLease { task: TaskId(3), fence: Fence(2) });
    for task in [0, 99, u128::MAX] {
        assert_eq!(refused(&mut lanes, finish(task, 1)), not_live(task));
        let heartbeat = Command::Heartbeat { task: TaskId(task), fence: Fence(1) };
        assert_eq!(refused(&mut lanes, heartbeat), not_live(task));
    }
    for task in [0, 3, 99, u128::MAX] {
        let id = TaskId(task);
        for command in [
            Command::Cancel { task: id, reason: CancelReason::Caller },
            Command::Leave { task: id },
            Command::Reprioritise { task: id, priority: 1 },
        ] {
            assert_eq!(refused(&mut lanes, command), not_live(task));
        }
    }
    for fence in [0, 1, 3, u64::MAX] {
        let stale = |task: u128| Rejection::StaleLease { task: TaskId(task), fence: Fence(fence) };
        assert_eq!(refused(&mut lanes, finish(1, fence)), stale(1));
        assert_eq!(refused(&mut lanes, finish(2, fence)), stale(2));
        let heartbeat = Command::Heartbeat { task: TaskId(1), fence: Fence(fence) };
        assert_eq!(refused(&mut lanes, heartbeat), stale(1));
    }
    let running = Command::Reprioritise { task: TaskId(1), priority: 1 };
    assert_eq!(refused(&mut lanes, running), Rejection::NotWaiting { task: TaskId(1) });
    let priority = Command::Reprioritise { task: TaskId(2), priority: 10 };
    assert_eq!(refused(&mut lanes, priority), Rejection::BadTask(BadTask::Priority));
}

#[test]
fn unknown_dead_letters_and_taken_ids_are_refused() {
    let mut lanes = busy();
    for letter in [1, 99] {
        let unknown = Rejection::NoSuchDeadLetter { dead_letter: TaskId(letter) };
        let redrive = Command::Redrive { dead_letter: TaskId(letter), task: TaskId(50) };
        assert_eq!(refused(&mut lanes, redrive), unknown);
        assert_eq!(refused(&mut lanes, Command::Discard { dead_letter: TaskId(letter) }), unknown);
    }
    for task in [1, 3] {
        let redrive = Command::Redrive { dead_letter: TaskId(3), task: TaskId(task) };
        assert_eq!(refused(&mut lanes, redrive), Rejection::IdTaken { task: TaskId(task) });
    }
}

#[test]
fn a_clock_that_goes_back_is_refused() {
    let mut lanes = busy();
    let before = lanes.snapshot();
    let mut events = Vec::new();
    let reply = lanes.step(Timestamp(999), submit(10, spec(&["main"])), &mut events);
    assert_eq!(reply, Err(Rejection::ClockWentBack { now: Timestamp(999), last: Timestamp(1000) }));
    assert!(events.is_empty() && lanes.snapshot() == before);
}

/// At the last valid time everything works, even a rate that is counted in nanoseconds. Later times are refused.
#[test]
fn times_after_the_last_valid_one_are_refused() {
    let mut lanes = busy();
    let before = lanes.snapshot();
    let mut events = Vec::new();
    for now in [u64::MAX, u64::MAX - 1, Timestamp::MAX.0 + 1].map(Timestamp) {
        for command in [Command::Tick, submit(10, spec(&["main"]))] {
            let reply = lanes.step(now, command, &mut events);
            assert_eq!(reply, Err(Rejection::TimeTooLate { now }));
            assert_eq!(reply.unwrap_err().code(), "INVALID");
        }
    }
    assert!(events.is_empty() && lanes.snapshot() == before);
    let rate = Some(Switch::On(RateLimit { per: laneway_core::Period::Hour, max: 2 }));
    let settings = LaneSettings { rate_limit: rate, lease: Some(Millis::MAX), ..LaneSettings::default() };
    let block = Block { lanes: Pattern::new("main").unwrap(), settings: Some(settings) };
    lanes.step(Timestamp::MAX, Command::Configure(vec![block]), &mut events).unwrap();
    let mut long = spec(&["main"]);
    (long.deadline, long.wait_timeout, long.timeout) =
        (Some(Millis::MAX), Some(Millis::MAX), Some(Millis::MAX));
    for task in 10..13 {
        lanes.step(Timestamp::MAX, submit(task, long.clone()), &mut events).unwrap();
    }
    assert_eq!(lanes.violation(), None);
    let running = (10..13).filter(|task| lanes.task(TaskId(*task)).unwrap().running.is_some()).count();
    assert_eq!(running, 2);
    assert!(lanes.next_wakeup().unwrap() > Timestamp::MAX);
}

#[test]
fn parents_that_do_not_run_and_deep_chains_are_refused() {
    let mut lanes = busy();
    let child_of = |parent: u128| {
        let mut spec = spec(&["one"]);
        spec.parent = Some(Parent { task: TaskId(parent), detached: false });
        spec
    };
    for parent in [2, 3, 99] {
        let not_running = Rejection::ParentNotRunning { task: TaskId(parent) };
        assert_eq!(refused(&mut lanes, submit(10, child_of(parent))), not_running);
    }
    let itself = Rejection::ParentNotRunning { task: TaskId(10) };
    assert_eq!(refused(&mut lanes, submit(10, child_of(10))), itself);
    let mut parent = 1;
    for child in 10..10 + u128::from(CHAIN_DEPTH_MAX) - 1 {
        lanes.step(Timestamp(1000), submit(child, child_of(parent)), &mut Vec::new()).unwrap();
        parent = child;
    }
    assert_eq!(refused(&mut lanes, submit(50, child_of(parent))), Rejection::ChainTooDeep);
}

#[test]
fn tasks_with_full_or_draining_lanes_or_short_deadlines_are_refused() {
    let mut lanes = busy();
    let draining = Rejection::LaneDraining { lane: lane("closing"), label: "*".into() };
    assert_eq!(refused(&mut lanes, submit(10, spec(&["main", "closing"]))), draining);
    assert_eq!(draining.retry_after(), Some(Millis::from_secs(5)));
    let mut hasty = spec(&["one"]);
    hasty.wait_timeout = Some(Millis(0));
    let full = refused(&mut lanes, submit(10, hasty));
    assert!(matches!(&full, Rejection::LaneFull(full) if full.current == Some(TaskId(1))), "{full:?}");
    assert_eq!(full.code(), "AT_CAPACITY");
    assert_eq!(full.retry_after(), Some(Millis(110)), "what runs has only begun");
    let mut late = spec(&["main"]);
    late.deadline = Some(Millis(0));
    let unmeetable = refused(&mut lanes, submit(10, late));
    assert_eq!(unmeetable.code(), "DEADLINE_UNMEETABLE");
    assert_eq!(unmeetable.retry_after(), Some(Millis(100)));
    let too_late = |starts_in: u64| {
        let starts_in = Millis::from_secs(starts_in);
        Rejection::DeadlineUnmeetable { starts_in, deadline: Millis::from_secs(10) }.retry_after()
    };
    assert_eq!([17, 1000].map(too_late), [7, 300].map(|secs| Some(Millis::from_secs(secs))));
}

#[test]
fn claims_without_lanes_tasks_or_lease_are_refused() {
    let mut lanes = busy();
    let claim = |patterns: &[&str], max: u32, lease: Option<Millis>| Command::Claim {
        worker: name("w"),
        lanes: patterns.iter().map(|pattern| Pattern::new(pattern).unwrap()).collect(),
        kinds: vec![],
        max,
        lease,
    };
    let empty = Rejection::BadTask(BadTask::EmptyClaim);
    assert_eq!(refused(&mut lanes, claim(&[], 1, None)), empty);
    assert_eq!(refused(&mut lanes, claim(&["*"], 0, None)), empty);
    let zero = Rejection::BadTask(BadTask::Zero("lease"));
    assert_eq!(refused(&mut lanes, claim(&["*"], 1, Some(Millis(0)))), zero);
    let long = Rejection::BadTask(BadTask::TooLong("lease"));
    assert_eq!(refused(&mut lanes, claim(&["*"], 1, Some(Millis(u64::MAX)))), long);
    let reply = lanes.step(Timestamp(1000), claim(&["*", "nowhere"], u32::MAX, None), &mut Vec::new());
    assert_eq!(reply, Ok(laneway_core::Reply::Claimed(vec![])));
}

#[test]
fn claims_that_name_no_task_or_too_many_are_refused() {
    let mut lanes = busy();
    let claim = |count: u128| Command::ClaimThese {
        worker: name("w"),
        tasks: (0..count).map(TaskId).collect(),
        lease: None,
    };
    assert_eq!(refused(&mut lanes, claim(0)), Rejection::BadTask(BadTask::EmptyClaim));
    let many = refused(&mut lanes, claim(1001));
    assert_eq!(many, Rejection::BadTask(BadTask::TooManyClaimed(1001)));
    assert_eq!(many.to_string(), "a claim takes at most 1000 tasks, this one names 1001");
    assert!(lanes.step(Timestamp(1000), claim(1000), &mut Vec::new()).is_ok());
}

fn batch(session: &str, calls: impl IntoIterator<Item = u128>) -> Command {
    let call = |task: u128| ToolCall {
        task: TaskId(task),
        tool: name("read"),
        lane: ToolLane::Query,
        payload: None,
    };
    Command::SubmitBatch(Box::new(ToolBatch {
        session: session.into(),
        calls: calls.into_iter().map(call).collect(),
        parent: None,
        group: None,
        asker: None,
        caller: None,
        trace: None,
    }))
}

#[test]
fn invalid_tool_batches_are_refused() {
    let mut lanes = busy();
    let size = Rejection::BadTask(BadTask::BatchSize);
    assert_eq!(refused(&mut lanes, batch("ann", [])), size);
    assert_eq!(refused(&mut lanes, batch("ann", 100..100 + BATCH_CALLS_MAX as u128 + 1)), size);
    assert_eq!(refused(&mut lanes, batch("ann", [10, 11, 10])), Rejection::IdTaken { task: TaskId(10) });
    assert_eq!(refused(&mut lanes, batch("ann", [10, 11, 2])), Rejection::IdTaken { task: TaskId(2) });
    let session = refused(&mut lanes, batch(&"x".repeat(10_000), [10]));
    assert!(matches!(session, Rejection::BadTask(BadTask::Session(NameError::TooLong(_)))), "{session:?}");
    // Four would run and forty may wait, so a batch of forty-five is refused as a whole.
    assert_eq!(refused(&mut lanes, batch("ann", 100..145)).code(), "AT_CAPACITY");
    lanes.step(Timestamp(1000), batch("ann", 100..144), &mut Vec::new()).unwrap();
}

/// Settings that a program fills in are checked like text.
#[test]
fn invalid_settings_are_refused() {
    let off = LaneSettings::default();
    let rate = |max| Some(Switch::On(RateLimit { per: laneway_core::Period::Second, max }));
    let cases = [
        ("max_concurrency", LaneSettings { max_concurrency: Some(Switch::On(0)), ..off.clone() }),
        ("max_concurrency", LaneSettings { max_concurrency: Some(Switch::On(u32::MAX)), ..off.clone() }),
        ("max_queued", LaneSettings { max_queued: Some(u32::MAX), ..off.clone() }),
        ("priority", LaneSettings { priority: Some(Switch::On(10)), ..off.clone() }),
        ("weight", LaneSettings { weight: Some(0), ..off.clone() }),
        ("weight", LaneSettings { weight: Some(u32::MAX), ..off.clone() }),
        ("lease", LaneSettings { lease: Some(Millis(0)), ..off.clone() }),
        ("lease", LaneSettings { lease: Some(Millis(u64::MAX)), ..off.clone() }),
        ("timeout", LaneSettings { timeout: Some(Switch::On(Millis(0))), ..off.clone() }),
        ("rate_limit.max", LaneSettings { rate_limit: rate(0), ..off.clone() }),
        ("rate_limit.max", LaneSettings { rate_limit: rate(u32::MAX), ..off.clone() }),
        ("pressure_threshold", LaneSettings { pressure_threshold: Some(0), ..off.clone() }),
        ("alerts.warning", LaneSettings { alert_warning: Some(0), ..off.clone() }),
        ("notice_after", LaneSettings { notice_after: Some(Switch::On(Millis(0))), ..off.clone() }),
    ];
    let mut lanes = busy();
    for (setting, settings) in cases {
        let good = Block { lanes: Pattern::new("one").unwrap(), settings: Some(off.clone()) };
        let bad = Block { lanes: Pattern::new("two").unwrap(), settings: Some(settings) };
        match refused(&mut lanes, Command::Configure(vec![good, bad])) {
            Rejection::BadSetting(error) => assert_eq!(error.setting, setting),
            other => unreachable!("{other:?}"),
        }
    }
}

#[test]
fn invalid_texts_of_settings_are_refused() {
    let invalid =
        ["-1", "abc", "3.7", "", "1e3", "99999999999999999999999", "0x10", "١", "1 000", "\u{0}", "☃"];
    for key in SETTING_KEYS {
        for text in invalid {
            let mut settings = LaneSettings::default();
            let error = settings.set(key, text).unwrap_err();
            assert!(error.setting.starts_with(key.split('.').next().unwrap()), "{key}: {error}");
            assert_eq!(settings, LaneSettings::default());
        }
    }
    for key in ["", "retry.", "Max Concurrency", "max_concurrency ", "\u{7}", &"x".repeat(10_000)] {
        let error = LaneSettings::default().set(key, "1").unwrap_err();
        assert!(error.setting.chars().count() <= 64 && !error.to_string().contains('\u{7}'), "{error}");
    }
}

#[test]
fn invalid_names_are_refused() {
    let long = "x".repeat(10_000);
    assert_eq!(LaneName::new(&long), Err(NameError::TooLong(10_000)));
    assert_eq!(Pattern::new(&long), Err(NameError::TooLong(10_000)));
    assert_eq!(Name::new(Arc::from(&*long)), Err(NameError::TooLong(10_000)));
    assert_eq!(Name::new(""), Err(NameError::Empty));
    for (text, place) in [("a\nb", 2), ("\u{0}", 1), ("tab\there", 4), ("del\u{7f}", 4), ("c1\u{85}x", 3)] {
        assert_eq!(LaneName::new(text), Err(NameError::ControlCharacter(place)), "{text:?}");
        assert_eq!(Name::new(text), Err(NameError::ControlCharacter(place)));
    }
    assert_eq!(LaneName::new("a*"), Err(NameError::Star));
    assert!(LaneName::session(&long).is_err() && LaneName::tool(&long, ToolLane::Query).is_err());
    // Any other key has its own lane, even with control characters.
    assert_ne!(LaneName::session("a\u{0}").unwrap(), LaneName::session("a%00").unwrap());
    assert_eq!(LaneName::session("").unwrap(), lane("session:"));
}

#[test]
fn commands_without_effect_are_accepted() {
    let mut lanes = busy();
    let before = lanes.snapshot();
    let mut events: Vec<Event> = Vec::new();
    let nowhere = Selector { lane: Some(lane("nowhere")), ..Selector::default() };
    for command in [
        Command::Tick,
        Command::Configure(vec![]),
        Command::CancelWaiting { which: nowhere, reason: CancelReason::Cleared },
        Command::ForceRelease { lane: lane("nowhere") },
        Command::Resume { lane: lane("nowhere") },
        Command::Drain { lane: lane("closing") },
    ] {
        lanes.step(Timestamp(1000), command, &mut events).unwrap();
    }
    assert_eq!(events, []);
    assert!(lanes.snapshot() == before);
}
