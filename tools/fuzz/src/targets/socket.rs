//! WebSocket frames, to a real server.
//!
//! An input is frames with a line `%%` between them. The first byte of each names its kind: `t` a text, `b` bytes, `p` a
//! ping, `c` a close, `f` a piece of a longer text. Any other byte means raw bytes instead of a frame.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::served::{check_health, with_server};
use crate::FuzzOutcome;

const BETWEEN: &[u8] = b"\n%%\n";
/// The payload of the last frame: a ping, answered after all frames before it.
const LAST: &[u8] = b"last";
const PATIENCE: Duration = Duration::from_secs(4);
const HANDSHAKE: &str = "GET /api/ws HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
    sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

pub(super) fn read(input: &[u8]) -> FuzzOutcome {
    with_server(async |address| (talk(address, input).await, true))
}

async fn talk(address: SocketAddr, input: &[u8]) -> FuzzOutcome {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(HANDSHAKE.as_bytes()).await.expect("a handshake");
    let (bytes, is_whole) = frames(input);
    // The server may stop reading before the end.
    drop(timeout(PATIENCE, stream.write_all(&bytes)).await);
    match timeout(PATIENCE, read_frames(&mut stream)).await {
        Ok(outcome) => outcome,
        Err(_) => {
            // A server rightly waits for the rest of half a frame.
            assert!(!is_whole, "the last ping was not answered");
            check_health(address).await;
            FuzzOutcome::Understood
        }
    }
}

/// The bytes to send, and whether they end with a whole frame.
fn frames(input: &[u8]) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    let mut rest = input;
    let mut is_whole = true;
    while !rest.is_empty() {
        let end = rest.windows(BETWEEN.len()).position(|part| part == BETWEEN);
        let (piece, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after.get(BETWEEN.len()..).unwrap_or_default();
        let Some((kind, payload)) = piece.split_first() else { continue };
        match kind {
            b't' => frame(0x81, payload, &mut bytes),
            b'b' => frame(0x82, payload, &mut bytes),
            b'f' => frame(0x01, payload, &mut bytes),
            b'p' => frame(0x89, payload, &mut bytes),
            b'c' => frame(0x88, payload, &mut bytes),
            _ => bytes.extend_from_slice(piece),
        }
        is_whole &= matches!(kind, b't' | b'b' | b'p') && !(*kind == b'p' && payload.len() > 125);
    }
    frame(0x89, LAST, &mut bytes);
    (bytes, is_whole)
}

/// A frame as a client sends it, with a mask that changes nothing.
fn frame(first: u8, payload: &[u8], out: &mut Vec<u8>) {
    out.push(first);
    match payload.len() {
        short @ 0..=125 => out.push(0x80 | short as u8),
        middle @ 126..=0xffff => {
            out.push(0x80 | 126);
            out.extend((middle as u16).to_be_bytes());
        }
        long => {
            out.push(0x80 | 127);
            out.extend((long as u64).to_be_bytes());
        }
    }
    out.extend([0; 4]);
    out.extend_from_slice(payload);
}

/// Reads frames until the last ping is answered or the server hangs up; each text is JSON with an event.
async fn read_frames(stream: &mut TcpStream) -> FuzzOutcome {
    let mut outcome = FuzzOutcome::Understood;
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 16 * 1024];
    let mut is_open = false;
    loop {
        if !is_open && let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes);
            assert!(head.starts_with("HTTP/1.1 101"), "not upgraded: {head:.200}");
            is_open = true;
            bytes.drain(..end + 4);
        }
        while is_open && let Some((opcode, payload)) = take_frame(&mut bytes) {
            match opcode {
                1 => outcome = outcome.max(check_text(&payload)),
                10 if payload == LAST => return outcome,
                8 => return FuzzOutcome::Refused,
                _ => {}
            }
        }
        match stream.read(&mut buffer).await {
            Ok(read) if read > 0 => bytes.extend_from_slice(&buffer[..read]),
            _ => {
                assert!(is_open, "the server hung up before the upgrade");
                return FuzzOutcome::Refused;
            }
        }
    }
}

fn take_frame(bytes: &mut Vec<u8>) -> Option<(u8, Vec<u8>)> {
    let opcode = bytes.first()? & 0x0f;
    let (start, length): (usize, usize) = match *bytes.get(1)? & 0x7f {
        126 => (4, usize::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?))),
        127 => (10, usize::try_from(u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?)).ok()?),
        short => (2, usize::from(short)),
    };
    let payload = bytes.get(start..start.checked_add(length)?)?.to_vec();
    bytes.drain(..start + length);
    Some((opcode, payload))
}

fn check_text(payload: &[u8]) -> FuzzOutcome {
    let frame: Value = serde_json::from_slice(payload).expect("a frame in JSON");
    let event = frame["event"].as_str().unwrap_or_else(|| panic!("a frame without an event: {frame}"));
    if event != "error" {
        return FuzzOutcome::Understood;
    }
    assert_ne!(frame["data"]["code"], "INTERNAL", "answered {frame}");
    assert!(frame["data"]["detail"].is_string(), "an error without a detail: {frame}");
    FuzzOutcome::Refused
}
