//! Bytes that come in pieces, as text.

/// Turns bytes that come in pieces into text: a character that is cut by the end of a piece waits for the next
/// one; what is no text becomes `\u{fffd}`.
#[derive(Clone, Debug, Default)]
pub struct Text {
    /// The beginning of a character, three bytes at most.
    rest: Vec<u8>,
}

impl Text {
    /// Adds a piece to `text`, as far as it is whole.
    pub fn push(&mut self, piece: &[u8], text: &mut String) {
        let mut bytes = std::mem::take(&mut self.rest);
        bytes.extend_from_slice(piece);
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            if chunks.peek().is_none() && is_beginning(invalid) {
                self.rest = invalid.to_vec();
            } else if !invalid.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }

    /// Adds what waits for a piece that does not come.
    pub fn finish(&mut self, text: &mut String) {
        if !std::mem::take(&mut self.rest).is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// Whether more bytes could make a character of it.
fn is_beginning(bytes: &[u8]) -> bool {
    matches!(std::str::from_utf8(bytes), Err(error) if error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_the_same_however_it_is_cut() {
        for whole in ["aé€😀z".as_bytes(), b"a\xffb\xe2\x82", b"\xf0\x9f\x98", b"\xe2\x28\xa1", b""] {
            for cut in 0..=whole.len() {
                for next in cut..=whole.len() {
                    let (mut text, mut out) = (Text::default(), String::new());
                    for piece in [&whole[..cut], &whole[cut..next], &whole[next..]] {
                        text.push(piece, &mut out);
                    }
                    text.finish(&mut out);
                    assert_eq!(out, String::from_utf8_lossy(whole), "cut at {cut} and {next}");
                }
            }
        }
    }
}
