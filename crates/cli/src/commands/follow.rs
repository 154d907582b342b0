//! Follows one task: its position while it waits, its output while it runs, and its outcome.

use std::io::IsTerminal;

use indicatif::ProgressBar;
use laneway_client::Events;
use laneway_protocol::{EventFrame, EventName};
use serde_json::Value;

use crate::error::CliError;
use crate::output;
use crate::output::format;
use crate::output::progress;

/// Prints the events of a task, up to its last.
pub(crate) struct Follow {
    is_json: bool,
    /// The status line, on a terminal.
    bar: Option<ProgressBar>,
    /// The status that was printed last.
    status: String,
    has_streamed: bool,
    ends_line: bool,
    /// Why the task did not succeed.
    failure: Option<String>,
    is_over: bool,
}

impl Follow {
    pub(crate) fn new(is_json: bool) -> Follow {
        Follow {
            is_json,
            bar: progress::spinner(is_json),
            status: String::new(),
            has_streamed: false,
            ends_line: true,
            failure: None,
            is_over: false,
        }
    }

    /// Prints events until the task ends. It is an error if the task did not succeed.
    pub(crate) async fn until_over(mut self, mut events: Events) -> Result<(), CliError> {
        loop {
            let next = events.next().await;
            let frame = match next {
                Ok(frame) => frame,
                Err(error) => {
                    self.clear_status();
                    return Err(error.into());
                }
            };
            let Some(frame) = frame else { break };
            self.show(&frame)?;
        }
        self.clear_status();
        match (self.is_over, self.failure) {
            (true, None) => Ok(()),
            (true, Some(why)) => Err(CliError::Failure(why)),
            (false, _) => Err(CliError::Failure(
                "the server ended the stream before the task ended; `laneway tasks show` shows its status"
                    .to_owned(),
            )),
        }
    }

    fn show(&mut self, frame: &EventFrame) -> Result<(), CliError> {
        if self.is_json {
            output::json_line(frame)?;
        }
        let data = &frame.data;
        let text = |name: &str| data.get(name).and_then(Value::as_str).unwrap_or_default();
        match EventName::from_text(&frame.event) {
            Some(EventName::Queued | EventName::Position) => self.show_status(&position(data)),
            Some(EventName::Notice) => {
                let number = |name: &str| data.get(name).and_then(Value::as_u64).unwrap_or_default();
                let waited = format::duration(number("waited_ms"));
                self.show_status(&format!("has waited for {waited}, {} ahead", number("ahead")));
            }
            // The streamed output shows already that the task runs.
            Some(EventName::Started) if self.has_streamed => {}
            Some(EventName::Started) => {
                let attempt = data.get("attempt").and_then(Value::as_u64).unwrap_or(1);
                let again = if attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
                self.show_status(&format!("running{again}"));
            }
            Some(EventName::Retrying) => {
                let delay = data.get("delay_ms").and_then(Value::as_u64).unwrap_or_default();
                let why = format::short(text("error"));
                // The next attempt streams its output from the start.
                self.end_line()?;
                self.has_streamed = false;
                self.show_status(&format!("failed ({why}), next attempt in {}", format::duration(delay)));
            }
            Some(EventName::Progress) if self.has_streamed => {}
            Some(EventName::Progress) => {
                let how_far = data.get("progress").map(format::brief).unwrap_or_default();
                self.show_status(&format!("running: {how_far}"));
            }
            Some(EventName::Delta) => self.stream(text("text"))?,
            Some(EventName::Completed) => self.complete(data.get("result").unwrap_or(&Value::Null))?,
            Some(EventName::Failed) => {
                self.failure = Some(format!("the task failed: {}", format::plain(text("error"))))
            }
            Some(EventName::TimedOut) if text("code") == "WAIT_TIMEOUT" => {
                self.failure = Some("the task reached its wait timeout".to_owned());
            }
            Some(EventName::TimedOut) => self.failure = Some("the task reached its timeout".to_owned()),
            Some(EventName::Cancelled) => {
                self.failure = Some(format!("the task was cancelled ({})", text("reason")))
            }
            Some(EventName::Expired) => {
                self.failure = Some("the task's deadline passed while it waited".to_owned())
            }
            Some(EventName::Done) => self.is_over = true,
            _ => {}
        }
        Ok(())
    }

    /// Shows the status on standard error. A terminal has one line that changes; elsewhere each change is a new line.
    fn show_status(&mut self, status: &str) {
        if self.is_json || self.status == status {
            return;
        }
        status.clone_into(&mut self.status);
        match &self.bar {
            Some(bar) => bar.set_message(format::plain(status)),
            None => eprintln!("{}", format::plain(status)),
        }
    }

    /// Prints a part of the task's output on standard output.
    fn stream(&mut self, text: &str) -> Result<(), CliError> {
        if self.is_json || text.is_empty() {
            return Ok(());
        }
        self.clear_status();
        self.has_streamed = true;
        self.ends_line = text.ends_with('\n');
        if std::io::stdout().is_terminal() {
            output::text(&format::plain_lines(text))
        } else {
            // A pipe gets the agent's text unchanged.
            output::text(text)
        }
    }

    fn complete(&mut self, result: &Value) -> Result<(), CliError> {
        match (self.is_json, self.has_streamed) {
            (true, _) => Ok(()),
            (false, true) => self.end_line(),
            (false, false) if result.is_null() => Ok(()),
            (false, false) => {
                self.clear_status();
                // The text of an answer that has other fields too.
                output::line(&format::full(result.get("response").unwrap_or(result)))
            }
        }
    }

    fn end_line(&mut self) -> Result<(), CliError> {
        if std::mem::replace(&mut self.ends_line, true) { Ok(()) } else { output::text("\n") }
    }

    fn clear_status(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// `queued #2, starts in 12s`.
fn position(data: &Value) -> String {
    let number = |name: &str| data.get(name).and_then(Value::as_u64);
    let position = number("position").map(|position| format!(" #{position}")).unwrap_or_default();
    let eta =
        number("eta_ms").map(|eta| format!(", starts in {}", format::duration(eta))).unwrap_or_default();
    format!("queued{position}{eta}")
}
