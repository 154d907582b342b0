//! Why a call brought nothing, and what that means for its caller.

use laneway_protocol::{Code, Problem};

/// Why a call brought nothing.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server understood the call and refused it.
    #[error("{} ({})", .0.detail, .0.code.as_str())]
    Refused(Box<Problem>),
    /// The token is missing or unknown, or may not do that.
    #[error("{} ({})", .0.detail, .0.code.as_str())]
    Unauthorized(Box<Problem>),
    /// No connection: nothing has happened.
    #[error("cannot reach the server at {url}: {why}")]
    Unreachable {
        /// The server's address.
        url: String,
        /// What the system says.
        why: String,
    },
    /// The connection broke, or no answer came in time. The call may or may not have happened.
    #[error("the server at {url} broke off: {why}")]
    BrokenOff {
        /// The server's address.
        url: String,
        /// What the system says.
        why: String,
    },
    /// The answer is not that of a Laneway server that this client knows.
    #[error("answered {status}: {why}")]
    NotUnderstood {
        /// The HTTP status.
        status: u16,
        /// What was wrong with the answer.
        why: String,
    },
    /// The call makes no sense and was not made.
    #[error("{0}")]
    Invalid(String),
}

/// The exit code of a program that was refused because there was no room.
const EXIT_REFUSED: u8 = 3;
/// The exit code of a program that could not reach the server.
const EXIT_UNREACHABLE: u8 = 4;
/// The exit code of a program that failed otherwise.
const EXIT_FAILED: u8 = 1;
/// The exit code of a program that was used wrongly.
const EXIT_USAGE: u8 = 2;

impl Error {
    /// The server's refusal, if the server refused.
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Error::Refused(problem) | Error::Unauthorized(problem) => Some(problem),
            _ => None,
        }
    }

    /// The server's code, if the server refused.
    pub fn code(&self) -> Option<Code> {
        self.problem().map(|problem| problem.code)
    }

    /// The exit code for a command line: 1 failed, 2 usage, 3 refused for want of room, 4 cannot reach the server.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Refused(problem) if is_for_want_of_room(problem.code) => EXIT_REFUSED,
            Error::Refused(problem) if problem.code == Code::Invalid => EXIT_USAGE,
            Error::Refused(_) | Error::Unauthorized(_) | Error::NotUnderstood { .. } => EXIT_FAILED,
            Error::Unreachable { .. } | Error::BrokenOff { .. } => EXIT_UNREACHABLE,
            Error::Invalid(_) => EXIT_USAGE,
        }
    }

    /// Whether the server was not there to answer, or is about to leave.
    pub fn is_away(&self) -> bool {
        match self {
            Error::Unreachable { .. } | Error::BrokenOff { .. } => true,
            Error::Refused(problem) => {
                matches!(problem.code, Code::Draining | Code::StoreUnavailable | Code::RateLimited)
            }
            // A proxy in front of a restarting server answers in its own words.
            Error::NotUnderstood { status, .. } => matches!(status, 502..=504),
            _ => false,
        }
    }

    /// A refusal, from an answer that is not a success.
    pub(crate) fn of_answer(status: u16, body: &[u8]) -> Error {
        let Ok(problem) = serde_json::from_slice::<Problem>(body) else {
            let text: String = String::from_utf8_lossy(body).chars().take(200).collect();
            let why = match text.trim() {
                "" => "the answer is empty".to_owned(),
                text => format!("the answer is not a refusal of a Laneway server: {text}"),
            };
            return Error::NotUnderstood { status, why };
        };
        match problem.code {
            Code::Unauthorized | Code::Forbidden => Error::Unauthorized(Box::new(problem)),
            _ => Error::Refused(Box::new(problem)),
        }
    }

    /// An error of the transport.
    pub(crate) fn of_transport(url: &str, error: reqwest::Error) -> Error {
        let is_unreachable = error.is_connect();
        let (url, why) = (url.to_owned(), innermost(&error.without_url()));
        if is_unreachable { Error::Unreachable { url, why } } else { Error::BrokenOff { url, why } }
    }
}

/// Whether the server refused because of how full or busy things are.
fn is_for_want_of_room(code: Code) -> bool {
    matches!(
        code,
        Code::AtCapacity
            | Code::RateLimited
            | Code::SessionBusy
            | Code::WouldDeadlock
            | Code::ChainTooDeep
            | Code::DeadlineUnmeetable
            | Code::Draining
            | Code::StoreUnavailable
    )
}

/// The error at the end of a chain: those before it only say that something below them failed.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
