//! The protocol `jsonl`: a JSON object on each line, both ways.
//!
//! In: first `{"type": "message", …}` with all of the work, then `{"type": "steer", "text"}` for each message. Out:
//! `{"type": "delta", "text"}`, `{"type": "progress", …}`, and last `{"type": "result", "result"}` or
//! `{"type": "error", "error", "retryable"?, "result"?}`. Without a result the deltas together are the answer.

use serde_json::{Value, json};
use thiserror::Error;
use tokio::sync::mpsc;

use crate::running::Input;

/// How long a line may be.
const LINE_BYTES_MAX: usize = 1024 * 1024;

/// The first line for a program: its work, as an object of the type `message`.
pub fn first_line(mut work: Value) -> String {
    match work.as_object_mut() {
        Some(object) => drop(object.insert("type".to_owned(), "message".into())),
        None => work = json!({ "type": "message", "payload": work }),
    }
    format!("{work}\n")
}

/// Writes lines to a program until the sender is dropped, then closes its input. One line may wait. It runs in a task of
/// its own, because a program may answer before it has read all.
pub fn writer(mut input: Input) -> mpsc::Sender<String> {
    let (lines, mut waiting) = mpsc::channel::<String>(1);
    tokio::spawn(async move {
        while let Some(line) = waiting.recv().await {
            // A program that does not read is free not to.
            if input.write(line.as_bytes()).await.is_err() {
                break;
            }
        }
    });
    lines
}

/// What a program reports while it works.
#[derive(Clone, Debug, PartialEq)]
pub enum OutputEvent {
    /// A piece of its answer.
    Delta(String),
    /// How far it is, as the program wrote it.
    Progress(Value),
}

/// What a program has answered.
#[derive(Clone, Debug, PartialEq)]
pub enum ProgramAnswer {
    /// Its result, or the deltas.
    Result(Value),
    /// That it failed.
    Error {
        /// Why.
        error: String,
        /// Whether another attempt may help.
        retryable: bool,
        /// What it produced all the same.
        output: Option<Value>,
    },
    /// Neither; these are its deltas.
    Text(String),
}

/// How a program broke the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// A line is too long.
    #[error("the program wrote a line of more than {LINE_BYTES_MAX} bytes")]
    LongLine,
    /// A line is no JSON object with a known type.
    #[error("the program wrote a line that is no JSON object with a known type")]
    Unknown,
    /// The deltas are longer than this limit.
    #[error("the program wrote more than {0} bytes")]
    TooMuch(usize),
}

/// Reads the output of a program.
pub struct OutputReader {
    line: Vec<u8>,
    text: String,
    text_max: usize,
    answer: Option<ProgramAnswer>,
}

impl OutputReader {
    /// Reads the output of a program that may write deltas of up to `text_max` bytes.
    pub fn new(text_max: usize) -> OutputReader {
        OutputReader { line: Vec::new(), text: String::new(), text_max, answer: None }
    }

    /// Whether the program has given its answer, so that it needs no more input.
    pub fn is_over(&self) -> bool {
        self.answer.is_some()
    }

    /// Takes in bytes and returns what they report.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<OutputEvent>, ProtocolError> {
        self.line.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
            let rest = self.line.split_off(end + 1);
            let line = std::mem::replace(&mut self.line, rest);
            if !line.trim_ascii().is_empty() {
                events.extend(self.read_line(&line)?);
            }
        }
        if self.line.len() > LINE_BYTES_MAX { Err(ProtocolError::LongLine) } else { Ok(events) }
    }

    fn read_line(&mut self, line: &[u8]) -> Result<Option<OutputEvent>, ProtocolError> {
        let said: Value = serde_json::from_slice(line).map_err(|_| ProtocolError::Unknown)?;
        match said.get("type").and_then(Value::as_str) {
            Some("delta") => {
                let text = said.get("text").and_then(Value::as_str).ok_or(ProtocolError::Unknown)?;
                if self.text.len() + text.len() > self.text_max {
                    return Err(ProtocolError::TooMuch(self.text_max));
                }
                self.text.push_str(text);
                return Ok(Some(OutputEvent::Delta(text.to_owned())));
            }
            Some("progress") => return Ok(Some(OutputEvent::Progress(said))),
            Some("result") => {
                self.answer = Some(ProgramAnswer::Result(said.get("result").cloned().unwrap_or_default()));
            }
            Some("error") => {
                let error = said.get("error").and_then(Value::as_str).unwrap_or("the program says it failed");
                let retryable = said.get("retryable").and_then(Value::as_bool).unwrap_or(true);
                let output = said.get("result").filter(|output| !output.is_null()).cloned();
                self.answer = Some(ProgramAnswer::Error { error: error.to_owned(), retryable, output });
            }
            _ => return Err(ProtocolError::Unknown),
        }
        Ok(None)
    }

    /// The answer: the deltas, if there was no other.
    pub fn answer(self) -> ProgramAnswer {
        self.answer.unwrap_or(ProgramAnswer::Text(self.text))
    }
}
