//! The protocol `jsonl`: a JSON object on each line, both ways.
//!
//! In: first `{"type": "message", …}` with all of the work, then `{"type": "steer", "text"}` as it comes. Out:
//! `{"type": "delta", "text"}`, `{"type": "progress", …}`, and last `{"type": "result", "result"}` or
//! `{"type": "error", "error", "retryable"?}`. Without a result the deltas together are the answer.

use std::fmt;

use serde_json::{Value, json};
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

/// Writes lines to a program until the sender is dropped, then closes its input. One line may wait. It writes beside the reading: a
/// program may answer before it has read all.
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

/// Something that a program says while it works.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// A piece of its answer.
    Delta(String),
    /// How far it is, as it says so.
    Progress(Value),
}

/// What a program has said, all together.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Its result, or the deltas.
    Result(Value),
    /// That it failed.
    Error {
        /// Why.
        error: String,
        /// Whether another attempt may help.
        retryable: bool,
    },
    /// Neither; these are its deltas.
    Text(String),
}

/// A program that does not keep to the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadSpeech {
    /// A line is too long.
    LongLine,
    /// A line is no JSON object with a known type.
    Unknown,
    /// The deltas are longer than they may be, which is this many bytes.
    TooMuch(usize),
}

impl fmt::Display for BadSpeech {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadSpeech::LongLine => write!(f, "the program wrote a line of more than {LINE_BYTES_MAX} bytes"),
            BadSpeech::Unknown => {
                f.write_str("the program wrote a line that is no JSON object with a known type")
            }
            BadSpeech::TooMuch(most) => write!(f, "the program wrote more than {most} bytes"),
        }
    }
}

impl std::error::Error for BadSpeech {}

/// Listens to a program.
pub struct Speech {
    line: Vec<u8>,
    text: String,
    text_max: usize,
    answer: Option<Answer>,
}

impl Speech {
    /// Listens to a program that may write deltas of so many bytes.
    pub fn new(text_max: usize) -> Speech {
        Speech { line: Vec::new(), text: String::new(), text_max, answer: None }
    }

    /// Whether the program has given its answer: nothing more is to be said to it.
    pub fn is_over(&self) -> bool {
        self.answer.is_some()
    }

    /// What the program says with these bytes.
    pub fn hear(&mut self, bytes: &[u8]) -> Result<Vec<Said>, BadSpeech> {
        self.line.extend_from_slice(bytes);
        let mut said = Vec::new();
        while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
            let rest = self.line.split_off(end + 1);
            let line = std::mem::replace(&mut self.line, rest);
            if !line.trim_ascii().is_empty() {
                said.extend(self.understand(&line)?);
            }
        }
        if self.line.len() > LINE_BYTES_MAX { Err(BadSpeech::LongLine) } else { Ok(said) }
    }

    fn understand(&mut self, line: &[u8]) -> Result<Option<Said>, BadSpeech> {
        let said: Value = serde_json::from_slice(line).map_err(|_| BadSpeech::Unknown)?;
        match said.get("type").and_then(Value::as_str) {
            Some("delta") => {
                let text = said.get("text").and_then(Value::as_str).ok_or(BadSpeech::Unknown)?;
                if self.text.len() + text.len() > self.text_max {
                    return Err(BadSpeech::TooMuch(self.text_max));
                }
                self.text.push_str(text);
                return Ok(Some(Said::Delta(text.to_owned())));
            }
            Some("progress") => return Ok(Some(Said::Progress(said))),
            Some("result") => {
                self.answer = Some(Answer::Result(said.get("result").cloned().unwrap_or_default()));
            }
            Some("error") => {
                let error = said.get("error").and_then(Value::as_str).unwrap_or("the program says it failed");
                let retryable = said.get("retryable").and_then(Value::as_bool).unwrap_or(true);
                self.answer = Some(Answer::Error { error: error.to_owned(), retryable });
            }
            _ => return Err(BadSpeech::Unknown),
        }
        Ok(None)
    }

    /// All that it said.
    pub fn answer(self) -> Answer {
        self.answer.unwrap_or(Answer::Text(self.text))
    }
}
