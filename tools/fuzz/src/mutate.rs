//! Small changes to an input: to its bytes, and to the JSON in it.

use std::ops::Range;

use serde_json::{Map, Value};

use crate::chance::Chance;

/// No input is longer.
pub const INPUT_BYTES_MAX: usize = 64 * 1024;

/// What goes wrong everywhere.
const PIECES: [&str; 34] = [
    "",
    "\0",
    "\n",
    "\r\n",
    "\"",
    "'",
    "\\",
    "\\u0000",
    "\\ud800",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "%",
    "%00",
    "*",
    "/",
    "${",
    "-1",
    "0",
    "1e999",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775808",
    "99999999999ms",
    "null",
    "true",
    "é\u{301}",
    "\u{202e}",
    "🦀",
    "NaN",
    "0x7fffffff",
];

/// Changes `input` in one to four places; `words` are what its readers understand, `others` inputs to take pieces from.
pub(crate) fn mutate(input: &[u8], words: &[String], others: &[Vec<u8>], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=chance.below(4) {
        bytes = match chance.below(8) {
            0..=2 => in_json(&bytes, words, chance).unwrap_or_else(|| replace(&bytes, words, others, chance)),
            _ => replace(&bytes, words, others, chance),
        };
        bytes.truncate(INPUT_BYTES_MAX);
    }
    bytes
}

/// Something goes, comes, or stands somewhere else.
fn replace(bytes: &[u8], words: &[String], others: &[Vec<u8>], chance: &mut Chance) -> Vec<u8> {
    let from = chance.below(bytes.len() + 1);
    let gone = if chance.once_in(2) { 0 } else { chance.below(12) };
    let to = (from + gone).min(bytes.len());
    let new = match chance.below(8) {
        0 => Vec::new(),
        1 => chance.one(&PIECES).map_or_else(Vec::new, |piece| piece.as_bytes().to_vec()),
        2 | 3 => chance.one(words).map_or_else(Vec::new, |word| word.as_bytes().to_vec()),
        4 => chance.piece(bytes, 40).to_vec(),
        5 => chance.one(others).map_or_else(Vec::new, |other| chance.clone().piece(other, 200).to_vec()),
        6 => {
            let times = 1 << chance.below(12);
            chance.piece(bytes, 8).repeat(times)
        }
        _ => vec![chance.below(256) as u8],
    };
    [&bytes[..from], &new, &bytes[to..]].concat()
}

/// Changes one value of some JSON in the input.
fn in_json(bytes: &[u8], words: &[String], chance: &mut Chance) -> Option<Vec<u8>> {
    let starts: Vec<usize> = (0..bytes.len()).filter(|at| matches!(bytes[*at], b'{' | b'[')).collect();
    let start = *chance.one(&starts)?;
    let (mut value, range) = json_at(bytes, start)?;
    change(&mut value, words, chance, 0);
    let new = value.to_string();
    Some([&bytes[..range.start], new.as_bytes(), &bytes[range.end..]].concat())
}

fn json_at(bytes: &[u8], start: usize) -> Option<(Value, Range<usize>)> {
    let mut values = serde_json::Deserializer::from_slice(&bytes[start..]).into_iter::<Value>();
    let value = values.next()?.ok()?;
    Some((value, start..start + values.byte_offset()))
}

fn change(value: &mut Value, words: &[String], chance: &mut Chance, depth: usize) {
    let is_last = chance.once_in(3);
    match value {
        Value::Object(fields) if !is_last && !fields.is_empty() => {
            let at = chance.below(fields.len());
            match chance.below(5) {
                0 => drop(fields.remove(&name_at(fields, at))),
                1 => {
                    let new = chance.one(words).cloned().unwrap_or_default();
                    let moved = fields.remove(&name_at(fields, at));
                    fields.insert(new, moved.unwrap_or_default());
                }
                _ => {
                    if let Some((_, inner)) = fields.iter_mut().nth(at) {
                        change(inner, words, chance, depth + 1);
                    }
                }
            }
        }
        Value::Object(fields) if chance.once_in(2) => {
            let new = chance.one(words).cloned().unwrap_or_default();
            fields.insert(new, any(words, chance, depth));
        }
        Value::Array(items) if !is_last && !items.is_empty() => {
            let at = chance.below(items.len());
            change(&mut items[at], words, chance, depth + 1);
        }
        other => *other = any(words, chance, depth),
    }
}

fn name_at(fields: &Map<String, Value>, at: usize) -> String {
    fields.keys().nth(at).cloned().unwrap_or_default()
}

/// Some value.
pub(crate) fn any(words: &[String], chance: &mut Chance, depth: usize) -> Value {
    match chance.below(if depth > 4 { 9 } else { 11 }) {
        0 => Value::Null,
        1 => Value::Bool(chance.once_in(2)),
        2 => chance
            .one(&[0_i64, 1, -1, 2, 9, 10, 255, 65_536, 86_400_000, i64::MAX, i64::MIN])
            .map_or(Value::Null, |n| (*n).into()),
        3 => chance.one(&[0.5, -0.0, 1e300, f64::MIN_POSITIVE]).map_or(Value::Null, |n| (*n).into()),
        4 => u64::MAX.into(),
        5 => chance.one(&PIECES).map_or(Value::Null, |piece| (*piece).into()),
        6 | 7 => chance.one(words).map_or(Value::Null, |word| word.as_str().into()),
        8 => "x".repeat(1 << chance.below(11)).into(),
        9 => (0..chance.below(4)).map(|_| any(words, chance, depth + 1)).collect(),
        _ => {
            let mut fields = Map::new();
            for _ in 0..chance.below(4) {
                let name = chance.one(words).cloned().unwrap_or_default();
                fields.insert(name, any(words, chance, depth + 1));
            }
            Value::Object(fields)
        }
    }
}
