//! A Redis server.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::certificates::Certificates;
use crate::free_port;
use crate::process::{Process, Signal};

/// The user of tests with [`Access::with`], besides the default one. It may do what `docs/guide/replicas.md` says.
const USER: [&str; 10] = [
    "--user",
    "laneway",
    "on",
    "~laneway:*",
    "&laneway:*",
    "+@all",
    "-@admin",
    "-@dangerous",
    "+info",
    "+cluster|slots",
];

/// What clients of a server need: nothing by default, or TLS and a password.
#[derive(Clone, Default)]
pub struct Access {
    /// The authority, the certificate and the key.
    files: Option<[PathBuf; 3]>,
    password: Option<String>,
}

impl Access {
    /// TLS with these certificates, and this password for the default user and for the user `laneway`.
    pub fn with(certificates: &Certificates, password: &str) -> Access {
        let files = [certificates.ca(), certificates.cert(), certificates.key()];
        Access { files: Some(files), password: Some(password.to_owned()) }
    }

    /// The settings of a server.
    fn settings(&self) -> Vec<String> {
        let mut words = self.tls_settings();
        if let Some(password) = &self.password {
            words.extend(["--requirepass", password, "--masterauth", password].map(str::to_owned));
            words.extend(USER.map(str::to_owned));
            words.push(format!(">{password}"));
        }
        words
    }

    fn tls_settings(&self) -> Vec<String> {
        let Some(files) = &self.files else { return Vec::new() };
        let names = ["--tls-ca-cert-file", "--tls-cert-file", "--tls-key-file"];
        let files = names.into_iter().zip(files).flat_map(|(name, file)| [name.to_owned(), text(file)]);
        let more = ["--tls-auth-clients", "no", "--tls-replication", "yes", "--tls-cluster", "yes"];
        files.chain(more.map(str::to_owned)).collect()
    }

    /// The lines in the file of a Sentinel that watches such a server, and needs the same of its own clients.
    pub(crate) fn sentinel_lines(&self, service: &str) -> Vec<String> {
        let settings = self.tls_settings();
        let line = |pair: &[String]| pair.join(" ").trim_start_matches("--").to_owned();
        let mut lines: Vec<String> = settings.chunks(2).map(line).collect();
        if let Some(password) = &self.password {
            lines.push(format!("sentinel auth-pass {service} {password}"));
            lines.push(format!("requirepass {password}"));
            lines.push(format!("sentinel sentinel-pass {password}"));
        }
        lines
    }

    /// The settings that make a server listen on a port.
    pub(crate) fn listen_on(&self, port: u16) -> Vec<String> {
        let port = port.to_string();
        let words = if self.files.is_some() {
            vec!["--port", "0", "--tls-port", &port]
        } else {
            vec!["--port", &port]
        };
        words.into_iter().map(str::to_owned).collect()
    }

    /// What the server on a port answers to a command. A server that is away, or does not answer within a second, says
    /// nothing.
    pub(crate) fn command(&self, port: u16, words: &[&str]) -> String {
        let mut command = Command::new("timeout");
        command.args(["1", "redis-cli", "-p", &port.to_string()]);
        if let Some([ca, ..]) = &self.files {
            command.args(["--tls", "--cacert"]).arg(ca);
        }
        if let Some(password) = &self.password {
            command.env("REDISCLI_AUTH", password);
        }
        let said = command.args(words).output().expect("there is a program named timeout");
        String::from_utf8_lossy(&said.stdout).trim_end().to_owned()
    }
}

fn text(path: &std::path::Path) -> String {
    path.to_str().expect("a readable path").to_owned()
}

/// A Redis server with a directory of its own. What it holds outlives a kill, because it appends to a file.
pub struct Redis {
    port: u16,
    arguments: Vec<String>,
    access: Access,
    dir: TempDir,
    process: Process,
}

impl Redis {
    /// Starts one.
    pub fn start() -> Redis {
        Redis::start_with(&[])
    }

    /// Starts one with more settings: `["--maxmemory", "4mb"]`.
    pub fn start_with(settings: &[&str]) -> Redis {
        Redis::start_for(&Access::default(), settings)
    }

