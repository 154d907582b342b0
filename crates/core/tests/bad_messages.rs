//! Invalid messages: each gets a typed rejection and changes nothing, and none panics.
#![allow(clippy::unwrap_used)]

use laneway_core::{
    AGENT_LANES_MAX, Agent, BadMessage, BeyondPolicy, Command, Event, Fence, Incoming, LABEL_BYTES_MAX,
    LaneName, MessageId, MessagePolicy, Millis, Name, NameError, PERMISSIONS_MAX, QueueOverrides, Rejection,
    Scheduler, SessionCommand, SessionDelta, TEXT_BYTES_MAX, TEXTS_BYTES_MAX, TaskId, TaskSpec, Timestamp,
};

fn message(id: u128) -> Incoming {
    Incoming::new(MessageId(id), "ann", Agent::new(Name::new("bot").unwrap()), "hello")
}

fn session(command: SessionCommand) -> Command {
    Command::Session(Box::new(command))
}

/// Message 1 runs in its turn, message 2 waits; task 9 runs and is no turn.
fn busy() -> Scheduler {
    let mut lanes = Scheduler::new(7);
    let spec = Box::new(TaskSpec::new(Name::new("work").unwrap(), vec![LaneName::main()]));
    let plain = Command::Submit { task: TaskId(9), spec };
    for command in [plain, send(message(1)), send(message(2))] {
        lanes.step(Timestamp(1000), command, &mut Vec::new()).unwrap();
    }
    lanes
}

fn send(message: Incoming) -> Command {
    session(SessionCommand::Send(Box::new(message)))
}

/// The rejection of `command`, which must change nothing.
fn refused(command: Command) -> Rejection {
    let mut lanes = busy();
    let (before, mut events) = (lanes.snapshot(), Vec::new());
    let rejection = lanes.step(Timestamp(1000), command, &mut events).unwrap_err();
    assert_eq!(events, []);
    assert!(lanes.snapshot() == before, "{rejection} changed something");
    rejection
}

