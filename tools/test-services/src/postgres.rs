//! A Postgres server.

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::certificates::Certificates;
use crate::free_port;
use crate::process::{Process, Signal, guarded};

/// Where Debian puts the programs of Postgres 15.
const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";
/// Postgres does not run as root.
const USER: &str = "postgres";

/// A Postgres server with a directory of its own. It does not flush: a killed process loses nothing, only a machine
/// that loses its power would.
pub struct Postgres {
    port: u16,
    settings: Vec<String>,
    dir: TempDir,
    process: Process,
}

impl Postgres {
    /// Makes a new cluster and starts it.
    pub fn start() -> Postgres {
        Postgres::start_with(&[])
    }

    /// Starts one with more settings: `["fsync=on"]`.
    pub fn start_with(settings: &[&str]) -> Postgres {
        let dir = TempDir::new().expect("there is room for a directory");
        let user = other_user();
        if let Some(user) = user {
            chown(dir.path(), Some(id("-u", user)), Some(id("-g", user))).expect("root may do that");
        }
        make_cluster(user, &data(&dir));
        Postgres::start_in(dir, settings)
    }

    /// Makes a new cluster that takes, over TCP, only connections with TLS and the password `hush`.
    pub fn start_with_tls(certificates: &Certificates) -> Postgres {
        let dir = TempDir::new().expect("there is room for a directory");
        let user = other_user();
        if let Some(user) = user {
            let (user, group) = (id("-u", user), id("-g", user));
            chown(dir.path(), Some(user), Some(group)).expect("root may do that");
            certificates.give_to(user, group);
        }
        make_cluster(user, &data(&dir));
        let rules = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n";
        std::fs::write(data(&dir).join("pg_hba.conf"), rules).expect("the cluster is there");
        let path = |name: &str, path: PathBuf| format!("{name}={}", path.display());
        let settings = [
            "ssl=on",
            &path("ssl_cert_file", certificates.cert()),
            &path("ssl_key_file", certificates.key()),
        ];
        let postgres = Postgres::start_in(dir, &settings);
        let mut command = Command::new(format!("{PROGRAMS}/psql"));
        command.arg("-h").arg(postgres.dir.path()).args(["-p", &postgres.port.to_string(), "-U", USER]);
        let done = command.args(["-c", "ALTER USER postgres PASSWORD 'hush'"]).output().expect("psql starts");
        assert!(done.status.success(), "psql failed: {}", String::from_utf8_lossy(&done.stderr));
        postgres
    }

    fn start_in(dir: TempDir, settings: &[&str]) -> Postgres {
        let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
        let mut last = String::new();
        // Another process may take the port before the start.
        for _ in 0..10 {
            let port = free_port();
            match run(port, &dir, &settings) {
                Ok(process) => return Postgres { port, settings, dir, process },
                Err(error) => last = error,
            }
        }
        panic!("no Postgres server started: {last}")
    }

    /// Its address.
    pub fn url(&self) -> String {
        self.url_at(self.port)
    }

    /// Its address by way of another port, that of a proxy.
    pub fn url_at(&self, port: u16) -> String {
        format!("postgres://{USER}@127.0.0.1:{port}/postgres")
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Kills it. No client can reach it until it is [started again](Postgres::restart).
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Sends a signal to the process that accepts connections.
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Kills it and starts it again with the data that it had.
    pub fn restart(&mut self) {
        self.process.kill();
        let mut last = String::new();
        // What the killed server had started ends a moment later, and the directory is not free before that.
        for _ in 0..200 {
            match run(self.port, &self.dir, &self.settings) {
                Ok(process) => return self.process = process,
                Err(error) => last = error,
            }
        }
        panic!("Postgres did not start again: {last}")
    }
}

fn data(dir: &TempDir) -> PathBuf {
    dir.path().join("data")
}

/// Whom to run it as, if not as ourselves.
pub(crate) fn other_user() -> Option<&'static str> {
    let me = Command::new("id").arg("-u").output().expect("there is a program named id");
    (me.stdout.trim_ascii() == b"0").then_some(USER)
}

fn id(which: &str, user: &str) -> u32 {
    let said = Command::new("id").args([which, user]).output().expect("there is a program named id");
    let number = String::from_utf8_lossy(&said.stdout).trim().parse();
    number.unwrap_or_else(|_| panic!("there is no user {user}; `apt-get install postgresql-15` makes it"))
}

fn make_cluster(user: Option<&str>, data: &Path) {
    let program = format!("{PROGRAMS}/initdb");
    assert!(
        Path::new(&program).exists(),
        "Postgres 15 is not installed; `cargo xtask test` does that, or `apt-get install postgresql-15`"
    );
    let mut command = guarded(user, &program);
    command.args(["--no-sync", "--auth", "trust", "--encoding", "UTF8", "--username", USER, "--pgdata"]);
    let made = command.arg(data).output().expect("initdb starts");
    assert!(made.status.success(), "initdb failed: {}", String::from_utf8_lossy(&made.stderr));
}

fn run(port: u16, dir: &TempDir, settings: &[String]) -> Result<Process, String> {
    let (data, port) = (data(dir), port.to_string());
    let data = data.to_str().expect("a readable path");
    let dir = dir.path().to_str().expect("a readable path");
    let mut words = vec!["-D", data, "-p", &port, "-k", dir];
    for setting in ["listen_addresses=127.0.0.1", "fsync=off", "max_connections=200", "shared_buffers=32MB"] {
        words.extend(["-c", setting]);
    }
    for setting in settings {
        words.extend(["-c", setting]);
    }
    let program = format!("{PROGRAMS}/postgres");
    Process::start_as(other_user(), &program, &words, "database system is ready to accept connections")
}
