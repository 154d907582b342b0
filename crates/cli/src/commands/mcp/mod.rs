//! `laneway mcp`: MCP on standard input and output, passed on to `/mcp` of a server that runs.
//!
//! It knows no tool and decides nothing: each message goes to the server as it came, and each answer comes back as it
//! is. What it adds is what only HTTP needs: the token, the session of an older client, and the headers that repeat
//! what the message says.

pub(crate) mod bridge;
pub(crate) mod message;

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::BufReader;

use crate::CliError;
use crate::arguments::Mcp;
use crate::commands::mcp::bridge::Bridge;

const DEFAULT_URL: &str = "http://127.0.0.1:7717";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How soon a server that vanished without a word is noticed.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Passes messages on until standard input ends.
pub(crate) fn run(asked: Mcp) -> Result<(), CliError> {
    let url = asked.url.or_else(|| variable("LANEWAY_URL")).unwrap_or_else(|| DEFAULT_URL.to_owned());
    let url = endpoint(&url)?;
    let mut headers = HeaderMap::new();
    let token = asked.token.or_else(|| variable("LANEWAY_TOKEN")).map(|token| format!("Bearer {token}"));
    put(&mut headers, "authorization", token, "--token")?;
    put(&mut headers, "x-source-agent", asked.agent.or_else(|| variable("LANEWAY_AGENT")), "--agent")?;
    put(&mut headers, "x-laneway-parent", asked.parent.or_else(|| variable("LANEWAY_TASK_ID")), "--parent")?;
    // Another part of the program may have chosen already; either choice will do.
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = reqwest::Client::builder()
        .default_headers(headers)
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_keepalive(KEEPALIVE)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("laneway/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| CliError::Failure(format!("cannot make an HTTP client: {error}")))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::Failure(error.to_string()))?;
    let done = runtime.block_on(async {
        let (bridge, writing) = Bridge::new(client, url, tokio::io::stdout());
        let passing = bridge.run(BufReader::new(tokio::io::stdin()));
        tokio::select! {
            done = passing => done,
            // Nobody reads any more.
            _ = writing => Ok(()),
            () = asked_to_stop() => Ok(()),
        }
    });
    // Whoever reads standard input cannot be interrupted, and there is nothing left to do.
    runtime.shutdown_background();
    done.map_err(CliError::input)
}

async fn asked_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(mut terminate), Ok(mut interrupt)) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
        // Without them the signals end the program by themselves.
        _ => std::future::pending().await,
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn endpoint(url: &str) -> Result<String, CliError> {
    let wrong =
        || CliError::Input("--url must be the address of a server, such as http://127.0.0.1:7717".into());
    let url = reqwest::Url::parse(url).map_err(|_| wrong())?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(wrong());
    }
    let base = url.as_str().trim_end_matches('/');
    Ok(if base.ends_with("/mcp") { base.to_owned() } else { format!("{base}/mcp") })
}

fn put(
    headers: &mut HeaderMap,
    name: &'static str,
    value: Option<String>,
    from: &str,
) -> Result<(), CliError> {
    let Some(value) = value else { return Ok(()) };
    let mut value = HeaderValue::from_str(&value)
        .map_err(|_| CliError::Input(format!("{from} holds characters that cannot be sent")))?;
    value.set_sensitive(name == "authorization");
    headers.insert(HeaderName::from_static(name), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_server_is_enough() {
        let check = |given: &str, expected: Option<&str>| {
            assert_eq!(endpoint(given).ok().as_deref(), expected, "{given}");
        };
        check("http://127.0.0.1:7717", Some("http://127.0.0.1:7717/mcp"));
        check("http://127.0.0.1:7717/", Some("http://127.0.0.1:7717/mcp"));
        check("https://lanes.example/mcp", Some("https://lanes.example/mcp"));
        check("https://lanes.example/behind/a/path", Some("https://lanes.example/behind/a/path/mcp"));
        check("127.0.0.1:7717", None);
        check("file:///etc/passwd", None);
    }
}
