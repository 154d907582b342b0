//! A PgBouncer in front of a Postgres.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use crate::free_port;
use crate::postgres::{Postgres, other_user};
use crate::process::{Process, Signal};

/// A pooler that shares a few connections to a Postgres among many clients.
pub struct PgBouncer {
    port: u16,
    mode: &'static str,
    postgres_port: u16,
    dir: TempDir,
    process: Process,
}

impl PgBouncer {
    /// Starts one in a mode: `session`, `transaction` or `statement`.
    pub fn start(postgres: &Postgres, mode: &'static str) -> PgBouncer {
        let dir = TempDir::new().expect("there is room for a directory");
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).expect("it is ours");
        let mut last = String::new();
        // Another process may take the port before the start.
        for _ in 0..10 {
            let (port, postgres_port) = (free_port(), postgres.port());
            match run(&dir, port, postgres_port, mode) {
                Ok(process) => return PgBouncer { port, mode, postgres_port, dir, process },
                Err(error) => last = error,
            }
        }
        panic!(
            "no PgBouncer started; is it installed? `cargo xtask test` does that, or `apt-get install pgbouncer`: {last}"
        )
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Kills it and starts it again.
    pub fn restart(&mut self) {
        self.process.kill();
        self.process = run(&self.dir, self.port, self.postgres_port, self.mode).expect("it starts again");
    }
}

fn run(dir: &TempDir, port: u16, postgres_port: u16, mode: &str) -> Result<Process, String> {
    let text = format!(
        "[databases]\n\
         * = host=127.0.0.1 port={postgres_port} user=postgres\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir =\n\
         auth_type = any\n\
         pool_mode = {mode}\n\
         default_pool_size = 4\n\
         server_login_retry = 1\n\
         max_client_conn = 200\n"
    );
    let file = dir.path().join("pgbouncer.ini");
    std::fs::write(&file, text).expect("there is room for a file");
    let file = file.to_str().expect("a readable path");
    Process::start_as(other_user(), "pgbouncer", &[file], "process up")
}
