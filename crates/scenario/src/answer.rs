//! Answers questions of a script.

use laneway_core::{Blocker, DeadLetter, LaneStats, LaneView, LiveTaskView, Scheduler, TaskId, TaskStatus};

use crate::describe::{Describer, count, limit};
use crate::script::Query;

/// The answer to a question, one line or more.
pub(crate) fn answer(lanes: &Scheduler, describer: &Describer, query: &Query) -> Vec<String> {
    match query {
        Query::Show(name) => match lanes.lane(name) {
            Some(view) => vec![show(&view)],
            None => {
                vec![format!("{name}: nothing there, {}", limit(lanes.settings_for(name).max_concurrency))]
            }
        },
        Query::Lanes => or_else(lanes.lanes().iter().map(show).collect(), "no lanes"),
        Query::Place(task) => vec![place(lanes, describer, *task)],
        Query::Explain(task) => vec![explain(lanes, describer, *task)],
        Query::Task(task) => match lanes.task(*task) {
            Some(view) => vec![describe(&view, describer)],
            None => vec![format!("{} is not live", describer.name(*task))],
        },
        Query::DeadLetters => {
            or_else(lanes.dead_letters().map(|dead| dead_letter(dead, describer)).collect(), "no letters")
        }
        Query::Pending => {
            let told = lanes.pending_external().iter().map(|view| pending(view, lanes, describer)).collect();
            or_else(told, "nothing pending")
        }
        Query::Stats(word) => or_else(stats(lanes, word), "no statistics"),
        Query::Session(key) => vec![describer.session(key, lanes.session(key))],
        Query::Message(message) => vec![describer.message_status(*message, lanes.message(*message))],
        Query::Content(turn) => describer.content(lanes, *turn),
        Query::Parked => {
            let parked = lanes.parked_messages();
            let parked = parked.map(|(session, message)| {
                format!("parked in {session}: {} {:?}", describer.name(TaskId(message.id.0)), &*message.text)
            });
            or_else(parked.collect(), "no parked messages")
        }
        Query::Offered(turn) => {
            let fence = lanes.task(*turn).and_then(|view| view.running).map(|running| running.fence);
            let offered = fence.map(|fence| lanes.offered_steering(*turn, fence)).unwrap_or_default();
            vec![describer.steering_reply(&offered)]
        }
        Query::Wakeup => match lanes.next_wakeup() {
            Some(at) => vec![format!("next wakeup at {at}")],
            None => vec!["no wakeup".to_owned()],
        },
    }
}

fn or_else(lines: Vec<String>, otherwise: &str) -> Vec<String> {
    if lines.is_empty() { vec![otherwise.to_owned()] } else { lines }
}

fn show(lane: &LaneView<'_>) -> String {
    let numbers = format!("{}: {} running, {} waiting", lane.name, lane.running, lane.waiting);
    let retrying = if lane.retrying > 0 { format!(", {} retrying", lane.retrying) } else { String::new() };
    let paused = if lane.gate.paused { ", paused" } else { "" };
    let draining = if lane.gate.draining { ", draining" } else { "" };
    format!("{numbers}{retrying}, {}{paused}{draining}", limit(lane.settings.max_concurrency))
}

fn place(lanes: &Scheduler, describer: &Describer, task: TaskId) -> String {
    let name = describer.name(task);
    match (lanes.position(task), lanes.task(task).map(|view| view.status)) {
        (Some(place), _) => format!("{name} is number {place} in line"),
        (None, Some(TaskStatus::Running)) => format!("{name} runs"),
        (None, Some(_)) => format!("{name} is not in line yet"),
        (None, None) => format!("{name} is not live"),
    }
}

fn describe(view: &LiveTaskView, describer: &Describer) -> String {
    let lanes: Vec<&str> = view.lanes.iter().map(|lane| lane.as_str()).collect();
    let mut text = format!("{} in {}", describer.name(view.id), lanes.join(" + "));
    text.push_str(match view.status {
        TaskStatus::Queued => " is queued",
        TaskStatus::Running => " runs",
        TaskStatus::Retrying => " will be retried",
    });
    text.push_str(&format!(", priority {}", view.priority));
    if view.effective_priority != view.priority {
        text.push_str(&format!(", now {}", view.effective_priority));
    }
    text.push_str(&format!(", {} so far", count(u64::from(view.attempts), "attempt")));
    if view.joined > 0 {
        text.push_str(&format!(", {} more waiting for it", view.joined));
    }
    text
}

