//! How things stand.

use std::sync::Arc;

use laneway_core::{
    Block, CancelReason, Command, DeadLetter, Explanation, Gate, LaneName, LaneSettings, LaneStats,
    NoteChange, Pattern, Reply, Selector, Settings, TaskId, TaskView,
};

use crate::error::Error;
use crate::handle::Handle;
use crate::handle::task_handle::TaskHandle;
use crate::journal::recovery::changes;
use crate::runs::tool_lanes::ToolLanes;

/// How a lane stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneSnapshot {
    /// Its name.
    pub lane: LaneName,
    /// How many of its slots are taken.
    pub running: u32,
    /// How many tasks wait in it.
    pub waiting: u32,
    /// How many wait for their next attempt's time.
    pub retrying: u32,
    /// How many slots it has; `None`: any number.
    pub max_concurrency: Option<u32>,
    /// Whether work is let in and out.
    pub gate: Gate,
}

impl Handle {
    /// All lanes in which something is, or of which something is to be remembered, by name.
    pub async fn snapshot(&self) -> Result<Vec<LaneSnapshot>, Error> {
        self.look(|lanes| {
            let snapshot = |lane: laneway_core::LaneView<'_>| LaneSnapshot {
                lane: lane.name,
                running: lane.running,
                waiting: lane.waiting,
                retrying: lane.retrying,
                max_concurrency: lane.settings.max_concurrency,
                gate: lane.gate,
            };
            lanes.lanes().into_iter().map(snapshot).collect()
        })
        .await
    }

    /// What holds for a lane, whether it exists or not.
    pub async fn settings(&self, lane: LaneName) -> Result<Settings, Error> {
        self.look(move |lanes| lanes.settings_for(&lane)).await
    }

    /// How many tasks run now, here and at workers.
    pub async fn inflight(&self) -> Result<u32, Error> {
        self.look(|lanes| lanes.lane(&LaneName::global()).map_or(0, |lane| lane.running)).await
    }

    /// A live task.
    pub async fn task(&self, task: TaskId) -> Result<Option<TaskView>, Error> {
        self.look(move |lanes| lanes.task(task)).await
    }

    /// All live tasks, in the order of their arrival.
    pub async fn tasks(&self) -> Result<Vec<TaskView>, Error> {
        self.look(|lanes| lanes.tasks().collect()).await
    }

    /// Why a task waits; `None` if it is not live.
    pub async fn explain(&self, task: TaskId) -> Result<Option<Explanation>, Error> {
        self.look(move |lanes| lanes.explain(task)).await
    }

    /// A waiting task's place in the line of its home lane, counted from one.
    pub async fn position(&self, task: TaskId) -> Result<Option<usize>, Error> {
        self.look(move |lanes| lanes.position(task)).await
    }

    /// What the lanes of each block of settings have seen, by the block's name or pattern. Tool lanes are left out where
    /// their metrics are [off](ToolLanes::metrics).
    pub async fn stats(&self) -> Result<Vec<(String, LaneStats)>, Error> {
        let calls = self.tool_calls();
        self.look(move |lanes| {
            let counted = lanes.stats().filter(|(label, _)| calls.counts(label));
            counted.map(|(label, stats)| (label.to_owned(), stats.clone())).collect()
        })
        .await
    }

    /// The blocks of settings as they were given, by name or pattern.
    pub async fn blocks(&self) -> Result<Vec<(Pattern, LaneSettings)>, Error> {
        self.look(|lanes| lanes.blocks().map(|(lanes, settings)| (lanes.clone(), settings.clone())).collect())
            .await
    }

    /// The dead letters, the oldest first.
    pub async fn dead_letters(&self) -> Result<Vec<DeadLetter>, Error> {
        self.look(|lanes| lanes.dead_letters().cloned().collect()).await
    }

    /// Runs a dead letter again, as a new task.
    pub async fn redrive(&self, letter: TaskId) -> Result<TaskHandle, Error> {
        let task = self.new_id();
        self.accept(Command::Redrive { letter, task }, Vec::new()).await
    }

    /// Throws a dead letter away.
    pub async fn discard(&self, letter: TaskId) -> Result<(), Error> {
        self.ask(Command::Discard { letter }).await.map(drop)
    }

    /// Changes the settings of lanes, all of these or none.
    pub async fn configure(&self, blocks: Vec<Block>) -> Result<(), Error> {
        self.ask(Command::Configure(blocks)).await.map(drop)
    }

    /// Changes notes: short texts that programs keep beside the work, the same for everybody who shares the queue. All of the
    /// change, if they are as it expects, or nothing ([`Rejection::NoteChanged`](laneway_core::Rejection)).
    pub async fn note(&self, change: NoteChange) -> Result<(), Error> {
        self.ask(Command::Note(Box::new(change))).await.map(drop)
    }

    /// The notes whose keys begin so, in the order of their keys.
    pub async fn notes(&self, prefix: impl Into<String>) -> Result<Vec<(Arc<str>, Arc<str>)>, Error> {
        let prefix = prefix.into();
        let own = |(key, text): (&Arc<str>, &Arc<str>)| (Arc::clone(key), Arc::clone(text));
        self.read(move |lanes| lanes.notes(&prefix).map(own).collect()).await
    }

    /// Lets exactly these settings hold: what is not among them has its default again.
    pub async fn settle(&self, wanted: Vec<Block>) -> Result<(), Error> {
        let changes = changes(&self.blocks().await?, &wanted);
        if changes.is_empty() { Ok(()) } else { self.configure(changes).await }
    }

    /// Has the calls of tools run in lanes with these limits.
    pub async fn configure_tools(&self, tools: ToolLanes) -> Result<(), Error> {
        self.configure(tools.blocks()?).await?;
        self.set_tool_calls(tools.into());
        Ok(())
    }

    /// Cancels a task: a waiting one leaves the line, a running one is told to stop.
    pub async fn cancel(&self, task: TaskId) -> Result<Reply, Error> {
        self.ask(Command::Cancel { task, reason: CancelReason::Caller }).await
    }

    /// Cancels everything that waits and fits, touching nothing that runs; returns how many.
    pub async fn cancel_waiting(&self, which: Selector) -> Result<usize, Error> {
        self.count(Command::CancelWaiting { which, reason: CancelReason::Caller }).await
    }

    /// Empties the line of a lane, touching nothing that runs; returns how many were in it.
    pub async fn clear(&self, lane: LaneName) -> Result<usize, Error> {
        let which = Selector { lane: Some(lane), ..Selector::default() };
        self.count(Command::CancelWaiting { which, reason: CancelReason::Cleared }).await
    }

    async fn count(&self, command: Command) -> Result<usize, Error> {
        match self.ask(command).await? {
            Reply::Cancelled(tasks) => Ok(tasks),
            _ => Ok(0),
        }
    }

    /// Changes the priority of a task that waits.
    pub async fn reprioritise(&self, task: TaskId, priority: u8) -> Result<(), Error> {
        self.ask(Command::Reprioritise { task, priority }).await.map(drop)
    }

    /// Grants nothing in a lane until it is resumed.
    pub async fn pause(&self, lane: LaneName) -> Result<(), Error> {
        self.ask(Command::Pause { lane }).await.map(drop)
    }

    /// Ends a pause or a drain.
    pub async fn resume(&self, lane: LaneName) -> Result<(), Error> {
        self.ask(Command::Resume { lane }).await.map(drop)
    }

    /// Refuses new work in a lane; what was accepted still runs.
    pub async fn drain(&self, lane: LaneName) -> Result<(), Error> {
        self.ask(Command::Drain { lane }).await.map(drop)
    }

    /// Takes the slots away from what runs in a lane, at once. Those runs are told to stop and may still be
    /// going for a while; whatever they report is refused.
    pub async fn force_release(&self, lane: LaneName) -> Result<Vec<TaskId>, Error> {
        match self.ask(Command::ForceRelease { lane }).await? {
            Reply::Released(tasks) => Ok(tasks),
            _ => Ok(Vec::new()),
        }
    }
}
