//! What a program of the `jsonl` protocol says, line by line.

use laneway_client::{Attempt, Failure, StopReason};
use laneway_process::Exit;
use serde_json::Value;

/// How long a line may be.
const LINE_BYTES_MAX: usize = 1024 * 1024;

/// Cuts what a program writes into lines.
#[derive(Default)]
pub(crate) struct Lines(Vec<u8>);

impl Lines {
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
        self.0.extend_from_slice(bytes);
        let mut lines = Vec::new();
        while let Some(end) = self.0.iter().position(|byte| *byte == b'\n') {
            let rest = self.0.split_off(end + 1);
            lines.push(std::mem::replace(&mut self.0, rest));
        }
        match self.0.len() > LINE_BYTES_MAX {
            true => {
                Err(Failure::fatal(format!("the program wrote a line of more than {LINE_BYTES_MAX} bytes")))
            }
            false => Ok(lines),
        }
    }
}

/// What a program has said.
pub(crate) struct Speech {
    text: String,
    text_max: usize,
    result: Option<Value>,
    failure: Option<Failure>,
}

impl Speech {
    pub(crate) fn new(text_max: usize) -> Speech {
        Speech { text: String::new(), text_max, result: None, failure: None }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.result.is_some() || self.failure.is_some()
    }

    pub(crate) fn hear(&mut self, line: &[u8], attempt: &Attempt) -> Result<(), Failure> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let wrong = || Failure::fatal("the program wrote a line that is no JSON object with a known type");
        let said: Value = serde_json::from_slice(line).map_err(|_| wrong())?;
        match said.get("type").and_then(Value::as_str) {
            Some("delta") => {
                let text = said.get("text").and_then(Value::as_str).ok_or_else(wrong)?;
                if self.text.len() + text.len() > self.text_max {
                    return Err(Failure::fatal("the program wrote more than it may"));
                }
                self.text.push_str(text);
            }
            Some("progress") => attempt.progress(said),
            Some("result") => self.result = Some(said.get("result").cloned().unwrap_or_default()),
            Some("error") => {
                let error = said.get("error").and_then(Value::as_str).unwrap_or("the program says it failed");
                let retryable = said.get("retryable").and_then(Value::as_bool).unwrap_or(true);
                self.failure = Some(Failure { error: error.to_owned(), retryable });
            }
            _ => return Err(wrong()),
        }
        Ok(())
    }

    /// What came of it. Without a result the deltas together are the result.
    pub(crate) fn outcome(self, exit: Exit, stopped: Option<StopReason>) -> Result<Value, Failure> {
        match (stopped, self.failure) {
            (Some(reason), _) => Err(Failure::new(reason)),
            (None, Some(failure)) => Err(failure),
            (None, None) if !exit.is_success() => Err(Failure::new(format!("the program ended with {exit}"))),
            (None, None) => Ok(self.result.unwrap_or(Value::String(self.text))),
        }
    }
}
