//! Why a command ended otherwise than well, and with which exit code.

use std::process::ExitCode;

use laneway_client::Error;
use laneway_protocol::Code;

/// The exit code of a command that could not do what it should.
const FAILED: u8 = 1;
/// The exit code of a command line, file or script that makes no sense.
const BAD_INPUT: u8 = 2;
/// The exit code that shells give what ended by SIGINT.
const INTERRUPTED: u8 = 130;

/// Why a command ended otherwise than well.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// What was given makes no sense.
    #[error("{0}")]
    Input(String),
    /// The world did not play along.
    #[error("{0}")]
    Failure(String),
    /// The server refused, or is not there.
    #[error(transparent)]
    Server(#[from] Error),
    /// Somebody pressed Ctrl-C.
    #[error("{0}")]
    Interrupted(String),
    /// Whoever reads has seen enough: no trouble at all.
    #[error("nothing reads the output any longer")]
    Unread,
    /// All was said already.
    #[error("told already")]
    Told,
    /// All was said already, of this.
    #[error(transparent)]
    Reported(Error),
}

impl CliError {
    /// What was given makes no sense, as this error says.
    pub(crate) fn input(error: impl std::error::Error) -> CliError {
        CliError::Input(error.to_string())
    }

    /// Says what went wrong on standard error and, for programs, as JSON on standard output.
    pub(crate) fn tell(self, is_json: bool) -> ExitCode {
        let (why, code) = match self {
            CliError::Unread => return ExitCode::SUCCESS,
            CliError::Told => return ExitCode::from(FAILED),
            CliError::Reported(error) => return ExitCode::from(error.exit_code()),
            CliError::Input(why) => (why, BAD_INPUT),
            CliError::Failure(why) => (why, FAILED),
            CliError::Interrupted(why) => (why, INTERRUPTED),
            CliError::Server(error) => {
                if let (true, Some(problem)) = (is_json, error.problem())
                    && let Err(CliError::Failure(why)) = crate::output::json(problem)
                {
                    eprintln!("laneway: {why}");
                }
                (sentence(&error), error.exit_code())
            }
        };
        eprintln!("laneway: {}", crate::output::format::plain_lines(why.trim_end()));
        ExitCode::from(code)
    }
}

/// What happened and what to do about it.
fn sentence(error: &Error) -> String {
    let advice = match (error, error.code()) {
        (Error::Unreachable { url, why }, _)
            if url.starts_with("https:") && why.contains("corrupt message") =>
        {
            "\nIt answers, but not in TLS; is its address http://…?"
        }
        (Error::Unreachable { .. }, _) => {
            "\nIs it running? `laneway serve` starts one; --url or LANEWAY_URL says where it is."
        }
        (_, Some(Code::Unauthorized)) => {
            "\nLANEWAY_TOKEN or --token says who asks; `laneway token create` beside the server makes one."
        }
        (_, Some(Code::Forbidden)) => {
            "\nAnother token may; `laneway token list` beside the server shows which there are."
        }
        _ => "",
    };
    format!("{error}{advice}")
}
