//! The way to the server, and asking before what cannot be undone.

use std::io::{BufRead, IsTerminal, Write};

use laneway_client::Client;

use crate::arguments::{Asking, Sure};
use crate::error::CliError;

impl Asking {
    /// The server that is meant.
    pub(crate) fn client(&self) -> Result<Client, CliError> {
        client(&self.url, self.token.as_deref())
    }
}

/// A client that is asked by hand: an answer that comes at once is worth more than one that comes for sure.
pub(crate) fn client(url: &str, token: Option<&str>) -> Result<Client, CliError> {
    // An empty variable is as good as none.
    Ok(Client::new(url, token.filter(|token| !token.is_empty()))?)
}

/// Runs something that asks a server.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::Failure(format!("no runtime: {error}")))?;
    runtime.block_on(work)
}

impl Sure {
    /// Asks whether to do it. Where nobody can be asked, it is not done.
    pub(crate) fn ask(self, what: &str) -> Result<(), CliError> {
        if self.yes {
            return Ok(());
        }
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return Err(CliError::Input(format!("{what} needs a yes, and nobody is here to ask; add --yes")));
        }
        let cannot = |error: std::io::Error| CliError::Failure(format!("cannot ask: {error}"));
        let mut err = std::io::stderr();
        write!(err, "{what}? [y/N] ").and_then(|()| err.flush()).map_err(cannot)?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer).map_err(cannot)?;
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(CliError::Failure("nothing was done".to_owned())),
        }
    }
}
