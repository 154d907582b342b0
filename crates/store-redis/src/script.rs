//! Scripts, which Redis runs as a whole or not at all.

use redis::aio::MultiplexedConnection;
use redis::{Cmd, ErrorKind, RedisError, Script, ServerErrorKind, Value, cmd};

/// A script, known to Redis by its hash.
pub(crate) struct Lua {
    script: Script,
    source: &'static str,
}

impl Lua {
    pub(crate) fn new(source: &'static str) -> Lua {
        Lua { script: Script::new(source), source }
    }

    /// Runs it by its hash or, where Redis does not know that, by its text.
    pub(crate) async fn run(
        &self,
        connection: &mut MultiplexedConnection,
        call: &Call,
    ) -> Result<Value, RedisError> {
        match call.command("EVALSHA", self.script.get_hash()).query_async(connection).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                call.command("EVAL", self.source).query_async(connection).await
            }
            answer => answer,
        }
    }
}

/// The keys and arguments of a script.
#[derive(Default)]
pub(crate) struct Call {
    keys: Vec<Vec<u8>>,
    arguments: Vec<Vec<u8>>,
}

impl Call {
    pub(crate) fn key(&mut self, key: &str) {
        self.keys.push(key.as_bytes().to_vec());
    }

    pub(crate) fn argument(&mut self, bytes: impl Into<Vec<u8>>) {
        self.arguments.push(bytes.into());
    }

    pub(crate) fn number(&mut self, number: impl ToString) {
        self.argument(number.to_string());
    }

    fn command(&self, how: &str, script: &str) -> Cmd {
        let mut command = cmd(how);
        command.arg(script).arg(self.keys.len()).arg(&self.keys).arg(&self.arguments);
        command
    }
}
