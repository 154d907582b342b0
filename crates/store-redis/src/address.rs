//! Where Redis is, and how it is spoken to.

use laneway_store::StoreError;
use percent_encoding::percent_decode_str;
use redis::{Client, ConnectionAddr, ConnectionInfo};

use crate::failure::unfit;
use crate::tls::Files;

/// Reads an address, and gives the name under which the store speaks of itself: without secrets.
pub(crate) fn parse(url: &str, namespace: &str) -> Result<(String, ConnectionInfo), StoreError> {
    let refused = |reason: &dyn ToString| unfit("redis", reason);
    let example =
        "the address of a Redis looks like redis://user:password@host:6379/0, or rediss:// with TLS";
    let (url, files) = split(url)?;
    if url.ends_with("#insecure") {
        let reason = "#insecure would trust anybody; name the authority of the server's certificate with \
                      ?ca=/path/to/ca.pem instead";
        return Err(refused(&reason));
    }
    let client = Client::open(url.as_str()).map_err(|error| {
        // The detail may repeat the address, and with it a password.
        refused(&format!("{example} ({})", error.category()))
    })?;
    if namespace.is_empty() || namespace.len() > 128 {
        return Err(refused(&"a namespace has 1 to 128 bytes"));
    }
    let address = files.into_address(client.get_connection_info().clone())?;
    let name = match address.addr() {
        ConnectionAddr::Unix(path) => format!("redis+unix://{}", path.display()),
        ConnectionAddr::TcpTls { host, port, .. } => {
            format!("rediss://{host}:{port}/{}", address.redis_settings().db())
        }
        other => format!("redis://{other}/{}", address.redis_settings().db()),
    };
    Ok((format!("{name} (namespace {})", namespace.escape_default()), address))
}

/// Takes our own parameters out of an address. One that nobody knows is refused, and not repeated: it may be a part of
/// a password.
fn split(url: &str) -> Result<(String, Files), StoreError> {
    let mut files = Files::default();
    let Some((base, parameters)) = url.split_once('?') else { return Ok((url.to_owned(), files)) };
    let is_socket = base.split_once("://").is_some_and(|(scheme, _)| scheme.ends_with("unix"));
    let mut others = Vec::new();
    for parameter in parameters.split('&') {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let place = match name {
            "ca" => &mut files.ca,
            "cert" => &mut files.cert,
            "key" => &mut files.key,
            "protocol" => {
                others.push(parameter);
                continue;
            }
            "db" | "user" | "pass" if is_socket => {
                others.push(parameter);
                continue;
            }
            _ => {
                let reason = "its address has a parameter that is not known; there are ca, cert and key, each the \
                              path of a PEM file, and protocol; a ? in a password is written %3F";
                return Err(unfit("redis", &reason));
            }
        };
        let path = percent_decode_str(value).decode_utf8().ok().filter(|path| !path.is_empty());
        let Some(path) = path else {
            return Err(unfit("redis", &format!("{name} in its address must be the path of a PEM file")));
        };
        *place = Some(path.into_owned().into());
    }
    let rest = if others.is_empty() { base.to_owned() } else { format!("{base}?{}", others.join("&")) };
    Ok((rest, files))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_spoken() {
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
