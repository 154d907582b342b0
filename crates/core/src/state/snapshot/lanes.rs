//! Lanes as plain data.

use serde::{Deserialize, Serialize};

use crate::api::name::LaneName;
use crate::api::time::Timestamp;
use crate::scheduler::Scheduler;
use crate::state::lane::{Gate, LaneIdx};
use crate::state::stats::RunTime;
use crate::state::token_bucket::Bucket;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SavedLane {
    pub(super) name: LaneName,
    gate: Gate,
    drained: bool,
    bucket: Bucket,
    under_pressure: bool,
    warned: bool,
    critical: bool,
    run_time: RunTime,
    last_change: Timestamp,
}

impl Scheduler {
    pub(super) fn save_lane(&self, idx: LaneIdx) -> SavedLane {
        let lane = &self.state.lanes[idx];
        SavedLane {
            name: lane.name.clone(),
            gate: lane.gate,
            drained: lane.drained,
            bucket: lane.bucket,
            under_pressure: lane.under_pressure,
            warned: lane.warned,
            critical: lane.critical,
            run_time: lane.run_time,
            last_change: lane.last_change,
        }
    }

    pub(super) fn restore_lane(&mut self, saved: &SavedLane) {
        let number = self.state.lanes.lane(&saved.name, &mut self.state.lane_config);
        let lane = &mut self.state.lanes[number];
        lane.gate = saved.gate;
        lane.drained = saved.drained;
        lane.bucket = saved.bucket;
        lane.under_pressure = saved.under_pressure;
        lane.warned = saved.warned;
        lane.critical = saved.critical;
        lane.run_time = saved.run_time;
        lane.last_change = saved.last_change;
    }
}
