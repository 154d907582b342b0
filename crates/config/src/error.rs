//! Errors of a configuration: the place, the key, and what would be right.

use std::borrow::Cow;

use laneway_core::SettingError;

use crate::source::ValueSource;

/// One error of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {}", self.sentence())]
pub struct Error {
    /// The file and line, or the variable.
    pub at: ValueSource,
    /// The block as in the file, `lane "main"` or `messages.queue`. Empty at the top of the file.
    pub block: String,
    /// What is wrong.
    pub problem: ConfigProblem,
}

/// What is wrong with a key or a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigProblem {
    /// The file cannot be read, and why.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// The ending of the file's name is not a known format.
    #[error("the file's name must end in .hcl, .json5, .json or .toml")]
    UnknownFormat,
    /// The file is longer than [`FILE_BYTES_MAX`](crate::FILE_BYTES_MAX) bytes.
    #[error("the file has more than {} bytes", crate::FILE_BYTES_MAX)]
    TooLong,
    /// The file is not valid HCL, JSON5 or TOML. Holds the parser's message.
    #[error("{0}")]
    Syntax(String),
    /// The key does not exist.
    #[error("{key} is not a setting; {}", hint(nearest.as_deref(), known))]
    UnknownKey {
        /// The key as in the file.
        key: String,
        /// The most similar key.
        nearest: Option<String>,
        /// All keys of the block.
        known: Vec<String>,
    },
    /// The value is not valid.
    #[error("{key} {expected}")]
    WrongValue {
        /// The key as in the file.
        key: String,
        /// What would be right, as the end of a sentence that starts with the key.
        expected: String,
    },
    /// The same setting is given twice.
    #[error("{key} is given twice; first at {first}")]
    Twice {
        /// The second key as in the file.
        key: String,
        /// The place of the first.
        first: ValueSource,
    },
    /// A required setting is missing.
    #[error("needs {needed}")]
    Missing {
        /// The setting, as the end of a sentence that starts with "needs".
        needed: String,
    },
    /// Two settings exclude each other, or a name does not exist. Holds a sentence.
    #[error("{0}")]
    Contradiction(String),
}

fn hint(nearest: Option<&str>, known: &[String]) -> String {
    match nearest {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => format!("there are {}", known.join(", ")),
    }
}

impl ConfigProblem {
    /// A stable code of the problem.
    pub fn code(&self) -> &'static str {
        match self {
            ConfigProblem::Unreadable(_) => "UNREADABLE",
            ConfigProblem::UnknownFormat => "UNKNOWN_FORMAT",
            ConfigProblem::TooLong => "TOO_LONG",
            ConfigProblem::Syntax(_) => "SYNTAX",
            ConfigProblem::UnknownKey { .. } => "UNKNOWN_KEY",
            ConfigProblem::WrongValue { .. } => "WRONG_VALUE",
            ConfigProblem::Twice { .. } => "TWICE",
            ConfigProblem::Missing { .. } => "MISSING",
            ConfigProblem::Contradiction(_) => "CONTRADICTION",
        }
    }
}

impl Error {
    /// The block and the problem. The text repeats names of the file, and an escaped line break in them keeps it on one line.
    fn sentence(&self) -> String {
        let block = if self.block.is_empty() { String::new() } else { format!("{}: ", self.block) };
        let sentence = format!("{block}{}", self.problem);
        let shown =
            |char: char| if char.is_control() { char.escape_default().collect() } else { char.to_string() };
        sentence.chars().map(shown).collect()
    }
}

/// All errors of a configuration in the order of the file. Never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(.0))]
pub struct Errors(pub(crate) Vec<Error>);

impl Errors {
    /// The errors.
    pub fn iter(&self) -> std::slice::Iter<'_, Error> {
        self.0.iter()
    }
}

/// Writes one line per error.
fn lines(errors: &[Error]) -> String {
    errors.iter().map(Error::to_string).collect::<Vec<_>>().join("\n")
}

/// What would be right instead of a wrong value, as the end of a sentence that starts with its key.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Expected(pub(crate) Cow<'static, str>);

impl From<SettingError> for Expected {
    fn from(error: SettingError) -> Expected {
        Expected(error.expected.into())
    }
}
