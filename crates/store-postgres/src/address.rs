//! The address of a database, and the name of our schema in it.

use std::str::FromStr;

use laneway_store::StoreError;
use laneway_store_remote::{TlsFiles, escape, take_parameters};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::tls::{self, Trust};

/// The most bytes of an identifier of Postgres.
const IDENTIFIER_MAX: usize = 63;

/// Where a log is.
pub(crate) struct Address {
    pub(crate) config: Config,
    /// Makes connections with TLS, where the mode asks for it or the server offers it.
    pub(crate) tls: MakeRustlsConnect,
    /// The name of the store, without secrets.
    pub(crate) name: String,
    /// Also the channel on which appends are notified.
    pub(crate) schema: String,
    /// Whether a pooler gives each transaction another connection, where the address says so.
    pub(crate) is_pooled: Option<bool>,
}

impl Address {
    pub(crate) fn parse(url: &str, namespace: &str) -> Result<Address, StoreError> {
        let example = "the address of a Postgres looks like postgres://user:password@host:5432/database";
        let Parts { url, trust, files, is_pooled } = split(url)?;
        // The driver's error may repeat the address, and with it a password.
        let mut config = Config::from_str(&url).map_err(|_| unfit(example))?;
        if config.get_hosts().is_empty() {
            return Err(unfit(format!("{example}; this one has no host")));
        }
        // After a failover the former primary may still answer.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        config.application_name("laneway");
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let schema = format!("laneway_{}", escape(namespace, '$', is_plain));
        if namespace.is_empty() || schema.len() > IDENTIFIER_MAX {
            let reason =
                "a namespace has 1 to 40 bytes, and characters other than a-z, 0-9 and _ count three";
            return Err(unfit(reason));
        }
        let name = format!("{} (namespace {})", without_secrets(&config), namespace.escape_default());
        Ok(Address { config, tls: tls::connector(trust, &files)?, name, schema, is_pooled })
    }
}

/// An address, and what of it the driver does not know.
struct Parts {
    url: String,
    trust: Trust,
    files: TlsFiles,
    is_pooled: Option<bool>,
}

/// Takes our own parameters out of an address, and puts a mode for TLS that the driver knows in their place.
fn split(url: &str) -> Result<Parts, StoreError> {
    let mut files = TlsFiles::new("postgres", ["sslrootcert", "sslcert", "sslkey"]);
    let (mut mode, mut is_pooled) = (None, None);
    let rest = take_parameters(url, |name, value| {
        match (name, value) {
            ("sslmode", _) => mode = Some(value.to_owned()),
            ("pool", "transaction") => is_pooled = Some(true),
            ("pool", "session") => is_pooled = Some(false),
            ("pool", _) => {
                let reason = "pool in its address is the mode of a pooler: transaction or session; without it the \
                              server finds out";
                return Err(unfit(reason));
            }
            _ => return files.take(name, value),
        }
        Ok(true)
    })?;
    let (mode, trust) = trust(mode.as_deref(), files.has_ca())?;
    let mark = if rest.contains('?') { '&' } else { '?' };
    Ok(Parts { url: format!("{rest}{mark}sslmode={mode}"), trust, files, is_pooled })
}

/// The mode as the driver knows it, and which certificates count.
fn trust(mode: Option<&str>, has_ca: bool) -> Result<(&'static str, Trust), StoreError> {
    Ok(match mode {
        Some("require") if has_ca => ("require", Trust::Authority),
        Some("require") => ("require", Trust::Any),
        Some("verify-ca") => ("require", Trust::Authority),
        Some("verify-full") => ("require", Trust::Name),
        // An authority that would not be used is a mistake.
        None | Some("prefer" | "disable") if has_ca => {
            return Err(unfit("sslrootcert has a meaning only with sslmode=verify-full or require"));
        }
        None | Some("prefer") => ("prefer", Trust::Any),
        Some("disable") => ("disable", Trust::Any),
        Some(_) => {
            let reason = "sslmode in its address must be disable, prefer, require, verify-ca or verify-full";
            return Err(unfit(reason));
        }
    })
}

fn without_secrets(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => String::new(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("postgres://{host}:{port}/{database}")
}

fn unfit(reason: impl ToString) -> StoreError {
    StoreError::unfit("postgres", reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_only_text() {
        let schema = |namespace: &str| {
            Address::parse("postgres://h/db", namespace).map(|address| address.schema).map_err(drop)
        };
        assert_eq!(schema("team_1"), Ok("laneway_team_1".to_owned()));
        assert_eq!(schema("Team\";"), Ok("laneway_$54eam$22$3b".to_owned()));
        assert_eq!((schema(""), schema(&"x".repeat(60))), (Err(()), Err(())));
    }

    #[test]
    fn names_and_errors_contain_no_secrets() {
        let address = Address::parse("postgres://u:hush@h:99/db", "n").unwrap();
        assert_eq!(address.name, "postgres://h:99/db (namespace n)");
        for (wrong, why) in [
            ("postgres://u:hush@h:port/db", "looks like postgres://"),
            ("http//hush", "looks like postgres://"),
            ("postgres://u:hush@h/db?hush=1", "looks like postgres://"),
            (
                "postgres://u:hush@h/db?sslmode=hush",
                "must be disable, prefer, require, verify-ca or verify-full",
            ),
            ("postgres://u:hush@h/db?pool=hush", "transaction or session"),
            ("postgres://u:hush@h/db?sslrootcert=/a.pem", "only with sslmode=verify-full"),
            ("postgres://u:hush@h/db?sslmode=require&sslcert=/a.pem", "sslcert and sslkey belong together"),
            ("postgres://u:hush@h/db?sslmode=require&sslrootcert=", "must be the path of a PEM file"),
            ("postgres://u:hush@h/db?sslmode=verify-full&sslrootcert=/no/a.pem", "/no/a.pem cannot be read"),
        ] {
            let refused = Address::parse(wrong, "n").err().unwrap().to_string();
            assert!(!refused.contains("hush") && refused.contains(why), "{refused}");
        }
    }
}