    /// Starts one whose clients need what `access` says, with more settings.
    pub fn start_for(access: &Access, settings: &[&str]) -> Redis {
        let dir = TempDir::new().expect("there is room for a directory");
        let settings = settings.iter().map(|&word| word.to_owned());
        let arguments: Vec<String> = settings.chain(access.settings()).collect();
        let access = access.clone();
        // Another process may take the port before the start.
        for _ in 0..10 {
            let port = free_port();
            if let Ok(process) = run(port, &dir, &arguments) {
                return Redis { port, arguments, access, dir, process };
            }
        }
        match run(free_port(), &dir, &arguments) {
            Ok(_) => panic!("a Redis server started only at the last try"),
            Err(error) => panic!(
                "no Redis server started; is it installed? `cargo xtask test` does that, or `apt-get install \
                 redis-server`: {error}"
            ),
        }
    }

    /// Starts one that speaks TLS only, with more settings. What it asks of its clients is theirs to say.
    pub fn start_with_tls(certificates: &Certificates, settings: &[&str]) -> Redis {
        let path = |path: std::path::PathBuf| path.to_str().expect("a readable path").to_owned();
        let (ca, cert, key) = (path(certificates.ca()), path(certificates.cert()), path(certificates.key()));
        let mut words = vec!["--tls-ca-cert-file", &ca, "--tls-cert-file", &cert, "--tls-key-file", &key];
        words.extend(settings);
        Redis::start_with(&words)
    }

    /// What it answers to a command; nothing, if it is away.
    pub fn command(&self, words: &[&str]) -> String {
        self.access.command(self.port, words)
    }

    /// A field of what it says about itself.
    pub fn info(&self, field: &str) -> String {
        let told = self.command(&["INFO"]) + "\n" + &self.command(&["CLUSTER", "INFO"]);
        let value = told.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        value.unwrap_or_default().trim().to_owned()
    }

    /// `master` or `slave`; empty, if it is away.
    pub fn role(&self) -> String {
        self.info("role")
    }

    /// Whether it answers.
    pub fn is_up(&self) -> bool {
        self.command(&["PING"]) == "PONG"
    }

    pub(crate) fn scheme(&self) -> &'static str {
        if self.access.files.is_some() { "rediss" } else { "redis" }
    }

    /// Its address, if it speaks TLS.
    pub fn tls_url(&self) -> String {
        format!("rediss://127.0.0.1:{}/0", self.port)
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Kills it. No client can reach it until it is [started again](Redis::restart).
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Kills it and starts it again with the data that it had.
    pub fn restart(&mut self) {
        self.process.kill();
        self.process = run(self.port, &self.dir, &self.arguments).expect("it starts again");
    }

    /// Kills it and starts it again without any data.
    pub fn restart_empty(&mut self) {
        self.process.kill();
        std::fs::remove_dir_all(self.dir.path().join("appendonlydir")).expect("its data can be removed");
        self.restart();
    }

    /// Keeps a copy of the data as it is now, for [`restart_from`](Redis::restart_from).
    pub fn copy(&self) -> TempDir {
        let copy = TempDir::new().expect("there is room for a directory");
        copy_files(&self.dir.path().join("appendonlydir"), copy.path());
        copy
    }

    /// Kills it and starts it again with the data of a copy.
    pub fn restart_from(&mut self, copy: &TempDir) {
        self.process.kill();
        let data = self.dir.path().join("appendonlydir");
        std::fs::remove_dir_all(&data).expect("its data can be removed");
        std::fs::create_dir(&data).expect("there is room for a directory");
        copy_files(copy.path(), &data);
        self.restart();
    }
}

fn copy_files(from: &std::path::Path, to: &std::path::Path) {
    for file in std::fs::read_dir(from).expect("a directory") {
        let file = file.expect("a file");
        std::fs::copy(file.path(), to.join(file.file_name())).expect("it can be copied");
    }
}

fn run(port: u16, dir: &TempDir, settings: &[String]) -> Result<Process, String> {
    let port = port.to_string();
    let dir = dir.path().to_str().expect("a readable path");
    let mut words = if settings.iter().any(|word| word == "--tls-cert-file") {
        vec!["--port", "0", "--tls-port", &port]
    } else {
        vec!["--port", &port]
    };
    words.extend(["--bind", "127.0.0.1", "--dir", dir, "--save", ""]);
    words.extend(["--appendonly", "yes", "--appendfsync", "no"]);
    words.extend(settings.iter().map(String::as_str));
    Process::start("redis-server", &words, "eady to accept connections")
}
