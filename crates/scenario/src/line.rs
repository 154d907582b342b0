//! One line of output.

use std::fmt;

use laneway_core::Timestamp;

/// One line of output. Its text is the time and the words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When.
    pub at: Timestamp,
    /// What, in words.
    pub text: String,
    /// Its sort, for display in colour.
    pub tone: Tone,
}

/// The sort of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Work was accepted or waits on.
    Waiting,
    /// Work starts.
    Start,
    /// Work ended well.
    Success,
    /// Work is in trouble or has failed.
    Trouble,
    /// A command was refused.
    Refusal,
    /// A lane changed.
    Lane,
    /// The answer to a question.
    Answer,
    /// The script's own words.
    Narration,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.at, self.text)
    }
}
