//! The address of a Redis, and the files that it names.

use laneway_store::StoreError;
use laneway_store_remote::{TlsFiles, take_parameters};
use percent_encoding::percent_decode_str;
use redis::{Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, RedisConnectionInfo, TlsCertificates};

use crate::nodes::Node;

/// Where a Sentinel listens if its address does not say so.
const SENTINEL_PORT: u16 = 26379;

/// Where a log may be, and how to speak to the machines there.
pub(crate) struct Address {
    /// The name of the store, which contains no secrets.
    pub(crate) name: String,
    /// How to speak to a Redis. Its address is that of the first one.
    pub(crate) redis: ConnectionInfo,
    /// The machines that the address names: Redis, nodes of a cluster, or Sentinels.
    pub(crate) seeds: Vec<Node>,
    /// The service that the Sentinels watch, where the seeds are Sentinels.
    pub(crate) sentinel: Option<Sentinel>,
    /// How many replicas of Redis must have an append, where the address says so.
    pub(crate) replicas: Option<u32>,
}

/// A service that Sentinels watch.
pub(crate) struct Sentinel {
    pub(crate) service: String,
    /// How to speak to a Sentinel.
    pub(crate) connection: ConnectionInfo,
}

/// The parameters of an address that the driver does not know.
struct Parameters {
    files: TlsFiles,
    sentinel_user: Option<String>,
    sentinel_password: Option<String>,
    replicas: Option<u32>,
}

impl Address {
    pub(crate) fn parse(url: &str, namespace: &str) -> Result<Address, StoreError> {
        if namespace.is_empty() || namespace.len() > 128 {
            return Err(unfit("a namespace has 1 to 128 bytes"));
        }
        let (url, parameters) = split(url)?;
        if url.ends_with("#insecure") {
            return Err(unfit(
                "#insecure would trust anybody; name the authority of the server's certificate with \
                 ?ca=/path/to/ca.pem instead",
            ));
        }
        let mut address = match url.split_once("://") {
            Some((scheme @ ("redis+sentinel" | "rediss+sentinel"), rest)) => {
                sentinels(scheme.trim_end_matches("+sentinel"), rest, &parameters)?
            }
            Some((scheme, rest)) if !scheme.ends_with("unix") => servers(scheme, rest)?,
            _ => Address::of(vec![server(&url)?])?,
        };
        if address.sentinel.is_none() && parameters.names_sentinel() {
            return Err(unfit(
                "sentinel_user and sentinel_password have a meaning only with redis+sentinel://",
            ));
        }
        address.redis = with_tls(address.redis, &parameters.files)?;
        if let Some(sentinel) = &mut address.sentinel {
            sentinel.connection = with_tls(sentinel.connection.clone(), &parameters.files)?;
        }
        address.replicas = parameters.replicas;
        address.name = format!("{} (namespace {})", address.without_secrets(), namespace.escape_default());
        Ok(address)
    }

    /// The first of some machines says how to speak to all of them.
    fn of(servers: Vec<ConnectionInfo>) -> Result<Address, StoreError> {
        let seeds = servers.iter().map(|server| server.addr().to_string().into()).collect();
        let redis = servers.into_iter().next().ok_or_else(|| unfit("its address names no host"))?;
        Ok(Address { name: String::new(), redis, seeds, sentinel: None, replicas: None })
    }

    fn without_secrets(&self) -> String {
        let database = self.redis.redis_settings().db();
        let seeds = self.seeds.join(",");
        let scheme = match self.redis.addr() {
            ConnectionAddr::Unix(path) => return format!("redis+unix://{}", path.display()),
            ConnectionAddr::TcpTls { .. } => "rediss",
            _ => "redis",
        };
        match &self.sentinel {
            Some(sentinel) => format!("{scheme}+sentinel://{seeds}/{}/{database}", sentinel.service),
            None => format!("{scheme}://{seeds}/{database}"),
        }
    }
}

impl Parameters {
    fn names_sentinel(&self) -> bool {
        self.sentinel_user.is_some() || self.sentinel_password.is_some()
    }
}

