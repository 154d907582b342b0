//! Reads the state of the server: after each event, and at least every two seconds.

use std::collections::BTreeMap;
use std::time::Duration;

use laneway_client::{Client, Error, TasksQuery, Watch};
use laneway_protocol::{LaneNumbers, StatusView, TaskView};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout_at};

/// The shortest time between two looks, however much happens.
const LOOK_AT_MOST_EVERY: Duration = Duration::from_millis(250);
/// The longest time between two looks, for changes without an event.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(2);
/// How often to try again while the server is away.
const AWAY_EVERY: Duration = Duration::from_millis(700);
/// How many lanes a page has.
const LANES_PAGE: u32 = 500;
/// How many lanes a look reads; the screen says when there are more.
const LANES_MAX: usize = 5_000;
/// A look takes at most one part in this number of the time, however many lanes there are.
const LOOK_SHARE: u32 = 5;
/// How many waiting tasks a look reads to find the one that has waited longest.
const WAITING_MAX: u32 = 500;

/// The result of one look at the server.
pub(super) enum Look {
    Seen(Box<Seen>),
    /// The server cannot be reached, and why.
    Away(String),
}

/// The state of the server.
pub(super) struct Seen {
    pub(super) status: StatusView,
    pub(super) lanes: Vec<LaneNumbers>,
    /// The server has more lanes than these.
    pub(super) has_more: bool,
    /// Refusals by the label of their lane.
    pub(super) refused: BTreeMap<String, u64>,
    pub(super) longest: Option<Longest>,
}

/// The task that has waited longest, and why.
pub(super) struct Longest {
    pub(super) task: TaskView,
    pub(super) why: String,
}

/// Starts to look at the server, until the receiver is dropped.
pub(super) fn start(client: Client) -> mpsc::Receiver<Look> {
    // With room for one look, the next look waits until the screen has taken the last.
    let (send, receive) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut events = None;
        loop {
            let began = Instant::now();
            let look = match look(&client).await {
                Ok(seen) => Look::Seen(Box::new(seen)),
                Err(error) => Look::Away(error.to_string()),
            };
            let rest = (began.elapsed() * LOOK_SHARE).max(LOOK_AT_MOST_EVERY);
            let is_away = matches!(look, Look::Away(_));
            if send.send(look).await.is_err() {
                return;
            }
            if is_away {
                events = None;
                sleep_until(began + AWAY_EVERY).await;
                continue;
            }
            if events.is_none() {
                events = client.events(Watch::everything()).await.ok();
            }
            sleep_until(began + rest).await;
            if let Some(stream) = &mut events {
                // Look after an event, after the timeout, and when the stream ends because the server stops.
                if let Ok(Ok(None) | Err(_)) = timeout_at(began + LOOK_AT_LEAST_EVERY, stream.next()).await {
                    events = None;
                }
            } else {
                sleep_until(began + LOOK_AT_LEAST_EVERY).await;
            }
        }
    });
    receive
}

/// Reads the state of the server once.
pub(super) async fn look(client: &Client) -> Result<Seen, Error> {
    let status = client.status().await?;
    let (mut lanes, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let page = client.lanes(Some(LANES_PAGE), cursor.as_deref()).await?;
        lanes.extend(page.items);
        cursor = page.next_cursor;
        if cursor.is_none() || lanes.len() >= LANES_MAX {
            break;
        }
    }
    let has_more = cursor.is_some();
    let refused = refusals(&client.metrics().await?);
    let longest = if status.waiting > 0 { longest(client).await? } else { None };
    Ok(Seen { status, lanes, has_more, refused, longest })
}

async fn longest(client: &Client) -> Result<Option<Longest>, Error> {
    let query =
        TasksQuery { status: Some("queued".to_owned()), limit: Some(WAITING_MAX), ..TasksQuery::default() };
    let waiting = client.tasks(&query).await?.items;
    let Some(task) = waiting.into_iter().min_by_key(|task| task.submitted_at) else { return Ok(None) };
    let why = match client.explain(&task.id).await {
        Ok(explained) => crate::output::sentences::brief(&explained),
        // The task has just started or ended.
        Err(Error::Refused(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Some(Longest { task, why }))
}

/// The sums of `laneway_rejected_total{lane="…",code="…"} n` by lane.
fn refusals(metrics: &str) -> BTreeMap<String, u64> {
    let mut refused = BTreeMap::new();
    for line in metrics.lines() {
        let Some(rest) = line.strip_prefix("laneway_rejected_total{") else { continue };
        let Some((labels, count)) = rest.rsplit_once("} ") else { continue };
        let lane = labels.split_once("lane=\"").and_then(|(_, rest)| rest.split_once('"'));
        if let (Some((lane, _)), Ok(count)) = (lane, count.trim().parse::<u64>()) {
            *refused.entry(lane.to_owned()).or_default() += count;
        }
    }
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_added_up_by_lane() {
        let metrics = "# TYPE laneway_rejected_total counter\n\
                       laneway_rejected_total{lane=\"agent:a\",code=\"AT_CAPACITY\"} 3\n\
                       laneway_rejected_total{lane=\"agent:a\",code=\"DRAINING\"} 1\n\
                       laneway_rejected_total{lane=\"\",code=\"INVALID\"} 2\n\
                       laneway_running{lane=\"agent:a\"} 9\n";
        let expected = [(String::new(), 2), ("agent:a".to_owned(), 4)];
        assert_eq!(refusals(metrics), BTreeMap::from(expected));
    }
}
