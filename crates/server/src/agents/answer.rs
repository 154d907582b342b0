//! The answer of an upstream, as it comes in: JSON, text or server-sent events.

use laneway_engine::{Context, Failure};
use laneway_protocol::{SseEvent, SseReader};
use serde_json::{Map, Value};

/// A longer answer is an error.
pub(super) const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The field with the text of an answer that has other fields too.
const RESPONSE: &str = "response";

/// An answer as it comes in.
pub(super) enum AnswerBody {
    Json(Vec<u8>),
    Text { decoder: laneway_process::Text, text: String },
    Events { reader: SseReader, text: String, result: Option<Value> },
}

impl AnswerBody {
    /// An answer with this media type.
    pub(super) fn of(form: &str) -> AnswerBody {
        match form {
            "text/event-stream" => AnswerBody::Events {
                reader: SseReader::new(ANSWER_BYTES_MAX),
                text: String::new(),
                result: None,
            },
            form if form == "application/json" || form.ends_with("+json") => AnswerBody::Json(Vec::new()),
            _ => AnswerBody::Text { decoder: laneway_process::Text::default(), text: String::new() },
        }
    }

    /// Takes in a piece, and publishes what it says. Returns whether the answer is over, although the stream may go on.
    pub(super) fn push(&mut self, piece: &[u8], context: &Context) -> Result<bool, Failure> {
        match self {
            AnswerBody::Json(bytes) => bytes.extend_from_slice(piece),
            AnswerBody::Text { decoder, text } => {
                let mut more = String::new();
                decoder.push(piece, &mut more);
                if !more.is_empty() {
                    text.push_str(&more);
                    context.delta(more);
                }
            }
            AnswerBody::Events { reader, text, result } => {
                let mut complete = Vec::new();
                let read = reader.push(piece, &mut complete);
                for SseEvent { name, data, .. } in complete {
                    let data = data.unwrap_or_default();
                    if let Some(failure) = failure(&name, &data) {
                        return Err(failure);
                    }
                    if is_end(&name) {
                        *result = whole_answer(&data, text);
                        return Ok(true);
                    }
                    if !data.is_empty() {
                        on_event(&name, &data, text, context);
                    }
                }
                read.map_err(|_| Failure::fatal("the upstream sent an event that is too long"))?;
            }
        }
        Ok(false)
    }

    /// The whole answer. An object whose only field is `response` stands for the value of that field.
    pub(super) fn finish(self) -> Result<Value, Failure> {
        match self {
            AnswerBody::Json(bytes) if bytes.trim_ascii().is_empty() => Ok(Value::Null),
            AnswerBody::Json(bytes) => {
                let answer = serde_json::from_slice(&bytes)
                    .map_err(|_| Failure::fatal("the upstream's answer is not the JSON that it says"))?;
                Ok(unwrapped(answer))
            }
            AnswerBody::Text { text, .. } => Ok(Value::String(text)),
            AnswerBody::Events { text, result, .. } => Ok(result.unwrap_or(Value::String(text))),
        }
    }
}

