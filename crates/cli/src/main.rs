//! The program `laneway`.
//!
//! | question | file |
//! |---|---|
//! | which verbs and options exist? | `arguments/` |
//! | where is the server, and does the user confirm? | `connection.rs` |
//! | how is a result printed? | `output/` |
//! | what went wrong, and with which exit code? | `error.rs` |
//! | where do logs go? | `logs.rs` |
//! | what does a verb do? | `commands/`, the file of its name |
//! | `explain`, `workers` | `commands/tasks.rs` |
//! | `chat` | `commands/submit.rs`; `commands/follow.rs` follows its task |
//! | `dlq` | `commands/dead_letters.rs` |
//! | `token`, `audit`, `config` | `commands/operate.rs` |
//! | `export`, `import` | `commands/transfer.rs` |
//! | `trace`, `simulate` | `commands/whatif.rs` |
//! | `completions`, `man` | `commands/manual.rs` |
//! | `top` | `top/` |
//! | `worker` | `worker/` |

mod arguments;
mod commands;
mod connection;
mod error;
mod logs;
mod output;
mod top;
mod worker;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, AuditCommand, Command, ConfigCommand, TokenCommand};
use crate::commands::{
    agents, cancel, dead_letters, demo, doctor, lanes, manual, mcp, operate, scenario, schedules, serve,
    sessions, status, submit, tasks, transfer, whatif,
};
use crate::connection::block_on;
use crate::error::CliError;

/// Requests allocate and free memory on different threads. The C library's allocator makes those threads wait for each
/// other.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if let Some(asked) = worker::limits::asked() {
        return worker::limits::limited(asked)
            .map_or_else(|error| error.report(false), |()| ExitCode::SUCCESS);
    }
    let arguments = Arguments::parse();
    let command = arguments.command.unwrap_or(Command::Scenario { file: None });
    let is_json = command.is_json();
    match run(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(is_json),
    }
}

fn run(command: Command) -> Result<(), CliError> {
    match command {
        Command::Scenario { file: None } => scenario::tour().map_err(CliError::input),
        Command::Scenario { file: Some(file) } => scenario::file(&file).map_err(CliError::input),
        Command::Serve(verb) => serve::serve(verb),
        Command::Demo(verb) => demo::run(verb),
        Command::Status(verb) => block_on(status::run(verb)),
        Command::Top(verb) => top::run(&verb),
        Command::Agents(verb) => block_on(agents::run(verb)),
        Command::Lanes(verb) => block_on(lanes::run(verb)),
        Command::Tasks(verb) => block_on(tasks::run(verb)),
        Command::Cancel(verb) => block_on(cancel::run(verb)),
        Command::Sessions(verb) => block_on(sessions::run(verb)),
        Command::Dlq(verb) => block_on(dead_letters::run(verb)),
        Command::Schedules(verb) => block_on(schedules::run(verb)),
        Command::Workers(verb) => block_on(tasks::workers(verb)),
        Command::Worker(verb) => worker::worker(verb),
        Command::Mcp(verb) => mcp::run(verb),
        Command::Submit(verb) => block_on(submit::submit(verb)),
        Command::Chat(verb) => block_on(submit::chat(verb)),
        Command::Explain(verb) => block_on(tasks::explain(verb)),
        Command::Token(TokenCommand::Create(new)) => operate::create_token(new),
        Command::Token(TokenCommand::List(place)) => operate::list_tokens(&place),
        Command::Token(TokenCommand::Remove { id, place }) => operate::remove_token(&id, &place),
        Command::Audit(mut verb) => match verb.command.take() {
            None => block_on(operate::list_audit(verb)),
            Some(AuditCommand::Verify { file, config }) => {
                operate::verify_audit(file, config, verb.asking.json)
            }
        },
        Command::Export(verb) => block_on(transfer::export(verb)),
        Command::Import(verb) => block_on(transfer::import(verb)),
        Command::Trace(whatif::TraceCommand::Export(verb)) => block_on(whatif::export(verb)),
        Command::Simulate(verb) => whatif::simulate(&verb),
        Command::Doctor(verb) => block_on(doctor::run(verb)),
        Command::Config(ConfigCommand::Check(checked)) => operate::check_config(&checked.place, checked.all),
        Command::Config(ConfigCommand::Drift(asking)) => block_on(operate::config_drift(&asking)),
        Command::Completions(verb) => manual::completions(&verb),
        Command::Man(verb) => manual::man(&verb),
    }
}
