//! Each kind of damage to a sound state is a violation.

use std::sync::Arc;

use crate::api::command::{Command, Outcome};
use crate::api::event::Event;
use crate::api::ids::{Fence, TaskId};
use crate::api::name::{LaneName, Name};
use crate::api::owner::{Owner, ReplicaId};
use crate::api::retry::Retry;
use crate::api::session_command::SessionCommand;
use crate::api::task_spec::{Idempotency, TaskSpec};
use crate::api::time::{Millis, Timestamp};
use crate::scheduler::Scheduler;
use crate::sessions::message::{Agent, Incoming, MessageId};
use crate::sessions::session::Turn;
use crate::state::RememberedKey;
use crate::state::lane::LaneIdx;
use crate::state::ready_tree::node::{Rank, Seat};
use crate::state::table::Idx;
use crate::state::task::TaskIdx;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn step(scheduler: &mut Scheduler, command: Command) {
    scheduler.step(Timestamp(1000), command, &mut Vec::<Event>::new()).unwrap();
}

fn submit(scheduler: &mut Scheduler, task: u128, lane: &str, ask: impl FnOnce(&mut TaskSpec)) {
    let mut spec = TaskSpec::new(name("work"), vec![LaneName::new(lane).unwrap()]);
    ask(&mut spec);
    step(scheduler, Command::Submit { task: TaskId(task), spec: Box::new(spec) });
}

/// Something of everything: 1 runs, 2 waits behind it, 3 will be retried, 4 died, and a session has a turn and a message.
fn lively() -> Scheduler {
    let mut scheduler = Scheduler::new(1);
    let fail = |task: u128, fence: u64| Command::Finish {
        task: TaskId(task),
        fence: Fence(fence),
        taken: vec![],
        outcome: Outcome::Failure { error: "no luck".into(), retryable: true },
    };
    let key = Idempotency { key: Arc::from("key"), fingerprint: 1, until_end: false };
    submit(&mut scheduler, 1, "one", |spec| {
        (spec.idempotency, spec.timeout) = (Some(key), Some(Millis(50_000)))
    });
    submit(&mut scheduler, 2, "one", |_| {});
    submit(&mut scheduler, 3, "two", |spec| spec.retry = Some(Retry::STANDARD));
    step(&mut scheduler, fail(3, 2));
    submit(&mut scheduler, 4, "two", |_| {});
    step(&mut scheduler, fail(4, 3));
    for message in [1, 2] {
        let incoming = Incoming::new(MessageId(message), "ann", Agent::new(name("bot")), "hello");
        step(&mut scheduler, Command::Session(Box::new(SessionCommand::Send(Box::new(incoming)))));
    }
    assert_eq!(scheduler.violation(), None);
    scheduler
}

fn find(scheduler: &Scheduler, task: u128) -> TaskIdx {
    scheduler.state.tasks.find(TaskId(task)).unwrap()
}

fn lane(scheduler: &Scheduler, name: &str) -> LaneIdx {
    scheduler.state.lanes.find(&LaneName::new(name).unwrap()).unwrap()
}

/// A key as it is remembered of a task.
fn known(task: u128, until: Timestamp, until_end: bool) -> RememberedKey {
    RememberedKey { task: TaskId(task), fingerprint: 1, until, until_end }
}

type Damage = fn(&mut Scheduler);

