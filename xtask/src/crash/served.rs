//! A real `laneway serve` to be killed, and what is asked of it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Only what hangs takes so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A server in a process group of its own, under strace if it is traced.
pub(crate) struct Served {
    pub(crate) process: Child,
    pub(crate) address: String,
}

impl Served {
    /// Starts one on the store `data` in `place`, under strace with these options if any. `None` if it was killed
    /// before it listened.
    pub(crate) fn start(program: &Path, place: &Path, watched: &[&str]) -> Result<Option<Served>, String> {
        let mut command = match watched {
            [] => Command::new(program),
            _ => {
                // With -D the server is our own child instead of strace's.
                let mut command = Command::new("strace");
                command.args(["-D", "-f"]).args(watched).arg(program);
                command
            }
        };
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", "data", "--log", "error"]);
        command.current_dir(place).env_remove("LANEWAY_STORE").env_remove("LANEWAY_LISTEN");
        let spawned = command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut process = spawned.map_err(|error| error.to_string())?;
        let out = process.stdout.take().ok_or("no pipe")?;
        let mut lines = BufReader::new(out).lines();
        let address = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.rsplit_once("http://").map(|(_, address)| address.trim().to_owned()));
        // Whatever else it prints is read, so that it never waits for a full pipe.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        match address {
            Some(address) => Ok(Some(Served { process, address })),
            None => {
                let status = process.wait().map_err(|error| error.to_string())?;
                let mut words = String::new();
                if let Some(mut pipe) = process.stderr.take() {
                    pipe.read_to_string(&mut words).map_err(|error| error.to_string())?;
                }
                if !watched.is_empty() && was_killed(status) {
                    Ok(None)
                } else {
                    Err(format!("it did not start: {status} {words}"))
                }
            }
        }
    }

    pub(crate) fn ask(&self, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
        ask(&self.address, method, path, body)
    }

    /// SIGKILL, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The status and the body of an answer.
pub(crate) fn ask(address: &str, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let status = text.split(' ').nth(1)?.parse().ok()?;
    Some((status, text.split_once("\r\n\r\n")?.1.to_owned()))
}

/// Whether SIGKILL has ended it, and nothing of its own.
pub(crate) fn was_killed(status: ExitStatus) -> bool {
    status.signal() == Some(9)
}

/// A payload that shows whether it is whole: so long a text, and how long it is.
pub(crate) fn payload(length: usize) -> String {
    let text: String = ('a'..='z').cycle().skip(length % 7).take(length).collect();
    format!("{{\"by\":{length},\"text\":\"{text}\"}}")
}

/// Whether a task has the payload of this length, and all of it.
pub(crate) fn has_payload(task: &str, length: usize) -> bool {
    task.contains(&format!("\"payload\":{}", payload(length)))
}

/// The value of a text field of a JSON object, the first of that name.
pub(crate) fn field<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    json.split_once(&format!("\"{name}\":\""))?.1.split('"').next()
}

/// A seed that differs from run to run.
pub(crate) fn some_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |since| u64::from(since.subsec_nanos()) ^ since.as_secs())
}
