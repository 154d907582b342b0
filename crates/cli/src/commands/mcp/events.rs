//! Server-sent events, as far as MCP uses them: the data of each event is one message.

/// How long one event may be.
const EVENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Cuts a stream of bytes into the data of its events.
#[derive(Default)]
pub(crate) struct Events {
    line: Vec<u8>,
    data: String,
    /// The last byte was the end of a line that a line feed may belong to.
    after_return: bool,
}

impl Events {
    /// The data of the events that these bytes complete; `Err`: an event is longer than may be.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, ()> {
        let mut complete = Vec::new();
        for byte in bytes {
            let ends = matches!(byte, b'\n' | b'\r');
            if !ends {
                self.line.push(*byte);
            } else if !(*byte == b'\n' && self.after_return) {
                complete.extend(self.end_line());
            }
            self.after_return = *byte == b'\r';
        }
        match self.line.len() + self.data.len() > EVENT_BYTES_MAX {
            true => Err(()),
            false => Ok(complete),
        }
    }

    fn end_line(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            return (!data.trim().is_empty()).then_some(data);
        }
        if let Some(data) = line.strip_prefix("data:") {
            self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
            self.data.push('\n');
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found_wherever_the_bytes_are_cut() {
        let stream = "id: 1\nretry: 3000\ndata:\n\n: alive\n\ndata: {\"a\":1}\r\n\r\nevent: message\rdata: {\"b\":\rdata: 2}\r\r";
        let expected = Ok(vec!["{\"a\":1}\n".to_owned(), "{\"b\":\n2}\n".to_owned()]);
        for cut in 0..=stream.len() {
            let (first, rest) = stream.as_bytes().split_at(cut);
            let mut events = Events::default();
            let both = events.push(first).and_then(|found| Ok([found, events.push(rest)?].concat()));
            assert_eq!(both, expected, "cut at {cut}");
        }
    }
}
