//! The one reader of the engine's updates: from what was decided to what watchers hear.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::{End, Event, Handler, TaskId, TaskStatus};
use laneway_engine::{Handle, Standing, Update, Updates};
use laneway_protocol::EventName;
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};

use crate::events::board::{Board, Note};
use crate::events::client_event::Happening;
use crate::events::hub::{Bus, Wishes};
use crate::schedules::notes;
use crate::telemetry::otlp::Traces;

/// A place in line is told at most so often.
const PLACES_EVERY: Duration = Duration::from_secs(1);
/// The most updates that are looked at together.
const TOGETHER_MAX: usize = 256;
/// While nobody listens, what happened is looked at so often, and together: a reader that is woken by each request takes
/// the processor from those who answer them.
const UNHEARD_EVERY: Duration = Duration::from_millis(5);

/// The one reader.
pub(crate) struct Reader {
    pub(crate) handle: Handle,
    pub(crate) updates: Updates,
    pub(crate) bus: Bus,
    pub(crate) wishes: Wishes,
    pub(crate) traces: Traces,
    pub(crate) reconfigured: Arc<Notify>,
    pub(crate) rescheduled: Arc<Notify>,
}

impl Reader {
    /// Remembers what is live already, then passes on what happens until the engine ends.
    pub(crate) async fn run(mut self) {
        recall(&self.handle, &self.bus).await;
        let mut ticks = tokio::time::interval(PLACES_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut batch = Vec::with_capacity(TOGETHER_MAX);
        loop {
            self.handle.overhear(self.bus.with(|board| board.hears_others()));
            tokio::select! {
                biased;
                Some(done) = self.wishes.behind.recv() => self.catch_up(&mut batch, done).await,
                () = self.wishes.heard.notified() => {}
                update = self.updates.next() => {
                    let Some(update) = update else { break };
                    batch.push(update);
                    self.updates.take_ready(&mut batch, TOGETHER_MAX - 1);
                    self.pass_on(&mut batch).await;
                }
                _ = ticks.tick() => {
                    let waiting = self.bus.with(Board::watched_in_line);
                    tell_places(&self.handle, &self.bus, waiting, EventName::Position).await;
                }
            }
            if !self.traces.is_on() && self.bus.with(|board| board.is_unwatched()) {
                tokio::select! {
                    () = tokio::time::sleep(UNHEARD_EVERY) => {}
                    () = self.wishes.heard.notified() => {}
                    Some(done) = self.wishes.behind.recv() => self.catch_up(&mut batch, done).await,
                }
            }
        }
        self.bus.with(Board::close);
    }

    /// Passes on all that there is, and says so.
    async fn catch_up(&mut self, batch: &mut Vec<Update>, done: oneshot::Sender<()>) {
        loop {
            self.updates.take_ready(batch, TOGETHER_MAX);
            let is_all = batch.len() < TOGETHER_MAX;
            self.pass_on(batch).await;
            if is_all {
                break;
            }
        }
        // Whoever does not listen any more need not be told.
        let _gone = done.send(());
    }

    async fn pass_on(&self, batch: &mut Vec<Update>) {
        let mut new = Vec::new();
        self.bus.with(|board| {
            for update in batch.drain(..) {
                tell_if_configured(&update, &self.reconfigured, &self.rescheduled);
                pass_on(board, &self.traces, update, &mut new);
            }
        });
        tell_places(&self.handle, &self.bus, new, EventName::Queued).await;
    }
}

/// As many tasks are named in one line of the log.
const NAMED_MAX: usize = 20;

/// Whoever compares settings, or waits for what is due, looks again. Updates that were missed may have been of that sort.
fn tell_if_configured(update: &Update, reconfigured: &Notify, rescheduled: &Notify) {
    let (is_configured, is_scheduled) = match update {
        Update::Event { event, .. } => {
            let is_setting = matches!(**event, Event::Configured { .. } | Event::MessagesConfigured { .. });
            (is_setting, notes::changes_schedules(event))
        }
        Update::Missed(_) | Update::SetBack { .. } => (true, true),
        _ => (false, false),
    };
    if is_configured {
        reconfigured.notify_one();
    }
    if is_scheduled {
        rescheduled.notify_one();
    }
}

/// What was accepted before this server started.
async fn recall(handle: &Handle, bus: &Bus) {
    let tasks = handle.tasks().await.unwrap_or_default();
    let mut groups = HashMap::new();
    for task in tasks {
        if let Some(group) = &task.group {
            *groups.entry(group.clone()).or_insert(0) += 1;
        }
        let note = Note {
            lanes: task.lanes.into(),
            is_external: task.handler == Handler::External,
            group: task.group,
            attempt: task.attempts,
        };
        bus.with(|board| board.note(task.id, note));
    }
    for (group, _live) in groups {
        if let Ok(view) = crate::http::routes::groups::count(handle, &group).await {
            bus.groups(|groups| groups.set(group, view));
        }
    }
}

fn pass_on(board: &mut Board, traces: &Traces, update: Update, new: &mut Vec<TaskId>) {
    if let Update::Missed(count) = update {
        return board.missed(count);
    }
    match &update {
        Update::StoreAway { reason } => {
            tracing::warn!(%reason, "the store cannot be used: nothing is granted, and who asks is told STORE_UNAVAILABLE");
        }
        Update::StoreBack => tracing::info!("the store can be used again"),
        _ => {}
    }
    if let Update::SetBack { known, found, lost, put_back, recounted } = &update {
        let some = |tasks: &[TaskId]| {
            tasks.iter().take(NAMED_MAX).map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        tracing::error!(
            known = known.0,
            found = found.0,
            gone = lost.len(),
            gone_ids = some(lost),
            put_back = put_back.len(),
            put_back_ids = some(put_back),
            recounted = recounted.len(),
            recounted_ids = some(recounted),
            "the store has lost its last writes, or was restored from a backup: what this server accepted lately it asks for again, \
             what it knows the end of it tells once more, the rest is gone unless another server puts it back"
        );
    }
    let event = match &update {
        Update::Event { event, at } => Some((Arc::clone(event), *at)),
        _ => None,
    };
    if let Some((event, _)) = &event {
        before(board, event, new);
    }
    let is_told = board.is_worth_telling();
    if is_told && let Some(mut happening) = Happening::of(update) {
        if happening.name == EventName::Retrying {
            happening.attempt = happening.task.and_then(|task| board.attempt(task));
        }
        board.publish(happening);
    }
    if let Some((event, at)) = event {
        after(board, &event, at, is_told);
        if let Event::Ended { task, .. } = &*event {
            traces.ended(*task);
        }
    }
}

/// What must be known before an event is told.
fn before(board: &mut Board, event: &Event, new: &mut Vec<TaskId>) {
    match event {
        Event::Submitted { task, spec, handler, .. } => {
            let lanes = match &spec.lanes[..] {
                [] => board.shared_lanes(&[laneway_core::LaneName::main()]),
                lanes => board.shared_lanes(lanes),
            };
            let is_external = *handler == Handler::External;
            board.note(*task, Note { lanes, is_external, group: spec.group.clone(), attempt: 0 });
            if board.is_watched(*task) {
                new.push(*task);
            }
        }
        Event::Ready { task } | Event::Retrying { task, .. } | Event::Redelivered { task, .. }
            if board.is_watched(*task) =>
        {
            new.push(*task);
        }
        Event::Granted { task, attempt, .. } => board.begun(*task, *attempt),
        _ => {}
    }
}

/// What follows an event for watchers.
fn after(board: &mut Board, event: &Arc<Event>, at: laneway_core::Timestamp, is_told: bool) {
    match &**event {
        Event::Submitted { task, spec, handler, .. } => {
            if is_told && *handler != Handler::Internal {
                board.publish(Happening::pending(*task, Arc::clone(event)).at(at));
            }
            if let Some(group) = &spec.group {
                let view = board.groups.accepted(group);
                tell_group(board, group, view, at, is_told);
            }
        }
        Event::Ended { task, end } => {
            let note = board.forget(*task);
            if is_told {
                tell_end(board, *task, end, note.as_ref(), at);
            }
            if let Some(group) = note.and_then(|note| note.group) {
                let view = board.groups.ended(&group, *end == End::Completed);
                tell_group(board, &group, view, at, is_told);
            }
        }
        Event::Noted { .. } if is_told => {
            notes::fired(event).for_each(|fired| board.publish(fired.at(at)));
        }
        _ => {}
    }
}

fn tell_end(board: &mut Board, task: TaskId, end: &End, note: Option<&Note>, at: laneway_core::Timestamp) {
    if note.is_some_and(|note| note.is_external) {
        let data = json!({ "success": *end == End::Completed });
        board.publish(Happening::made(EventName::ExternalTaskCompleted, Some(task), data).at(at));
    }
    let done = Happening::made(EventName::Done, Some(task), json!({})).at(at);
    board.publish(match note {
        Some(note) => done.in_lanes(Arc::clone(&note.lanes)),
        None => done,
    });
}

fn tell_group(
    board: &mut Board,
    group: &laneway_core::Name,
    view: laneway_protocol::GroupView,
    at: laneway_core::Timestamp,
    is_told: bool,
) {
    if !is_told {
        return;
    }
    let data = json!({
        "group": group.as_str(), "done": view.done, "total": view.total, "failed": view.failed,
    });
    board.publish(Happening::made(EventName::Group, None, data).at(at));
}

/// Tells those that wait where they stand, with one look at the state for all of them.
async fn tell_places(handle: &Handle, bus: &Bus, tasks: Vec<TaskId>, name: EventName) {
    if tasks.is_empty() {
        return;
    }
    let look = move |lanes: &laneway_core::Scheduler| {
        let place = |task: TaskId| (task, Standing::of(lanes, task));
        tasks.into_iter().map(place).collect::<Vec<(TaskId, Standing)>>()
    };
    let Ok(places) = handle.read(look).await else { return };
    for (task, standing) in places {
        if standing.status != Some(TaskStatus::Queued) {
            continue;
        }
        bus.with(|board| {
            if board.place(task, standing.position) {
                board.publish(Happening::made(name, Some(task), place_data(&standing)));
            }
        });
    }
}

/// A place in line in words.
pub(crate) fn place_data(standing: &Standing) -> Value {
    json!({ "position": standing.position, "eta_ms": standing.starts_in.map(|length| length.0) })
}
