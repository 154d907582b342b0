//! Commands that do in one step what would otherwise need a query and a change, or several changes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

use std::sync::Arc;

use laneway_core::{
    Agent, Block, Command, Event, Fence, Handler, Incoming, LaneName, LaneSettings, MessageEnd, MessageId,
    MessageStatus, Millis, Mode, Name, Outcome, Pattern, QueueOverrides, Rejection, Reply, Scheduler,
    SessionCommand, SettingsChange, Switch, TaskId, TaskSpec, Timestamp,
};

fn step(lanes: &mut Scheduler, now: u64, command: Command) -> Result<(Reply, Vec<Event>), Rejection> {
    let mut events = Vec::new();
    let reply = lanes.step(Timestamp(now), command, &mut events);
    assert_eq!(lanes.violation(), None);
    reply.map(|reply| (reply, events))
}

fn change_settings(lanes: &str, settings: &[(&str, &str)]) -> Command {
    let settings = settings.iter().map(|(key, value)| (Arc::from(*key), Arc::from(*value))).collect();
    Command::ChangeSettings(Box::new(SettingsChange::of(Pattern::new(lanes).unwrap(), settings)))
}

#[test]
fn a_change_of_one_setting_keeps_the_others_of_its_block() {
    let mut lanes = Scheduler::new(1);
    let first = LaneSettings {
        max_concurrency: Some(Switch::On(7)),
        lease: Some(Millis(9000)),
        ..LaneSettings::default()
    };
    let block = Block { lanes: Pattern::new("gpu").unwrap(), settings: Some(first) };
    step(&mut lanes, 0, Command::Configure(vec![block])).unwrap();
    let (_, events) =
        step(&mut lanes, 1, change_settings("gpu", &[("max_concurrency", "2"), ("retry.max_retries", "5")]))
            .unwrap();
    let settings = lanes.settings_for(&LaneName::new("gpu").unwrap());
    assert_eq!((settings.max_concurrency, settings.lease), (Some(2), Millis(9000)));
    assert_eq!(settings.retry.max_retries, 5);
    assert!(matches!(&events[..], [Event::Configured { blocks }] if blocks.len() == 1));
    // Without a block, the command makes one.
    step(&mut lanes, 2, change_settings("new:*", &[("max_concurrency", "3")])).unwrap();
    assert_eq!(lanes.settings_for(&LaneName::new("new:one").unwrap()).max_concurrency, Some(3));
}

#[test]
fn a_change_of_one_setting_keeps_what_a_pattern_set() {
    let mut lanes = Scheduler::new(1);
    let rules = [("max_concurrency", "5"), ("retry", "exponential"), ("dead_letters_max", "7")];
    step(&mut lanes, 0, change_settings("session:*/execute", &rules)).unwrap();
    step(&mut lanes, 0, change_settings("*/execute", &[("max_concurrency", "9")])).unwrap();
    // The lanes of a longer pattern and a single lane got their settings from the longest pattern over them.
    for (change, lane) in [
        ("session:docs-*/execute", "session:docs-1/execute"),
        ("session:docs-1/execute", "session:docs-1/execute"),
        ("session:ann/execute", "session:ann/execute"),
    ] {
        step(&mut lanes, 1, change_settings(change, &[("handler", "external")])).unwrap();
        let settings = lanes.settings_for(&LaneName::new(lane).unwrap());
        assert_eq!(settings.handler, Handler::External, "{change}");
        let rest = (settings.max_concurrency, settings.retry.max_retries, settings.dead_letters_max);
        assert_eq!(rest, (Some(5), 3, 7), "{change}");
    }
    // A pattern that has only some of the lanes in common with this one says nothing about it.
    step(&mut lanes, 2, change_settings("session:d*/execut*", &[("weight", "2")])).unwrap();
    let settings = lanes.settings_for(&LaneName::new("session:dave/execute").unwrap());
    assert_eq!((settings.max_concurrency, settings.weight), (Some(2), 2));
}

#[test]
fn the_timeout_of_an_external_tool_lane_bounds_the_wait_as_well() {
    let mut lanes = Scheduler::new(1);
    let wait = |lanes: &Scheduler| {
        lanes.settings_for(&LaneName::new("session:ann/execute").unwrap()).wait_timeout.map(|wait| wait.0)
    };
    let mut change = |key, value| {
        step(&mut lanes, 0, change_settings("session:*/execute", &[(key, value)])).unwrap();
        wait(&lanes)
    };
    assert_eq!(change("handler", "external"), Some(60_000));
    assert_eq!(change("timeout", "800ms"), Some(800));
    assert_eq!(change("handler", "hybrid"), Some(800));
    assert_eq!(change("timeout", "none"), None);
    assert_eq!(change("wait_timeout", "2s"), Some(2000));
    assert_eq!(change("handler", "internal"), Some(2000));
    assert_eq!(change("wait_timeout", "none"), None);
    // Other lanes may have long lines: their tasks wait.
    step(&mut lanes, 0, change_settings("gpu", &[("handler", "external"), ("timeout", "1s")])).unwrap();
    assert_eq!(lanes.settings_for(&LaneName::new("gpu").unwrap()).wait_timeout, None);
}

