//! HTTP: any body, query and path to any route of a real server. MCP is one of these routes.
//!
//! An input is a request without the headers of the connection: a line `METHOD PATH`, headers, an empty line, a body.

use std::fmt::Write;

use serde_json::Value;

use super::served::{Answer, ask, with_server};
use crate::FuzzOutcome;

pub(super) fn read(input: &[u8]) -> FuzzOutcome {
    let request = request(input);
    with_server(async |address| match ask(address, &request).await {
        Some(answer) => {
            check(&answer);
            // An input may have created a token, which later inputs do not have.
            let is_locked = matches!(answer.status, 401 | 403);
            (if answer.status < 400 { FuzzOutcome::Understood } else { FuzzOutcome::Refused }, !is_locked)
        }
        None => (FuzzOutcome::Understood, true),
    })
}

/// The answer is no 500, and a refusal is a problem with a code and a detail.
fn check(answer: &Answer) {
    let body = String::from_utf8_lossy(&answer.body);
    assert!(answer.status >= 200 && answer.status != 500, "answered {} {body:.400}", answer.status);
    if !answer.head.to_lowercase().contains("application/problem+json") {
        return;
    }
    let problem: Value = serde_json::from_str(&body).expect("a problem in JSON");
    for field in ["code", "detail"] {
        assert!(problem[field].as_str().is_some_and(|text| !text.is_empty()), "no {field}: {body:.400}");
    }
}

/// The request as bytes. The headers of the connection are this function's own.
fn request(input: &[u8]) -> Vec<u8> {
    let end = input.windows(2).position(|two| two == b"\n\n").unwrap_or(input.len());
    let body = input.get(end + 2..).unwrap_or_default();
    let head = String::from_utf8_lossy(&input[..end]);
    let mut lines = head.lines();
    let (method, path) = lines.next().and_then(|line| line.split_once(' ')).unwrap_or(("POST", "/api/tasks"));
    let method: String = method.chars().filter(char::is_ascii_uppercase).take(10).collect();
    let method = if method.is_empty() || method == "CONNECT" { "POST" } else { &method };
    let mut request =
        format!("{method} {} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n", target(path));
    for (name, value) in lines.filter_map(|line| line.split_once(": ")).filter(is_header).take(20) {
        write!(request, "{name}: {value}\r\n").expect("a string grows");
    }
    if !request.contains("\r\ncontent-type: ") {
        request.push_str("content-type: application/json\r\n");
    }
    write!(request, "content-length: {}\r\n\r\n", body.len()).expect("a string grows");
    [request.as_bytes(), body].concat()
}

/// The path with every byte encoded that a request line cannot carry.
fn target(path: &str) -> String {
    let mut target = String::from("/");
    for byte in path.trim_start_matches('/').bytes().take(4000) {
        match byte {
            b'#' | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' | 0..=0x20 | 0x7f.. => {
                write!(target, "%{byte:02X}").expect("a string grows");
            }
            _ => target.push(byte.into()),
        }
    }
    target
}

fn is_header((name, value): &(&str, &str)) -> bool {
    const OF_THE_CONNECTION: [&str; 6] =
        ["host", "connection", "content-length", "transfer-encoding", "expect", "upgrade"];
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        && !OF_THE_CONNECTION.contains(name)
        && value.len() < 1000
        && value.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}