/// `user:password@host:6379,host:6379/0`: one Redis, or some nodes of a cluster.
fn servers(scheme: &str, rest: &str) -> Result<Address, StoreError> {
    let (user, hosts, path) = authority(rest);
    let servers: Result<Vec<_>, _> =
        hosts.map(|host| server(&format!("{scheme}://{user}{host}{path}"))).collect();
    Address::of(servers?)
}

/// `user:password@host:26379,host:26379/service/0`: Sentinels, which know where the Redis is.
fn sentinels(scheme: &str, rest: &str, parameters: &Parameters) -> Result<Address, StoreError> {
    let (user, hosts, path) = authority(rest);
    let (path, query) = path.split_once('?').map_or((path, ""), |(path, query)| (path, query));
    let mut parts = path.trim_start_matches('/').split('/');
    let service = parts.next().and_then(|name| percent_decode_str(name).decode_utf8().ok());
    let service = service.filter(|name| !name.is_empty()).ok_or_else(|| {
        unfit(
            "the address of Sentinels names the service that they watch: \
             redis+sentinel://host:26379,host:26379/service",
        )
    })?;
    let database = parts.next().unwrap_or_default();
    let with_port = |host: &str| match host.rsplit_once(':') {
        Some((_, port)) if !port.ends_with(']') => host.to_owned(),
        _ => format!("{host}:{SENTINEL_PORT}"),
    };
    let sentinels: Result<Vec<_>, _> =
        hosts.map(|host| server(&format!("{scheme}://{}/", with_port(host)))).collect();
    let mut address = Address::of(sentinels?)?;
    let mut own = RedisConnectionInfo::default();
    if let Some(user) = &parameters.sentinel_user {
        own = own.set_username(user);
    }
    if let Some(password) = &parameters.sentinel_password {
        own = own.set_password(password);
    }
    let connection = address.redis.set_redis_settings(own);
    // Its host is replaced by the one that the Sentinels name.
    address.redis = server(&format!("{scheme}://{user}redis/{database}?{query}"))?;
    address.sentinel = Some(Sentinel { service: service.into_owned(), connection });
    Ok(address)
}

/// The user with the `@`, the hosts, and the rest.
fn authority(rest: &str) -> (&str, impl Iterator<Item = &str>, &str) {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let hosts_at = authority.rfind('@').map_or(0, |at| at + 1);
    let (user, hosts) = authority.split_at(hosts_at);
    (user, hosts.split(','), path)
}

/// Reads the address of one machine.
fn server(url: &str) -> Result<ConnectionInfo, StoreError> {
    let client = Client::open(url).map_err(|error| {
        // The detail may repeat the address, and with it a password.
        unfit(format!(
            "the address of a Redis looks like redis://user:password@host:6379/0, or rediss:// with TLS, with \
             host:6379,host:6379 for a cluster, or redis+sentinel://host:26379,host:26379/service ({})",
            error.category()
        ))
    })?;
    Ok(client.get_connection_info().clone())
}

/// Takes our own parameters out of an address. The error does not repeat an unknown one: it may be a part of a password.
fn split(url: &str) -> Result<(String, Parameters), StoreError> {
    let mut parameters = Parameters {
        files: TlsFiles::new("redis", ["ca", "cert", "key"]),
        sentinel_user: None,
        sentinel_password: None,
        replicas: None,
    };
    let base = url.split('?').next().unwrap_or_default();
    let is_socket = base.split_once("://").is_some_and(|(scheme, _)| scheme.ends_with("unix"));
    let text = |name: &str, value: &str| {
        let text = percent_decode_str(value).decode_utf8().ok().filter(|text| !text.is_empty());
        let text = text.ok_or_else(|| unfit(format!("{name} in its address must not be empty")));
        text.map(|text| Some(text.into_owned()))
    };
    let url = take_parameters(url, |name, value| {
        match name {
            "protocol" => return Ok(false),
            "db" | "user" | "pass" if is_socket => return Ok(false),
            "sentinel_user" => parameters.sentinel_user = text(name, value)?,
            "sentinel_password" => parameters.sentinel_password = text(name, value)?,
            "replicas" => {
                let replicas = value.parse().map_err(|_| {
                    unfit(
                        "replicas in its address is how many replicas must have each append: a whole number",
                    )
                });
                parameters.replicas = Some(replicas?);
            }
            _ if parameters.files.take(name, value)? => {}
            _ => {
                return Err(unfit(
                    "its address has a parameter that is not known; there are ca, cert and key, each the path of a \
                     PEM file, replicas, sentinel_user, sentinel_password and protocol; a ? in a password is written \
                     %3F",
                ));
            }
        }
        Ok(true)
    })?;
    Ok((url, parameters))
}