#[test]
fn an_invalid_setting_refuses_the_whole_change() {
    let mut lanes = Scheduler::new(1);
    for wrong in [("max_concurrency", "0"), ("no_such_setting", "1")] {
        let refused = step(&mut lanes, 0, change_settings("gpu", &[("lease", "5s"), wrong]));
        assert!(matches!(refused, Err(Rejection::BadSetting(_))), "{wrong:?}");
    }
    assert_eq!(lanes.blocks().count(), 0);
}

#[test]
fn the_caller_and_the_trace_survive_a_restart_and_the_death_of_the_task() {
    let mut lanes = Scheduler::new(1);
    let mut spec = TaskSpec::new(Name::new("work").unwrap(), vec![LaneName::main()]);
    spec.caller = Some(Name::new("token-1").unwrap());
    spec.trace = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into());
    let submit = Command::Submit { task: TaskId(1), spec: Box::new(spec.clone()) };
    step(&mut lanes, 10, submit).unwrap();
    let mut lanes = Scheduler::restore(2, &lanes.snapshot());
    let view = lanes.task(TaskId(1)).unwrap();
    assert_eq!((&view.caller, &view.trace), (&spec.caller, &spec.trace));
    assert_eq!((view.waited(Timestamp(40)), view.ran(Timestamp(40))), (Millis(0), Millis(30)));
    let outcome = Outcome::Failure { error: "no".into(), retryable: false };
    step(&mut lanes, 40, Command::Finish { task: TaskId(1), fence: Fence(1), taken: vec![], outcome })
        .unwrap();
    let dead_letter = lanes.dead_letters().next().unwrap();
    assert_eq!((&dead_letter.spec.caller, &dead_letter.spec.trace), (&spec.caller, &spec.trace));
}

#[test]
fn a_long_trace_is_refused() {
    let mut lanes = Scheduler::new(1);
    let mut spec = TaskSpec::new(Name::new("work").unwrap(), vec![LaneName::main()]);
    spec.trace = Some("x".repeat(laneway_core::TRACE_BYTES_MAX + 1).into());
    let refused = step(&mut lanes, 0, Command::Submit { task: TaskId(1), spec: Box::new(spec) });
    assert!(refused.is_err_and(|refused| refused.code() == "INVALID"));
}

/// Starts a turn in a session, and returns its id and fence.
fn start_turn(lanes: &mut Scheduler) -> (TaskId, Fence) {
    let (_, events) = step(lanes, 0, send(1, Mode::Collect)).unwrap();
    let granted = events.iter().find_map(|event| match event {
        Event::Granted { task, fence, .. } => Some((*task, *fence)),
        _ => None,
    });
    granted.unwrap()
}

fn send(message: u128, mode: Mode) -> Command {
    let agent = Agent::new(Name::new("coder").unwrap());
    let mut incoming = Incoming::new(MessageId(message), "ann", agent, "hello");
    incoming.queue = QueueOverrides { mode: Some(mode), ..QueueOverrides::default() };
    Command::Session(Box::new(SessionCommand::Send(Box::new(incoming))))
}

