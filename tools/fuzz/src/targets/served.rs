//! A real server on a real socket, in this process.

use std::net::SocketAddr;
use std::time::Duration;

use laneway_config::{Profile, parse};
use laneway_server::{Parts, Server, with_echo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// A request that is not answered in this time waits for something, rightly or not.
const WAIT: Duration = Duration::from_millis(250);
/// A server that does not tell of its health in this time is stuck.
const PATIENCE: Duration = Duration::from_secs(10);
/// So many bytes of an answer are looked at.
const ANSWER_BYTES_MAX: usize = 256 * 1024;

const CONFIG: &str = r#"
    lane "main" { max_concurrency = 4 }
    lane "external" { handler = "external" max_queued = 1000 lease = "2s" }
    agent "echo" { echo = true }
"#;

pub(super) struct Served {
    runtime: Runtime,
    running: Option<(SocketAddr, JoinHandle<()>)>,
    /// How many inputs this server may still have before another takes its place, so that none grows without end.
    left: u32,
}

/// An answer, as far as it came.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Served {
    pub(super) fn new() -> Result<Served, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Served { runtime: runtime.map_err(|error| error.to_string())?, running: None, left: 0 })
    }

    /// Where a server listens: the same as before, or after many inputs a new one.
    pub(super) fn address(&mut self) -> Result<SocketAddr, String> {
        if let Some((address, _)) = self.running.as_ref().filter(|_| self.left > 0) {
            self.left -= 1;
            return Ok(*address);
        }
        self.close();
        let (address, serving) = self.runtime.block_on(open())?;
        self.running = Some((address, serving));
        self.left = 500;
        Ok(address)
    }

    /// Another server from the next input on.
    pub(super) fn close(&mut self) {
        if let Some((_, serving)) = self.running.take() {
            serving.abort();
        }
    }

    pub(super) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }
}

async fn open() -> Result<(SocketAddr, JoinHandle<()>), String> {
    let nothing: [(&str, &str); 0] = [];
    let config = parse("fuzz.hcl", CONFIG, Profile::SERVER, nothing);
    let mut config = config.map_err(|errors| errors.to_string())?;
    with_echo(&mut config);
    let parts = Parts { config, config_file: None, overrides: Vec::new(), store: None, state_dir: None };
    let server = Server::open(parts).await?;
    let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let serving = tokio::spawn(async move {
        // An error of the socket shows as an answer that does not come.
        drop(server.serve(listener, std::future::pending()).await);
    });
    Ok((address, serving))
}

/// Sends a request and reads the answer; `None` when there is none yet.
pub(super) async fn ask(address: SocketAddr, request: &[u8]) -> Result<Option<Answer>, String> {
    let mut stream = TcpStream::connect(address).await.map_err(|error| format!("not connected: {error}"))?;
    // A server that has answered already need not read the rest.
    drop(tokio::time::timeout(WAIT, stream.write_all(request)).await);
    let mut bytes = Vec::new();
    let whole = tokio::time::timeout(WAIT, read_answer(&mut stream, &mut bytes)).await;
    if bytes.is_empty() {
        return match whole {
            Err(_) => is_well(address).await.map(|()| None),
            Ok(()) => Err("the connection was closed without an answer".to_owned()),
        };
    }
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").ok_or("half a head")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let status =
        head.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or(format!("no status: {head}"))?;
    Ok(Some(Answer { status, head, body: bytes.split_off(end + 4) }))
}

async fn read_answer(stream: &mut TcpStream, bytes: &mut Vec<u8>) {
    let mut room = vec![0; 16 * 1024];
    while bytes.len() < ANSWER_BYTES_MAX {
        match stream.read(&mut room).await {
            Ok(read) if read > 0 => bytes.extend_from_slice(&room[..read]),
            _ => return,
        }
        // A stream of events goes on; its head is enough.
        if bytes.windows(17).any(|part| part == b"text/event-stream") {
            return;
        }
    }
}

/// Whether the server still answers others.
pub(super) async fn is_well(address: SocketAddr) -> Result<(), String> {
    let look = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        Ok::<String, std::io::Error>(text)
    };
    match tokio::time::timeout(PATIENCE, look).await {
        Ok(Ok(text)) if text.starts_with("HTTP/1.1 200") => Ok(()),
        Ok(Ok(text)) => Err(format!("the server is not well any more: {text:.200}")),
        Ok(Err(error)) => Err(format!("the server is gone: {error}")),
        Err(_) => Err("the server is stuck".to_owned()),
    }
}
