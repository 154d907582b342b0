//! One request: path, query, headers and body, and the answer as a type.

use std::time::Duration;

use laneway_protocol::Code;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Request, Response, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::Client;
use crate::error::Error;
use crate::running::running_task;

/// How long an answer may be.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// A request that was not sent yet.
#[must_use = "a call does nothing until it is sent"]
pub struct ApiCall {
    client: Client,
    /// What is wrong with it is returned when it is sent.
    request: Result<Request, Error>,
    is_safe: bool,
    /// A status that is an answer although it is no success.
    also_ok: Option<u16>,
}

impl ApiCall {
    pub(crate) fn new<'a>(
        client: &Client,
        method: Method,
        path: impl IntoIterator<Item = &'a str>,
    ) -> ApiCall {
        let is_safe = method == Method::GET;
        let request = url_of(client.servers.base(), path).map(|url| {
            let mut request = Request::new(method, url);
            *request.timeout_mut() = Some(client.timeout);
            request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
            request
        });
        ApiCall { client: client.clone(), request, is_safe, also_ok: None }
    }

    /// One more part of the query; none for `None`.
    pub fn query(mut self, name: &str, value: Option<impl AsRef<str>>) -> ApiCall {
        if let (Ok(request), Some(value)) = (&mut self.request, value) {
            request.url_mut().query_pairs_mut().append_pair(name, value.as_ref());
        }
        self
    }

    /// One more header; none for `None`.
    pub fn header(mut self, name: &'static str, value: Option<impl AsRef<str>>) -> ApiCall {
        let Some(value) = value else { return self };
        match (HeaderValue::from_str(value.as_ref()), &mut self.request) {
            (Ok(value), Ok(request)) => {
                request.headers_mut().insert(name, value);
            }
            (Err(_), Ok(_)) => {
                let why = format!("the header {name} cannot hold that text: only visible ASCII fits");
                self.request = Err(Error::Invalid(why));
            }
            (_, Err(_)) => {}
        }
        self
    }

    /// Makes the request one of this task, or of the task whose handler sends it.
    pub(crate) fn child_of(self, parent: Option<&str>) -> ApiCall {
        let own = parent.map(str::to_owned).or_else(|| running_task(|url| self.client.servers.has(url)));
        self.header("x-laneway-parent", own)
    }

    /// A second request with the same key joins the first, so the request may be repeated.
    pub fn key(mut self, key: Option<&str>) -> ApiCall {
        self.is_safe |= key.is_some();
        self.header(IDEMPOTENCY_KEY, key)
    }

    /// Declares that a repetition changes nothing.
    pub fn repeatable(mut self) -> ApiCall {
        self.is_safe = true;
        self
    }

    /// The body, as JSON.
    pub fn body(mut self, body: &impl Serialize) -> ApiCall {
        if let Ok(request) = &mut self.request {
            match serde_json::to_vec(body) {
                Ok(bytes) => {
                    *request.body_mut() = Some(bytes.into());
                    let form = HeaderValue::from_static("application/json");
                    request.headers_mut().insert(CONTENT_TYPE, form);
                }
                Err(error) => self.request = Err(Error::Invalid(format!("not writable as JSON: {error}"))),
            }
        }
        self
    }

    /// Accepts an answer with this status, although it is no success.
    pub(crate) fn also_ok(mut self, status: u16) -> ApiCall {
        self.also_ok = Some(status);
        self
    }

    /// How long it may take; `None`: no limit.
    pub fn within(mut self, timeout: Option<Duration>) -> ApiCall {
        if let Ok(request) = &mut self.request {
            *request.timeout_mut() = timeout;
        }
        self
    }

    /// Sends the request. An empty answer is read as `null`, so that `()` fits it.
    pub async fn send<T: DeserializeOwned>(self) -> Result<T, Error> {
        let (status, body) = self.bytes().await?;
        let body = if body.is_empty() { b"null".as_slice() } else { &body };
        serde_json::from_slice(body).map_err(|error| {
            let why = format!("the answer has another shape than this client knows: {error}");
            Error::NotUnderstood { status, why }
        })
    }

    /// Sends the request, for an answer that is a text.
    pub async fn text(self) -> Result<String, Error> {
        let (status, body) = self.header("accept", Some("*/*")).bytes().await?;
        String::from_utf8(body)
            .map_err(|_| Error::NotUnderstood { status, why: "the answer is not UTF-8".to_owned() })
    }

    async fn bytes(self) -> Result<(u16, Vec<u8>), Error> {
        let mut tried = 0;
        let request = self.request?;
        loop {
            let error = match exchange(&self.client, &request, self.also_ok).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            match self.client.retry.wait(tried, &error).filter(|_| self.is_safe) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(error),
            }
            tried += 1;
        }
    }

    /// Sends the request and leaves the body to the caller: for streams.
    pub(crate) async fn open(self) -> Result<Response, Error> {
        let (used, url, response) = execute(&self.client, &self.request?).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        Err(left(&self.client, used, Error::of_answer(status, &read(&url, response).await?)))
    }
}

