//! Directives in the texts of messages.

use laneway_core::{Mode, Reading, SUMMARY_LINE_CHARS_MAX, read_directive, summary_line};

use super::words;
use crate::Target;

pub(super) struct Directives;

impl Target for Directives {
    fn name(&self) -> &'static str {
        "directives"
    }

    fn words(&self) -> Vec<String> {
        let mut all = words(&[
            "/queue",
            "/QUEUE:",
            "/queue ",
            "/new",
            "/stop",
            "cap:",
            "cap=",
            "debounce:",
            "max_wait:",
            "max-wait:",
            "drop:",
            "old",
            "new",
            "summarize",
            "default",
            "reset",
            "ms",
            "s",
            "20",
            " ",
            "\u{2003}",
            "…",
            "\u{130}",
        ]);
        all.extend(Mode::WORDS.iter().map(|(word, _)| (*word).to_owned()));
        all
    }

    fn read(&mut self, input: &[u8]) -> Result<String, String> {
        let text = String::from_utf8_lossy(input);
        let line = summary_line(&text);
        if line.chars().count() > SUMMARY_LINE_CHARS_MAX || line.contains('\n') {
            return Err(format!("a summary of more than a short line: {line:?}"));
        }
        match read_directive(&text) {
            Reading::Plain => Ok("plain".to_owned()),
            Reading::Whole(directive) => {
                if read_directive(&format!(" {} ", text.trim())) != Reading::Whole(directive.clone()) {
                    return Err(format!("{directive:?}, and something else with blanks around it"));
                }
                Ok(format!("{directive:?}"))
            }
            Reading::Inline { queue, text: rest } => {
                if queue.is_empty() || rest.trim().is_empty() || rest.len() >= text.len() {
                    return Err(format!("{queue:?} out of a text of which {rest:?} is left"));
                }
                Ok(format!("{queue:?} in a text"))
            }
            Reading::Wrong(error) => {
                if error.chars().count() >= 400 || error.chars().any(char::is_control) || !error.contains('"')
                {
                    return Err(format!("a refusal that cannot be shown: {error:?}"));
                }
                Ok(error)
            }
        }
    }
}
