//! Parses JSON5 into the tree. The parser gives no places, so a scan of the text finds the lines of the keys. Outside
//! strings and comments a colon follows only a key, and the parser visits keys in the order of the text.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::formats::{DEPTH_MAX, Entry, Lines, Node, SyntaxError, Value};

pub(crate) fn read(text: &str) -> Result<Node, SyntaxError> {
    let found = RefCell::new(key_lines(text).into_iter());
    let seed = Seed { key_lines: &found, line: None, depth: 0 };
    let tree = seed.deserialize(&mut json5::Deserializer::from_str(text));
    // A second parse finds text after the value; the first has checked that the value is not too deep.
    let tree = tree.and_then(|tree| json5::from_str::<IgnoredAny>(text).map(|_| tree));
    tree.map_err(|error| SyntaxError {
        line: error.position().and_then(|position| u32::try_from(position.line + 1).ok()),
        message: match error.code() {
            Some(code) => code.to_string(),
            None => TOO_DEEP.to_owned(),
        },
    })
}

const TOO_DEEP: &str = "the nesting is too deep";

/// The line of each key, in order.
fn key_lines(text: &str) -> Vec<u32> {
    let lines = Lines::of(text);
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let (mut at, mut token, mut between) = (0, 0, true);
    while let Some(byte) = bytes.get(at) {
        let next = match (byte, bytes.get(at + 1)) {
            (b'"' | b'\'', _) => {
                token = at;
                between = true;
                after_string(bytes, at)
            }
            (b'/', Some(b'/')) => after(bytes, at, b"\n"),
            (b'/', Some(b'*')) => after(bytes, at + 2, b"*/"),
            (b':', _) => {
                found.push(lines.line(token));
                between = true;
                at + 1
            }
            (byte, _) => {
                let separates = byte.is_ascii_whitespace() || b"{}[],".contains(byte);
                if between && !separates {
                    token = at;
                }
                between = separates;
                at + 1
            }
        };
        at = next;
    }
    found
}

fn after_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match *byte {
            b'\\' => at += 2,
            byte if byte == bytes[start] => return at + 1,
            _ => at += 1,
        }
    }
    at
}

fn after(bytes: &[u8], start: usize, end: &[u8]) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    rest.windows(end.len()).position(|window| window == end).map_or(bytes.len(), |at| start + at + end.len())
}

struct Seed<'a> {
    key_lines: &'a RefCell<std::vec::IntoIter<u32>>,
    line: Option<u32>,
    depth: usize,
}

impl Seed<'_> {
    fn below(&self, line: Option<u32>) -> Seed<'_> {
        Seed { key_lines: self.key_lines, line, depth: self.depth + 1 }
    }

    fn node<E>(&self, value: Value) -> Result<Node, E> {
        Ok(Node { line: self.line, value })
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        if self.depth > DEPTH_MAX {
            return Err(D::Error::custom(TOO_DEEP));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        self.node(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        self.node(Value::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Node, E> {
        self.node(Value::Bool(truth))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        self.node(Value::Number(number.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        self.node(Value::Number(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        self.node(Value::float(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        self.node(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.below(self.line))? {
            list.push(item);
        }
        self.node(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut table = Vec::new();
        while let Some(key) = entries.next_key::<String>()? {
            let line = self.key_lines.borrow_mut().next();
            let node = entries.next_value_seed(self.below(line))?;
            table.push(Entry { key, line, node });
        }
        self.node(Value::Table(table))
    }
}
