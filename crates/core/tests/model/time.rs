//! What time changes in the naive scheduler, found by a scan of all tasks.

use laneway_core::{AlertLevel, End, Event, LEVEL_MAX, LaneName, Millis, StopReason, Timestamp};

use crate::naive::{NEVER, Naive, Phase, ReportedDepth, Task};

impl Naive {
    /// Lets the time pass up to now, then starts what may run.
    pub(crate) fn expire(&mut self) {
        let now = self.now;
        self.keys.retain(|key| key.until > now || key.until_end);
        let first_due = |this: &Naive| {
            let due = this.tasks.iter().map(|task| (this.due(task), task.arrival, task.id));
            due.filter(|(at, ..)| *at <= now).min()
        };
        while let Some((_, _, task)) = first_due(self) {
            self.come_due(task);
        }
        let first_look = |this: &Naive| {
            let in_line = this.tasks.iter().filter(|task| task.phase == Phase::InLine);
            in_line.map(|task| (task.look_at, task.arrival, task.id)).filter(|(at, ..)| *at <= now).min()
        };
        while let Some((_, _, task)) = first_look(self) {
            self.look(task);
        }
        // When a more urgent task joins the line, the waiting time of the others counts at once.
        let first_held_back = |this: &Naive| {
            let highest = this.highest_in_line();
            let waiting = this.tasks.iter().filter(|task| task.phase == Phase::InLine);
            let waiting = waiting.map(|task| (task.level(), task.arrival, task));
            let held_back =
                waiting.filter(|(level, _, task)| *level < highest && this.level_by_waiting(task) > *level);
            held_back.map(|(level, arrival, task)| (level, arrival, task.id)).min()
        };
        while let Some((_, _, task)) = first_held_back(self) {
            self.look(task);
        }
        self.grant();
    }

    fn highest_in_line(&self) -> u8 {
        let in_line = self.tasks.iter().filter(|task| task.phase == Phase::InLine);
        in_line.map(|task| task.priority + task.boosted).max().unwrap_or_default()
    }

    /// One level for each `after` that the task has waited.
    fn level_by_waiting(&self, task: &Task) -> u8 {
        let Some(ageing) = self.settings(task.home()).ageing else { return 0 };
        let turns = (self.now.since(task.since).0 / ageing.after.0).min(LEVEL_MAX.into()) as u8;
        (task.priority + task.boosted + turns).min(ageing.max)
    }

    /// When something must happen to a task.
    fn due(&self, task: &Task) -> Timestamp {
        let too_late = task.wait_until.min(task.deadline);
        match task.phase {
            Phase::Delayed(until) => until.min(too_late),
            Phase::Held => too_late,
            Phase::InLine => too_late.min(self.next_boost(task).map_or(NEVER, |(at, _)| at)),
            Phase::BackingOff(until) => until.min(task.deadline),
            Phase::Running => {
                let by_itself = task.lease_until.min(task.timeout_at);
                task.stopping.map_or(by_itself, |(_, until)| until)
            }
        }
    }

    fn come_due(&mut self, id: laneway_core::TaskId) {
        let index = self.find(id).expect("due");
        let (now, task) = (self.now, &self.tasks[index]);
        if task.phase == Phase::Running {
            if task.stopping.is_some() {
                self.finish_stop(id);
            } else if task.timeout_at <= task.lease_until {
                self.stop(id, StopReason::Timeout);
            } else {
                self.lapse(id);
            }
        } else if task.deadline <= now && task.deadline <= task.wait_until {
            self.end(id, End::Expired);
        } else if task.wait_until <= now {
            self.end(id, End::WaitTimeout);
        } else if task.phase == Phase::InLine {
            let (_, levels) = self.next_boost(task).expect("nothing else was due");
            self.tasks[index].boosted = levels;
            self.emit(Event::Boosted { task: id, levels });
            self.plan_look(index);
        } else {
            self.ready(id);
        }
    }

    /// The moment at which a share of the time to the deadline is left, and what is added then.
    fn next_boost(&self, task: &Task) -> Option<(Timestamp, u8)> {
        let boost = self.settings(task.home()).boost?;
        let by = if task.deadline < NEVER { task.deadline } else { task.submitted + boost.deadline? };
        let (left, levels) = boost.strategy.steps().into_iter().find(|(_, levels)| *levels > task.boosted)?;
        let left = by.since(task.submitted).0 * left / 100;
        Some((Timestamp(by.0 - left), levels))
    }

