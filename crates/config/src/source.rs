//! The source of a value.

use std::fmt;
use std::sync::Arc;

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueSource {
    /// A built-in default.
    Default,
    /// The configuration file.
    File {
        /// The file's name, as given to the parser.
        path: Arc<str>,
        /// The line, counted from one, if the format has it.
        line: Option<u32>,
    },
    /// A variable of the environment or an option of the command line, by its name.
    Environment(Arc<str>),
    /// A caller changed the value while the server runs.
    Api {
        /// What the configuration says, after its source: `laneway.hcl:3 says 4`.
        configured: Arc<str>,
    },
}

impl fmt::Display for ValueSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueSource::Default => write!(f, "default"),
            ValueSource::File { path, line: Some(line) } => write!(f, "{path}:{line}"),
            ValueSource::File { path, line: None } => write!(f, "{path}"),
            ValueSource::Environment(variable) => write!(f, "{variable}"),
            ValueSource::Api { .. } => write!(f, "api"),
        }
    }
}
