//! May this be accepted?

use std::sync::Arc;

use smallvec::SmallVec;

use crate::api::command::{Reply, ToolBatch, ToolLane};
use crate::api::event::Event;
use crate::api::ids::TaskId;
use crate::api::lane_settings::{Family, Handler, Settings, Source};
use crate::api::name::{GLOBAL, LaneName, MAIN};
use crate::api::rejection::{BadTask, LaneFull, Rejection};
use crate::api::task_spec::{CHAIN_DEPTH_MAX, LANES_PER_TASK_MAX, TaskSpec};
use crate::api::time::{Millis, Timestamp};
use crate::scheduler::Scheduler;
use crate::state::lane::LaneIdx;
use crate::state::routes::canonical;
use crate::state::task::{Attempt, TaskIdx};
use crate::step::Step;

/// The most calls in one tool batch.
pub const BATCH_CALLS_MAX: usize = 1000;
/// For how long an idempotency key is remembered: 24 hours.
pub const KEY_WINDOW: Millis = Millis::from_secs(24 * 3600);

/// A lane that a new task names, whether it exists or not.
struct Named<'a> {
    lane: Option<LaneIdx>,
    name: &'a LaneName,
}

impl Step<'_> {
    pub(crate) fn submit(&mut self, task: TaskId, spec: Box<TaskSpec>) -> Result<Reply, Rejection> {
        spec.check().map_err(Rejection::BadTask)?;
        if let Some(reply) = self.join_earlier(&spec)? {
            return Ok(reply);
        }
        let submitted = self.admit(task, self.within_budget(spec))?;
        self.begin_turns_before(&submitted);
        self.emit(submitted);
        Ok(Reply::Accepted { task, joined: false })
    }

    /// Answers a request that was made before under the same key.
    fn join_earlier(&mut self, spec: &TaskSpec) -> Result<Option<Reply>, Rejection> {
        let Some(asked) = &spec.idempotency else { return Ok(None) };
        let Some(known) = self.state.keys.get(&asked.key).copied() else { return Ok(None) };
        let live = self.state.tasks.find(known.task);
        if live.is_some_and(|idx| self.state.tasks[idx].is_being_cancelled()) {
            // Its key is as good as free: nothing will come of it that the caller could wait for.
            return Ok(None);
        }
        if known.fingerprint != asked.fingerprint {
            return Err(Rejection::KeyConflict { task: known.task });
        }
        if live.is_some() {
            self.emit(Event::Joined { task: known.task });
        }
        Ok(Some(Reply::Accepted { task: known.task, joined: true }))
    }

    pub(super) fn submit_batch(&mut self, batch: ToolBatch) -> Result<Reply, Rejection> {
        if !(1..=BATCH_CALLS_MAX).contains(&batch.calls.len()) {
            return Err(Rejection::BadTask(BadTask::BatchSize));
        }
        let mut seen: Vec<TaskId> = batch.calls.iter().map(|call| call.task).collect();
        seen.sort_unstable();
        if let Some(twice) = seen.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Rejection::IdTaken { task: twice[0] });
        }
        let mut specs = Vec::with_capacity(batch.calls.len());
        let mut before = None;
        for call in &batch.calls {
            let lane = LaneName::tool(&batch.session, call.lane);
            let lane = lane.map_err(|error| Rejection::BadTask(BadTask::Session(error)))?;
            let lanes = std::iter::once(lane).chain(batch.asker.clone()).collect();
            let mut spec = TaskSpec::new(call.tool.clone(), lanes);
            spec.payload = call.payload;
            spec.source = Source::Agent;
            spec.parent = batch.parent;
            spec.group = batch.group.clone();
            spec.caller = batch.caller.clone();
            spec.trace = batch.trace.clone();
            // The first look is at each call alone; the order is added when all may be accepted.
            let event = self.admit(call.task, Box::new(spec))?;
            let after = if call.lane == ToolLane::Query { None } else { before.replace(call.task) };
            specs.push((event, after));
        }
        self.check_batch_room(&specs)?;
        for (mut event, after) in specs {
            if let Event::Submitted { spec, wait_until, .. } = &mut event {
                spec.after = after;
                *wait_until = wait_until.filter(|_| after.is_none());
            }
            self.emit(event);
        }
        Ok(Reply::Done)
    }
}

/// What an accepted task gets from its lanes and its parent.
struct Admission {
    priority: u8,
    handler: Handler,
    wait_timeout: Option<Millis>,
    deadline: Option<Timestamp>,
}

