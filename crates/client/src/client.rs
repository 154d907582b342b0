//! The connection to a server, and its token.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Method, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::api_call::ApiCall;
use crate::error::Error;
use crate::retry::RetryPolicy;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an ordinary call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// A client of one server. Clones share their connections.
#[derive(Clone)]
pub struct Client {
    pub(crate) http: reqwest::Client,
    pub(crate) base: Arc<Url>,
    pub(crate) retry: RetryPolicy,
    pub(crate) timeout: Duration,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("url", &self.base.as_str()).finish_non_exhaustive()
    }
}

impl Client {
    /// The server at `url` (`http://host:port`, or with a path under which a proxy serves it), asked with this token.
    pub fn new(url: &str, token: Option<&str>) -> Result<Client, Error> {
        let base = address(url)?;
        let mut headers = HeaderMap::new();
        if let Some(token) = token {
            let value = HeaderValue::from_str(&format!("Bearer {token}"));
            let mut value =
                value.map_err(|_| Error::Invalid("the token has signs that no token has".into()))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        // Fails if another part of the program has installed one, which is as good.
        drop(rustls::crypto::ring::default_provider().install_default());
        let mut http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            // A token must not follow a redirection to another host.
            .redirect(reqwest::redirect::Policy::none())
            .default_headers(headers)
            .user_agent(concat!("laneway-client/", env!("CARGO_PKG_VERSION")));
        if is_this_machine(&base) {
            http = http.no_proxy();
        }
        let http = http.build();
        let http = http.map_err(|error| Error::Invalid(format!("cannot make an HTTP client: {error}")))?;
        Ok(Client { http, base: Arc::new(base), retry: RetryPolicy::default(), timeout: CALL_TIMEOUT })
    }

    /// Repeats calls where that is safe.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Client {
        self.retry = retry;
        self
    }

    /// How long an ordinary call may take. Default 30 s. Calls that wait for something (a turn, a claim, a slot, a
    /// batch) have a bound of their own, or none.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Client {
        self.timeout = timeout;
        self
    }

    /// The server's address.
    pub fn url(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// Any call: a method and the parts of a path, which need no encoding.
    ///
    /// ```no_run
    /// # async fn sample(client: laneway_client::Client) -> Result<(), laneway_client::Error> {
    /// use laneway_client::Method;
    /// let path = ["api", "lanes", "session:a/b", "pause"];
    /// let lane: serde_json::Value = client.call(Method::POST, path).send().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn call<'a>(&self, method: Method, path: impl IntoIterator<Item = &'a str>) -> ApiCall {
        ApiCall::new(self, method, path)
    }

    /// A GET request.
    pub async fn get<'a, T: DeserializeOwned>(
        &self,
        path: impl IntoIterator<Item = &'a str>,
    ) -> Result<T, Error> {
        self.call(Method::GET, path).send().await
    }

    /// A POST request with a body.
    pub async fn post<'a, T: DeserializeOwned>(
        &self,
        path: impl IntoIterator<Item = &'a str>,
        body: &impl Serialize,
    ) -> Result<T, Error> {
        self.call(Method::POST, path).body(body).send().await
    }

    /// A PATCH request.
    pub async fn patch<'a, T: DeserializeOwned>(
        &self,
        path: impl IntoIterator<Item = &'a str>,
        body: &impl Serialize,
    ) -> Result<T, Error> {
        self.call(Method::PATCH, path).body(body).send().await
    }

    /// A DELETE request.
    pub async fn delete<'a, T: DeserializeOwned>(
        &self,
        path: impl IntoIterator<Item = &'a str>,
    ) -> Result<T, Error> {
        self.call(Method::DELETE, path).send().await
    }
}

fn address(text: &str) -> Result<Url, Error> {
    let say = |why: &str| Error::Invalid(format!("the server's address must be http://HOST:PORT: {why}"));
    let mut url = Url::parse(text.trim()).map_err(|error| say(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(say("it begins with neither http:// nor https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(say("who asks is said by the token, not by the address"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(say("it ends before any ? or #"));
    }
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    Ok(url)
}

fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test stops at anything unexpected")]

    use super::*;

    #[test]
    fn an_address_that_cannot_be_a_server_is_refused_with_what_is_wrong() {
        let samples = [
            ("127.0.0.1:7717", "must be http://HOST:PORT"),
            ("ftp://host/", "neither http:// nor https://"),
            ("http://me:secret@host/", "said by the token"),
            ("http://host/?a=b", "before any ?"),
        ];
        for (url, why) in samples {
            let error = Client::new(url, None).map(|_| ()).unwrap_err();
            assert!(error.to_string().contains(why), "{url}: {error}");
            assert_eq!(error.exit_code(), 2);
        }
        let client = Client::new("https://host/laneway", Some("id.secret")).unwrap();
        assert_eq!(client.url(), "https://host/laneway");
        assert!(!format!("{client:?}").contains("secret"));
        assert!(Client::new("http://host", Some("two\nlines")).is_err());
    }
}
