//! What is wrong with a script.

use laneway_core::{NameError, SettingError};
use thiserror::Error;

/// A line of a script that means nothing. Nothing was played.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {wrong}; {right}")]
pub struct ScriptError {
    /// Which line, counted from one.
    pub line: usize,
    /// What is wrong with it.
    pub wrong: String,
    /// What would be right.
    pub right: String,
}

/// Why a line could not be read.
#[derive(Debug, Error)]
pub(crate) enum LineError {
    /// The script is wrong.
    #[error("{0}")]
    Script(String),
    /// The scheduler would refuse the name. A refusal is part of the play, because scripts show refusals.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The scheduler would refuse the setting.
    #[error(transparent)]
    Setting(#[from] SettingError),
}

pub(crate) fn wrong<T>(text: impl Into<String>) -> Result<T, LineError> {
    Err(LineError::Script(text.into()))
}
