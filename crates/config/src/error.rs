//! Errors of a configuration: the place, the key, and what would be right.

use std::fmt::{self, Write};

use crate::source::ValueSource;

/// One error of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The file and line, or the variable.
    pub at: ValueSource,
    /// The block as in the file, `lane "main"` or `messages.queue`. Empty at the top of the file.
    pub block: String,
    /// What is wrong.
    pub problem: ConfigProblem,
}

/// What is wrong with a key or a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigProblem {
    /// The file cannot be read, and why.
    Unreadable(String),
    /// The ending of the file's name is not a known format.
    UnknownFormat,
    /// The file is longer than [`FILE_BYTES_MAX`](crate::FILE_BYTES_MAX) bytes.
    TooLong,
    /// The file is not valid HCL, JSON5 or TOML. Holds the parser's message.
    Syntax(String),
    /// The key does not exist.
    UnknownKey {
        /// The key as in the file.
        key: String,
        /// The most similar key.
        nearest: Option<String>,
        /// All keys of the block.
        known: Vec<String>,
    },
    /// The value is not valid.
    WrongValue {
        /// The key as in the file.
        key: String,
        /// What would be right, as the end of a sentence that starts with the key.
        expected: String,
    },
    /// The same setting is given twice.
    Twice {
        /// The second key as in the file.
        key: String,
        /// The place of the first.
        first: ValueSource,
    },
    /// A required setting is missing.
    Missing {
        /// The setting, as the end of a sentence that starts with "needs".
        needed: String,
    },
    /// Two settings exclude each other, or a name does not exist. Holds a sentence.
    Contradiction(String),
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

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigProblem::Unreadable(why) => write!(f, "cannot be read: {why}"),
            ConfigProblem::UnknownFormat => {
                write!(f, "the file's name must end in .hcl, .json5, .json or .toml")
            }
            ConfigProblem::TooLong => {
                write!(f, "the file has more than {} bytes", crate::FILE_BYTES_MAX)
            }
            ConfigProblem::Syntax(why) => write!(f, "{why}"),
            ConfigProblem::UnknownKey { key, nearest: Some(nearest), .. } => {
                write!(f, "{key} is not a setting; did you mean {nearest}?")
            }
            ConfigProblem::UnknownKey { key, nearest: None, known } => {
                write!(f, "{key} is not a setting; there are {}", known.join(", "))
            }
            ConfigProblem::WrongValue { key, expected } => write!(f, "{key} {expected}"),
            ConfigProblem::Twice { key, first } => write!(f, "{key} is given twice; first at {first}"),
            ConfigProblem::Missing { needed } => write!(f, "needs {needed}"),
            ConfigProblem::Contradiction(sentence) => write!(f, "{sentence}"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.at)?;
        let block = if self.block.is_empty() { String::new() } else { format!("{}: ", self.block) };
        // The text repeats names of the file, and an escaped line break in them keeps the error on one line.
        for char in format!("{block}{}", self.problem).chars() {
            match char.is_control() {
                true => write!(f, "{}", char.escape_default())?,
                false => f.write_char(char)?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// All errors of a configuration in the order of the file. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors(pub(crate) Vec<Error>);

impl Errors {
    /// The errors.
    pub fn iter(&self) -> std::slice::Iter<'_, Error> {
        self.0.iter()
    }
}

impl fmt::Display for Errors {
    /// Writes one line per error.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, error) in self.0.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Errors {}
