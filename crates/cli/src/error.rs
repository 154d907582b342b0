//! Errors of a command, and their exit codes.

use std::process::ExitCode;

use laneway_client::Error;
use laneway_protocol::Code;

/// The exit code of a failed command.
const FAILED: u8 = 1;
/// The exit code for a wrong command line, file or script.
const BAD_INPUT: u8 = 2;
/// The exit code that shells report for a process ended by SIGINT.
const INTERRUPTED: u8 = 130;

/// Why a command did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// The command line, a file or a script is wrong.
    #[error("{0}")]
    Input(String),
    /// Something outside broke.
    #[error("{0}")]
    Failure(String),
    /// The server refused, or cannot be reached.
    #[error(transparent)]
    Server(#[from] Error),
    /// The user pressed Ctrl-C.
    #[error("{0}")]
    Interrupted(String),
    /// The reader closed standard output, as `head` does. The command succeeds.
    #[error("the reader closed standard output")]
    Unread,
    /// The command has printed the failure already.
    #[error("already printed")]
    Reported,
    /// The command has printed this error of the server already.
    #[error(transparent)]
    ReportedServer(Error),
}

impl CliError {
    /// Wrong input, with the text of `error`.
    pub(crate) fn input(error: impl std::error::Error) -> CliError {
        CliError::Input(error.to_string())
    }

    /// Prints the error on standard error and, with `is_json`, the server's problem as JSON on standard output.
    pub(crate) fn report(self, is_json: bool) -> ExitCode {
        let (why, code) = match self {
            CliError::Unread => return ExitCode::SUCCESS,
            CliError::Reported => return ExitCode::from(FAILED),
            CliError::ReportedServer(error) => return ExitCode::from(error.exit_code()),
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

/// The error, and what to do about it.
fn sentence(error: &Error) -> String {
    let advice = match (error, error.code()) {
        (Error::Unreachable { url, why }, _)
            if url.starts_with("https:") && why.contains("corrupt message") =>
        {
            "\nThe server answers without TLS; try an http:// address."
        }
        (Error::Unreachable { .. }, _) => {
            "\n`laneway serve` starts a server; --url or LANEWAY_URL sets its address."
        }
        (_, Some(Code::Unauthorized)) => {
            "\nSet LANEWAY_TOKEN or --token; `laneway token create` on the server's machine creates a token."
        }
        (_, Some(Code::Forbidden)) => {
            "\nUse a token with that scope; `laneway token list` on the server's machine lists all tokens."
        }
        _ => "",
    };
    format!("{error}{advice}")
}
