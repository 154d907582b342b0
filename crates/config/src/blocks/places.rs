//! The address to listen on, and the location of the store.

use std::fmt;
use std::path::PathBuf;

use crate::error::Expected;

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// A name or an address. An IPv6 address has brackets.
    pub host: String,
    /// The port. With 0 the system chooses one.
    pub port: u16,
}

impl Listen {
    /// Reads `host:port`.
    pub(crate) fn read(text: &str) -> Option<Listen> {
        let (host, port) = text.trim().rsplit_once(':')?;
        let bracketed = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let good = match bracketed {
            Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
            None => {
                !host.is_empty()
                    && !host.contains([':', '/', '[', ']'])
                    && !host.contains(char::is_whitespace)
            }
        };
        let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|_| digits && good)?;
        Some(Listen { host: host.to_owned(), port })
    }

    /// Whether only this machine can reach it.
    pub fn is_loopback(&self) -> bool {
        let address = self.host.trim_start_matches('[').trim_end_matches(']');
        match address.parse::<std::net::IpAddr>() {
            Ok(address) => address.is_loopback(),
            Err(_) => address == "localhost",
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// The location of the store.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreLocation {
    /// In memory, lost with the process.
    Memory,
    /// In a directory, relative to the program's working directory.
    Path(PathBuf),
    /// In Redis, by its URL.
    Redis(String),
    /// In Postgres, by its URL.
    Postgres(String),
}

/// Prefixes of a URL. A directory cannot start with them.
const SCHEMES: [&str; 6] =
    ["redis:", "rediss:", "redis+sentinel:", "rediss+sentinel:", "postgres:", "postgresql:"];

impl StoreLocation {
    /// Parses `memory`, a URL or a path. The error says what would be right.
    pub(crate) fn read(text: &str) -> Result<StoreLocation, Expected> {
        let text = text.trim();
        let wrong = |expected: &'static str| Err(Expected(expected.into()));
        match text.split_once("://") {
            Some((_, "")) => wrong("must name a host after the ://"),
            Some(("redis" | "rediss" | "redis+sentinel" | "rediss+sentinel", _)) => {
                Ok(StoreLocation::Redis(text.to_owned()))
            }
            Some(("postgres" | "postgresql", _)) => Ok(StoreLocation::Postgres(text.to_owned())),
            Some(_) => {
                wrong("must be \"memory\", a directory, or a redis://, redis+sentinel:// or postgres:// URL")
            }
            None if text.is_empty() => wrong("must not be blank"),
            None if text == "memory" => Ok(StoreLocation::Memory),
            None if SCHEMES.iter().any(|scheme| text.to_ascii_lowercase().starts_with(scheme)) => {
                wrong("must have // after the scheme, as in redis://HOST:PORT/0 or postgres://HOST/DATABASE")
            }
            None => Ok(StoreLocation::Path(text.into())),
        }
    }
}

impl fmt::Display for StoreLocation {
    /// Writes the location without passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreLocation::Memory => write!(f, "memory"),
            StoreLocation::Path(path) => write!(f, "{}", path.display()),
            StoreLocation::Redis(url) | StoreLocation::Postgres(url) => write!(f, "{}", without_secrets(url)),
        }
    }
}

impl fmt::Debug for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreLocation({self})")
    }
}

/// A URL with stars instead of its password and its parameters.
pub(crate) fn without_secrets(url: &str) -> String {
    let (base, parameters) = url.split_once('?').map_or((url, None), |(base, rest)| (base, Some(rest)));
    let mut shown = match base.split_once("://") {
        Some((scheme, rest)) => {
            let authority_end = rest.find('/').unwrap_or(rest.len());
            match rest[..authority_end].rsplit_once('@') {
                Some((user, host)) => {
                    let user = user.split_once(':').map_or(user, |(name, _)| name);
                    format!("{scheme}://{user}:***@{host}{}", &rest[authority_end..])
                }
                None => base.to_owned(),
            }
        }
        None => base.to_owned(),
    };
    if parameters.is_some() {
        shown.push_str("?***");
    }
    shown
}
