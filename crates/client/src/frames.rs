//! Cuts a stream of server-sent events into frames.

use laneway_protocol::EventFrame;
use serde_json::Value;

/// How long one event may be.
const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What came so far and is no whole event yet.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    line: Vec<u8>,
    /// The line before ended with a return; a line feed that follows belongs to it.
    after_return: bool,
    event: String,
    data: Option<String>,
    id: Option<String>,
}

/// An event that is longer than any may be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Frames {
    /// Takes a piece of the stream, and hands over the events that it completes.
    pub(crate) fn push(&mut self, piece: &[u8], whole: &mut Vec<EventFrame>) -> Result<(), TooLong> {
        for byte in piece {
            match byte {
                b'\n' if std::mem::take(&mut self.after_return) => {}
                b'\n' | b'\r' => {
                    self.after_return = *byte == b'\r';
                    whole.extend(self.end_line());
                }
                byte => {
                    self.after_return = false;
                    self.line.push(*byte);
                }
            }
            let held = self.line.len() + self.data.as_ref().map_or(0, String::len);
            if held > FRAME_BYTES_MAX {
                return Err(TooLong);
            }
        }
        Ok(())
    }

    fn end_line(&mut self) -> Option<EventFrame> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        if line.is_empty() {
            return self.end_frame();
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.event = value.to_owned(),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                none => *none = Some(value.to_owned()),
            },
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            // Comments keep the connection alive; fields that nobody knows are for somebody else.
            _ => {}
        }
        None
    }

    fn end_frame(&mut self) -> Option<EventFrame> {
        let (event, id) = (std::mem::take(&mut self.event), self.id.take());
        let data = self.data.take()?;
        let event = if event.is_empty() { "message".to_owned() } else { event };
        let data = serde_json::from_str(&data).unwrap_or(Value::String(data));
        Some(EventFrame { event, data, id })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at anything unexpected")]

    use serde_json::json;

    use super::*;

    const STREAM: &str = ": alive\n\nevent: queued\ndata: {\"position\":1}\nid: 7-1\n\n\
                          event: delta\r\ndata: {\"text\":\r\ndata: \"ä\"}\r\n\r\ndata: plain\n\nevent: cut off\n";

    #[test]
    fn a_stream_is_cut_the_same_wherever_it_breaks() {
        for size in 1..STREAM.len() {
            let (mut frames, mut whole) = (Frames::default(), Vec::new());
            for piece in STREAM.as_bytes().chunks(size) {
                frames.push(piece, &mut whole).unwrap();
            }
            let told: Vec<(&str, Value, Option<&str>)> =
                whole.iter().map(|frame| (&*frame.event, frame.data.clone(), frame.id.as_deref())).collect();
            let expected = vec![
                ("queued", json!({ "position": 1 }), Some("7-1")),
                ("delta", json!({ "text": "ä" }), None),
                ("message", json!("plain"), None),
            ];
            assert_eq!(told, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn an_event_without_end_is_not_collected_for_ever() {
        let (mut frames, mut whole) = (Frames::default(), Vec::new());
        let piece = vec![b'x'; 1024 * 1024];
        let pushed = (0..17).try_for_each(|_| frames.push(&piece, &mut whole));
        assert_eq!(pushed, Err(TooLong));
    }
}
