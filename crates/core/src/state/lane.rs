//! A lane: its slots, what is in it, and what must be remembered of it.

use serde::{Deserialize, Serialize};

use crate::api::lane_settings::Settings;
use crate::api::name::LaneName;
use crate::api::time::Timestamp;
use crate::state::lane_config::{ClassIdx, LaneConfig};
use crate::state::ready_tree::ReadyTree;
use crate::state::ready_tree::node::LaneNeed;
use crate::state::ready_tree::ranked_list::{ArrivalRank, RankedList};
use crate::state::stats::RunTime;
use crate::state::table::{Idx, Mark};
use crate::state::task::TaskIdx;
use crate::state::token_bucket::Bucket;

/// Which lane.
pub type LaneIdx = Idx<LiveLane>;

/// Whether a lane lets work in and out. A lane can be shut on both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// Work may wait, none starts.
    pub paused: bool,
    /// Nothing new is accepted; what was accepted runs, unless it is paused as well.
    pub draining: bool,
}

impl Gate {
    /// Work is let in and out.
    pub const OPEN: Gate = Gate { paused: false, draining: false };
}

/// How narrow the lanes of a session are.
const SESSION_WIDTH: u8 = 5;

/// A named limit, while something is in it or there is something to remember of it.
///
/// Most lanes are a session's and lie in no cache when they are needed: an acceptance looks at the first line of
/// it alone.
#[repr(C, align(64))]
pub struct LiveLane {
    pub(crate) name: LaneName,
    pub(crate) class: ClassIdx,
    /// How many slots it has, `u32::MAX` where any number; from its settings, because every grant asks.
    pub(crate) slots: u32,
    /// Slots taken; a lent slot counts once.
    pub(crate) running: u32,
    /// Tasks that name it and wait, in the line or for their time to join it.
    pub(crate) waiting: u32,
    /// The task for which one slot is kept free.
    pub(crate) reserved: Option<TaskIdx>,
    /// Tells it from an earlier lane that had its number.
    pub(crate) birth: u32,
    /// While at least the first and fewer than the second number of tasks wait, a step has nothing to report or check.
    pub(crate) quiet: (u32, u32),
    /// The step in which it was last put on the list of changed lanes.
    pub(super) touched_in: u64,
    pub(crate) gate: Gate,
    /// Its settings have a rate limit.
    pub(crate) is_rated: bool,
    /// How widely it is probably shared: 0 for `global`, 5 for the lanes of one session.
    pub(super) width: u8,
    /// Whether it can give a slot, as the line knows.
    pub(crate) open: bool,
    /// Whether neither a pause nor its rate holds work up, as the line knows.
    pub(crate) passable: bool,
    pub(crate) under_pressure: bool,
    pub(super) mark: Mark,
    pub(crate) warned: bool,
    pub(crate) critical: bool,
    /// `Drained` was emitted.
    pub(crate) drained: bool,
    pub(crate) run_time: RunTime,
    /// When a slot was last taken or given back.
    pub(crate) last_change: Timestamp,
    /// The waiting tasks whose home it is, in order, unless it is a session's.
    pub(crate) waiting_list: Option<Box<RankedList<ArrivalRank>>>,
    pub(crate) bucket: Bucket,
    /// Tasks that name it and will be tried again after a back-off.
    pub(crate) retrying: u32,
    /// How many routes go through it that tasks take.
    pub(crate) routes: u32,
    /// How many routes through it are on the list of those that are kept for a while.
    pub(crate) listed: u32,
    /// It is forgotten, and stays only for a route that is kept for a while.
    pub(crate) is_gone: bool,
}

impl LiveLane {
    pub(crate) fn new(name: LaneName, birth: u32, lane_config: &mut LaneConfig) -> LiveLane {
        let class = lane_config.class_of(&name);
        let (slots, is_rated) = hot_settings(&lane_config.class(class).settings);
        LiveLane {
            class,
            slots,
            running: 0,
            waiting: 0,
            reserved: None,
            birth,
            quiet: LiveLane::LOUD,
            touched_in: 0,
            gate: Gate::OPEN,
            is_rated,
            width: width(&name, lane_config),
            open: true,
            passable: true,
            under_pressure: false,
            mark: Mark::Used,
            warned: false,
            critical: false,
            drained: false,
            run_time: RunTime::default(),
            last_change: Timestamp::default(),
            waiting_list: None,
            bucket: Bucket::default(),
            retrying: 0,
            routes: 0,
            listed: 0,
            is_gone: false,
            name,
        }
    }

