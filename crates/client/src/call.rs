//! One call: a path, a query, headers, a body, and the answer as a type.

use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Request, Response, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::Client;
use crate::error::Error;

/// How long an answer may be.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// A call that has not been made yet.
#[must_use = "a call does nothing until it is sent"]
pub struct Call {
    client: Client,
    /// What is wrong with it is said when it is sent.
    request: Result<Request, Error>,
    is_safe: bool,
    /// A status that is an answer although it is no success.
    understood: Option<u16>,
}

impl Call {
    pub(crate) fn new<'a>(client: &Client, method: Method, path: impl IntoIterator<Item = &'a str>) -> Call {
        let is_safe = method == Method::GET;
        let request = place(&client.base, path).map(|url| {
            let mut request = Request::new(method, url);
            *request.timeout_mut() = Some(client.timeout);
            request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
            request
        });
        Call { client: client.clone(), request, is_safe, understood: None }
    }

    /// One more part of the query; none for `None`.
    pub fn query(mut self, name: &str, value: Option<impl AsRef<str>>) -> Call {
        if let (Ok(request), Some(value)) = (&mut self.request, value) {
            request.url_mut().query_pairs_mut().append_pair(name, value.as_ref());
        }
        self
    }

    /// One more header; none for `None`.
    pub fn header(mut self, name: &'static str, value: Option<impl AsRef<str>>) -> Call {
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

    /// Asking twice under one key is asking once, which makes the call safe to repeat.
    pub fn key(mut self, key: Option<&str>) -> Call {
        self.is_safe |= key.is_some();
        self.header(IDEMPOTENCY_KEY, key)
    }

    /// Says that making the call twice does no more than making it once.
    pub fn repeatable(mut self) -> Call {
        self.is_safe = true;
        self
    }

    /// What is sent, as JSON.
    pub fn body(mut self, body: &impl Serialize) -> Call {
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

    /// Takes an answer with this status for one, although it is no success.
    pub(crate) fn understanding(mut self, status: u16) -> Call {
        self.understood = Some(status);
        self
    }

    /// How long it may take; `None`: as long as it takes.
    pub fn within(mut self, timeout: Option<Duration>) -> Call {
        if let Ok(request) = &mut self.request {
            *request.timeout_mut() = timeout;
        }
        self
    }

    /// Makes the call. An empty answer is read as `null`, so that `()` fits it.
    pub async fn send<T: DeserializeOwned>(self) -> Result<T, Error> {
        let (status, body) = self.bytes().await?;
        let body = if body.is_empty() { b"null".as_slice() } else { &body };
        serde_json::from_slice(body).map_err(|error| {
            let why = format!("the answer has another shape than this client knows: {error}");
            Error::NotUnderstood { status, why }
        })
    }

    /// Makes the call, for an answer that is a text.
    pub async fn text(self) -> Result<String, Error> {
        let (status, body) = self.header("accept", Some("*/*")).bytes().await?;
        String::from_utf8(body)
            .map_err(|_| Error::NotUnderstood { status, why: "the answer is not UTF-8".to_owned() })
    }

    async fn bytes(self) -> Result<(u16, Vec<u8>), Error> {
        let mut tried = 0;
        let url = self.client.url().to_owned();
        let request = self.request?;
        loop {
            // Bodies here are bytes, which can always be copied.
            let copy = request.try_clone();
            let copy = copy.ok_or_else(|| Error::Invalid("a body that streams cannot be sent".to_owned()))?;
            let error = match exchange(&self.client, &url, copy, self.understood).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            match self.client.patience.wait(tried, &error).filter(|_| self.is_safe) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(error),
            }
            tried += 1;
        }
    }

    /// Makes the call and leaves the body to the caller: for streams.
    pub(crate) async fn open(self) -> Result<Response, Error> {
        let url = self.client.url().to_owned();
        let response = self.client.http.execute(self.request?).await;
        let response = response.map_err(|error| Error::of_transport(&url, error))?;
        match response.status().is_success() {
            true => Ok(response),
            false => {
                let status = response.status().as_u16();
                Err(Error::of_answer(status, &read(&url, response).await?))
            }
        }
    }
}

async fn exchange(
    client: &Client,
    url: &str,
    request: Request,
    understood: Option<u16>,
) -> Result<(u16, Vec<u8>), Error> {
    let response = client.http.execute(request).await;
    let response = response.map_err(|error| Error::of_transport(url, error))?;
    let status = response.status();
    let body = read(url, response).await?;
    match status.is_success() || understood == Some(status.as_u16()) {
        true => Ok((status.as_u16(), body)),
        false => Err(Error::of_answer(status.as_u16(), &body)),
    }
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
fn place<'a>(base: &Url, path: impl IntoIterator<Item = &'a str>) -> Result<Url, Error> {
    let mut url = base.clone();
    {
        let Ok(mut segments) = url.path_segments_mut() else {
            return Err(Error::Invalid("the server's address cannot have a path".to_owned()));
        };
        segments.pop_if_empty();
        for part in path {
            // These mean "here" and "above" wherever they stand, however they are written.
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
    fn names_are_encoded_and_never_leave_their_place() {
        let base = Url::parse("http://host/laneway/").unwrap();
        let of = |part: &str| place(&base, ["api", "lanes", part]).map(|url| url.to_string());
        assert_eq!(of("main").unwrap(), "http://host/laneway/api/lanes/main");
        assert_eq!(of("session:a/b").unwrap(), "http://host/laneway/api/lanes/session:a%2Fb");
        assert_eq!(of("a?b#c%2e").unwrap(), "http://host/laneway/api/lanes/a%3Fb%23c%252e");
        assert_eq!(of("../../x").unwrap(), "http://host/laneway/api/lanes/..%2F..%2Fx");
        for bad in ["", ".", ".."] {
            assert!(of(bad).is_err(), "{bad:?}");
        }
    }
}