const DAMAGES: &[(&str, Damage)] = &[
    ("a grant above a limit", |this| this.scratch.overrun = Some("one too many".to_owned())),
    ("a task that was accepted and is nowhere", |this| this.state.arrivals += 1),
    ("a run that is not listed", |this| {
        this.state.tasks.running.remove(Fence(1));
    }),
    ("a kind of no task", |this| {
        this.state.kinds.join(&name("ghost"), None);
    }),
    ("a key without an end", |this| this.indexes.key_ends.clear()),
    ("a key with another end", |this| {
        this.state.keys.values_mut().for_each(|known| known.until = Timestamp(5))
    }),
    ("a key of no task", |this| {
        this.state.keys.insert(Arc::from("held"), known(99, Timestamp(9), true));
    }),
    ("an end of a key that ends with its task", |this| {
        this.state.keys.values_mut().for_each(|known| known.until_end = true);
        this.state.keys.insert(Arc::from("other"), known(1, Timestamp(9), false));
    }),
    ("a lane that counts one too many", |this| {
        let lane = lane(this, "one");
        this.state.lanes[lane].waiting += 1;
    }),
    ("a full lane that says it is open", |this| {
        let lane = lane(this, "one");
        this.state.lanes[lane].open = true;
    }),
    ("a slot kept for no task", |this| {
        let lane = lane(this, "one");
        this.state.lanes[lane].reserved = Some(Idx::new(77));
    }),
    ("a fence that was never given", |this| this.state.fences = 1),
    ("a level that counts one too many", |this| this.indexes.ready_by_level[2] += 1),
    ("a line that counts one too many", |this| this.indexes.ready_count += 1),
    ("an open edge to a full lane", |this| {
        let leaf = this.state.tasks[find(this, 2)].leaf.unwrap();
        let parent = this.indexes.ready.nodes[leaf].parent.unwrap();
        this.indexes.ready.nodes[parent].closed = false;
    }),
    ("a seat among few", |this| {
        let leaf = this.state.tasks[find(this, 2)].leaf.unwrap();
        let place = this.state.tasks[find(this, 2)].rank();
        this.indexes.ready.nodes[leaf].set_seat(Seat::Open(Rank::new(place, 0)));
    }),
    ("a route that is kept and taken", |this| {
        let route = this.state.tasks[find(this, 1)].route;
        this.state.lanes.kept.push_back(route);
    }),
    ("a lane of a route that is not kept", |this| {
        let lane = lane(this, "one");
        this.state.lanes[lane].listed += 1;
    }),
    ("a task that waits although it may run", |this| {
        this.stop_granting();
        submit(this, 9, "free", |_| {});
        this.local.is_stopped = false;
    }),
    ("a task with another time than its timer's", |this| {
        let idx = find(this, 1);
        this.state.tasks[idx].due = Timestamp(5000);
    }),
    ("a timer of another task", |this| {
        let idx = find(this, 1);
        let (due, arrival) = (this.state.tasks[idx].due, this.state.tasks[idx].arrival);
        this.indexes.timers.move_task(due, Timestamp::NEVER, arrival, idx);
        this.indexes.timers.move_task(Timestamp::NEVER, due, arrival + 1000, idx);
    }),
    ("a letter that is not counted", |this| {
        let class = this.state.dead_letters.classes().next().unwrap();
        this.state.lane_config.class_mut(class).dead_letters = 0;
    }),
    ("a fair key that rests and is not there", |this| {
        this.state.fair.resting.insert((1, Idx::new(99)));
    }),
    ("texts of no message", |this| this.state.sessions.text_bytes += 1),
    ("a turn of no task", |this| {
        let idx = this.state.sessions.iter().next().unwrap().0;
        this.state.sessions[idx].turns.push(Turn::new(TaskId(99), true));
    }),
];

#[test]
fn each_damage_is_a_violation() {
    for (what, damage) in DAMAGES {
        let mut scheduler = lively();
        damage(&mut scheduler);
        assert!(scheduler.violation().is_some(), "{what}");
    }
}

/// Starts a task, even out of turn, and returns the violation.
fn started(scheduler: &mut Scheduler, task: u128) -> Option<String> {
    let granted = Event::Granted {
        task: TaskId(task),
        attempt: 1,
        fence: Fence(scheduler.state.fences + 1),
        lease_until: Timestamp(31_000),
        lease: Millis(30_000),
        timeout_at: None,
        owner: Owner::Replica(ReplicaId::SOLE),
        borrowed: Vec::new(),
    };
    scheduler.apply(Timestamp(1000), &granted);
    scheduler.violation()
}

#[test]
fn a_start_above_a_limit_is_reported_with_its_lane_and_numbers() {
    assert_eq!(started(&mut lively(), 2).as_deref(), Some("one runs 2 of 1"));
}

/// Two tasks of these priorities that may start, and do not.
fn two_that_wait(priorities: [u8; 2]) -> Scheduler {
    let mut scheduler = lively();
    scheduler.stop_granting();
    for (task, priority) in [10, 11].into_iter().zip(priorities) {
        submit(&mut scheduler, task, "free", |spec| spec.priority = Some(priority));
    }
    assert_eq!(scheduler.violation(), None);
    scheduler
}

#[test]
fn a_start_before_an_earlier_task_of_its_level_is_reported() {
    let told = started(&mut two_that_wait([5, 5]), 11).unwrap();
    assert!(told.ends_with("which came first"), "{told}");
    assert_eq!(started(&mut two_that_wait([5, 5]), 10), None);
    // Only tasks of one level are compared.
    assert_eq!(started(&mut two_that_wait([7, 5]), 11), None);
}

#[test]
fn more_that_wait_than_a_lane_has_room_for_are_told() {
    for (too_many, is_told) in [(0, false), (1, true)] {
        let mut scheduler = lively();
        submit(&mut scheduler, 9, "one", |_| {});
        let lane = lane(&scheduler, "one");
        let room = scheduler.settings(lane).max_queued;
        scheduler.state.lanes[lane].waiting = room + too_many;
        scheduler.end_step();
        let expected = format!("{} wait in one, which has room for {room}", room + 1);
        assert_eq!(scheduler.scratch.overrun, is_told.then_some(expected));
    }
}
