//! The texts that a turn is made of: messages that were collected, and a summary of those that were dropped.
//!
//! Pure functions of texts, exact to the character: agents are prompted with them.

/// The longest line of a summary, in characters.
pub const SUMMARY_LINE_CHARS_MAX: usize = 160;

const TITLE: &str = "[Queued messages while agent was busy]";

/// One message of a collected turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// The sender's name, if known.
    pub sender_name: Option<&'a str>,
    /// What is said.
    pub text: &'a str,
}

/// What was dropped because too many waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow<'a, L> {
    /// How many.
    pub dropped: u64,
    /// A line of each of the newest, as [`summary_line`] makes it.
    pub lines: &'a [L],
}

/// A message in one line: white space folded, at most [`SUMMARY_LINE_CHARS_MAX`] characters.
pub fn summary_line(text: &str) -> String {
    let mut line = String::new();
    let mut chars = 0;
    for word in text.split_whitespace() {
        let space = usize::from(chars > 0);
        let length = word.chars().count();
        if space > 0 {
            line.push(' ');
        }
        line.push_str(word);
        chars += space + length;
        if chars > SUMMARY_LINE_CHARS_MAX {
            let cut: String = line.chars().take(SUMMARY_LINE_CHARS_MAX - 1).collect();
            return format!("{cut}…");
        }
    }
    line
}

/// Tells an agent what was dropped.
pub fn summary<L: AsRef<str>>(overflow: Overflow<'_, L>) -> String {
    let noun = if overflow.dropped == 1 { "message" } else { "messages" };
    let mut text = format!("[Queue overflow] Dropped {} {noun} due to cap.", overflow.dropped);
    if !overflow.lines.is_empty() {
        text.push_str("\nSummary:");
    }
    for line in overflow.lines {
        text.push_str("\n- ");
        text.push_str(line.as_ref());
    }
    text
}

/// The text of a turn: one message plain, several under a title, what was dropped before them.
pub fn turn_text<L: AsRef<str>>(parts: &[Part<'_>], overflow: Option<Overflow<'_, L>>) -> String {
    match (parts, overflow) {
        ([], None) => String::new(),
        ([], Some(overflow)) => summary(overflow),
        ([only], None) => only.text.to_owned(),
        (_, overflow) => collected(parts, overflow),
    }
}

fn collected<L: AsRef<str>>(parts: &[Part<'_>], overflow: Option<Overflow<'_, L>>) -> String {
    let mut text = TITLE.to_owned();
    if let Some(overflow) = overflow {
        text.push_str("\n\n");
        text.push_str(&summary(overflow));
    }
    for (index, part) in parts.iter().enumerate() {
        text.push_str(&format!("\n\n---\nQueued #{}", index + 1));
        if let Some(name) = part.sender_name {
            // A name is one line, or it could pretend to be another message.
            let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
            if !name.is_empty() {
                text.push_str(&format!(" (from {name})"));
            }
        }
        text.push('\n');
        text.push_str(part.text);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str) -> Part<'_> {
        Part { sender_name: None, text }
    }

    const NOTHING: Option<Overflow<'static, &str>> = None;

    #[test]
    fn collected_messages_read_exactly_so() {
        let text = turn_text(&[part("one"), part("two")], NOTHING);
        let expected = "[Queued messages while agent was busy]\n\n---\nQueued #1\none\n\n---\nQueued #2\ntwo";
        assert_eq!(text, expected);
        let named = [Part { sender_name: Some("Ann\n---"), text: "one" }, part("two")];
        assert!(turn_text(&named, NOTHING).contains("\nQueued #1 (from Ann ---)\none\n"));
        assert_eq!(turn_text(&[part(" as it is\n")], NOTHING), " as it is\n");
    }

    #[test]
    fn a_summary_reads_exactly_so() {
        let overflow = Overflow { dropped: 3, lines: &["b", "c"] };
        let expected = "[Queue overflow] Dropped 3 messages due to cap.\nSummary:\n- b\n- c";
        assert_eq!(turn_text(&[], Some(overflow)), expected);
        let collected = turn_text(&[part("d")], Some(overflow));
        let title = "[Queued messages while agent was busy]";
        assert_eq!(collected, format!("{title}\n\n{expected}\n\n---\nQueued #1\nd"));
        let one = Overflow { dropped: 1, lines: &["b"] };
        assert!(summary(one).starts_with("[Queue overflow] Dropped 1 message due to cap."));
    }

    #[test]
    fn a_summary_line_is_folded_and_cut() {
        assert_eq!(summary_line("  a\n\tb   c "), "a b c");
        let exact = "x".repeat(160);
        assert_eq!(summary_line(&exact), exact);
        assert_eq!(summary_line(&"é".repeat(161)), format!("{}…", "é".repeat(159)));
        assert_eq!(summary_line(&format!("{} y", "x".repeat(159))), format!("{}…", "x".repeat(159)));
    }
}
