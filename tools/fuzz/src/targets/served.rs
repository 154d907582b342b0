//! A real server on a real socket, in this process.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::Duration;

use laneway_config::{Profile, parse};
use laneway_server::{Parts, Server, with_echo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::FuzzOutcome;

/// A request without an answer after this time waits for an event; that may be right.
const WAIT: Duration = Duration::from_millis(250);
/// A server whose health takes longer than this to answer is stuck.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many bytes of an answer are read.
const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// How many inputs one server reads before a new one replaces it, so that none grows without end.
const INPUTS_MAX: u32 = 500;

const CONFIG: &str = r#"
    lane "main" { max_concurrency = 4 }
    lane "external" {
      handler = "external"
      max_queued = 1000
      lease = "2s"
    }
    agent "echo" { echo = true }
"#;

thread_local! {
    static SERVED: RefCell<Option<Served>> = const { RefCell::new(None) };
}

/// A running server; dropping the runtime ends it.
struct Served {
    runtime: Runtime,
    address: SocketAddr,
    inputs_left: u32,
}

/// As much of an answer as arrived.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

/// Runs `read` against a server. The server is kept for the next input if `read` also returns true.
pub(super) fn with_server(read: impl AsyncFnOnce(SocketAddr) -> (FuzzOutcome, bool)) -> FuzzOutcome {
    SERVED.with_borrow_mut(|kept| {
        let mut served = kept.take().unwrap_or_else(start);
        let (outcome, keep) = served.runtime.block_on(read(served.address));
        served.inputs_left -= 1;
        *kept = Some(served).filter(|served| keep && served.inputs_left > 0);
        outcome
    })
}

fn start() -> Served {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let address = runtime.block_on(async {
        let nothing: [(&str, &str); 0] = [];
        let mut config = parse("fuzz.hcl", CONFIG, Profile::SERVER, nothing).expect("a configuration");
        with_echo(&mut config);
        let parts = Parts { config, config_file: None, overrides: Vec::new(), store: None, state_dir: None };
        let server = Server::open(parts).await.expect("a server");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        // An error of the socket shows as an answer that does not come.
        tokio::spawn(async move { drop(server.serve(listener, std::future::pending()).await) });
        address
    });
    Served { runtime, address, inputs_left: INPUTS_MAX }
}

/// Sends a request and reads the answer; `None` while the server waits for an event.
pub(super) async fn ask(address: SocketAddr, request: &[u8]) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    // A server that has answered already need not read the rest.
    drop(timeout(WAIT, stream.write_all(request)).await);
    let mut bytes = Vec::new();
    let read = timeout(WAIT, read_answer(&mut stream, &mut bytes)).await;
    if bytes.is_empty() {
        assert!(read.is_err(), "the connection was closed without an answer");
        check_health(address).await;
        return None;
    }
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a whole head");
    let body = bytes.split_off(end + 4);
    let head = String::from_utf8_lossy(&bytes).into_owned();
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a status");
    Some(Answer { status, head, body })
}

async fn read_answer(stream: &mut TcpStream, bytes: &mut Vec<u8>) {
    let mut buffer = vec![0; 16 * 1024];
    while bytes.len() < ANSWER_BYTES_MAX {
        match stream.read(&mut buffer).await {
            Ok(read) if read > 0 => bytes.extend_from_slice(&buffer[..read]),
            _ => return,
        }
        // A stream of events has no end; its head is enough.
        if bytes.windows(17).any(|part| part == b"text/event-stream") {
            return;
        }
    }
}

/// Checks that the server still answers other callers.
pub(super) async fn check_health(address: SocketAddr) {
    let look = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        Ok::<String, std::io::Error>(text)
    };
    let text = timeout(PATIENCE, look).await.expect("a server that is not stuck").expect("an answer");
    assert!(text.starts_with("HTTP/1.1 200"), "the server is not healthy: {text:.200}");
}
