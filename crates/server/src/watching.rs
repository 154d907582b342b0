//! The one reader of the engine's updates: from what was decided to what watchers hear.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::{End, Event, Handler, TaskId, TaskStatus};
use laneway_engine::{Handle, Standing, Update, Updates};
use laneway_protocol::EventName;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::bus::{Bus, Note};
use crate::happening::Happening;
use crate::otlp::Traces;

/// A place in line is told at most so often.
const PLACES_EVERY: Duration = Duration::from_secs(1);
/// The most updates that are looked at together.
const TOGETHER_MAX: usize = 256;

/// Remembers what is live already, then passes on what happens until the engine ends.
pub(crate) async fn run(
    handle: Handle,
    mut updates: Updates,
    bus: Bus,
    traces: Traces,
    reconfigured: Arc<Notify>,
) {
    recall(&handle, &bus).await;
    let mut ticks = tokio::time::interval(PLACES_EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            update = updates.next() => {
                let Some(update) = update else { break };
                let mut new = Vec::new();
                tell_if_configured(&update, &reconfigured);
                pass_on(&bus, &traces, update, &mut new);
                for _ in 1..TOGETHER_MAX {
                    let Some(update) = updates.try_next() else { break };
                    tell_if_configured(&update, &reconfigured);
                    pass_on(&bus, &traces, update, &mut new);
                }
                tell_places(&handle, &bus, new, EventName::Queued).await;
            }
            _ = ticks.tick() => {
                let waiting = bus.watched_in_line();
                tell_places(&handle, &bus, waiting, EventName::Position).await;
            }
        }
    }
    bus.close();
}

/// As many tasks are named in one line of the log.
const NAMED_MAX: usize = 20;

/// Whoever compares settings looks again. Updates that were missed may have been of that sort.
fn tell_if_configured(update: &Update, reconfigured: &Notify) {
    let has_changed = match update {
        Update::Event { event, .. } => {
            matches!(**event, Event::Configured { .. } | Event::MessagesConfigured { .. })
        }
        Update::Missed(_) | Update::SetBack { .. } => true,
        _ => false,
    };
    if has_changed {
        reconfigured.notify_one();
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
        };
        bus.note(task.id, note);
    }
    for (group, _live) in groups {
        if let Ok(view) = crate::tasks_groups::count(handle, &group).await {
            bus.groups(|groups| groups.set(group, view));
        }
    }
}

fn pass_on(bus: &Bus, traces: &Traces, update: Update, new: &mut Vec<TaskId>) {
    if let Update::Missed(count) = update {
        return bus.missed(count);
    }
    if let Update::SetBack { known, found, lost, put_back } = &update {
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
            "the store has lost its last writes, or was restored from a backup: what this server accepted lately it asks for again, \
             the rest is gone unless another server puts it back"
        );
    }
    let event = match &update {
        Update::Event { event, at } => Some((Arc::clone(event), *at)),
        _ => None,
    };
    if let Some((event, _)) = &event {
        before(bus, event, new);
    }
    if let Some(happening) = Happening::of(update) {
        bus.publish(happening);
    }
    if let Some((event, at)) = event {
        after(bus, &event, at);
        if let Event::Ended { task, .. } = &*event {
            traces.ended(*task);
        }
    }
}

/// What must be known before an event is told.
fn before(bus: &Bus, event: &Event, new: &mut Vec<TaskId>) {
    match event {
        Event::Submitted { task, spec, handler, .. } => {
            let lanes = if spec.lanes.is_empty() {
                Arc::new([laneway_core::LaneName::main()]) as Arc<[_]>
            } else {
                spec.lanes.clone().into()
            };
            let is_external = *handler == Handler::External;
            bus.note(*task, Note { lanes, is_external, group: spec.group.clone() });
            if bus.is_watched(*task) {
                new.push(*task);
            }
        }
        Event::Ready { task } | Event::Retrying { task, .. } | Event::Redelivered { task, .. }
            if bus.is_watched(*task) =>
        {
            new.push(*task);
        }
        Event::Granted { task, .. } => bus.left_line(*task),
        _ => {}
    }
}

/// What follows an event for watchers.
fn after(bus: &Bus, event: &Event, at: laneway_core::Timestamp) {
    match event {
        Event::Submitted { task, spec, handler, .. } => {
            if *handler != Handler::Internal {
                let home = spec.lanes.first().map_or("main", |lane| lane.as_str());
                let data = json!({ "kind": spec.kind.as_str(), "lane": home });
                bus.publish(Happening::made(EventName::ExternalTaskPending, Some(*task), data).at(at));
            }
            if let Some(group) = &spec.group {
                let view = bus.groups(|groups| groups.accepted(group));
                tell_group(bus, group, view, at);
            }
        }
        Event::Ended { task, end } => {
            let done = Happening::made(EventName::Done, Some(*task), json!({})).at(at);
            let note = bus.forget(*task);
            let lanes = note.as_ref().map(|note| Arc::clone(&note.lanes));
            let done = match lanes {
                Some(lanes) => done.in_lanes(lanes),
                None => done,
            };
            if note.as_ref().is_some_and(|note| note.is_external) {
                let data = json!({ "success": *end == End::Completed });
                let told = Happening::made(EventName::ExternalTaskCompleted, Some(*task), data).at(at);
                bus.publish(told);
            }
            bus.publish(done);
            if let Some(group) = note.and_then(|note| note.group) {
                let view = bus.groups(|groups| groups.ended(&group, *end == End::Completed));
                tell_group(bus, &group, view, at);
            }
        }
        _ => {}
    }
}

fn tell_group(
    bus: &Bus,
    group: &laneway_core::Name,
    view: laneway_protocol::GroupView,
    at: laneway_core::Timestamp,
) {
    let data = json!({
        "group": group.as_str(), "done": view.done, "total": view.total, "failed": view.failed,
    });
    bus.publish(Happening::made(EventName::Group, None, data).at(at));
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
        if bus.place(task, standing.position) {
            bus.publish(Happening::made(name, Some(task), place_data(&standing)));
        }
    }
}

/// A place in line in words.
pub(crate) fn place_data(standing: &Standing) -> Value {
    json!({ "position": standing.position, "eta_ms": standing.starts_in.map(|length| length.0) })
}
