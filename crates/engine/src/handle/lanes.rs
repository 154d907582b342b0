//! Lanes: how they stand, their settings, and what stops and starts them.

use laneway_core::{
    Block, CancelReason, Command, Gate, LaneName, LaneSettings, LaneStats, Pattern, Reply, Selector,
    Settings, SettingsChange, TaskId,
};

use crate::error::Error;
use crate::handle::Handle;
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
        self.read(|lanes| {
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
        self.read(move |lanes| lanes.settings_for(&lane)).await
    }

    /// How many tasks run now, here and at workers.
    pub async fn inflight(&self) -> Result<u32, Error> {
        self.read(|lanes| lanes.lane(&LaneName::global()).map_or(0, |lane| lane.running)).await
    }

    /// What the lanes of each block of settings have seen, by the block's name or pattern. Tool lanes are left out where
    /// their metrics are [off](ToolLanes::metrics).
    pub async fn stats(&self) -> Result<Vec<(String, LaneStats)>, Error> {
        let calls = self.tool_calls();
        self.read(move |lanes| {
            let counted = lanes.stats().filter(|(label, _)| calls.counts(label));
            counted.map(|(label, stats)| (label.to_owned(), stats.clone())).collect()
        })
        .await
    }

    /// The blocks of settings as they were given, by name or pattern.
    pub async fn blocks(&self) -> Result<Vec<(Pattern, LaneSettings)>, Error> {
        self.read(|lanes| lanes.blocks().map(|(lanes, settings)| (lanes.clone(), settings.clone())).collect())
            .await
    }

    /// Changes the settings of lanes, all of these or none.
    pub async fn configure(&self, blocks: Vec<Block>) -> Result<(), Error> {
        self.ask(Command::Configure(blocks)).await.map(drop)
    }

    /// Changes single settings of the block of a lane or pattern, all of these or none. The other settings stay.
    pub async fn change_settings(&self, change: SettingsChange) -> Result<(), Error> {
        self.ask(Command::ChangeSettings(Box::new(change))).await.map(drop)
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

    /// Empties the line of a lane, touching nothing that runs; returns how many were in it.
    pub async fn clear(&self, lane: LaneName) -> Result<usize, Error> {
        let which = Selector { lane: Some(lane), ..Selector::default() };
        self.count(Command::CancelWaiting { which, reason: CancelReason::Cleared }).await
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

    /// Takes the slots away from what runs in a lane, at once. Those runs get a stop signal and may go on for a while; their
    /// reports are refused.
    pub async fn force_release(&self, lane: LaneName) -> Result<Vec<TaskId>, Error> {
        match self.ask(Command::ForceRelease { lane }).await? {
            Reply::Released(tasks) => Ok(tasks),
            _ => Ok(Vec::new()),
        }
    }
}
