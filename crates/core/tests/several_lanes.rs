//! A task that needs several busy lanes starts in time, and keeps its place before later tasks that need more lanes.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use laneway_core::{
    Block, Command, Event, Fence, LaneName, LaneSettings, Name, Outcome, Pattern, Scheduler, Switch, TaskId,
    TaskSpec, TaskStatus, Timestamp,
};

const BOTH: TaskId = TaskId(1);

/// A scheduler and its running tasks.
struct Busy {
    scheduler: Scheduler,
    next: u128,
    running: BTreeMap<TaskId, Fence>,
}

impl Busy {
    /// Gives each of `lanes` this number of slots.
    fn new(slots: u32, lanes: &[&str]) -> Busy {
        let mut busy = Busy { scheduler: Scheduler::new(1), next: 10, running: BTreeMap::new() };
        let settings = LaneSettings { max_concurrency: Some(Switch::On(slots)), ..LaneSettings::default() };
        let block =
            |lane: &&str| Block { lanes: Pattern::new(lane).unwrap(), settings: Some(settings.clone()) };
        busy.step(Command::Configure(lanes.iter().map(block).collect()));
        busy
    }

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

    fn submit_next(&mut self, lane: &str) {
        self.next += 1;
        self.submit(TaskId(self.next), &[lane], None);
    }

    /// Submits another task to a lane, then ends the task that runs there.
    fn replace_running(&mut self, lane: &str) {
        self.submit_next(lane);
        let is_in = |task: &TaskId| self.scheduler.task(*task).unwrap().lanes[0].as_str() == lane;
        let task = self.running.keys().copied().find(is_in).unwrap();
        self.finish(task);
    }

    fn finish(&mut self, task: TaskId) {
        let fence = self.running.remove(&task).unwrap();
        self.step(Command::Finish { task, fence, taken: vec![], outcome: Outcome::Success });
    }

    fn runs(&self, task: u128) -> bool {
        self.scheduler.status(TaskId(task)) == Some(TaskStatus::Running)
    }
}

#[test]
fn a_task_of_two_busy_lanes_starts_with_any_lane_order_and_fair_key() {
    for (named, fair_key) in [
        (["left", "right"], None),
        (["right", "left"], None),
        (["left", "right"], Some("left")),
        (["left", "right"], Some("right")),
        (["left", "right"], Some("ann")),
    ] {
        let mut busy = Busy::new(1, &["left", "right"]);
        busy.submit_next("left");
        busy.submit_next("right");
        busy.submit(BOTH, &named, fair_key);
        let rounds = (0..200).find(|_| {
            let lanes = ["left", "right"].into_iter();
            lanes.for_each(|lane| {
                if busy.scheduler.status(BOTH) == Some(TaskStatus::Queued) {
                    busy.replace_running(lane);
                }
            });
            busy.scheduler.status(BOTH) == Some(TaskStatus::Running)
        });
        assert!(rounds.is_some_and(|rounds| rounds > 30), "{named:?} {fair_key:?}: {rounds:?}");
    }
}

#[test]
fn a_task_keeps_its_place_before_later_tasks_of_free_or_busy_sessions() {
    for are_busy in [false, true] {
        let mut busy = Busy::new(if are_busy { 10 } else { 1 }, &["main"]);
        let sessions: Vec<String> = (0..9).map(|number| format!("session:{number}")).collect();
        busy.submit(TaskId(1), &["main"], None);
        let mut task = 10;
        let mut submit_all = |busy: &mut Busy| {
            for session in &sessions {
                task += 1;
                busy.submit(TaskId(task), &["main", session], None);
            }
        };
        if are_busy {
            submit_all(&mut busy);
        }
        busy.submit(TaskId(2), &["main"], None);
        submit_all(&mut busy);
        assert_eq!((busy.running.len(), busy.runs(2)), (if are_busy { 10 } else { 1 }, false));
        busy.finish(TaskId(1));
        assert!(busy.runs(2), "sessions busy: {are_busy}");
    }
}
