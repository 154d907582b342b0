//! The connection to the server, and the confirmation of actions that cannot be undone.

use std::io::{BufRead, IsTerminal, Write};

use laneway_client::Client;

use crate::arguments::{Asking, Sure};
use crate::error::CliError;

impl Asking {
    /// A client of the server that the options name.
    pub(crate) fn client(&self) -> Result<Client, CliError> {
        client(&self.url, self.token.as_deref())
    }
}

/// The address of a server that listens where it does by default.
pub(crate) const DEFAULT_URL: &str = "http://127.0.0.1:7717";

/// A client of the server at an address.
pub(crate) fn client(url: &str, token: Option<&str>) -> Result<Client, CliError> {
    // An empty variable counts as unset.
    let url = if url.is_empty() { DEFAULT_URL } else { url };
    Ok(Client::new(url, token.filter(|token| !token.is_empty()))?)
}

/// Runs a future on a runtime with one thread.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::Failure(format!("no runtime: {error}")))?;
    runtime.block_on(work)
}

impl Sure {
    /// Asks the user for confirmation. Without a terminal the answer is no.
    pub(crate) fn ask(self, what: &str) -> Result<(), CliError> {
        if self.yes {
            return Ok(());
        }
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return Err(CliError::Input(format!(
                "{what} needs a confirmation; without a terminal, add --yes"
            )));
        }
        let cannot = |error: std::io::Error| CliError::Failure(format!("cannot ask: {error}"));
        let mut err = std::io::stderr();
        write!(err, "{what}? [y/N] ").and_then(|()| err.flush()).map_err(cannot)?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer).map_err(cannot)?;
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(CliError::Failure("not confirmed; nothing has changed".to_owned())),
        }
    }
}