#[test]
fn invalid_messages_are_refused() {
    let long = |bytes: usize| "x".repeat(bytes);
    let with = |change: &dyn Fn(&mut Incoming)| {
        let mut message = message(3);
        change(&mut message);
        refused(send(message))
    };
    let many = || (0..=PERMISSIONS_MAX).map(|number| Name::new(number.to_string()).unwrap()).collect();
    type Change<'a> = &'a dyn Fn(&mut Incoming);
    let cases: [(Change<'_>, BadMessage); 11] = [
        (&|message| message.text = " \n".into(), BadMessage::Empty),
        (&|message| message.text = long(TEXT_BYTES_MAX + 1).into(), BadMessage::TooLong),
        (&|message| message.metadata = Some(long(TEXT_BYTES_MAX - 4).into()), BadMessage::TooLong),
        (&|message| message.attachments = Some(long(TEXT_BYTES_MAX - 4).into()), BadMessage::TooLong),
        (
            &|message| message.place.thread = Some(long(LABEL_BYTES_MAX + 1).into()),
            BadMessage::Label("thread"),
        ),
        (&|message| message.permissions = many(), BadMessage::Permissions),
        (&|message| message.priority = Some(10), BadMessage::Priority),
        (&|message| message.session = long(200).into(), BadMessage::Session(NameError::TooLong(208))),
        (&|message| message.agent.name = Name::new("a*").unwrap(), BadMessage::Agent(NameError::Star)),
        (&|message| message.queue.cap = Some(0), BadMessage::Queue(BeyondPolicy::Cap(100))),
        (
            &|message| message.queue.debounce = Some(Millis(600_001)),
            BadMessage::Queue(BeyondPolicy::Debounce(Millis(600_000))),
        ),
    ];
    for (change, expected) in cases {
        assert_eq!(with(change), Rejection::BadMessage(expected));
    }
    assert_eq!(with(&|message| message.text = long(TEXT_BYTES_MAX + 1).into()).code(), "TOO_LARGE");
    assert_eq!(refused(send(message(2))), Rejection::MessageIdTaken { message: MessageId(2) });
}

#[test]
fn unknown_messages_and_turns_are_refused() {
    let turn = TaskId::of_turn(MessageId(1), 1);
    let unknown = MessageId(77);
    let not_found = Rejection::NoSuchMessage { message: unknown };
    assert_eq!(refused(session(SessionCommand::Withdraw { message: unknown })), not_found);
    assert_eq!(refused(session(SessionCommand::SendNow { message: unknown })), not_found);
    assert_eq!(refused(session(SessionCommand::Move { message: unknown, before: None })), not_found);
    let in_turn = Rejection::MessageInTurn { message: MessageId(1) };
    assert_eq!(refused(session(SessionCommand::Withdraw { message: MessageId(1) })), in_turn);
    let before = Some(MessageId(2));
    let itself = SessionCommand::Move { message: MessageId(2), before };
    assert_eq!(refused(session(itself)), Rejection::BadMessage(BadMessage::Before));
    let stale = SessionCommand::TakeSteering { turn, fence: Fence(99), only: None };
    assert_eq!(refused(session(stale)), Rejection::StaleLease { task: turn, fence: Fence(99) });
    let plain = SessionCommand::Steering { turn: TaskId(9), fence: Fence(1), open: true };
    assert_eq!(refused(session(plain)), Rejection::BadMessage(BadMessage::NoSession));
    let idle = refused(session(SessionCommand::Interrupt { session: "zoe".into() }));
    assert_eq!(idle.code(), "NOT_FOUND");
}

#[test]
fn settings_beyond_the_policy_are_refused() {
    let queue = QueueOverrides { cap: Some(101), ..QueueOverrides::default() };
    let expected = Rejection::BadMessage(BadMessage::Queue(BeyondPolicy::Cap(100)));
    assert_eq!(refused(session(SessionCommand::Configure { session: "ann".into(), queue })), expected);
    let settings = laneway_core::MessageSettings { global: queue, ..Default::default() };
    assert_eq!(refused(session(SessionCommand::ConfigureMessages(Box::new(settings)))), expected);
}

#[test]
fn the_policy_bounds_the_settings_of_a_queue() {
    let policy = MessagePolicy { cap_max: 5, wait_max: Millis(100) };
    let nothing = QueueOverrides::default();
    let cap = |cap: u32| QueueOverrides { cap: Some(cap), ..nothing };
    let debounce = |millis: u64| QueueOverrides { debounce: Some(Millis(millis)), ..nothing };
    let max_wait = |millis: u64| QueueOverrides { max_wait: Some(Millis(millis)), ..nothing };
    for fine in [nothing, cap(1), cap(5), debounce(0), debounce(100), max_wait(100)] {
        assert_eq!(fine.check(&policy), Ok(()), "{fine:?}");
    }
    for (beyond, expected) in [
        (cap(0), BeyondPolicy::Cap(5)),
        (cap(6), BeyondPolicy::Cap(5)),
        (debounce(101), BeyondPolicy::Debounce(Millis(100))),
        (max_wait(101), BeyondPolicy::MaxWait(Millis(100))),
    ] {
        assert_eq!(beyond.check(&policy), Err(expected), "{beyond:?}");
    }
}

/// A message that fits the limit of all waiting texts is accepted, and a longer one is refused.
#[test]
fn waiting_texts_have_a_limit_together() {
    let mut lanes = busy();
    let mut accepted = Vec::new();
    lanes.step(Timestamp(1000), send(message(3)), &mut accepted).unwrap();
    let so_far = 3 * message(1).text.len() as u64;
    let long: std::sync::Arc<str> = "x".repeat(TEXT_BYTES_MAX).into();
    // Events of other messages fill all but the last few bytes.
    let more = (TEXTS_BYTES_MAX - so_far) / TEXT_BYTES_MAX as u64;
    for number in 0..more {
        let [Event::Session(event)] = &mut accepted[..] else { unreachable!("one message was accepted") };
        let SessionDelta::Accepted { message, .. } = &mut event.change else { unreachable!("accepted") };
        (message.id, message.text) = (MessageId(100 + u128::from(number)), long.clone());
        message.number += 1;
        lanes.apply(Timestamp(1000), &accepted[0]);
    }
    let left = (TEXTS_BYTES_MAX - so_far - more * TEXT_BYTES_MAX as u64) as usize;
    let send_text = |length: usize| {
        // In another, idle session.
        let incoming = Incoming { session: "bob".into(), text: "x".repeat(length).into(), ..message(4) };
        let mut lanes = Scheduler::restore(7, &lanes.snapshot());
        lanes.step(Timestamp(1000), send(incoming), &mut Vec::new()).err()
    };
    assert_eq!((send_text(left), send_text(left + 1)), (None, Some(Rejection::MessagesFull)));
}

#[test]
fn each_part_of_a_message_has_a_limit() {
    let text = |length: usize| -> std::sync::Arc<str> { "x".repeat(length).into() };
    let names = |count: usize| (0..count).map(|number| Name::new(format!("may-{number}")).unwrap()).collect();
    let lanes_named =
        |count: usize| (0..count).map(|number| LaneName::new(format!("l{number}")).unwrap()).collect();
    type Change<'a> = &'a dyn Fn(&mut Incoming, usize);
    // Each part at its limit, and one and two beyond.
    let cases: [(Change<'_>, usize, BadMessage); 5] = [
        (&|message, bound| message.text = text(bound), TEXT_BYTES_MAX, BadMessage::TooLong),
        (&|message, bound| message.sender = Some(text(bound)), LABEL_BYTES_MAX, BadMessage::Label("sender")),
        (&|message, bound| message.permissions = names(bound), PERMISSIONS_MAX, BadMessage::Permissions),
        (&|message, bound| message.agent.lanes = lanes_named(bound), AGENT_LANES_MAX, BadMessage::Lanes),
        (&|message, bound| message.priority = Some(bound as u8), 9, BadMessage::Priority),
    ];
    for (change, bound, expected) in cases {
        for (size, refusal) in [(bound, None), (bound + 1, Some(&expected)), (bound + 2, Some(&expected))] {
            let mut incoming = Incoming { session: "bob".into(), ..message(3) };
            change(&mut incoming, size);
            let refused = busy().step(Timestamp(1000), send(incoming), &mut Vec::new()).err();
            assert_eq!(refused, refusal.cloned().map(Rejection::BadMessage), "{expected:?} {size}");
        }
    }
}

#[test]
fn dropped_messages_are_counted_for_at_most_64_places() {
    let mut lanes = busy();
    let drop = QueueOverrides { cap: Some(1), ..QueueOverrides::default() };
    for number in 0..100u128 {
        let mut incoming = Incoming { queue: drop, ..message(10 + number) };
        incoming.place.to = Some(format!("place {number}").into());
        lanes.step(Timestamp(1000), send(incoming), &mut Vec::new()).unwrap();
    }
    assert_eq!(lanes.session("ann").unwrap().dropped, 64);
}

#[test]
fn metadata_and_attachments_come_with_the_message() {
    let (metadata, attachments): (std::sync::Arc<str>, std::sync::Arc<str>) =
        ("{\"a\":1}".into(), "[2]".into());
    let mut lanes = Scheduler::new(7);
    let incoming = Incoming {
        text: "".into(),
        metadata: Some(metadata.clone()),
        attachments: Some(attachments.clone()),
        ..message(1)
    };
    lanes.step(Timestamp(1000), send(incoming), &mut Vec::new()).unwrap();
    let said = lanes.turn_content(TaskId::of_turn(MessageId(1), 1)).unwrap().messages;
    assert_eq!((&said[0].metadata, &said[0].attachments), (&Some(metadata), &Some(attachments)));
    assert_eq!(lanes.violation(), None);
}