    /// Emits a notice after `notice_after`, and raises the task at most to the highest level that waits.
    fn look(&mut self, id: laneway_core::TaskId) {
        let index = self.find(id).expect("looked at");
        let settings = self.home_settings(index);
        let waited = self.now.since(self.tasks[index].since);
        if !self.tasks[index].noticed && settings.notice_after.is_some_and(|after| after <= waited) {
            let ahead = self.ahead(index);
            self.tasks[index].noticed = true;
            self.emit(Event::Noticed { task: id, waited, ahead });
        }
        let level = self.level_by_waiting(&self.tasks[index]).min(self.highest_in_line());
        let task = &self.tasks[index];
        let levels = level.saturating_sub(task.priority + task.boosted);
        if levels > self.tasks[index].aged {
            self.tasks[index].aged = levels;
            self.emit(Event::Aged { task: id, levels });
        }
        self.plan_look(index);
    }

    /// How many tasks of the same home lane stand before it, by level and arrival.
    fn ahead(&self, index: usize) -> u32 {
        let place = |task: &Task| (u8::MAX - task.level(), task.arrival);
        let this = &self.tasks[index];
        let before = |task: &&Task| {
            task.phase == Phase::InLine && task.home() == this.home() && place(task) < place(this)
        };
        self.tasks.iter().filter(before).count() as u32
    }

    /// The next look at a waiting task: at its notice, and whenever it has waited for another `after`.
    pub(crate) fn plan_look(&mut self, index: usize) {
        let (settings, now) = (self.home_settings(index), self.now);
        let task = &mut self.tasks[index];
        let notice = settings.notice_after.filter(|_| !task.noticed).map(|after| task.since + after);
        let ageing = settings.ageing.filter(|ageing| task.level() < ageing.max);
        let ageing = ageing.map(|ageing| {
            let turns = now.since(task.since).0 / ageing.after.0;
            task.since + Millis(ageing.after.0 * (turns + 1))
        });
        task.look_at = notice.into_iter().chain(ageing).min().unwrap_or(NEVER);
    }

    /// Reports the depth of each lane at the end of a step.
    pub(crate) fn settle(&mut self) {
        let named = self.tasks.iter().flat_map(|task| task.lanes.clone());
        let gated = self.gates.iter().map(|(lane, _)| lane.clone());
        let mut lanes: Vec<LaneName> = named.chain(gated).collect();
        lanes.extend(self.reported.iter().map(|(lane, _)| lane.clone()));
        lanes.sort();
        lanes.dedup();
        for lane in lanes {
            self.report_depth(&lane);
        }
    }

    fn report_depth(&mut self, lane: &LaneName) {
        let settings = self.settings(lane);
        let waiting = self.waiting_in(lane);
        let old = self
            .reported
            .iter()
            .find(|(other, _)| other == lane)
            .map(|(_, reported)| reported.clone())
            .unwrap_or_default();
        let mut new = old.clone();
        if waiting >= settings.pressure_threshold && !old.pressure {
            new.pressure = true;
            self.emit(Event::Pressure { lane: lane.clone(), waiting });
        }
        if waiting == 0 && old.pressure {
            new.pressure = false;
            self.emit(Event::Idle { lane: lane.clone() });
        }
        let levels = [
            (AlertLevel::Warning, settings.alert_warning, &mut new.warning),
            (AlertLevel::Critical, settings.alert_critical, &mut new.critical),
        ];
        for (level, threshold, was_reported) in levels {
            if waiting >= threshold && !*was_reported {
                self.events.push(Event::Alert { lane: lane.clone(), level, waiting });
            } else if waiting < threshold && *was_reported {
                self.events.push(Event::AlertOver { lane: lane.clone(), level });
            }
            *was_reported = waiting >= threshold;
        }
        let is_empty = self.tasks.iter().all(|task| !task.lanes.contains(lane));
        let is_draining = self.gate(lane).draining;
        if is_draining && is_empty && !old.drained {
            new.drained = true;
            self.emit(Event::Drained { lane: lane.clone() });
        }
        self.remember(lane, new);
    }

    fn remember(&mut self, lane: &LaneName, reported: ReportedDepth) {
        self.reported.retain(|(other, _)| other != lane);
        self.reported.push((lane.clone(), reported));
    }
}