impl Scheduler {
    /// Adds the lane of its parent's children to the turn or task of an agent, if a block such as `children:*` sets a limit.
    fn within_budget(&self, mut spec: Box<TaskSpec>) -> Box<TaskSpec> {
        let Some(parent) = spec.parent else { return spec };
        let home = spec.lanes.first().map(Family::of);
        let budget = LaneName::children(parent.task);
        let is_bounded =
            matches!(home, Some(Family::Agent | Family::Task)) && self.state.lane_config.has_block(&budget);
        if is_bounded && spec.lanes.len() < LANES_PER_TASK_MAX && !spec.lanes.contains(&budget) {
            spec.lanes.push(budget);
        }
        spec
    }

    /// Why a submission finds no room at `now`. `None`: it finds room, is refused for another reason, or only a step can tell.
    pub fn lane_full_for(&self, now: Timestamp, task: TaskId, spec: &TaskSpec) -> Option<Rejection> {
        let is_due = self.next_wakeup().is_some_and(|at| at <= now);
        let is_known =
            spec.idempotency.as_ref().is_some_and(|asked| self.state.keys.contains_key(&asked.key));
        if is_due || is_known || spec.check().is_err() {
            return None;
        }
        self.check_admission(task, spec).err().filter(|why| matches!(why, Rejection::LaneFull(_)))
    }

    /// The priority of work from a source, where neither the task nor its home lane says one.
    pub fn source_priority(&self, source: Source) -> u8 {
        let priorities = match self.state.lanes.find(&GLOBAL) {
            Some(global) => self.settings(global).priorities,
            None => self.state.lane_config.settings(&GLOBAL).priorities,
        };
        priorities.unwrap_or_default().of(source)
    }

    /// Checks everything and says what the acceptance would be.
    fn admit(&self, task: TaskId, spec: Box<TaskSpec>) -> Result<Event, Rejection> {
        let Admission { priority, handler, wait_timeout, deadline } = self.check_admission(task, &spec)?;
        // A delayed task does not wait yet. When a task behind another one starts to wait is unknown.
        let waits_from = self.state.now + spec.run_after.unwrap_or_default();
        let wait_until = wait_timeout.filter(|_| spec.after.is_none()).map(|length| waits_from + length);
        Ok(Event::Submitted { task, spec, priority, handler, wait_until, deadline })
    }

    fn check_admission(&self, task: TaskId, spec: &TaskSpec) -> Result<Admission, Rejection> {
        if self.state.tasks.find(task).is_some() || self.state.dead_letters.get(task).is_some() {
            return Err(Rejection::IdTaken { task });
        }
        if let Some(after) = spec.after
            && self.state.tasks.find(after).is_none()
        {
            return Err(Rejection::BadTask(BadTask::After));
        }
        self.check_chain(spec)?;
        let deadline = self.deadline_of(spec)?;
        let (priority, handler, wait_timeout) = match self.plainly_admitted(spec, deadline) {
            Some(admitted) => admitted,
            None => self.check_lanes(spec, deadline)?,
        };
        Ok(Admission { priority, handler, wait_timeout, deadline })
    }

    /// Whether the lanes of a turn would take it now.
    pub(crate) fn ask_room(&self, spec: &TaskSpec) -> Result<(), Rejection> {
        let named = self.lanes_by_name(&spec.lanes);
        let handler = self.ask(&named[0], |home| home.handler);
        self.check_gates(spec, &named)?;
        if self.must_wait(spec, &named, handler) { self.check_room(spec, &named) } else { Ok(()) }
    }

    /// The acceptance of a turn whose messages were accepted before: it is not refused, and it may wait.
    pub(crate) fn accept_unasked(&self, task: TaskId, spec: Box<TaskSpec>) -> Event {
        let (priority, handler) = {
            let named = self.named_lanes(&spec.lanes);
            self.ask(&named[0], |home| (home.priority_of(spec.source), home.handler))
        };
        let priority = spec.priority.or(priority).unwrap_or_else(|| self.source_priority(spec.source));
        Event::Submitted { task, spec, priority, handler, wait_until: None, deadline: None }
    }