async fn exchange(client: &Client, request: &Request, also_ok: Option<u16>) -> Result<(u16, Vec<u8>), Error> {
    let (used, url, response) = execute(client, request).await?;
    let status = response.status();
    let body = read(&url, response).await.map_err(|error| left(client, used, error))?;
    if status.is_success() || also_ok == Some(status.as_u16()) {
        return Ok((status.as_u16(), body));
    }
    Err(left(client, used, Error::of_answer(status.as_u16(), &body)))
}

/// Sends the request to the address in use, and to each other one in turn while no server got it. Returns which one answers.
async fn execute(client: &Client, request: &Request) -> Result<(usize, String, Response), Error> {
    let mut others = client.servers.count() - 1;
    loop {
        // Bodies here are bytes, which can always be copied.
        let copy = request.try_clone();
        let mut copy = copy.ok_or_else(|| Error::Invalid("a body that streams cannot be sent".to_owned()))?;
        let (used, url) = client.servers.direct(&mut copy);
        match client.http.execute(copy).await {
            Ok(response) => return Ok((used, url, response)),
            Err(error) => match left(client, used, Error::of_transport(&url, error)) {
                Error::Unreachable { .. } if others > 0 => others -= 1,
                error => return Err(error),
            },
        }
    }
}

/// Goes on with the next address if the server is away.
fn left(client: &Client, used: usize, error: Error) -> Error {
    if error.is_away() && error.code() != Some(Code::RateLimited) {
        client.servers.leave(used);
    }
    error
}

async fn read(url: &str, mut response: Response) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| Error::of_transport(url, error))? {
        if body.len() + piece.len() > ANSWER_BYTES_MAX {
            let why = format!("the answer is longer than {ANSWER_BYTES_MAX} bytes");
            return Err(Error::NotUnderstood { status: response.status().as_u16(), why });
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// The address of a path under the server's.
fn url_of<'a>(base: &Url, path: impl IntoIterator<Item = &'a str>) -> Result<Url, Error> {
    let mut url = base.clone();
    {
        let Ok(mut segments) = url.path_segments_mut() else {
            return Err(Error::Invalid("the server's address cannot have a path".to_owned()));
        };
        segments.pop_if_empty();
        for part in path {
            // A URL takes these for "here" and "above", however they are encoded.
            if matches!(part, "" | "." | "..") {
                return Err(Error::Invalid(format!("{part:?} cannot be the name of anything on the server")));
            }
            segments.push(part);
        }
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at anything unexpected")]

    use super::*;

    #[test]
    fn names_are_encoded_and_never_leave_their_segment() {
        let base = Url::parse("http://host/laneway/").unwrap();
        let of = |part: &str| url_of(&base, ["api", "lanes", part]).map(|url| url.to_string());
        assert_eq!(of("main").unwrap(), "http://host/laneway/api/lanes/main");
        assert_eq!(of("session:a/b").unwrap(), "http://host/laneway/api/lanes/session:a%2Fb");
        assert_eq!(of("a?b#c%2e").unwrap(), "http://host/laneway/api/lanes/a%3Fb%23c%252e");
        assert_eq!(of("../../x").unwrap(), "http://host/laneway/api/lanes/..%2F..%2Fx");
        for bad in ["", ".", ".."] {
            assert!(of(bad).is_err(), "{bad:?}");
        }
    }
}
