//! A Redis server.

use tempfile::TempDir;

use crate::certificates::Certificates;
use crate::free_port;
use crate::process::{Process, Signal};

/// A Redis server with a directory of its own. What it holds outlives a kill, because it appends to a file.
pub struct Redis {
    port: u16,
    arguments: Vec<String>,
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
        let dir = TempDir::new().expect("there is room for a directory");
        let arguments: Vec<String> = settings.iter().map(|&word| word.to_owned()).collect();
        // Another process may take the port before the start.
        for _ in 0..10 {
            let port = free_port();
            if let Ok(process) = run(port, &dir, &arguments) {
                return Redis { port, arguments, dir, process };
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