/// Whether an answer says nothing at all.
pub(super) fn is_empty(answer: &Value) -> bool {
    match answer {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// An object whose only field is `response` stands for the value of that field.
fn unwrapped(answer: Value) -> Value {
    match answer {
        Value::Object(mut fields) if fields.len() == 1 && fields.contains_key(RESPONSE) => {
            fields.remove(RESPONSE).unwrap_or_default()
        }
        other => other,
    }
}

/// The failure that an event of the upstream reports. The names are those of Laneway's events.
fn failure(event: &str, data: &str) -> Option<Failure> {
    let is_failure = matches!(event, "failed" | "error" | "cancelled" | "timed_out" | "expired");
    if !is_failure && !is_end(event) {
        return None;
    }
    let error: Value = serde_json::from_str(data).unwrap_or_else(|_| data.into());
    // An event that ends an answer may say that it is none.
    if !is_failure && error.get("success") != Some(&Value::Bool(false)) {
        return None;
    }
    let retryable = error.get("retryable").and_then(Value::as_bool).unwrap_or(event != "cancelled");
    let output = error.get("result").filter(|output| !output.is_null()).cloned();
    let error = error_text(&error).unwrap_or_else(|| match error.get("reason").and_then(Value::as_str) {
        Some(reason) => format!("the upstream says {event} ({reason})"),
        None if is_failure => format!("the upstream says {event}"),
        None => format!("the upstream says {event}, without success"),
    });
    Some(Failure { retryable, output, ..Failure::new(error) })
}

/// The sentence in an upstream's error: the whole text, or one of the usual fields.
fn error_text(error: &Value) -> Option<String> {
    let words =
        [error.get("detail"), error.get("error"), error.pointer("/error/message"), error.get("message")];
    let words = words.into_iter().flatten().chain([error]);
    words.filter_map(Value::as_str).find(|words| !words.is_empty()).map(str::to_owned)
}

/// Whether an event ends an answer.
fn is_end(event: &str) -> bool {
    matches!(event, "complete" | "completed" | "done" | "result")
}

/// The answer with the fields of the event that ends it. `text` is what came before, which is the answer if the event has
/// none; `None`: the event says nothing.
fn whole_answer(data: &str, text: &str) -> Option<Value> {
    if data.is_empty() || data == "[DONE]" {
        return None;
    }
    let mut fields = match serde_json::from_str(data) {
        Ok(Value::Object(fields)) => fields,
        Ok(Value::Null) => return None,
        Ok(other) => return Some(other),
        Err(_) => return Some(data.into()),
    };
    // Every event of a Laneway has them.
    for own in ["task_id", "at"] {
        fields.remove(own);
    }
    let response = match fields.remove("result").filter(|result| !result.is_null()) {
        Some(Value::Object(result)) if fields.is_empty() => return Some(unwrapped(Value::Object(result))),
        Some(result) => Some(result),
        None if fields.is_empty() => return None,
        None => Some(text).filter(|text| !text.is_empty()).map(Value::from),
    };
    Some(unwrapped(Value::Object(with_response(fields, response))))
}

fn with_response(mut fields: Map<String, Value>, response: Option<Value>) -> Map<String, Value> {
    if let Some(response) = response.filter(|_| fields.get(RESPONSE).is_none_or(Value::is_null)) {
        fields.insert(RESPONSE.to_owned(), response);
    }
    fields
}

/// Publishes one event of the upstream: text as a part of the answer, anything else under its own name.
fn on_event(event: &str, data: &str, text: &mut String, context: &Context) {
    if data == "[DONE]" {
        return;
    }
    let value: Value = serde_json::from_str(data).unwrap_or_else(|_| data.into());
    if event == "progress" {
        return context.progress(value);
    }
    let piece = match &value {
        Value::String(piece) => Some(piece),
        other => [other.get("text"), other.get("delta")].into_iter().flatten().find_map(|part| match part {
            Value::String(piece) => Some(piece),
            _ => None,
        }),
    };
    match piece.filter(|_| is_of_text(event)) {
        Some(piece) => {
            text.push_str(piece);
            context.delta(piece.as_str());
        }
        None if matches!(event, "" | "message") => context.progress(value),
        None => context.event(event, value),
    }
}

/// Whether events of this name carry the text of the answer.
fn is_of_text(event: &str) -> bool {
    const WORDS: [&str; 6] = ["delta", "text", "token", "chunk", "message", "content"];
    event.is_empty() || WORDS.iter().any(|word| event.contains(word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_end_without_success_is_a_failure() {
        let said = |event, data| failure(event, data).map(|failure| (failure.error, failure.output));
        for event in ["complete", "completed", "done", "result"] {
            assert_eq!(said(event, r#"{"success":true,"error":"x"}"#), None);
            assert_eq!(said(event, r#"{"success":false,"error":"x"}"#), Some(("x".to_owned(), None)));
            let with_output = r#"{"success":false,"error":{"message":"x"},"result":7}"#;
            assert_eq!(said(event, with_output), Some(("x".to_owned(), Some(json!(7)))));
            let bare = said(event, r#"{"success":false}"#).unwrap().0;
            assert_eq!(bare, format!("the upstream says {event}, without success"));
        }
        assert_eq!(said("delta", r#"{"success":false}"#), None);
    }

    #[test]
    fn the_event_that_ends_an_answer_keeps_its_fields() {
        let cases = [
            (r#"{"result":"x","task_id":"7","at":"now"}"#, "", Some(json!("x"))),
            (
                r#"{"response":"x","metadata":{"cost":1}}"#,
                "",
                Some(json!({"response":"x","metadata":{"cost":1}})),
            ),
            (r#"{"result":"x","stats":1}"#, "", Some(json!({"response":"x","stats":1}))),
            (r#"{"result":{"response":"x","stats":1}}"#, "", Some(json!({"response":"x","stats":1}))),
            (r#"{"result":{"response":"x"}}"#, "", Some(json!("x"))),
            (r#"{"finalAnswer":"x","success":true}"#, "", Some(json!({"finalAnswer":"x","success":true}))),
            (r#"{"usage":3}"#, "said", Some(json!({"response":"said","usage":3}))),
            (r#"{"task_id":"7"}"#, "said", None),
            ("[DONE]", "said", None),
            ("", "said", None),
            ("null", "said", None),
            ("\"x\"", "", Some(json!("x"))),
            ("just words", "", Some(json!("just words"))),
        ];
        for (data, text, expected) in cases {
            assert_eq!(whole_answer(data, text), expected, "{data}");
        }
    }
}
