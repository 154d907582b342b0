//! Formats values for people.

use std::time::{SystemTime, UNIX_EPOCH};

use laneway_core::Timestamp;
use laneway_protocol::At;
use serde_json::Value;

/// The longest text in a table cell.
const CELL_CHARS_MAX: usize = 48;

/// Replaces control characters, so that a text cannot move the cursor or change the colour.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|sign| if sign.is_control() { '\u{fffd}' } else { sign }).collect()
}

/// Like [`plain`], but keeps line breaks and tabs.
pub(crate) fn plain_lines(text: &str) -> String {
    let is_kept = |sign: char| !sign.is_control() || sign == '\n' || sign == '\t';
    text.chars().map(|sign| if is_kept(sign) { sign } else { '\u{fffd}' }).collect()
}

/// The start of a text, on one line.
pub(crate) fn short(text: &str) -> String {
    let folded = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if folded.chars().count() > CELL_CHARS_MAX {
        folded.chars().take(CELL_CHARS_MAX - 1).chain(['…']).collect()
    } else {
        folded
    }
}

/// The start of a payload or a result: a text as it is, any other value as JSON.
pub(crate) fn brief(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => short(text),
        Value::Object(object) => match object.get("message") {
            Some(Value::String(message)) => short(message),
            _ => short(&value.to_string()),
        },
        other => short(&other.to_string()),
    }
}

/// A whole payload or result.
pub(crate) fn full(value: &Value) -> String {
    match value {
        Value::String(text) => plain_lines(text),
        other => other.to_string(),
    }
}

/// A duration in its two largest units.
pub(crate) fn duration(millis: u64) -> String {
    let secs = millis / 1000;
    match millis {
        0..1_000 => format!("{millis}ms"),
        1_000..10_000 => format!("{secs}.{}s", millis % 1000 / 100),
        10_000..120_000 => format!("{secs}s"),
        120_000..7_200_000 => format!("{}m{:02}s", secs / 60, secs % 60),
        7_200_000..172_800_000 => format!("{}h{:02}m", secs / 3600, secs / 60 % 60),
        _ => format!("{}d{:02}h", secs / 86_400, secs / 3600 % 24),
    }
}

/// A duration, or `-` if it is unknown.
pub(crate) fn maybe(millis: Option<u64>) -> String {
    millis.map_or_else(|| "-".to_owned(), duration)
}

/// The time of this machine's clock.
pub(crate) fn now() -> Timestamp {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(since_1970.as_millis() as u64)
}

/// How long ago a moment was, or zero if this clock is behind.
pub(crate) fn since(at: At) -> String {
    duration(now().0.saturating_sub(at.0.0))
}

/// How long it is until a moment.
pub(crate) fn until(at: At) -> String {
    duration(at.0.0.saturating_sub(now().0))
}

/// A limit, or `∞` for none.
pub(crate) fn limit(limit: Option<u32>) -> String {
    limit.map_or_else(|| "∞".to_owned(), |limit| limit.to_string())
}

/// A number with its noun: `1 task`, `2 tasks`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        let samples = [
            (0, "0ms"),
            (999, "999ms"),
            (1_999, "1.9s"),
            (59_000, "59s"),
            (125_000, "2m05s"),
            (7_260_000, "2h01m"),
            (200_000_000, "2d07h"),
        ];
        for (millis, shown) in samples {
            assert_eq!(duration(millis), shown);
        }
    }

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(plain("a\u{1b}[2Jb\nc"), "a\u{fffd}[2Jb\u{fffd}c");
        assert_eq!(plain_lines("a\u{1b}[2J\n\tc\u{9b}"), "a\u{fffd}[2J\n\tc\u{fffd}");
        assert_eq!(short(&"x ".repeat(60)).chars().count(), CELL_CHARS_MAX);
    }
}
