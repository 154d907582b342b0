//! The program `laneway`.

mod arguments;
mod logs;
mod mcp;
mod operate;
mod scenario;
mod serve;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, AuditCommand, Command, ConfigCommand, TokenCommand};

/// The exit code of a command that could not do what it should.
const FAILED: u8 = 1;
/// The exit code of a command line, file or script that makes no sense.
const BAD_INPUT: u8 = 2;

/// Why a command ended otherwise than well.
pub(crate) enum Trouble {
    /// What was given makes no sense.
    Input(String),
    /// The world did not play along.
    Failure(String),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.command.unwrap_or(Command::Scenario { file: None }) {
        Command::Scenario { file: None } => scenario::tour().map_err(Trouble::Input),
        Command::Scenario { file: Some(file) } => scenario::file(&file).map_err(Trouble::Input),
        Command::Serve(serve) => serve::serve(serve),
        Command::Mcp(asked) => mcp::run(asked),
        Command::Token(TokenCommand::Create(new)) => operate::create_token(new),
        Command::Token(TokenCommand::List(place)) => operate::list_tokens(&place),
        Command::Token(TokenCommand::Remove { id, place }) => operate::remove_token(&id, &place),
        Command::Audit(AuditCommand::Verify { file, place }) => operate::verify_audit(file, &place),
        Command::Config(ConfigCommand::Check { place, all }) => operate::check_config(&place, all),
    };
    let (why, code) = match done {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Trouble::Input(why)) => (why, BAD_INPUT),
        Err(Trouble::Failure(why)) => (why, FAILED),
    };
    eprintln!("laneway: {}", why.trim_end());
    ExitCode::from(code)
}
