//! Where the database is, and what our schema in it is called.

use std::str::FromStr;

use laneway_store::StoreError;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, TargetSessionAttrs};

use crate::failure::unfit;
use crate::parameters::split;
use crate::tls::Tls;

/// An identifier of Postgres has at most so many bytes.
const IDENTIFIER_MAX: usize = 63;

/// Where a log is.
pub(crate) struct Address {
    pub(crate) config: Config,
    /// How connections with TLS are made, where the mode asks for them or the server has it.
    pub(crate) tls: Tls,
    /// The name under which the store speaks of itself: without secrets.
    pub(crate) name: String,
    /// Also the channel on which appends are told.
    pub(crate) schema: String,
}

impl Address {
    pub(crate) fn parse(url: &str, namespace: &str) -> Result<Address, StoreError> {
        let example = "the address of a Postgres looks like postgres://user:password@host:5432/database";
        // What is wrong with it may repeat it, and with it a password.
        let (url, trust, files) = split(url)?;
        let mut config = Config::from_str(&url).map_err(|_| unfit("postgres", &example))?;
        if config.get_hosts().is_empty() {
            return Err(unfit("postgres", &format!("{example}; this one has no host")));
        }
        // After a failover the former primary may still answer.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        config.application_name("laneway");
        let schema = format!("laneway_{}", encode(namespace));
        if namespace.is_empty() || schema.len() > IDENTIFIER_MAX {
            let reason =
                "a namespace has 1 to 40 bytes, and characters other than a-z, 0-9 and _ count three";
            return Err(unfit("postgres", &reason));
        }
        let name = format!("{} (namespace {})", spoken(&config), namespace.escape_default());
        Ok(Address { config, tls: Tls::new(trust, &files)?, name, schema })
    }
}

/// Small letters, digits and `_` as they are, everything else as `$` and two hexadecimal digits.
fn encode(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'_' => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("${byte:02x}")),
        }
    }
    encoded
}

fn spoken(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => String::new(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("postgres://{host}:{port}/{database}")
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
    fn secrets_are_not_spoken() {
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
