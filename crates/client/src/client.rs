//! The connection to a server, and its token.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Method, Request, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::api_call::ApiCall;
use crate::error::Error;
use crate::retry::RetryPolicy;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an ordinary call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// A client of a server, or of the replicas of one. Clones share their connections.
#[derive(Clone)]
pub struct Client {
    pub(crate) http: reqwest::Client,
    pub(crate) servers: Arc<Servers>,
    pub(crate) retry: RetryPolicy,
    pub(crate) timeout: Duration,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("url", &self.url()).finish_non_exhaustive()
    }
}

/// The addresses of the replicas, and the one in use.
pub(crate) struct Servers {
    all: Vec<Url>,
    current: AtomicUsize,
}

impl Servers {
    fn new(addresses: &str) -> Result<Servers, Error> {
        let all = addresses.split(',').map(address).collect::<Result<_, _>>()?;
        Ok(Servers { all, current: AtomicUsize::new(0) })
    }

    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// Whether this is one of the addresses.
    pub(crate) fn has(&self, url: &str) -> bool {
        (0..self.count()).any(|place| self.url(place) == url.trim_end_matches('/'))
    }

    pub(crate) fn current(&self) -> usize {
        self.current.load(Ordering::Relaxed)
    }

    pub(crate) fn base(&self) -> &Url {
        &self.all[self.current()]
    }

    /// Goes on with the next address, unless another request has done so already.
    pub(crate) fn leave(&self, used: usize) {
        let next = (used + 1) % self.all.len();
        // If that fails, another request has done so.
        let _moved = self.current.compare_exchange(used, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Sends a request to the address in use, whatever address it was made for. Returns that address and its place.
    pub(crate) fn direct(&self, request: &mut Request) -> (usize, String) {
        let used = self.current();
        let paths = self.all.iter().filter_map(|base| request.url().as_str().strip_prefix(base.as_str()));
        // The path below one address is the path below each.
        let path = paths.min_by_key(|path| path.len());
        let url = path.and_then(|path| Url::parse(&format!("{}{path}", self.all[used])).ok());
        if let Some(url) = url {
            *request.url_mut() = url;
        }
        (used, self.url(used).to_owned())
    }

    fn url(&self, place: usize) -> &str {
        self.all[place].as_str().trim_end_matches('/')
    }
}

impl Client {
    /// The server at `url` (`http://host:port`, or with a path under which a proxy serves it), asked with this token.
    ///
    /// `url` may name several replicas, with commas between them. When one is away, the client goes on with the next.
    pub fn new(url: &str, token: Option<&str>) -> Result<Client, Error> {
        let servers = Servers::new(url)?;
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
        if servers.all.iter().all(is_this_machine) {
            http = http.no_proxy();
        }
        let http = http.build();
        let http = http.map_err(|error| Error::Invalid(format!("cannot make an HTTP client: {error}")))?;
        Ok(Client { http, servers: Arc::new(servers), retry: RetryPolicy::default(), timeout: CALL_TIMEOUT })
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

    /// The server's address; of several, the one in use.
    pub fn url(&self) -> &str {
        self.servers.url(self.servers.current())
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
        assert!(Client::new("http://a,", None).is_err());
        let several = Client::new("http://a:1, http://b:2/queue", None).unwrap();
        assert_eq!(several.url(), "http://a:1");
        several.servers.leave(0);
        // Another request has found out before, so this one moves nothing.
        several.servers.leave(0);
        assert_eq!(several.url(), "http://b:2/queue");
    }
}
