//! The other process, and connections to it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::{CONNECTIONS, ROUND, Threads};

pub(crate) struct Other {
    process: Child,
    pub(crate) address: SocketAddr,
}

impl Other {
    pub(crate) fn start(what: &str, threads: Threads) -> Other {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--child", what, threads.name()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Other { address: line.trim().parse().unwrap(), process }
    }

    /// Kilobytes of memory that it has now.
    pub(crate) fn resident_kb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Seconds of processor time that it has taken so far. The kernel counts them in hundredths.
    pub(crate) fn cpu_secs(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
        let after_name = stat.rsplit(')').next().unwrap();
        let ticks = after_name.split_whitespace().skip(11).take(2);
        ticks.map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / 100.0
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A connection that is kept.
pub(crate) struct Client {
    stream: TcpStream,
    /// Room for one answer. Kept, because to clear as much for each costs more than to ask.
    room: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream, room: vec![0; 64 * 1024] }
    }

    fn request(method: &str, path: &str, body: &str) -> String {
        format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    }

    pub(crate) async fn ask(&mut self, method: &str, path: &str, body: &str) -> (u16, &str) {
        self.exchange(Client::request(method, path, body).as_bytes()).await
    }

    /// Asks for something that the server accepts and does later.
    pub(crate) async fn ask_later(&mut self, path: &str, body: &str) -> (u16, &str) {
        let request = Client::request("POST", path, body);
        let request = request.replacen("host:", "prefer: respond-async\r\nhost:", 1);
        self.exchange(request.as_bytes()).await
    }

    /// Sends a request and returns the status and the body of its answer, with as little work as can be.
    async fn exchange(&mut self, request: &[u8]) -> (u16, &str) {
        self.stream.write_all(request).await.unwrap();
        let mut filled = 0;
        let body = loop {
            if filled == self.room.len() {
                self.room.resize(2 * filled, 0);
            }
            let read = self.stream.read(&mut self.room[filled..]).await.unwrap();
            assert!(read > 0, "the server hung up");
            filled += read;
            let answer = &self.room[..filled];
            let after = |part: &[u8]| {
                let start = answer.windows(part.len()).position(|window| window.eq_ignore_ascii_case(part));
                start.map(|start| start + part.len())
            };
            let Some(head) = after(b"\r\n\r\n") else { continue };
            let length = &answer[after(b"content-length: ").expect("answers say how long they are")..head];
            let digits = length.iter().take_while(|byte| byte.is_ascii_digit());
            let length = digits.fold(0, |length, digit| 10 * length + usize::from(digit - b'0'));
            if filled >= head + length {
                break head..head + length;
            }
        };
        let text = |range| std::str::from_utf8(&self.room[range]).unwrap();
        (text(9..12).parse().unwrap(), text(body))
    }
}

/// What each connection of a load asks again and again.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) path: &'static str,
    /// The body of each connection, by its number.
    pub(crate) body: fn(usize) -> String,
    /// The status of every answer.
    pub(crate) status: u16,
}

/// Requests a second, and the 99th percentile of their times.
pub(crate) async fn load(address: SocketAddr, asked: Asked) -> (f64, Duration) {
    // One thread: what the load costs is taken from the server, which shares its cores, and threads that wake each other cost more.
    let loading = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(load_here(address, asked))
    });
    loading.await.unwrap()
}

async fn load_here(address: SocketAddr, Asked { path, body, status }: Asked) -> (f64, Duration) {
    let until = Instant::now() + ROUND;
    let begun = Instant::now();
    let mut clients = Vec::new();
    for connection in 0..CONNECTIONS {
        let request = Client::request("POST", path, &body(connection)).into_bytes();
        clients.push(tokio::spawn(async move {
            let mut client = Client::connect(address).await;
            let mut times = Vec::new();
            while Instant::now() < until {
                let asked = Instant::now();
                let (got, answer) = client.exchange(&request).await;
                assert_eq!(got, status, "{answer}");
                times.push(asked.elapsed());
            }
            times
        }));
    }
    let mut times = Vec::new();
    for client in clients {
        times.extend(client.await.unwrap());
    }
    times.sort_unstable();
    (times.len() as f64 / begun.elapsed().as_secs_f64(), times[times.len() * 99 / 100])
}
