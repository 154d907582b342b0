//! Where a value came from.

use std::fmt;
use std::sync::Arc;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueSource {
    /// Nobody said anything: built in.
    Default,
    /// The configuration file.
    File {
        /// The file, as it was named to the parser.
        path: Arc<str>,
        /// The line, counted from one, where the format tells it.
        line: Option<u32>,
    },
    /// A variable of the environment, by its name.
    Environment(Arc<str>),
}

impl fmt::Display for ValueSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueSource::Default => write!(f, "default"),
            ValueSource::File { path, line: Some(line) } => write!(f, "{path}:{line}"),
            ValueSource::File { path, line: None } => write!(f, "{path}"),
            ValueSource::Environment(variable) => write!(f, "{variable}"),
        }
    }
}
