//! `laneway top`: a live screen of the lanes.
//!
//! `feed.rs` reads the state of the server, `view.rs` holds what the screen shows, and `keys.rs` handles keys.
//! `screen.rs` and `columns.rs` draw. Only this file uses the terminal.

pub(crate) mod columns;
pub(crate) mod feed;
pub(crate) mod keys;
pub(crate) mod screen;
pub(crate) mod view;

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use laneway_client::Client;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::arguments::Top;
use crate::connection;
use crate::error::CliError;
use keys::Action;
use view::View;

/// How many keys may wait while the screen draws; further keys are lost.
const KEYS_MAX: usize = 64;
/// How often the reader of keys checks whether the screen is closed.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often the screen redraws when nothing happens, so that its times advance.
const REDRAW_EVERY: Duration = Duration::from_secs(1);

/// Shows the screen until `q`.
pub(crate) fn run(verb: &Top) -> Result<(), CliError> {
    let client = connection::client(&verb.url, verb.token.as_deref())?;
    if verb.json {
        return connection::block_on(async { print(&feed::look(&client).await?) });
    }
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        let why =
            "`laneway top` needs a terminal; elsewhere use `laneway top --json` or `laneway status --watch`";
        return Err(CliError::Input(why.to_owned()));
    }
    let cannot = |error: std::io::Error| CliError::Failure(format!("cannot use the terminal: {error}"));
    let mut terminal = ratatui::try_init().map_err(cannot)?;
    let done = connection::block_on(show(&mut terminal, client));
    ratatui::try_restore().map_err(cannot)?;
    done
}

/// Prints the data of the screen once.
fn print(seen: &feed::Seen) -> Result<(), CliError> {
    let longest = seen.longest.as_ref().map(|longest| json!({ "task": longest.task, "why": longest.why }));
    crate::output::json(&json!({
        "status": seen.status, "lanes": seen.lanes, "has_more": seen.has_more, "refused": seen.refused,
        "longest_waiting": longest,
    }))
}

async fn show(terminal: &mut DefaultTerminal, client: Client) -> Result<(), CliError> {
    let cannot = |error: std::io::Error| CliError::Failure(format!("cannot use the terminal: {error}"));
    let (mut typed, _reader) = read_keys();
    let mut looks = feed::start(client.clone());
    let (reports, mut outcomes) = mpsc::channel::<String>(KEYS_MAX);
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut redraw = tokio::time::interval(REDRAW_EVERY);
    let mut view = View::new(client.url());
    loop {
        terminal.draw(|frame| screen::draw(frame, &view)).map_err(cannot)?;
        tokio::select! {
            event = typed.recv() => match event {
                Some(Event::Key(key)) if key.kind != KeyEventKind::Release => match view.press(key) {
                    Action::Nothing => {}
                    Action::Quit => return Ok(()),
                    action => {
                        view.say("…");
                        tokio::spawn(carry_out(client.clone(), action, reports.clone()));
                    }
                },
                Some(_) => {}
                None => return Ok(()),
            },
            look = looks.recv() => match look {
                Some(look) => view.take(look),
                None => return Ok(()),
            },
            outcome = outcomes.recv() => view.say(&outcome.unwrap_or_default()),
            _ = redraw.tick() => {}
            _ = terminate.recv() => return Ok(()),
        }
    }
}

/// Stops the reader of keys when it is dropped.
struct Reader(Arc<AtomicBool>);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn read_keys() -> (mpsc::Receiver<Event>, Reader) {
    let (send, receive) = mpsc::channel(KEYS_MAX);
    let is_over = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&is_over);
    std::thread::spawn(move || {
        while !stop.load(Ordering::SeqCst) {
            match event::poll(LOOK_EVERY) {
                Ok(false) => continue,
                Ok(true) => {}
                // The terminal is gone.
                Err(_) => return,
            }
            let Ok(event) = event::read() else { return };
            if let Err(mpsc::error::TrySendError::Closed(_)) = send.try_send(event) {
                return;
            }
        }
    });
    (receive, Reader(is_over))
}

/// Carries out a confirmed action and reports its outcome.
async fn carry_out(client: Client, action: Action, reports: mpsc::Sender<String>) {
    let done = match action {
        Action::Pause(lane) => client.pause(&lane).await.map(|_| format!("{lane} is paused")),
        Action::Resume(lane) => client.resume(&lane).await.map(|_| format!("{lane} is resumed")),
        Action::Clear(lane) => {
            let cleared = client.clear_lane(&lane).await;
            cleared.map(|answer| crate::commands::cancel::cancelled(answer.cancelled))
        }
        Action::Cancel(task) => {
            let cancelled = client.cancel(&task).await;
            cancelled.map(|answer| format!("{}: {}", answer.id, answer.status.replace('_', " ")))
        }
        Action::Limit(lane, limit) => {
            let changed = client.change_lane(&lane, &json!({ "max_concurrency": limit })).await;
            changed.map(|_| format!("the limit of {lane} is {limit}"))
        }
        Action::Nothing | Action::Quit => return,
    };
    let outcome = done.unwrap_or_else(|error| format!("failed: {error}"));
    // The screen may be closed, and then no reader needs the outcome.
    drop(reports.send(outcome).await);
}