/// The address with what is in the files.
fn with_tls(address: ConnectionInfo, files: &TlsFiles) -> Result<ConnectionInfo, StoreError> {
    if !matches!(address.addr(), ConnectionAddr::TcpTls { .. }) {
        if files.is_empty() {
            return Ok(address);
        }
        return Err(unfit("ca, cert and key have a meaning only with rediss:// or rediss+sentinel://"));
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

    fn name_of(url: &str) -> String {
        Address::parse(url, "n").unwrap().name
    }

    #[test]
    fn names_and_errors_contain_no_secrets() {
        assert_eq!(name_of("rediss://u:hush@h:99/3"), "rediss://h:99/3 (namespace n)");
        assert_eq!(name_of("redis://u:hush@h:99?protocol=resp3"), "redis://h:99/0 (namespace n)");
        assert_eq!(name_of("redis://u:hush@a,b:99/0"), "redis://a:6379,b:99/0 (namespace n)");
        assert_eq!(
            name_of("rediss+sentinel://u:hush@a,[::1]:99/lanes/3?sentinel_password=hush"),
            "rediss+sentinel://a:26379,::1:99/lanes/3 (namespace n)"
        );
        for (wrong, why) in [
            ("redis://u:hush@h:port", "looks like redis://"),
            ("http://u:hush@h", "looks like redis://"),
            ("redis://u:hush@h,b:port", "looks like redis://"),
            ("redis-sentinel://u:hush@h/lanes", "redis+sentinel://host:26379"),
            ("redis+sentinel://u:hush@h,b", "names the service that they watch"),
            ("redis://u:hush@h?sentinel_user=hush", "only with redis+sentinel://"),
            ("redis://u:hush@h?replicas=hush", "a whole number"),
            ("rediss://u:hush@h/#insecure", "?ca=/path/to/ca.pem"),
            ("rediss://u:hush@h/0?hush=1", "there are ca, cert and key"),
            ("redis://u:hush@h/?db=hush", "there are ca, cert and key"),
            ("rediss://u:hush@h/0?ca=", "ca in its address must be the path of a PEM file"),
            ("redis://u:hush@h/0?ca=/a.pem", "only with rediss://"),
            ("rediss://u:hush@h/0?cert=/a.pem", "cert and key belong together"),
            ("rediss://u:hush@h/0?ca=/nowhere/a.pem", "ca: /nowhere/a.pem cannot be read"),
        ] {
            let refused = Address::parse(wrong, "n").err().unwrap().to_string();
            assert!(!refused.contains("hush") && refused.contains(why), "{wrong}: {refused}");
        }
    }

    #[test]
    fn sentinels_and_the_redis_that_they_watch_have_passwords_of_their_own() {
        let url = "redis+sentinel://u:p@a:1,b:2/my%20lanes/4?sentinel_user=s&sentinel_password=q&replicas=2";
        let address = Address::parse(url, "n").unwrap();
        let sentinel = address.sentinel.unwrap();
        let of = |info: &RedisConnectionInfo| {
            (info.username().map(str::to_owned), info.password().map(str::to_owned), info.db())
        };
        assert_eq!(of(address.redis.redis_settings()), (Some("u".into()), Some("p".into()), 4));
        assert_eq!(of(sentinel.connection.redis_settings()), (Some("s".into()), Some("q".into()), 0));
        assert_eq!((&*sentinel.service, address.replicas), ("my lanes", Some(2)));
        assert_eq!(address.seeds, ["a:1".into(), "b:2".into()] as [Node; 2]);
    }
}
