//! Queries say what the state is and what will happen.

#![allow(clippy::unwrap_used, reason = "a test stops at anything unexpected")]

use laneway_core::{
    Agent, Block, CancelReason, Command, Event, Fence, Incoming, LaneName, LaneSettings, MessageId,
    MessageSettings, Millis, Mode, Name, Outcome, Pattern, QueueOverrides, ReplicaId, Reply, Scheduler,
    Selector, SessionCommand, Source, TaskId, TaskSpec, Timestamp,
};

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn lane(text: &str) -> LaneName {
    LaneName::new(text).unwrap()
}

struct Queue {
    scheduler: Scheduler,
    events: Vec<Event>,
    now: Timestamp,
}

impl Queue {
    fn new() -> Queue {
        Queue { scheduler: Scheduler::new(1), events: Vec::new(), now: Timestamp(0) }
    }

    fn at(&mut self, now: u64) -> &mut Queue {
        self.now = Timestamp(now);
        self
    }

    fn step(&mut self, command: Command) -> Reply {
        self.events.clear();
        self.scheduler.step(self.now, command, &mut self.events).unwrap()
    }

    fn submit(&mut self, task: u128, lanes: &str) {
        let spec = TaskSpec::new(name("work"), lanes.split(' ').map(lane).collect());
        self.step(Command::Submit { task: TaskId(task), spec: Box::new(spec) });
    }

    fn finish(&mut self, task: u128, fence: u64, outcome: Outcome) {
        self.step(Command::Finish { task: TaskId(task), fence: Fence(fence), taken: vec![], outcome });
    }

    fn set(&mut self, lanes: &str, settings: &[(&str, &str)]) {
        let mut block = LaneSettings::default();
        for (key, value) in settings {
            block.set(key, value).unwrap();
        }
        let settings = (!settings.is_empty()).then_some(block);
        self.step(Command::Configure(vec![Block { lanes: Pattern::new(lanes).unwrap(), settings }]));
    }

    fn session(&mut self, command: SessionCommand) -> Reply {
        self.step(Command::Session(Box::new(command)))
    }

    fn labels(&self) -> Vec<&str> {
        self.scheduler.stats().map(|(label, _)| label).collect()
    }
}

#[test]
fn the_count_of_waiting_tasks_is_how_many_a_cancel_ends() {
    let mut queue = Queue::new();
    for (task, lanes) in [(1, "one"), (2, "one"), (3, "one"), (4, "other"), (5, "other")] {
        queue.submit(task, lanes);
    }
    for (named, expected) in [(Some("one"), 2), (Some("nowhere"), 0), (None, 1)] {
        let which = Selector { lane: named.map(lane), ..Selector::default() };
        assert_eq!(queue.scheduler.waiting_count(&which), expected, "{named:?}");
        let reason = CancelReason::Caller;
        assert_eq!(queue.step(Command::CancelWaiting { which, reason }), Reply::Cancelled(expected));
    }
}

#[test]
fn a_prospect_follows_from_the_measured_attempts() {
    let mut queue = Queue::new();
    queue.submit(1, "one");
    queue.submit(2, "one");
    queue.submit(3, "one");
    queue.submit(4, "one");
    assert_eq!(queue.scheduler.prospect(TaskId(1)), None);
    assert_eq!(queue.scheduler.prospect(TaskId(4)), Some((3, None)));
    // One attempt took a second, so the estimate for the next is a second.
    queue.at(1000).finish(1, 1, Outcome::Success);
    let prospects = [2, 3, 4].map(|task| queue.scheduler.prospect(TaskId(task)));
    assert_eq!(prospects, [None, Some((1, Some(Millis(1000)))), Some((2, Some(Millis(2000))))]);
    assert_eq!(queue.scheduler.estimated_start(TaskId(4)), Some(Millis(2000)));
    assert_eq!(queue.scheduler.position(TaskId(4)), Some(2));
    for (task, fence) in [(2, 2), (3, 3)] {
        queue.finish(task, fence, Outcome::Success);
    }
    // With two slots, a slot becomes free twice as often.
    queue.set("two", &[("max_concurrency", "2")]);
    for task in 11..=14 {
        queue.submit(task, "two");
    }
    queue.at(2000).finish(11, 5, Outcome::Success);
    assert_eq!(queue.scheduler.prospect(TaskId(14)), Some((1, Some(Millis(500)))));
}

/// Callers name the same lanes again and again. What the scheduler remembers for some names never applies to others.
#[test]
fn a_task_has_the_lanes_that_it_names() {
    let mut queue = Queue::new();
    let [first, second] = ["first", "second"].map(lane);
    let both = vec![first.clone(), second.clone()];
    let requests = [
        &both[..],
        &both,
        &both[..1],
        &both,
        &both[..1],
        &both[1..],
        &[second.clone(), first.clone()],
        &both,
    ];
    for (task, lanes) in (1..).zip(requests) {
        let spec = TaskSpec::new(name("work"), lanes.to_vec());
        queue.step(Command::Submit { task: TaskId(task), spec: Box::new(spec) });
        assert_eq!(queue.scheduler.task(TaskId(task)).map(|view| view.lanes).as_deref(), Some(lanes));
    }
}

