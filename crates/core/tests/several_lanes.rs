//! A task that needs several lanes starts, however busy each of them is kept.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use laneway_core::{
    Block, Command, Event, Fence, LaneName, LaneSettings, Name, Outcome, Pattern, Scheduler, Switch, TaskId,
    TaskSpec, TaskStatus, Timestamp,
};

const BOTH: TaskId = TaskId(1);

/// Two lanes of one slot each, with tasks that wait for one of them, and one that waits for both.
struct Busy {
    scheduler: Scheduler,
    next: u128,
    running: BTreeMap<TaskId, Fence>,
}

impl Busy {
    fn step(&mut self, command: Command) {
        let mut events = Vec::new();
        self.scheduler.step(Timestamp(0), command, &mut events).unwrap();
        for event in events {
            if let Event::Granted { task, fence, .. } = event {
                self.running.insert(task, fence);
            }
        }
    }

    fn submit(&mut self, task: TaskId, lanes: &[&str], fair_key: Option<&str>) {
        let lanes = lanes.iter().map(|lane| LaneName::new(*lane).unwrap()).collect();
        let mut spec = TaskSpec::new(Name::new("work").unwrap(), lanes);
        spec.fair_key = fair_key.map(|key| LaneName::new(key).unwrap());
        self.step(Command::Submit { task, spec: Box::new(spec) });
    }

    fn feed(&mut self, lane: &str) {
        self.next += 1;
        self.submit(TaskId(self.next), &[lane], None);
    }

    /// Ends what runs in a lane, after another task has come that waits for it.
    fn turn(&mut self, lane: &str) {
        self.feed(lane);
        let is_in = |task: &TaskId| self.scheduler.task(*task).unwrap().lanes[0].as_str() == lane;
        let task = self.running.keys().copied().find(is_in).unwrap();
        let fence = self.running.remove(&task).unwrap();
        self.step(Command::Finish { task, fence, outcome: Outcome::Success });
    }
}

#[test]
fn whichever_lane_it_names_first_and_whosever_turn_it_is() {
    for (named, fair_key) in [
        (["left", "right"], None),
        (["right", "left"], None),
        (["left", "right"], Some("left")),
        (["left", "right"], Some("right")),
        (["left", "right"], Some("ann")),
    ] {
        let mut busy = Busy { scheduler: Scheduler::new(1), next: 10, running: BTreeMap::new() };
        let settings = LaneSettings { max_concurrency: Some(Switch::On(1)), ..LaneSettings::default() };
        let block = |lane| Block { lanes: Pattern::new(lane).unwrap(), settings: Some(settings.clone()) };
        busy.step(Command::Configure(vec![block("left"), block("right")]));
        busy.feed("left");
        busy.feed("right");
        busy.submit(BOTH, &named, fair_key);
        let rounds = (0..200).find(|_| {
            let lanes = ["left", "right"].into_iter();
            lanes.for_each(|lane| {
                if busy.scheduler.status(BOTH) == Some(TaskStatus::Queued) {
                    busy.turn(lane);
                }
            });
            busy.scheduler.status(BOTH) == Some(TaskStatus::Running)
        });
        assert!(rounds.is_some_and(|rounds| rounds > 30), "{named:?} {fair_key:?}: {rounds:?}");
    }
}
