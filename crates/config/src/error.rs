//! What is wrong with a configuration: where, which key, and what would be right.

use std::fmt::{self, Write};

use crate::source::ValueSource;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The file and line, or the variable.
    pub at: ValueSource,
    /// The block, as people write it (`lane "main"`, `messages.queue`); empty at the top of the file.
    pub block: String,
    /// What is wrong there.
    pub problem: ConfigProblem,
}

/// What is wrong with a key or a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigProblem {
    /// The file cannot be read; holds why.
    Unreadable(String),
    /// The file's name ends in nothing that is known.
    UnknownFormat,
    /// The file is longer than [`FILE_BYTES_MAX`](crate::FILE_BYTES_MAX) bytes.
    TooLong,
    /// The text is not of its format; holds what the parser says.
    Syntax(String),
    /// There is no such key.
    UnknownKey {
        /// The key, as it was written.
        key: String,
        /// The one that was probably meant.
        nearest: Option<String>,
        /// All that there are.
        known: Vec<String>,
    },
    /// The value cannot be taken.
    WrongValue {
        /// The key, as it was written.
        key: String,
        /// What would be right, as the end of a sentence that starts with the key.
        expected: String,
    },
    /// The same thing is said twice.
    Twice {
        /// The key, as it was written the second time.
        key: String,
        /// Where it was said first.
        first: ValueSource,
    },
    /// Something that must be said is not.
    Missing {
        /// What is missing, as the end of a sentence that starts with "needs".
        needed: String,
    },
    /// Two things that are said cannot both hold, or name something that is not there; holds a sentence.
    Contradiction(String),
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
        // Names out of the file are repeated, and a line stays a line, whatever is in them.
        for char in format!("{block}{}", self.problem).chars() {
            if char.is_control() { write!(f, "{}", char.escape_default())? } else { f.write_char(char)? }
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// Everything that is wrong with a configuration, in the order of the file; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors(pub(crate) Vec<Error>);

impl Errors {
    /// Each of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Error> {
        self.0.iter()
    }
}

impl fmt::Display for Errors {
    /// One line each.
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
