//! Following one task: its place in line while it waits, what it says while it runs, how it ended.

use std::io::IsTerminal;

use indicatif::ProgressBar;
use laneway_client::Events;
use laneway_protocol::{EventFrame, EventName};
use serde_json::Value;

use crate::error::CliError;
use crate::output;
use crate::output::format;
use crate::output::progress;

/// Shows events of a task until its last.
pub(crate) struct Follow {
    is_json: bool,
    /// The line about waiting, on a terminal.
    bar: Option<ProgressBar>,
    said: String,
    has_streamed: bool,
    ends_line: bool,
    /// Why it did not succeed.
    failure: Option<String>,
    is_over: bool,
}

impl Follow {
    /// Nothing seen yet.
    pub(crate) fn new(is_json: bool) -> Follow {
        Follow {
            is_json,
            bar: progress::spinner(is_json),
            said: String::new(),
            has_streamed: false,
            ends_line: true,
            failure: None,
            is_over: false,
        }
    }

    /// Shows everything until the task is over; an error if it did not succeed.
    pub(crate) async fn until_over(mut self, mut events: Events) -> Result<(), CliError> {
        loop {
            let next = events.next().await;
            let frame = match next {
                Ok(frame) => frame,
                Err(error) => {
                    self.quiet();
                    return Err(error.into());
                }
            };
            let Some(frame) = frame else { break };
            self.show(&frame)?;
        }
        self.quiet();
        match (self.is_over, self.failure) {
            (true, None) => Ok(()),
            (true, Some(why)) => Err(CliError::Failure(why)),
            (false, _) => Err(CliError::Failure(
                "the server ended the stream before the task was over; `laneway tasks show` says how it stands".to_owned(),
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
            Some(EventName::Queued | EventName::Position) => self.say(&place(data)),
            Some(EventName::Notice) => {
                let number = |name: &str| data.get(name).and_then(Value::as_u64).unwrap_or_default();
                let waited = format::duration(number("waited_ms"));
                self.say(&format!("has waited for {waited}, {} ahead", number("ahead")));
            }
            // What it has said already tells as much.
            Some(EventName::Started) if self.has_streamed => {}
            Some(EventName::Started) => {
                let attempt = data.get("attempt").and_then(Value::as_u64).unwrap_or(1);
                self.say(&if attempt > 1 { format!("runs, attempt {attempt}") } else { "runs".to_owned() });
            }
            Some(EventName::Retrying) => {
                let delay = data.get("delay_ms").and_then(Value::as_u64).unwrap_or_default();
                let why = format::short(text("error"));
                // The next attempt begins from nothing, and what this one said is not part of it.
                self.end_line()?;
                self.has_streamed = false;
                self.say(&format!("failed ({why}), tries again in {}", format::duration(delay)));
            }
            Some(EventName::Progress) if self.has_streamed => {}
            Some(EventName::Progress) => {
                let how_far = data.get("progress").map(format::brief).unwrap_or_default();
                self.say(&format!("runs: {how_far}"));
            }
            Some(EventName::Delta) => self.stream(text("text"))?,
            Some(EventName::Completed) => self.complete(data.get("result").unwrap_or(&Value::Null))?,
            Some(EventName::Failed) => {
                self.failure = Some(format!("it failed: {}", format::plain(text("error"))))
            }
            Some(EventName::TimedOut) if text("code") == "WAIT_TIMEOUT" => {
                self.failure = Some("it waited for longer than it may".to_owned());
            }
            Some(EventName::TimedOut) => self.failure = Some("the run took longer than it may".to_owned()),
            Some(EventName::Cancelled) => {
                self.failure = Some(format!("it was cancelled ({})", text("reason")))
            }
            Some(EventName::Expired) => self.failure = Some("its deadline passed while it waited".to_owned()),
            Some(EventName::Done) => self.is_over = true,
            _ => {}
        }
        Ok(())
    }

    /// How it stands, on standard error: in one line that changes, or, without a terminal, one line for each change.
    fn say(&mut self, how: &str) {
        if self.is_json || self.said == how {
            return;
        }
        how.clone_into(&mut self.said);
        match &self.bar {
            Some(bar) => bar.set_message(format::plain(how)),
            None => eprintln!("{}", format::plain(how)),
        }
    }

    /// More of what it says, on standard output.
    fn stream(&mut self, text: &str) -> Result<(), CliError> {
        if self.is_json || text.is_empty() {
            return Ok(());
        }
        self.quiet();
        self.has_streamed = true;
        self.ends_line = text.ends_with('\n');
        if std::io::stdout().is_terminal() {
            output::text(&format::plain_lines(text))
        } else {
            // What is piped on is the agent's text, whatever is in it.
            output::text(text)
        }
    }

    fn complete(&mut self, result: &Value) -> Result<(), CliError> {
        match (self.is_json, self.has_streamed) {
            (true, _) => Ok(()),
            (false, true) => self.end_line(),
            (false, false) if result.is_null() => Ok(()),
            (false, false) => {
                self.quiet();
                output::line(&format::full(result))
            }
        }
    }

    fn end_line(&mut self) -> Result<(), CliError> {
        if std::mem::replace(&mut self.ends_line, true) { Ok(()) } else { output::text("\n") }
    }

    fn quiet(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// `queued #2, starts in 12s`.
fn place(data: &Value) -> String {
    let number = |name: &str| data.get(name).and_then(Value::as_u64);
    let position = number("position").map(|position| format!(" #{position}")).unwrap_or_default();
    let eta =
        number("eta_ms").map(|eta| format!(", starts in {}", format::duration(eta))).unwrap_or_default();
    format!("queued{position}{eta}")
}