#[test]
fn the_owner_of_an_attempt_is_the_replica_that_starts_it() {
    let mut queue = Queue::new();
    let mut owner_of = |task: u128, replica: Option<ReplicaId>| {
        replica.into_iter().for_each(|replica| queue.scheduler.run_as(replica));
        queue.submit(task, &format!("lane-{task}"));
        let granted = queue.events.iter().find_map(|event| match event {
            Event::Granted { owner, .. } => owner.replica(),
            _ => None,
        });
        granted.unwrap()
    };
    assert_eq!(owner_of(1, None), ReplicaId::SOLE);
    assert_eq!(owner_of(2, Some(ReplicaId(7))), ReplicaId(7));
}

#[test]
fn ended_tasks_are_collected_for_one_step() {
    let mut queue = Queue::new();
    queue.submit(9, "one");
    queue.finish(9, 1, Outcome::Success);
    assert!(!queue.scheduler.has_ended(), "collecting is off");
    queue.scheduler.collect_ended();
    queue.submit(1, "one");
    assert!(!queue.scheduler.has_ended());
    queue.finish(1, 2, Outcome::Success);
    assert!(queue.scheduler.has_ended());
    // The next step discards the ended task.
    queue.step(Command::Tick);
    assert!(!queue.scheduler.has_ended());
    queue.submit(2, "one");
    queue.finish(2, 3, Outcome::Success);
    let ended: Vec<TaskId> = queue.scheduler.take_ended().map(|view| view.id).collect();
    assert_eq!(ended, [TaskId(2)]);
}

#[test]
fn the_statistics_of_a_block_end_with_the_block() {
    let mut queue = Queue::new();
    queue.submit(1, "plain");
    let families = queue.labels().len();
    queue.set("gpu*", &[("max_concurrency", "1")]);
    assert_eq!(queue.labels().len(), families);
    queue.submit(2, "gpu1");
    queue.submit(3, "gpu1");
    assert!(queue.labels().contains(&"gpu*"));
    // The block is gone, and so are its statistics.
    queue.set("gpu*", &[]);
    assert!(!queue.labels().contains(&"gpu*"), "{:?}", queue.labels());
    assert_eq!(queue.labels().len(), families);
    // The statistics of a family stay, with or without lanes.
    queue.finish(1, 1, Outcome::Success);
    queue.finish(2, 2, Outcome::Success);
    queue.finish(3, 3, Outcome::Success);
    queue.set("gpu*", &[("max_concurrency", "1")]);
    assert_eq!(queue.labels().len(), families);
}

#[test]
fn blocks_are_listed_as_they_were_set() {
    let mut queue = Queue::new();
    queue.set("agent:*", &[("max_concurrency", "2")]);
    queue.set("build", &[("max_queued", "7")]);
    let blocks: Vec<_> = queue.scheduler.blocks().collect();
    let is_listed = |lanes, key, value| {
        let mut settings = LaneSettings::default();
        settings.set(key, value).unwrap();
        blocks.contains(&(&Pattern::new(lanes).unwrap(), &settings))
    };
    assert!(
        is_listed("agent:*", "max_concurrency", "2") && is_listed("build", "max_queued", "7"),
        "{blocks:?}"
    );
    assert_eq!(blocks.len(), 2);
}

#[test]
fn each_kind_of_live_task_is_listed_once() {
    let mut queue = Queue::new();
    for (task, kind) in [(1, "chat"), (2, "search"), (3, "chat"), (4, "search")] {
        let spec = TaskSpec::new(name(kind), vec![lane("main")]);
        queue.step(Command::Submit { task: TaskId(task), spec: Box::new(spec) });
    }
    let kinds = |queue: &Queue| {
        let mut kinds: Vec<String> = queue.scheduler.kinds().map(ToString::to_string).collect();
        kinds.sort();
        kinds
    };
    assert_eq!(kinds(&queue), ["chat", "search"]);
    // The task that came last was the last of its kind.
    queue.finish(2, 2, Outcome::Success);
    queue.finish(4, 4, Outcome::Success);
    assert_eq!(kinds(&queue), ["chat"]);
}

/// Sends a message without further wishes.
fn send(id: u128, session: &str) -> SessionCommand {
    SessionCommand::Send(Box::new(Incoming::new(MessageId(id), session, Agent::new(name("bot")), "say it")))
}

