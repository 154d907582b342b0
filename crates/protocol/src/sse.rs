//! Reads server-sent events.

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// Its name; empty if the stream names none.
    pub name: String,
    /// Its data, with line feeds between its lines; `None`: only a name came.
    pub data: Option<String>,
    /// The id.
    pub id: Option<String>,
}

/// An event is longer than the reader allows.
#[derive(Debug, PartialEq, Eq)]
pub struct EventTooLong;

/// Splits a stream of bytes into events as the HTML standard says. Ignores comments and unknown fields.
#[derive(Debug)]
pub struct SseReader {
    event_bytes_max: usize,
    line: Vec<u8>,
    /// The line before ended with a carriage return, so a line feed that follows belongs to it.
    after_return: bool,
    name: String,
    data: Option<String>,
    id: Option<String>,
}

impl SseReader {
    /// A reader that fails when an event is longer than this.
    pub fn new(event_bytes_max: usize) -> SseReader {
        let (line, name) = (Vec::new(), String::new());
        SseReader { event_bytes_max, line, after_return: false, name, data: None, id: None }
    }

    /// Reads a piece of the stream and appends the events that it completes.
    pub fn push(&mut self, piece: &[u8], complete: &mut Vec<SseEvent>) -> Result<(), EventTooLong> {
        for byte in piece {
            match byte {
                b'\n' if std::mem::take(&mut self.after_return) => {}
                b'\n' | b'\r' => {
                    self.after_return = *byte == b'\r';
                    complete.extend(self.end_line());
                }
                byte => {
                    self.after_return = false;
                    self.line.push(*byte);
                }
            }
            if self.line.len() + self.data.as_ref().map_or(0, String::len) > self.event_bytes_max {
                return Err(EventTooLong);
            }
        }
        Ok(())
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        if line.is_empty() {
            let (name, data, id) = (std::mem::take(&mut self.name), self.data.take(), self.id.take());
            let is_event = data.is_some() || !name.is_empty();
            return is_event.then_some(SseEvent { name, data, id });
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.name = value.to_owned(),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                none => *none = Some(value.to_owned()),
            },
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = ": alive\n\nretry: 3000\nevent: queued\ndata: {\"position\":1}\nid: 7-1\n\n\
                          event: delta\r\ndata: {\"text\":\r\ndata: \"ä\"}\r\n\r\ndata: a\rdata: b\r\r\
                          nothing\ndata\n\nevent: no data\n\nevent: cut off\n";

    #[test]
    fn a_stream_is_cut_the_same_wherever_it_breaks() {
        let expected = [
            ("queued", Some("{\"position\":1}"), Some("7-1")),
            ("delta", Some("{\"text\":\n\"ä\"}"), None),
            ("", Some("a\nb"), None),
            ("", Some(""), None),
            ("no data", None, None),
        ];
        for size in 1..=STREAM.len() {
            let (mut reader, mut complete) = (SseReader::new(64), Vec::new());
            for piece in STREAM.as_bytes().chunks(size) {
                assert_eq!(reader.push(piece, &mut complete), Ok(()));
            }
            let parts = |event: &SseEvent| (event.name.clone(), event.data.clone(), event.id.clone());
            let read: Vec<_> = complete.iter().map(parts).collect();
            let expected = expected.map(|(name, data, id): (&str, Option<&str>, Option<&str>)| {
                (name.to_owned(), data.map(str::to_owned), id.map(str::to_owned))
            });
            assert_eq!(read, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn an_event_without_end_is_not_collected_for_ever() {
        let (mut reader, mut complete) = (SseReader::new(1000), Vec::new());
        let pushed = (0..17).try_for_each(|_| reader.push(&[b'x'; 100], &mut complete));
        assert_eq!(pushed, Err(EventTooLong));
    }
}