    /// Forgets everything about it but its name.
    pub(super) fn forget(&mut self) {
        self.is_gone = true;
        self.touched_in = 0;
        self.run_time = RunTime::default();
        self.waiting_list = None;
        self.last_change = Timestamp::default();
        self.bucket = Bucket::default();
    }

    /// It is in use again, as if it were new.
    pub(crate) fn revive(&mut self, birth: u32) {
        self.is_gone = false;
        self.birth = birth;
    }

    /// Tasks take a route through it that none took. `births` counts lanes that are new, or as if they were.
    #[inline]
    pub(super) fn join(&mut self, births: &mut u32) {
        self.routes += 1;
        if self.is_gone {
            self.revive(*births);
            *births = births.wrapping_add(1);
        }
    }

    /// A route through it has lost its last task. `is_new`: the route joins the list of those that are kept for a while.
    #[inline]
    pub(super) fn leave(&mut self, is_new: bool) {
        self.routes -= 1;
        self.listed += u32::from(is_new);
    }

    /// Whether there is nothing to remember of it.
    #[inline]
    pub(crate) fn is_idle(&self, now: Timestamp) -> bool {
        self.routes == 0 && !self.is_remarkable() && self.bucket.is_full(now)
    }

    /// What is wrong with it when more run than may.
    #[cold]
    pub(crate) fn overrun(&self) -> String {
        format!("{} runs {} of {}", self.name, self.running, self.slots)
    }

    /// Takes over what the book says now.
    pub(super) fn reclassify(&mut self, lane_config: &mut LaneConfig) {
        self.class = lane_config.class_of(&self.name);
        (self.slots, self.is_rated) = hot_settings(&lane_config.class(self.class).settings);
        self.width = width(&self.name, lane_config);
        self.quiet = LiveLane::LOUD;
    }

    /// Whether it is a lane of one session, without a look at its name.
    pub(crate) fn is_session_family(&self) -> bool {
        self.width == SESSION_WIDTH
    }

    /// Whether the number of waiting tasks leaves nothing to report.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet.0 <= self.waiting && self.waiting < self.quiet.1
    }

    /// The numbers of waiting tasks that cross no threshold and exceed no bound. Every step checks a draining lane.
    pub(crate) fn quiet_within(&self, settings: &Settings) -> (u32, u32) {
        let mut quiet = (0, settings.max_queued.saturating_add(1));
        let thresholds = [
            (self.under_pressure, settings.pressure_threshold, 1),
            (self.warned, settings.alert_warning, settings.alert_warning),
            (self.critical, settings.alert_critical, settings.alert_critical),
        ];
        for (was_told, from, over_below) in thresholds {
            if was_told { quiet.0 = quiet.0.max(over_below) } else { quiet.1 = quiet.1.min(from) }
        }
        if self.gate.draining { LiveLane::LOUD } else { quiet }
    }

    /// Closes or opens it in the ready tree after slots were taken or given back, and returns whether it opened. Its
    /// gate and its rate are unchanged.
    #[inline]
    pub(crate) fn reopen(&mut self, index: LaneIdx, ready: &mut ReadyTree) -> bool {
        let kept = u32::from(self.reserved.is_some());
        let open = self.passable && self.running + kept < self.slots;
        if open == self.open {
            return false;
        }
        self.open = open;
        ready.set_closed(LaneNeed::Slot(index), !open);
        open
    }

    /// Every step checks the lane, because its range is unknown or out of date.
    pub(crate) const LOUD: (u32, u32) = (0, 0);

    /// Whether it has reports or a gate that must be remembered.
    pub(super) fn is_remarkable(&self) -> bool {
        // `|` instead of `||` saves branches.
        self.under_pressure | self.warned | self.critical | self.gate.paused | self.gate.draining
    }
}

/// The settings that a lane keeps at hand: its slots, and whether it has a rate limit.
fn hot_settings(settings: &Settings) -> (u32, bool) {
    (settings.max_concurrency.unwrap_or(u32::MAX), settings.rate_limit.is_some())
}

fn width(name: &LaneName, lane_config: &LaneConfig) -> u8 {
    match name.as_str() {
        "global" => 0,
        _ if name.is_session_family() => SESSION_WIDTH,
        "main" | "subagent" | "cron" | "external" => 1,
        _ if lane_config.is_declared(name) => 1,
        _ if lane_config.has_block(name) => 2,
        _ => 3,
    }
}
