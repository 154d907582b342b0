//! The address of a Redis, and the files that it names.

use laneway_store::StoreError;
use laneway_store_remote::{TlsFiles, take_parameters};
use redis::{Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, TlsCertificates};

/// Reads an address. Also returns the name of the store, which contains no secrets.
pub(crate) fn parse(url: &str, namespace: &str) -> Result<(String, ConnectionInfo), StoreError> {
    let (url, files) = split(url)?;
    if url.ends_with("#insecure") {
        return Err(unfit(
            "#insecure would trust anybody; name the authority of the server's certificate with ?ca=/path/to/ca.pem \
             instead",
        ));
    }
    let client = Client::open(url.as_str()).map_err(|error| {
        // The detail may repeat the address, and with it a password.
        unfit(format!(
            "the address of a Redis looks like redis://user:password@host:6379/0, or rediss:// with TLS ({})",
            error.category()
        ))
    })?;
    if namespace.is_empty() || namespace.len() > 128 {
        return Err(unfit("a namespace has 1 to 128 bytes"));
    }
    let address = with_tls(client.get_connection_info().clone(), &files)?;
    let database = address.redis_settings().db();
    let name = match address.addr() {
        ConnectionAddr::Unix(path) => format!("redis+unix://{}", path.display()),
        ConnectionAddr::TcpTls { host, port, .. } => format!("rediss://{host}:{port}/{database}"),
        other => format!("redis://{other}/{database}"),
    };
    Ok((format!("{name} (namespace {})", namespace.escape_default()), address))
}

/// Takes our own parameters out of an address. The error does not repeat an unknown one: it may be a part of a password.
fn split(url: &str) -> Result<(String, TlsFiles), StoreError> {
    let mut files = TlsFiles::new("redis", ["ca", "cert", "key"]);
    let base = url.split('?').next().unwrap_or_default();
    let is_socket = base.split_once("://").is_some_and(|(scheme, _)| scheme.ends_with("unix"));
    let url = take_parameters(url, |name, value| match name {
        "protocol" => Ok(false),
        "db" | "user" | "pass" if is_socket => Ok(false),
        _ if files.take(name, value)? => Ok(true),
        _ => Err(unfit(
            "its address has a parameter that is not known; there are ca, cert and key, each the path of a PEM file, \
             and protocol; a ? in a password is written %3F",
        )),
    })?;
    Ok((url, files))
}

/// The address with what is in the files.
fn with_tls(address: ConnectionInfo, files: &TlsFiles) -> Result<ConnectionInfo, StoreError> {
    if !matches!(address.addr(), ConnectionAddr::TcpTls { .. }) {
        if files.is_empty() {
            return Ok(address);
        }
        return Err(unfit("ca, cert and key have a meaning only with rediss://"));
    }
    // Another part of the program may have installed one already, which is as good.
    drop(rustls::crypto::ring::default_provider().install_default());
    let identity = files.identity()?;
    let client_tls =
        identity.map(|own| ClientTlsConfig { client_cert: own.certificate, client_key: own.key });
    let certificates = TlsCertificates { client_tls, root_cert: files.ca()? };
    match Client::build_with_tls(address, certificates) {
        Ok(client) => Ok(client.get_connection_info().clone()),
        Err(error) => Err(unfit(format!("its certificates cannot be used: {error}"))),
    }
}

fn unfit(reason: impl ToString) -> StoreError {
    StoreError::unfit("redis", reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_errors_contain_no_secrets() {
        let (name, _) = parse("rediss://u:hush@h:99/3", "n").unwrap();
        assert_eq!(name, "rediss://h:99/3 (namespace n)");
        let (name, _) = parse("redis://u:hush@h:99?protocol=resp3", "n").unwrap();
        assert_eq!(name, "redis://h:99/0 (namespace n)");
        for (wrong, why) in [
            ("redis://u:hush@h:port", "looks like redis://"),
            ("http://u:hush@h", "looks like redis://"),
            ("rediss://u:hush@h/#insecure", "?ca=/path/to/ca.pem"),
            ("rediss://u:hush@h/0?hush=1", "there are ca, cert and key"),
            ("redis://u:hush@h/?db=hush", "there are ca, cert and key"),
            ("rediss://u:hush@h/0?ca=", "ca in its address must be the path of a PEM file"),
            ("redis://u:hush@h/0?ca=/a.pem", "only with rediss://"),
            ("rediss://u:hush@h/0?cert=/a.pem", "cert and key belong together"),
            ("rediss://u:hush@h/0?ca=/nowhere/a.pem", "ca: /nowhere/a.pem cannot be read"),
        ] {
            let refused = parse(wrong, "n").err().unwrap().to_string();
            assert!(!refused.contains("hush") && refused.contains(why), "{refused}");
        }
    }
}