fn explain(lanes: &Scheduler, describer: &Describer, task: TaskId) -> String {
    let name = describer.name(task);
    let Some(told) = lanes.explain(task) else { return format!("{name} is not live") };
    if told.blockers.is_empty() {
        return format!("{name} is held up by nothing");
    }
    let blockers: Vec<String> = told.blockers.iter().map(|blocker| with_names(blocker, describer)).collect();
    let place = told.position.map_or(String::new(), |place| format!("; number {place} in line"));
    let start = told.starts_in.map_or(String::new(), |length| format!("; starts in about {length}"));
    format!("{name} waits: {}{place}{start}", blockers.join(", "))
}

fn with_names(blocker: &Blocker, describer: &Describer) -> String {
    match blocker {
        Blocker::NotYet { until } => format!("its time comes at {until}"),
        Blocker::After { task } => format!("{} must end first", describer.name(*task)),
        Blocker::BackingOff { until } => format!("its next attempt comes at {until}"),
        Blocker::Paused { lane } => format!("{lane} is paused"),
        Blocker::RateLimited { lane, until } => format!("the rate limit of {lane} lasts until {until}"),
        Blocker::SessionBusy { lane, turn, since } => {
            format!("{lane} is busy with {} since {since}", describer.name(*turn))
        }
        Blocker::LaneFull { lane, max_concurrency, holders } => {
            let holders =
                holders.iter().map(|(task, since)| format!("{} since {since}", describer.name(*task)));
            let holders: Vec<String> = holders.collect();
            format!("{} of {lane} taken ({})", count(u64::from(*max_concurrency), "slot"), holders.join(", "))
        }
        Blocker::Reserved { lane, task } => {
            format!("the slot of {lane} is kept for {}", describer.name(*task))
        }
        Blocker::Unclaimed => "no worker has claimed it".to_owned(),
        Blocker::Behind { tasks } => format!("{tasks} ahead"),
        other => describer.names.with_names(&format!("{other:?}")),
    }
}

fn dead_letter(dead_letter: &DeadLetter, describer: &Describer) -> String {
    let lanes: Vec<&str> = dead_letter.spec.lanes.iter().map(|lane| lane.as_str()).collect();
    let payload =
        dead_letter.spec.payload.map_or("no payload".to_owned(), |blob| format!("payload {}", blob.0));
    let (name, kind, at) = (describer.name(dead_letter.task), &dead_letter.spec.kind, dead_letter.at);
    let attempts = count(u64::from(dead_letter.attempts), "attempt");
    format!(
        "letter {name} in {}: {kind}, {payload}, {attempts}, died at {at}: {}",
        lanes.join(" + "),
        dead_letter.error
    )
}

fn pending(view: &LiveTaskView, scheduler: &Scheduler, describer: &Describer) -> String {
    let lanes: Vec<&str> = view.lanes.iter().map(|lane| lane.as_str()).collect();
    let payload = view.payload.map_or("no payload".to_owned(), |blob| format!("payload {}", blob.0));
    let timeout = view.timeout.map_or("no timeout".to_owned(), |length| format!("timeout {length}"));
    let left =
        view.wait_until.map_or("for ever".to_owned(), |until| until.since(scheduler.now()).to_string());
    let (name, kind, attempt) = (describer.name(view.id), &view.kind, view.attempts + 1);
    format!(
        "pending {name} in {}: {kind}, {payload}, attempt {attempt}, {timeout}, waits {left}",
        lanes.join(" + ")
    )
}

fn stats(lanes: &Scheduler, word: &str) -> Vec<String> {
    let of_lane = laneway_core::LaneName::new(word).ok();
    let label = of_lane.and_then(|name| lanes.lane(&name).map(|view| view.label.to_owned()));
    let label = label.unwrap_or_else(|| word.to_owned());
    lanes
        .stats()
        .filter(|(other, _)| *other == label)
        .map(|(label, stats)| in_numbers(label, stats))
        .collect()
}

fn in_numbers(label: &str, stats: &LaneStats) -> String {
    let counters = [
        ("accepted", stats.accepted),
        ("started", stats.started),
        ("retried", stats.retried),
        ("completed", stats.completed),
        ("failed", stats.failed),
        ("cancelled", stats.cancelled),
        ("waited too long", stats.timed_out_waiting),
        ("lost", stats.lost),
    ];
    let told = counters.iter().filter(|(_, number)| *number > 0);
    let told: Vec<String> = told.map(|(word, number)| format!("{number} {word}")).collect();
    let (waits, runs) = (&stats.wait, &stats.run);
    let (waits, runs) = (
        format!("{} taking {} in all", count(waits.samples(), "wait"), waits.sum()),
        format!("{} taking {} in all", count(runs.samples(), "run"), runs.sum()),
    );
    format!("stats of {label}: {}; {waits}; {runs}", told.join(", "))
}