    /// A fast path for most tasks, with the result of [`check_lanes`](Scheduler::check_lanes). It takes tasks without a
    /// parent or deadline whose lanes are known, do not drain, and have room.
    fn plainly_admitted(
        &self,
        spec: &TaskSpec,
        deadline: Option<Timestamp>,
    ) -> Option<(u8, Handler, Option<Millis>)> {
        if spec.parent.is_some() || deadline.is_some() {
            return None;
        }
        let route = self.state.lanes.route(self.state.lanes.find_route(&spec.lanes)?);
        let has_room = |lane: &LaneIdx| {
            let lane = &self.state.lanes[*lane];
            !lane.gate.draining && lane.waiting < self.state.lane_config.class(lane.class).settings.max_queued
        };
        let home = self.settings(route.first_lane());
        let wait_timeout = spec.wait_timeout.or(home.wait_timeout);
        if wait_timeout == Some(Millis(0)) || !route.lanes.iter().all(has_room) {
            return None;
        }
        let priority = spec.priority.or_else(|| home.priority_of(spec.source));
        let priority = priority.unwrap_or_else(|| self.source_priority(spec.source));
        Some((priority, home.handler, wait_timeout))
    }

    /// Whether the lanes take the task; if so, what its home lane gives it.
    fn check_lanes(
        &self,
        spec: &TaskSpec,
        deadline: Option<Timestamp>,
    ) -> Result<(u8, Handler, Option<Millis>), Rejection> {
        let named = self.named_lanes(&spec.lanes);
        let (priority, handler, wait_timeout) =
            self.ask(&named[0], |home| (home.priority_of(spec.source), home.handler, home.wait_timeout));
        let priority = spec.priority.or(priority).unwrap_or_else(|| self.source_priority(spec.source));
        self.check_gates(spec, &named)?;
        if self.must_wait(spec, &named, handler) {
            self.check_room(spec, &named)?;
            self.check_deadline(spec, &named, deadline, priority)?;
            self.check_deadlock(spec, named.iter().filter_map(|named| named.lane))?;
        }
        // Who may not wait and need not starts now: there is nothing to time.
        let wait_timeout = spec.wait_timeout.or(wait_timeout).filter(|length| *length > Millis(0));
        Ok((priority, handler, wait_timeout))
    }

