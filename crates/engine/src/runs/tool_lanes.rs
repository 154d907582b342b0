//! How the calls of tools are run: in lanes of every session, or directly.

use std::collections::BTreeMap;
use std::time::Duration;

use laneway_core::{Block, COUNT_MAX, LaneSettings, Pattern, Rejection, ToolLane};

use crate::driver::clock::millis;
use crate::error::Error;

/// How the calls of tools are run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolCalls {
    /// One after another where they are asked for, in no lane: no limit, no timeout, no retry, nothing kept.
    Direct,
    /// In the lanes `session:<key>/control`, `/query`, `/execute` and `/generate`.
    Lanes {
        /// Whether these lanes are counted in [`Handle::stats`](crate::Handle::stats).
        metrics: bool,
        /// Where tools belong, in addition to what [`ToolLane::of_tool`] says.
        tools: BTreeMap<String, ToolLane>,
    },
}

/// The tool lanes of every session, as a program sets them up: limits, and features that are off until asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolLanes {
    /// How many calls that pause, resume and cancel run at once, in each session. Default 2, at least 1.
    pub control_max_concurrency: u32,
    /// How many calls that read run at once. Default 4, at least 1.
    pub query_max_concurrency: u32,
    /// How many other calls run at once. Default 2, at least 1.
    pub execute_max_concurrency: u32,
    /// How many calls of a model run at once. Default 1, at least 1.
    pub generate_max_concurrency: u32,
    /// How many dead letters are kept for each of the four. Default 0: none.
    pub dead_letters_max: u32,
    /// Whether they are counted in [`Handle::stats`](crate::Handle::stats). Default false.
    pub metrics: bool,
    /// Whether long lines give alerts. Default false.
    pub alerts: bool,
    /// How long an attempt may take. Default `None`: any time.
    pub timeout: Option<Duration>,
    /// Where tools belong, in addition to what [`ToolLane::of_tool`] says.
    pub tools: BTreeMap<String, ToolLane>,
}

impl Default for ToolCalls {
    fn default() -> ToolCalls {
        ToolCalls::Lanes { metrics: true, tools: BTreeMap::new() }
    }
}

impl ToolCalls {
    /// Where a tool belongs.
    pub(super) fn lane_of(&self, tool: &str) -> ToolLane {
        let own = match self {
            ToolCalls::Direct => None,
            ToolCalls::Lanes { tools, .. } => tools.get(tool).copied(),
        };
        own.unwrap_or_else(|| ToolLane::of_tool(tool))
    }

    /// Whether lanes with this label are counted.
    pub fn counts(&self, label: &str) -> bool {
        let is_tool_lane = || {
            let tool = label.strip_prefix("session:").and_then(|rest| rest.split_once('/'));
            tool.is_some_and(|(_, tool)| TOOL_LANES.iter().any(|lane| lane.as_str() == tool))
        };
        !matches!(self, ToolCalls::Lanes { metrics: false, .. }) || !is_tool_lane()
    }
}

const TOOL_LANES: [ToolLane; 4] = [ToolLane::Control, ToolLane::Query, ToolLane::Execute, ToolLane::Generate];

impl Default for ToolLanes {
    fn default() -> ToolLanes {
        ToolLanes {
            control_max_concurrency: 2,
            query_max_concurrency: 4,
            execute_max_concurrency: 2,
            generate_max_concurrency: 1,
            dead_letters_max: 0,
            metrics: false,
            alerts: false,
            timeout: None,
            tools: BTreeMap::new(),
        }
    }
}

impl ToolLanes {
    /// With dead letters (1000), metrics, alerts, and a timeout of 60 s.
    #[must_use]
    pub fn with_lane_features(self) -> ToolLanes {
        let timeout = Some(Duration::from_secs(60));
        ToolLanes { dead_letters_max: 1000, metrics: true, alerts: true, timeout, ..self }
    }

    fn max_concurrency(&self, lane: ToolLane) -> u32 {
        match lane {
            ToolLane::Control => self.control_max_concurrency,
            ToolLane::Query => self.query_max_concurrency,
            ToolLane::Execute => self.execute_max_concurrency,
            ToolLane::Generate => self.generate_max_concurrency,
        }
    }

    /// The same as settings of lanes.
    pub fn blocks(&self) -> Result<Vec<Block>, Error> {
        TOOL_LANES.into_iter().map(|lane| self.block(lane)).collect()
    }

    fn block(&self, lane: ToolLane) -> Result<Block, Error> {
        let mut settings = LaneSettings::default();
        let timeout = self.timeout.map_or("none".to_owned(), |length| millis(length).0.to_string());
        let mut said = vec![
            ("max_concurrency", self.max_concurrency(lane).to_string()),
            ("dead_letters_max", self.dead_letters_max.to_string()),
            ("timeout", timeout),
        ];
        if !self.alerts {
            // No line can be that long.
            said.push(("alerts.warning", COUNT_MAX.to_string()));
            said.push(("alerts.critical", COUNT_MAX.to_string()));
        }
        for (key, text) in said {
            let bad = |error| Error::Rejected(Rejection::BadSetting(Box::new(error)));
            settings.set(key, &text).map_err(bad)?;
        }
        let lanes = Pattern::new(format!("session:*/{}", lane.as_str()))?;
        Ok(Block { lanes, settings: Some(settings) })
    }
}

impl From<ToolLanes> for ToolCalls {
    fn from(lanes: ToolLanes) -> ToolCalls {
        ToolCalls::Lanes { metrics: lanes.metrics, tools: lanes.tools }
    }
}
