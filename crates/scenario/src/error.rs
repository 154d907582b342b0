//! What is wrong with a script.

use std::fmt;

use laneway_core::{NameError, SettingError};

/// A line of a script that says nothing. Nothing was played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// Which line, counted from one.
    pub line: usize,
    /// What is wrong with it.
    pub wrong: String,
    /// What would be right.
    pub right: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}; {}", self.line, self.wrong, self.right)
    }
}

impl std::error::Error for ScriptError {}

/// Why the words of a line could not be read.
pub(crate) enum Wrong {
    /// The script is wrong: in words.
    Script(String),
    /// The scheduler would not have it: part of the play, since its refusals are what scripts are about.
    Refused(String),
}

impl From<NameError> for Wrong {
    fn from(error: NameError) -> Wrong {
        Wrong::Refused(error.to_string())
    }
}

impl From<SettingError> for Wrong {
    fn from(error: SettingError) -> Wrong {
        Wrong::Refused(error.to_string())
    }
}

pub(crate) fn wrong<T>(text: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong::Script(text.into()))
}
