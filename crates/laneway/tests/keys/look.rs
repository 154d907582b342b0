//! Ways to look at a queue, each of which shows one thing in words.

use std::fmt::Write as _;
use std::time::Duration;

use laneway::{
    ClaimRequest, Configured, End, Event, Filter, LaneName, Source, Subscription, Task, TaskHandle, ToolUse,
    Update,
};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::Diary;

/// What to look at. All work goes to the lane that is named.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Look {
    /// How many of forty tasks run.
    Running(&'static str),
    /// How many of a hundred are accepted.
    Accepted(&'static str),
    /// In which order tasks of two fair keys start.
    Turns(&'static str),
    /// In which order tasks of this lane and of another start that share a third.
    Sharing(&'static str),
    /// Which priorities tasks get from a user, a schedule, an agent and the background.
    Priorities(&'static str),
    /// How a task ends that never gets its slot.
    Waiting(&'static str),
    /// How a task ends that never ends by itself.
    Long(&'static str),
    /// For how long a worker has a task.
    Lease(&'static str),
    /// What becomes of a task whose workers are silent.
    Silence(&'static str),
    /// When the attempts of a failing task start.
    Attempts(&'static str),
    /// Whether those times are other than the plain ones.
    Jitter(&'static str),
    /// When six quick tasks start.
    Starts(&'static str),
    /// When waiting raises a task, and how far.
    Ageing(&'static str),
    /// When its own deadline, or the lane's, raises a task.
    Boosts(&'static str, Option<u64>),
    /// How many wait when there is pressure.
    Pressure(&'static str),
    /// Which alerts there are for 120 waiting tasks.
    Alerts(&'static str),
    /// How many of three failed tasks are kept as dead letters.
    Letters(&'static str),
    /// When those who wait are told so.
    Notice(&'static str),
    /// Where a task runs.
    Mode(&'static str),
    /// Which lanes are counted.
    Counted,
    /// How long two calls of a tool take together.
    Batch(&'static str),
}

/// Long enough for anything.
const HOURS: Duration = Duration::from_secs(3601);

impl Look {
    pub(crate) async fn at(self, lanes: &Configured, diary: &Diary) -> String {
        let watch = Watch { updates: lanes.subscribe(Filter::default()), start: Instant::now() };
        match self {
            Look::Running(lane) => running(lanes, lane).await,
            Look::Accepted(lane) => accepted(lanes, lane).await,
            Look::Turns(lane) => turns(lanes, lane, diary).await,
            Look::Sharing(lane) => sharing(lanes, lane, diary).await,
            Look::Priorities(lane) => priorities(lanes, lane).await,
            Look::Waiting(lane) => {
                let _taken = lanes.slot([lane]).await.unwrap();
                end_of(submit(lanes, Task::new(lane).kind("note").payload("")).await).await
            }
            Look::Long(lane) => end_of(submit(lanes, Task::new(lane).kind("forever")).await).await,
            Look::Lease(lane) => lease(lanes, lane).await,
            Look::Silence(lane) => silence(lanes, lane, watch).await,
            Look::Attempts(lane) => attempts(lanes, lane, watch).await,
            Look::Jitter(lane) => match attempts(lanes, lane, watch).await.as_str() {
                "0 10000 30000 60000" => "plain".to_owned(),
                _ => "spread".to_owned(),
            },
            Look::Starts(lane) => starts(lanes, lane, watch).await,
            Look::Ageing(lane) => ageing(lanes, lane, watch).await,
            Look::Boosts(lane, deadline) => boosts(lanes, lane, deadline, watch).await,
            Look::Pressure(lane) => {
                line(lanes, lane, watch, |event| match event {
                    Event::Pressure { lane, waiting } if !lane.is_global() => Some(waiting.to_string()),
                    _ => None,
                })
                .await
            }
            Look::Alerts(lane) => {
                line(lanes, lane, watch, |event| match event {
                    Event::Alert { lane, level, waiting } if !lane.is_global() => {
                        Some(format!("{level:?} {waiting}"))
                    }
                    _ => None,
                })
                .await
            }
            Look::Letters(lane) => letters(lanes, lane).await,
            Look::Notice(lane) => notice(lanes, lane, watch).await,
            Look::Mode(lane) => mode(lanes, lane, watch).await,
            Look::Counted => counted(lanes).await,
            Look::Batch(tool) => batch(lanes, tool).await,
        }
    }
}

trait IsGlobal {
    fn is_global(&self) -> bool;
}

impl IsGlobal for LaneName {
    fn is_global(&self) -> bool {
        *self == LaneName::global()
    }
}

/// Everything that happens, with the time since the beginning.
struct Watch {
    updates: Subscription,
    start: Instant,
}

impl Watch {
    /// What `told` makes of the events that come in the next `length`.
    async fn during(
        &mut self,
        length: Duration,
        mut told: impl FnMut(u128, &Event) -> Option<String>,
    ) -> String {
        let mut words = Vec::new();
        let until = Instant::now() + length;
        while let Ok(Some(update)) = tokio::time::timeout_at(until, self.updates.next()).await {
            assert!(!matches!(update, Update::Gap { .. }));
            let Update::Event { event, .. } = update else { continue };
            words.extend(told(self.start.elapsed().as_millis(), &event));
        }
        words.join(" ")
    }
}

async fn submit(lanes: &Configured, task: Task) -> TaskHandle {
    lanes.submit(task).await.unwrap()
}

async fn end_of(task: TaskHandle) -> String {
    let start = Instant::now();
    match timeout(HOURS, task.ending()).await {
        Err(_) => "never".to_owned(),
        Ok(ending) => format!("{} at {}", word(&ending.unwrap().end), start.elapsed().as_millis()),
    }
}

fn word(end: &End) -> String {
    let text = format!("{end:?}");
    text.split([' ', '{']).next().unwrap_or_default().to_owned()
}

async fn running(lanes: &Configured, lane: &'static str) -> String {
    for _ in 0..40 {
        // What is refused does not run either.
        drop(lanes.submit(Task::new(lane).kind("forever")).await);
    }
    let snapshot = lanes.snapshot().await.unwrap();
    let lane = snapshot.iter().find(|each| each.lane.as_str() == lane).unwrap();
    format!("{} run", lane.running)
}

async fn accepted(lanes: &Configured, lane: &'static str) -> String {
    let mut count = 0;
    for _ in 0..100 {
        count += u32::from(lanes.submit(Task::new(lane).kind("forever")).await.is_ok());
    }
    format!("{count} accepted")
}

async fn note(lanes: &Configured, task: Task, note: &str) -> TaskHandle {
    submit(lanes, task.kind("note").payload(note)).await
}

async fn notes(tasks: Vec<TaskHandle>, diary: &Diary) -> String {
    for task in tasks {
        task.wait().await.unwrap();
    }
    diary.lock().unwrap().join(" ")
}

async fn turns(lanes: &Configured, lane: &'static str, diary: &Diary) -> String {
    let taken = lanes.slot([lane]).await.unwrap();
    let mut tasks = Vec::new();
    for name in ["a1", "a2", "b1", "b2"] {
        tasks.push(note(lanes, Task::new(lane).fair_key(&name[..1]), name).await);
    }
    drop(taken);
    notes(tasks, diary).await
}

async fn sharing(lanes: &Configured, lane: &'static str, diary: &Diary) -> String {
    let taken = lanes.slot(["shared"]).await.unwrap();
    let mut tasks = Vec::new();
    for number in 1..=4 {
        tasks.push(note(lanes, Task::new("other").lane("shared"), &format!("o{number}")).await);
        tasks.push(note(lanes, Task::new(lane).lane("shared"), &format!("m{number}")).await);
    }
    drop(taken);
    notes(tasks, diary).await
}

async fn lease(lanes: &Configured, lane: &'static str) -> String {
    submit(lanes, Task::new(lane).kind("forever")).await.detach();
    let claims = lanes.claim(ClaimRequest::new("w", [lane])).await.unwrap();
    let view = lanes.task(claims[0].task).await.unwrap().unwrap();
    format!("{} ms", claims[0].lease_until.since(view.running.unwrap().started).0)
}

async fn silence(lanes: &Configured, lane: &'static str, mut watch: Watch) -> String {
    submit(lanes, Task::new(lane).kind("forever")).await.detach();
    let mut words = String::new();
    while let Ok(claims) = timeout(HOURS, lanes.claim_when_there_is(ClaimRequest::new("w", [lane]))).await {
        let fence = claims.unwrap()[0].fence;
        let told = watch.during(Duration::from_secs(31), |_, event| match event {
            Event::Redelivered { fence: old, .. } if *old == fence => Some("again".to_owned()),
            Event::Ended { end, .. } => Some(word(end)),
            _ => None,
        });
        write!(words, "{} ", told.await).unwrap();
        if words.contains("Failed") {
            break;
        }
    }
    words.trim_end().to_owned()
}

async fn priorities(lanes: &Configured, lane: &'static str) -> String {
    for source in [Source::User, Source::Schedule, Source::Agent, Source::Background] {
        submit(lanes, Task::new(lane).kind("forever").source(source)).await.detach();
    }
    let levels = lanes.tasks().await.unwrap().into_iter().map(|task| task.priority.to_string());
    levels.collect::<Vec<_>>().join(" ")
}

async fn attempts(lanes: &Configured, lane: &'static str, mut watch: Watch) -> String {
    submit(lanes, Task::new(lane).kind("fail")).await.detach();
    watch.during(HOURS, |at, event| matches!(event, Event::Granted { .. }).then(|| at.to_string())).await
}

async fn starts(lanes: &Configured, lane: &'static str, mut watch: Watch) -> String {
    for _ in 0..6 {
        note(lanes, Task::new(lane), "").await.detach();
    }
    watch.during(HOURS, |at, event| matches!(event, Event::Granted { .. }).then(|| at.to_string())).await
}

/// A more urgent task waits too, so that there is a level to rise to.
async fn ageing(lanes: &Configured, lane: &'static str, mut watch: Watch) -> String {
    let _taken = lanes.slot([lane]).await.unwrap();
    note(lanes, Task::new(lane).priority(9), "").await.detach();
    let waiting = note(lanes, Task::new(lane).source(Source::Background), "").await;
    let told = watch.during(Duration::from_secs(301), |at, event| match event {
        Event::Aged { task, levels } if *task == waiting.id() => Some(format!("{levels}@{at}")),
        _ => None,
    });
    told.await
}

async fn boosts(lanes: &Configured, lane: &'static str, deadline: Option<u64>, mut watch: Watch) -> String {
    let _taken = lanes.slot([lane]).await.unwrap();
    let mut task = Task::new(lane).priority(0).kind("note").payload("");
    if let Some(secs) = deadline {
        task = task.deadline(Duration::from_secs(secs));
    }
    let waiting = submit(lanes, task).await;
    let told = watch.during(Duration::from_secs(400), |at, event| match event {
        Event::Boosted { task, levels } if *task == waiting.id() => Some(format!("{levels}@{at}")),
        _ => None,
    });
    told.await
}

async fn line(
    lanes: &Configured,
    lane: &'static str,
    mut watch: Watch,
    told: impl Fn(&Event) -> Option<String>,
) -> String {
    for _ in 0..140 {
        // Behind a paused lane nothing runs, so that all of them wait.
        drop(lanes.submit(Task::new(lane).lane("shared").kind("forever")).await);
    }
    watch.during(Duration::from_millis(1), |_, event| told(event)).await
}

async fn letters(lanes: &Configured, lane: &'static str) -> String {
    for _ in 0..3 {
        submit(lanes, Task::new(lane).kind("fail")).await.wait().await.unwrap_err();
    }
    format!("{} letters", lanes.dead_letters().await.unwrap().len())
}

async fn notice(lanes: &Configured, lane: &'static str, mut watch: Watch) -> String {
    let _taken = lanes.slot([lane]).await.unwrap();
    note(lanes, Task::new(lane), "").await.detach();
    watch
        .during(HOURS, |_, event| match event {
            Event::Noticed { waited, .. } => Some(waited.0.to_string()),
            _ => None,
        })
        .await
}

async fn mode(lanes: &Configured, lane: &'static str, mut watch: Watch) -> String {
    submit(lanes, Task::new(lane).kind("forever")).await.detach();
    let (pending, inflight) = (lanes.pending().await.unwrap().len(), lanes.inflight().await.unwrap());
    let handler = watch.during(Duration::ZERO, |_, event| match event {
        Event::Submitted { handler, .. } => Some(format!("{handler:?}")),
        _ => None,
    });
    format!("{}: {pending} pending, {inflight} run", handler.await)
}

async fn counted(lanes: &Configured) -> String {
    batch(lanes, "glob").await;
    let stats = lanes.stats().await.unwrap();
    let query = stats.iter().find(|(label, _)| label.as_str() == "session:*/query");
    query.map_or("not counted".to_owned(), |(_, stats)| format!("{} counted", stats.completed))
}

async fn batch(lanes: &Configured, tool: &'static str) -> String {
    let calls: Vec<ToolUse> = (0..2).map(|number| ToolUse::new(tool, json!(number))).collect();
    let start = Instant::now();
    let fine = |_: &ToolUse| async { Ok(()) };
    let results = lanes.tools("ann").batch(calls, fine).await.unwrap();
    let done = |value: Value| laneway::ToolResult::Done(value);
    assert_eq!(results, [done(json!(0)), done(json!(1))]);
    format!("{} s", start.elapsed().as_secs())
}
