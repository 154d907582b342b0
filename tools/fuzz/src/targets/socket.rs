//! WebSocket frames, to a real server.
//!
//! An input is frames with a line `%%` between them. The first byte of each says what it is: `t` a text, `b` bytes, `p` a ping, `c` a
//! close, `f` a piece of a text that goes on, and anything else bytes that are no frame at all.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::served::{Served, is_well};
use super::words;
use crate::Target;

pub(super) struct Socket {
    served: Served,
}

const BETWEEN: &[u8] = b"\n%%\n";
/// The last frame: a ping, which is answered when all before it were heard.
const LAST: &[u8] = b"last";
const PATIENCE: Duration = Duration::from_secs(4);
const HANDSHAKE: &str = "GET /api/ws HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
    sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

impl Socket {
    pub(super) fn open() -> Result<Socket, String> {
        Ok(Socket { served: Served::new()? })
    }
}

impl Target for Socket {
    fn name(&self) -> &'static str {
        "socket"
    }

    fn words(&self) -> Vec<String> {
        words(&[
            "\n%%\n",
            "\n%%\nt",
            "\n%%\nb",
            "\n%%\nr",
            "\n%%\nf",
            "event",
            "data",
            "id",
            "run",
            "chat",
            "task",
            "send",
            "steer",
            "cancel",
            "subscribe",
            "agent",
            "echo",
            "message",
            "session",
            "session_id",
            "text",
            "lane",
            "task_id",
            "detach",
            "mode",
            "queue",
            "main",
            "0198c0de-0000-7000-8000-000000000000",
        ])
    }

    fn read(&mut self, input: &[u8]) -> Result<String, String> {
        let address = self.served.address()?;
        let told = self.served.block_on(talk(address, input));
        if told.is_err() {
            self.served.close();
        }
        told
    }
}

async fn talk(address: SocketAddr, input: &[u8]) -> Result<String, String> {
    let mut stream = TcpStream::connect(address).await.map_err(|error| format!("not connected: {error}"))?;
    stream.write_all(HANDSHAKE.as_bytes()).await.map_err(|error| error.to_string())?;
    let mut out = Vec::new();
    let mut rest = input;
    let mut is_whole = true;
    while !rest.is_empty() {
        let end = rest.windows(BETWEEN.len()).position(|part| part == BETWEEN);
        let (piece, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after.get(BETWEEN.len()..).unwrap_or_default();
        let Some((sort, payload)) = piece.split_first() else { continue };
        match sort {
            b't' => frame(0x81, payload, &mut out),
            b'b' => frame(0x82, payload, &mut out),
            b'f' => frame(0x01, payload, &mut out),
            b'p' => frame(0x89, payload, &mut out),
            b'c' => frame(0x88, payload, &mut out),
            _ => out.extend_from_slice(piece),
        }
        is_whole &= matches!(sort, b't' | b'b' | b'p') && !(*sort == b'p' && payload.len() > 125);
    }
    frame(0x89, LAST, &mut out);
    // What the server does not read any more need not arrive.
    drop(tokio::time::timeout(PATIENCE, stream.write_all(&out)).await);
    match tokio::time::timeout(PATIENCE, listen(&mut stream)).await {
        Ok(told) => told,
        // Half a frame is rightly waited for.
        Err(_) if !is_whole => is_well(address).await.map(|()| "waits".to_owned()),
        Err(_) => Err("the last ping was not answered".to_owned()),
    }
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
async fn listen(stream: &mut TcpStream) -> Result<String, String> {
    let mut heard = String::new();
    let mut bytes = Vec::new();
    let mut room = vec![0; 16 * 1024];
    let mut is_open = false;
    loop {
        if !is_open && let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            if !bytes.starts_with(b"HTTP/1.1 101") {
                return Err(format!("not upgraded: {:.200}", String::from_utf8_lossy(&bytes)));
            }
            is_open = true;
            bytes.drain(..end + 4);
        }
        while is_open && let Some((opcode, payload)) = take_frame(&mut bytes) {
            match opcode {
                1 => heard.push_str(&check_text(&payload)?),
                10 if payload == LAST => return Ok(heard),
                8 => return Ok(heard + " closed"),
                _ => {}
            }
        }
        match stream.read(&mut room).await {
            Ok(read) if read > 0 => bytes.extend_from_slice(&room[..read]),
            _ if is_open => return Ok(heard + " gone"),
            _ => return Err("hung up before the upgrade".to_owned()),
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

fn check_text(payload: &[u8]) -> Result<String, String> {
    let frame: Value =
        serde_json::from_slice(payload).map_err(|error| format!("a frame that is not JSON: {error}"))?;
    let event = frame["event"].as_str().ok_or(format!("a frame without an event: {frame}"))?;
    match event {
        "error" if frame["data"]["code"] == "INTERNAL" => Err(format!("answered {frame}")),
        "error" => {
            let detail =
                frame["data"]["detail"].as_str().ok_or(format!("an error without words: {frame}"))?;
            Ok(format!(" error {} {detail:.60}", frame["data"]["code"].as_str().unwrap_or_default()))
        }
        event => Ok(format!(" {event}")),
    }
}