fn heartbeat(
    lanes: &mut Scheduler,
    now: u64,
    (turn, fence): (TaskId, Fence),
    takes_steering: impl Into<Option<bool>>,
    taken: Option<Vec<MessageId>>,
) -> (Timestamp, Vec<MessageId>) {
    let takes_steering = takes_steering.into();
    let command = SessionCommand::HeartbeatOfTurn { turn, fence, takes_steering, taken };
    match step(lanes, now, Command::Session(Box::new(command))).unwrap().0 {
        Reply::TurnRenewed { until, stopping: None, steering } => {
            (until, steering.iter().map(|message| message.id).collect())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_heartbeat_renews_the_lease_opens_steering_and_delivers_messages() {
    let mut lanes = Scheduler::new(1);
    let turn = start_turn(&mut lanes);
    let (until, taken) = heartbeat(&mut lanes, 1000, turn, true, None);
    assert_eq!((until, taken), (Timestamp(11_000), vec![]));
    step(&mut lanes, 2000, send(2, Mode::Steer)).unwrap();
    let (until, taken) = heartbeat(&mut lanes, 3000, turn, true, None);
    assert_eq!((until, taken), (Timestamp(13_000), vec![MessageId(2)]));
    assert_eq!(lanes.taken_steering(turn.0, turn.1), [MessageId(2)]);
}

#[test]
fn messages_stay_on_offer_until_a_heartbeat_names_them() {
    let mut lanes = Scheduler::new(1);
    let turn = start_turn(&mut lanes);
    heartbeat(&mut lanes, 1000, turn, true, Some(vec![]));
    step(&mut lanes, 2000, send(2, Mode::Steer)).unwrap();
    for now in [3000, 4000] {
        assert_eq!(heartbeat(&mut lanes, now, turn, true, Some(vec![])).1, [MessageId(2)]);
    }
    assert_eq!(heartbeat(&mut lanes, 5000, turn, true, Some(vec![MessageId(2)])).1, []);
    assert_eq!(lanes.taken_steering(turn.0, turn.1), [MessageId(2)]);
    // A turn that closes steering returns the messages that it did not name.
    step(&mut lanes, 6000, send(3, Mode::Steer)).unwrap();
    assert_eq!(heartbeat(&mut lanes, 7000, turn, false, Some(vec![])).1, []);
    assert_eq!(lanes.session("ann").unwrap().waiting.len(), 1);
}

#[test]
fn a_heartbeat_with_steering_outside_a_session_changes_nothing() {
    let mut lanes = Scheduler::new(1);
    let spec = TaskSpec::new(Name::new("work").unwrap(), vec![LaneName::main()]);
    step(&mut lanes, 0, Command::Submit { task: TaskId(1), spec: Box::new(spec) }).unwrap();
    let before = lanes.task(TaskId(1));
    let heartbeat = |takes_steering| {
        let (turn, fence, takes_steering) = (TaskId(1), Fence(1), Some(takes_steering));
        let command = SessionCommand::HeartbeatOfTurn { turn, fence, takes_steering, taken: None };
        Command::Session(Box::new(command))
    };
    assert!(matches!(step(&mut lanes, 1000, heartbeat(true)), Err(Rejection::BadMessage(_))));
    assert_eq!(lanes.task(TaskId(1)), before);
    assert!(step(&mut lanes, 1000, heartbeat(false)).is_ok());
}

/// A session whose running turn has the messages 2 and 3 on offer.
fn session_with_offers(lanes: &mut Scheduler) -> (TaskId, Fence) {
    let turn = start_turn(lanes);
    heartbeat(lanes, 1000, turn, true, Some(vec![]));
    step(lanes, 2000, send(2, Mode::Steer)).unwrap();
    step(lanes, 2000, send(3, Mode::Steer)).unwrap();
    turn
}

fn finish((task, fence): (TaskId, Fence), taken: Vec<MessageId>) -> Command {
    Command::Finish { task, fence, taken, outcome: Outcome::Success }
}

#[test]
fn a_heartbeat_that_says_nothing_of_steering_takes_what_it_names_and_leaves_steering_open() {
    let mut lanes = Scheduler::new(1);
    let turn = session_with_offers(&mut lanes);
    assert_eq!(heartbeat(&mut lanes, 3000, turn, None, None), (Timestamp(13_000), vec![]));
    assert_eq!(
        heartbeat(&mut lanes, 4000, turn, None, Some(vec![MessageId(3)])),
        (Timestamp(14_000), vec![])
    );
    assert_eq!(lanes.taken_steering(turn.0, turn.1), [MessageId(3)]);
    assert!(lanes.session("ann").unwrap().turns[0].takes_steering);
}

#[test]
fn the_end_of_a_turn_takes_the_messages_that_it_names_and_returns_the_others() {
    let mut lanes = Scheduler::new(1);
    let turn = session_with_offers(&mut lanes);
    let (_, events) = step(&mut lanes, 3000, finish(turn, vec![MessageId(2)])).unwrap();
    let events: Vec<String> = events.iter().map(|event| format!("{event:?}")).collect();
    let index = |what: &str| events.iter().position(|event| event.contains(what)).unwrap();
    assert!(index("Taken") < index("Ended"), "{events:#?}");
    let steered = MessageEnd::Steered { turn: turn.0 };
    let ended = MessageStatus::Ended { end: steered, at: Timestamp(3000) };
    assert_eq!(lanes.message(MessageId(2)), Some(ended));
    let MessageStatus::InTurn { turn: next } = lanes.message(MessageId(3)).unwrap() else {
        panic!("{events:#?}")
    };
    assert_ne!(next, turn.0);
}

#[test]
fn a_report_of_taken_messages_under_a_stale_fence_changes_nothing() {
    let mut lanes = Scheduler::new(1);
    let (turn, fence) = session_with_offers(&mut lanes);
    let before = (lanes.session("ann"), lanes.task(turn));
    let (stale, taken) = (Fence(fence.0 + 1), vec![MessageId(2), MessageId(3)]);
    let beat = |takes_steering| {
        let taken = Some(taken.clone());
        Command::Session(Box::new(SessionCommand::HeartbeatOfTurn {
            turn,
            fence: stale,
            takes_steering,
            taken,
        }))
    };
    let reports = [beat(None), beat(Some(true)), beat(Some(false)), finish((turn, stale), taken.clone())];
    for report in reports {
        let mut events = Vec::new();
        let refused = lanes.step(Timestamp(3000), report.clone(), &mut events);
        assert_eq!(refused, Err(Rejection::StaleLease { task: turn, fence: stale }), "{report:?}");
        assert_eq!(events, [], "{report:?}");
    }
    assert_eq!((lanes.session("ann"), lanes.task(turn)), before);
    assert_eq!(lanes.taken_steering(turn, fence), []);
}
