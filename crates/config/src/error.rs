//! What is wrong with a configuration: where, which key, and what would be right.

use std::borrow::Cow;

use laneway_core::SettingError;

use crate::source::ValueSource;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {}", self.sentence())]
pub struct Error {
    /// The file and line, or the variable.
    pub at: ValueSource,
    /// The block, as people write it (`lane "main"`, `messages.queue`); empty at the top of the file.
    pub block: String,
    /// What is wrong there.
    pub problem: ConfigProblem,
}

/// What is wrong with a key or a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigProblem {
    /// The file cannot be read; holds why.
    #[error("cannot be read: {0}")]
    Unreadable(String),
    /// The file's name ends in nothing that is known.
    #[error("the file's name must end in .hcl, .json5, .json or .toml")]
    UnknownFormat,
    /// The file is longer than [`FILE_BYTES_MAX`](crate::FILE_BYTES_MAX) bytes.
    #[error("the file has more than {} bytes", crate::FILE_BYTES_MAX)]
    TooLong,
    /// The text is not of its format; holds what the parser says.
    #[error("{0}")]
    Syntax(String),
    /// There is no such key.
    #[error("{key} is not a setting; {}", hint(nearest.as_deref(), known))]
    UnknownKey {
        /// The key, as it was written.
        key: String,
        /// The one that was probably meant.
        nearest: Option<String>,
        /// All that there are.
        known: Vec<String>,
    },
    /// The value cannot be taken.
    #[error("{key} {expected}")]
    WrongValue {
        /// The key, as it was written.
        key: String,
        /// What would be right, as the end of a sentence that starts with the key.
        expected: String,
    },
    /// The same thing is said twice.
    #[error("{key} is given twice; first at {first}")]
    Twice {
        /// The key, as it was written the second time.
        key: String,
        /// Where it was said first.
        first: ValueSource,
    },
    /// Something that must be said is not.
    #[error("needs {needed}")]
    Missing {
        /// What is missing, as the end of a sentence that starts with "needs".
        needed: String,
    },
    /// Two things that are said cannot both hold, or name something that is not there; holds a sentence.
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
    /// A name for this kind of problem that stays the same for ever.
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
    /// The block and the problem. Names out of the file are repeated, and a line stays a line, whatever is in them.
    fn sentence(&self) -> String {
        let block = if self.block.is_empty() { String::new() } else { format!("{}: ", self.block) };
        let sentence = format!("{block}{}", self.problem);
        let shown =
            |char: char| if char.is_control() { char.escape_default().collect() } else { char.to_string() };
        sentence.chars().map(shown).collect()
    }
}

/// Everything that is wrong with a configuration, in the order of the file; never empty.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines(.0))]
pub struct Errors(pub(crate) Vec<Error>);

impl Errors {
    /// Each of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Error> {
        self.0.iter()
    }
}

/// One line each.
fn lines(errors: &[Error]) -> String {
    errors.iter().map(Error::to_string).collect::<Vec<_>>().join("\n")
}

/// Why a value is not taken: what would be right, as the end of a sentence that starts with its key.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Expected(pub(crate) Cow<'static, str>);

impl From<SettingError> for Expected {
    fn from(error: SettingError) -> Expected {
        Expected(error.expected.into())
    }
}
