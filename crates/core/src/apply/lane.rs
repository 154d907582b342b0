//! Lanes: whether they can give a slot, and when nothing is left to remember of them.

use crate::api::time::Timestamp;
use crate::scheduler::Scheduler;
use crate::state::lane::LaneIdx;
use crate::state::ready_tree::node::LaneNeed;

impl Scheduler {
    /// Tells the line whether a lane can give a slot now, and the clock when to look again.
    pub(crate) fn refresh_lane(&mut self, lane: LaneIdx) {
        let ready_at = if self.state.lanes[lane].is_rated { self.rate_ready_at(lane) } else { Timestamp(0) };
        let this = &mut self.state.lanes[lane];
        let kept = u32::from(this.reserved.is_some());
        let passable = !this.gate.paused && ready_at <= self.state.now;
        let open = passable && this.running + kept < this.slots;
        let was = (this.passable, this.open);
        (this.passable, this.open) = (passable, open);
        if ready_at > self.state.now {
            self.indexes.timers.add_lane(ready_at, lane);
        }
        if was.0 != passable {
            self.indexes.may_grant |= passable;
            self.indexes.ready.set_closed(LaneNeed::Gate(lane), !passable);
        }
        if was.1 != open {
            self.indexes.may_grant |= open;
            self.indexes.ready.set_closed(LaneNeed::Slot(lane), !open);
        }
    }

    /// When the rate of a lane next lets a grant through.
    fn rate_ready_at(&self, lane: LaneIdx) -> Timestamp {
        let rate = self.settings(lane).rate_limit;
        rate.map_or(Timestamp(0), |rate| self.state.lanes[lane].bucket.ready_at(rate))
    }
}
