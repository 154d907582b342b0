//! The text of a turn. The first byte of an input is the number of dropped messages; each further line is the name of a
//! sender, a tab, and a message.

use laneway_core::{Overflow, Part, summary, turn_text};

use crate::FuzzOutcome;

pub(super) fn read(input: &[u8]) -> FuzzOutcome {
    let Some((dropped, rest)) = input.split_first() else { return FuzzOutcome::Refused };
    let text = String::from_utf8_lossy(rest);
    let parts: Vec<Part<'_>> = text.lines().map(part).collect();
    let lines = ["a dropped message", "another"];
    let overflow = (*dropped > 0)
        .then_some(Overflow { dropped: u64::from(*dropped), lines: &lines[..usize::from(*dropped).min(2)] });
    if parts.is_empty() {
        return FuzzOutcome::Refused;
    }
    check(&parts, overflow, &turn_text(&parts, overflow));
    FuzzOutcome::Understood
}

fn part(line: &str) -> Part<'_> {
    match line.split_once('\t') {
        Some((name, text)) => Part { sender_name: Some(name), text },
        None => Part { sender_name: None, text: line },
    }
}

/// The turn holds its heading, the summary of what was dropped, and every message in order.
fn check(parts: &[Part<'_>], overflow: Option<Overflow<'_, &str>>, turn: &str) {
    if let ([only], None) = (parts, overflow) {
        assert_eq!(turn, only.text, "a single message is the turn");
        return;
    }
    let mut rest = after(turn, "[Queued messages while agent was busy]");
    if let Some(overflow) = overflow {
        rest = after(after(rest, "\n\n"), &summary(overflow));
    }
    for (index, part) in parts.iter().enumerate() {
        let name = part.sender_name.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        let from = if name.is_empty() { String::new() } else { format!(" (from {name})") };
        rest = after(rest, &format!("\n\n---\nQueued #{}{from}\n", index + 1));
        rest = after(rest, part.text);
    }
    assert_eq!(rest, "", "text after the last message");
}

fn after<'a>(text: &'a str, start: &str) -> &'a str {
    text.strip_prefix(start).unwrap_or_else(|| panic!("{text:?} does not begin with {start:?}"))
}
