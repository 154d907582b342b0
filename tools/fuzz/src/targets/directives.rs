//! Directives in the texts of messages.

use laneway_core::{Reading, SUMMARY_LINE_CHARS_MAX, read_directive, summary_line};

use crate::FuzzOutcome;

pub(super) fn read(input: &[u8]) -> FuzzOutcome {
    let text = String::from_utf8_lossy(input);
    let line = summary_line(&text);
    assert!(line.chars().count() <= SUMMARY_LINE_CHARS_MAX, "a long summary line: {line:?}");
    assert!(!line.contains('\n'), "a summary of two lines: {line:?}");
    match read_directive(&text) {
        Reading::Plain => FuzzOutcome::Understood,
        Reading::Whole(directive) => {
            let padded = read_directive(&format!(" {} ", text.trim()));
            assert_eq!(padded, Reading::Whole(directive), "blanks around a directive change it");
            FuzzOutcome::Understood
        }
        Reading::Inline { queue, text: rest } => {
            assert!(!queue.is_empty(), "an inline directive that sets nothing");
            assert!(!rest.trim().is_empty() && rest.len() < text.len(), "left of the text: {rest:?}");
            FuzzOutcome::Understood
        }
        Reading::Wrong(error) => {
            let is_short = error.chars().count() < 400;
            let is_printable = !error.chars().any(char::is_control);
            assert!(is_short && is_printable && error.contains('"'), "not a clear refusal: {error:?}");
            FuzzOutcome::Refused
        }
    }
}
