//! Completions and manual pages, generated from the arguments.

use clap::CommandFactory;

use crate::arguments::{Arguments, Man, Shell};
use crate::error::CliError;
use crate::output;

/// Prints completions for a shell.
pub(crate) fn completions(verb: &Shell) -> Result<(), CliError> {
    let shell: clap_complete::Shell =
        verb.shell.parse().map_err(|_| CliError::Input("the shell must be bash, zsh or fish".to_owned()))?;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "laneway", &mut script);
    output::text(&String::from_utf8_lossy(&script))
}

/// Prints the program's page, or writes one page per verb.
pub(crate) fn man(verb: &Man) -> Result<(), CliError> {
    let cannot = |error: std::io::Error| CliError::Failure(format!("cannot write the manual: {error}"));
    match &verb.out {
        Some(dir) => {
            std::fs::create_dir_all(dir).map_err(cannot)?;
            clap_mangen::generate_to(Arguments::command(), dir).map_err(cannot)
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Arguments::command()).render(&mut page).map_err(cannot)?;
            output::text(&String::from_utf8_lossy(&page))
        }
    }
}
