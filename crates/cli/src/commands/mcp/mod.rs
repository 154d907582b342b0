//! `laneway mcp`: passes MCP messages between standard input and output and `/mcp` of a running server.
//!
//! It passes on messages and answers unchanged. It adds only what HTTP needs: the token, the session of an older
//! client, and the headers that repeat parts of the message.

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
/// How soon the bridge notices that the server's machine is gone.
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
    // It fails if another part of the program has installed a provider, which works as well.
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
            // The client has closed standard output.
            _ = writing => Ok(()),
            () = asked_to_stop() => Ok(()),
        }
    });
    // The thread that reads standard input cannot be interrupted, so do not wait for it.
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
        // Without handlers, the signals end the program.
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
        .map_err(|_| CliError::Input(format!("{from} must hold only characters of an HTTP header")))?;
    value.set_sensitive(name == "authorization");
    headers.insert(HeaderName::from_static(name), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_mcp_is_added_to_an_address() {
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