    /// The lanes that a task names, `global` last.
    fn named_lanes<'a>(&'a self, names: &'a [LaneName]) -> SmallVec<[Named<'a>; 8]> {
        if let Some(route) = self.state.lanes.find_route(names) {
            let lanes = self.state.lanes.route(route).lanes.iter();
            let named = |lane: &LaneIdx| {
                let this = &self.state.lanes[*lane];
                Named { lane: (!this.is_gone).then_some(*lane), name: &this.name }
            };
            return lanes.map(named).collect();
        }
        self.lanes_by_name(names)
    }

    fn lanes_by_name<'a>(&'a self, names: &'a [LaneName]) -> SmallVec<[Named<'a>; 8]> {
        let mut named: SmallVec<[Named<'_>; 8]> = SmallVec::new();
        let names = if names.is_empty() { std::slice::from_ref(&*MAIN) } else { names };
        let names = canonical(names);
        let global = Some(&*GLOBAL).filter(|global| names[0] != *global);
        for name in names.into_iter().chain(global) {
            named.push(Named { lane: self.state.lanes.find(name), name });
        }
        named
    }

    /// Asks what holds for a lane, whether it exists or not.
    fn ask<T>(&self, named: &Named<'_>, question: impl FnOnce(&Settings) -> T) -> T {
        match named.lane {
            None => question(&self.state.lane_config.settings(named.name)),
            Some(lane) => question(self.settings(lane)),
        }
    }

    fn max_queued(&self, named: &Named<'_>) -> u32 {
        self.ask(named, |settings| settings.max_queued)
    }

    /// Checks that the parent runs, the chain is not too deep, and no task waits for its own session.
    fn check_chain(&self, spec: &TaskSpec) -> Result<(), Rejection> {
        let Some(parent) = spec.parent else { return Ok(()) };
        // A stopping task cannot wait for a new child, because no later stop would reach that child.
        let may_ask = |attempt: &Attempt| parent.detached || attempt.stopping.is_none();
        let running = self
            .state
            .tasks
            .find(parent.task)
            .filter(|idx| self.state.tasks[*idx].attempt().is_some_and(may_ask));
        let Some(idx) = running else {
            return Err(Rejection::ParentNotRunning { task: parent.task });
        };
        if parent.detached {
            return Ok(());
        }
        if self.state.tasks[idx].depth() >= CHAIN_DEPTH_MAX {
            return Err(Rejection::ChainTooDeep);
        }
        for ancestor in self.ancestors(Some(idx)) {
            for lane in &*self.state.lanes.route(self.state.tasks[ancestor].route).lanes {
                let name = &self.state.lanes[*lane].name;
                if name.is_session() && spec.lanes.contains(name) {
                    return Err(self.would_deadlock(*lane, ancestor));
                }
            }
        }
        Ok(())
    }

    /// The deadline, its parents' counted in.
    fn deadline_of(&self, spec: &TaskSpec) -> Result<Option<Timestamp>, Rejection> {
        let own = spec.deadline.map(|length| self.state.now + length);
        let parent = spec.parent.filter(|parent| !parent.detached);
        let parent = parent.and_then(|parent| self.state.tasks.find(parent.task));
        let inherited =
            parent.map(|task| self.state.tasks[task].deadline()).filter(|at| *at < Timestamp::NEVER);
        let deadline = [own, inherited].into_iter().flatten().min();
        let starts_in = spec.run_after.unwrap_or_default();
        match deadline {
            Some(at) if at <= self.state.now + starts_in => {
                Err(Rejection::DeadlineUnmeetable { starts_in, deadline: at.since(self.state.now) })
            }
            _ => Ok(deadline),
        }
    }

    fn must_wait(&self, spec: &TaskSpec, named: &[Named<'_>], handler: Handler) -> bool {
        let delayed = spec.run_after.is_some_and(|length| length > Millis(0)) || spec.after.is_some();
        delayed
            || handler == Handler::External
            || self.first_closed(spec, named).is_some()
            || self.session_before(&spec.lanes).is_some()
    }

    /// The lanes that have no slot for the new task, neither a free one nor one that a parent lends.
    fn closed<'a>(
        &self,
        spec: &TaskSpec,
        named: &'a [Named<'a>],
    ) -> impl Iterator<Item = &'a Named<'a>> + use<'a, '_> {
        let parent = spec.parent.filter(|parent| !parent.detached);
        let parent = parent.and_then(|parent| self.state.tasks.find(parent.task));
        named.iter().filter(move |named| {
            named.lane.is_some_and(|lane| !self.state.lanes[lane].open && !self.can_borrow(parent, lane))
        })
    }

    fn first_closed<'a>(&self, spec: &TaskSpec, named: &'a [Named<'a>]) -> Option<&'a Named<'a>> {
        self.closed(spec, named).next()
    }

    /// No lane is draining; what belongs to running work is no new work.
    fn check_gates(&self, spec: &TaskSpec, named: &[Named<'_>]) -> Result<(), Rejection> {
        let belongs_to_running_work = spec.parent.is_some_and(|parent| !parent.detached);
        let is_draining = |lane: &LaneIdx| self.state.lanes[*lane].gate.draining;
        let draining = named.iter().filter_map(|named| named.lane).find(is_draining);
        match draining.filter(|_| !belongs_to_running_work) {
            Some(lane) => {
                let name = self.state.lanes[lane].name.clone();
                Err(Rejection::LaneDraining { lane: name, label: self.label_of(lane) })
            }
            None => Ok(()),
        }
    }

    /// The task may wait, and each lane has room for it in its line.
    fn check_room(&self, spec: &TaskSpec, named: &[Named<'_>]) -> Result<(), Rejection> {
        let wait_timeout = spec.wait_timeout.or(self.ask(&named[0], |home| home.wait_timeout));
        let closed: SmallVec<[&Named<'_>; 8]> = self.closed(spec, named).collect();
        if wait_timeout == Some(Millis(0)) {
            let busy = closed.first().copied();
            let Some(refused) = busy.or(named.first()) else { return Ok(()) };
            return Err(self.lane_full(refused, busy.is_some(), None));
        }
        let is_full = |named: &&&Named<'_>| self.waiting_in(named.lane) >= self.max_queued(named);
        let all: SmallVec<[&Named<'_>; 8]> = named.iter().collect();
        // A lane without a free slot and without room says more than one without room alone.
        let Some(full) = closed.iter().find(is_full).or_else(|| all.iter().find(is_full)) else {
            return Ok(());
        };
        let is_closed = closed.iter().any(|closed| closed.name == full.name);
        let blocked_by = closed.first().filter(|_| !is_closed).map(|closed| closed.name.clone());
        Err(self.lane_full(full, false, blocked_by))
    }

    fn waiting_in(&self, lane: Option<LaneIdx>) -> u32 {
        lane.map_or(0, |lane| self.state.lanes[lane].waiting)
    }

    fn lane_full(&self, named: &Named<'_>, is_busy: bool, blocked_by: Option<LaneName>) -> Rejection {
        let running = named.lane.map_or(0, |lane| self.state.lanes[lane].running);
        let (retry_after, every) = self.return_of_refused(named.lane);
        Rejection::LaneFull(Box::new(LaneFull {
            lane: named.name.clone(),
            running,
            max_concurrency: self.ask(named, |settings| settings.max_concurrency),
            waiting: self.waiting_in(named.lane),
            max_queued: self.max_queued(named),
            is_busy,
            blocked_by,
            current: named.lane.and_then(|lane| self.longest_running_in(lane)),
            retry_after,
            every,
            label: named.lane.map(|lane| self.label_of(lane)),
        }))
    }

    /// Refuses a task that would wait for a slot of this lane, which `holder` keeps until the task has ended.
    pub(crate) fn would_deadlock(&self, lane: LaneIdx, holder: TaskIdx) -> Rejection {
        let (name, holder) = (self.state.lanes[lane].name.clone(), self.state.tasks[holder].id);
        Rejection::WouldDeadlock { lane: name, label: self.label_of(lane), holder }
    }

    /// The label under which metrics count a lane.
    fn label_of(&self, lane: LaneIdx) -> Arc<str> {
        Arc::clone(&self.state.lane_config.class(self.state.lanes[lane].class).label)
    }

    /// A task that will probably start only after its deadline is better refused now.
    fn check_deadline(
        &self,
        spec: &TaskSpec,
        named: &[Named<'_>],
        deadline: Option<Timestamp>,
        priority: u8,
    ) -> Result<(), Rejection> {
        let Some(deadline) = deadline.filter(|_| spec.run_after.is_none()) else { return Ok(()) };
        let home = named[0].lane;
        let ahead = |lane: LaneIdx| {
            if Some(lane) == home {
                self.ahead_of_newcomer(lane, priority)
            } else {
                self.share_ahead(self.state.lanes[lane].waiting, priority)
            }
        };
        let closed = self.closed(spec, named);
        // One lane that is known to be too late is enough, whatever is known of the others.
        match closed.filter_map(|closed| self.estimate(closed.lane?, ahead(closed.lane?))).max() {
            Some(starts_in) if self.state.now + starts_in > deadline => {
                Err(Rejection::DeadlineUnmeetable { starts_in, deadline: deadline.since(self.state.now) })
            }
            _ => Ok(()),
        }
    }

    /// Whether the calls of a batch that would have to wait fit into each lane's line together.
    fn check_batch_room(&self, specs: &[(Event, Option<TaskId>)]) -> Result<(), Rejection> {
        // Of each lane how many more calls could start, and how many would have to wait.
        let mut rooms: Vec<(Named<'_>, u32, u32)> = Vec::new();
        for (event, after) in specs {
            let Event::Submitted { spec, handler, .. } = event else { continue };
            let mut own: SmallVec<[usize; 2]> = SmallVec::new();
            for named in self.named_lanes(&spec.lanes) {
                let index = rooms.iter().position(|(other, ..)| other.name == named.name);
                own.push(index.unwrap_or(rooms.len()));
                if index.is_none() {
                    let startable = self.startable(&named, spec);
                    // Which of them get the slots of a lane that all need is not known yet: none, if not all do.
                    let is_shared = own.len() > 1 && (startable as usize) < specs.len();
                    rooms.push((named, if is_shared { 0 } else { startable }, 0));
                }
            }
            let may_start = after.is_none() && *handler != Handler::External;
            let starts = may_start && own.iter().all(|index| rooms[*index].1 > 0);
            for index in own {
                let (_, startable, waiting) = &mut rooms[index];
                if starts { *startable -= 1 } else { *waiting += 1 }
            }
        }
        let is_full = |(named, _, waiting): &&(Named<'_>, u32, u32)| {
            *waiting > 0 && self.waiting_in(named.lane) + waiting > self.max_queued(named)
        };
        rooms.iter().find(is_full).map_or(Ok(()), |(named, ..)| Err(self.lane_full(named, false, None)))
    }

    /// How many tasks like this one could start in a lane now, as far as that lane is concerned.
    fn startable(&self, named: &Named<'_>, spec: &TaskSpec) -> u32 {
        let (slots, rate) = self.ask(named, |settings| (settings.max_concurrency, settings.rate_limit));
        let slots = slots.unwrap_or(u32::MAX);
        let Some(idx) = named.lane else {
            return rate.map_or(slots, |rate| slots.min(rate.max));
        };
        let lane = &self.state.lanes[idx];
        if !lane.passable {
            return 0;
        }
        let parent = spec.parent.filter(|parent| !parent.detached);
        let parent = parent.and_then(|parent| self.state.tasks.find(parent.task));
        let lent = u32::from(self.can_borrow(parent, idx));
        let free = slots.saturating_sub(lane.running + u32::from(lane.reserved.is_some()));
        let by_rate = rate.map_or(u32::MAX, |rate| lane.bucket.tokens(self.state.now, rate));
        free.saturating_add(lent).min(by_rate)
    }
}