#[test]
fn a_session_shows_its_turns_and_messages() {
    let mut queue = Queue::new();
    queue.set("agent:bot", &[("max_concurrency", "9")]);
    let settings = MessageSettings { redeliver: false, ..MessageSettings::default() };
    queue.session(SessionCommand::ConfigureMessages(Box::new(settings)));
    for (id, key) in [(1, "first"), (2, "second"), (3, "first"), (4, "third")] {
        queue.session(send(id, key));
    }
    let keys: Vec<String> = queue.scheduler.sessions().into_iter().map(|view| view.key).collect();
    assert_eq!(keys, ["first", "second", "third"]);
    let session_of = |queue: &Queue, id: u128| queue.scheduler.session_of(MessageId(id));
    assert_eq!(
        [1, 2, 3, 9].map(|id| session_of(&queue, id)),
        ["first", "second", "first", ""].map(|key| { Some(key.to_owned()).filter(|key| !key.is_empty()) })
    );
    // The attempt that opened steering takes the messages.
    let turn = queue.scheduler.turn_of_session("first").unwrap();
    let fence = turn.running.as_ref().unwrap().fence;
    let takes = |queue: &Queue| queue.scheduler.session("first").unwrap().turns[0].takes_steering;
    assert!(!takes(&queue));
    queue.session(SessionCommand::Steering { turn: turn.id, fence, open: true });
    assert!(takes(&queue));
    queue.session(SessionCommand::Send(Box::new(Incoming {
        queue: QueueOverrides { mode: Some(Mode::Steer), ..QueueOverrides::default() },
        ..Incoming::new(MessageId(5), "first", Agent::new(name("bot")), "turn left")
    })));
    queue.session(SessionCommand::TakeSteering { turn: turn.id, fence, only: None });
    assert_eq!(queue.scheduler.taken_steering(turn.id, fence), [MessageId(5)]);
    assert_eq!(queue.scheduler.taken_steering(turn.id, Fence(fence.0 + 1)), []);
    // Until the messages of a failed turn are tried again, the session shows typing, but is not busy.
    queue.finish(turn.id.0, fence.0, Outcome::Failure { error: "no luck".into(), retryable: true });
    let view = queue.scheduler.session("first").unwrap();
    assert_eq!((view.busy, view.typing, view.waiting.len()), (false, true, 3));
    let retry_at = view.retry_at.unwrap();
    assert!(retry_at > queue.now);
    queue.at(retry_at.0).step(Command::Tick);
    let view = queue.scheduler.session("first").unwrap();
    assert_eq!((view.typing, view.retry_at), (true, None));
    // A parked message has its error, and still belongs to its session.
    let turn = queue.scheduler.turn_of_session("second").unwrap();
    queue.step(Command::Lapse { task: turn.id, fence: turn.running.unwrap().fence });
    let view = queue.scheduler.session("second").unwrap();
    let error = view.parked[0].error.as_deref();
    assert_eq!((view.typing, error), (false, Some("the replica that ran the turn was lost")));
    assert_eq!(session_of(&queue, 2), Some("second".to_owned()));
}

/// If another task, live or a dead letter, has the id, the turn gets the next one.
#[test]
fn a_turn_gets_a_free_id() {
    for fails in [false, true] {
        let mut queue = Queue::new();
        let message = MessageId(1);
        let taken = TaskId::of_turn(message, 1);
        queue.submit(taken.0, "elsewhere");
        assert_eq!(queue.scheduler.kind_of(taken), Some(&name("work")));
        if fails {
            queue.finish(taken.0, 1, Outcome::Failure { error: "no luck".into(), retryable: false });
            assert_eq!(queue.scheduler.dead_letters().count(), 1);
        }
        queue.session(send(1, "s"));
        assert_eq!(
            queue.scheduler.turn_of_session("s").map(|turn| turn.id),
            Some(TaskId::of_turn(message, 2))
        );
    }
}

/// Replicas of different versions read the same log, so all of them compute the same ids of turns.
#[test]
fn the_id_of_a_turn_has_the_time_of_its_message_and_never_changes() {
    let message = MessageId(0x0198_c0de_1234_7abc_9def_0123_4567_89ab);
    let turns = [1, 2, 3].map(|number| TaskId::of_turn(message, number).to_string());
    let expected = [
        "0198c0de-1234-7abc-bce1-2443f7a02b25",
        "0198c0de-1234-7abc-8ee7-375765a2368b",
        "0198c0de-1234-7abc-8d53-a596dc02ef18",
    ];
    assert_eq!(turns, expected);
}

#[test]
fn a_message_sent_again_has_the_same_content() {
    let mut queue = Queue::new();
    let settings = MessageSettings { redeliver: false, ..MessageSettings::default() };
    queue.session(SessionCommand::ConfigureMessages(Box::new(settings)));
    let incoming = Incoming {
        sender: Some("7".into()),
        sender_name: Some("Ann".into()),
        permissions: vec![name("read"), name("write")],
        source: Source::Background,
        priority: Some(7),
        ..Incoming::new(MessageId(1), "s", Agent::new(name("bot")), "say it")
    };
    queue.session(SessionCommand::Send(Box::new(incoming)));
    let first = queue.scheduler.live_message(MessageId(1)).unwrap().clone();
    let turn = queue.scheduler.turn_of_session("s").unwrap();
    let fence = turn.running.unwrap().fence;
    queue.step(Command::Lapse { task: turn.id, fence });
    assert_eq!(queue.scheduler.parked_messages().count(), 1);
    queue.session(SessionCommand::Resend { message: MessageId(1), again: MessageId(2) });
    let second = queue.scheduler.live_message(MessageId(2)).unwrap();
    assert_eq!((&second.text, &second.address, &second.from), (&first.text, &first.address, &first.from));
    assert_eq!(first.from.as_ref().and_then(|from| from.id.as_deref()), Some("7"));
}
