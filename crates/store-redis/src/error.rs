//! What an error of Redis means to the caller.

use laneway_store::StoreError;
use laneway_store_remote::Verdict;
use redis::{ConnectionAddr, ErrorKind, RedisError, ServerErrorKind};

/// An answer that makes no sense stops the caller. Everything else (a broken connection, a full memory, a failover) may
/// pass.
pub(crate) fn from_redis(store: &str, error: &RedisError) -> StoreError {
    match error.kind() {
        ErrorKind::UnexpectedReturnType => StoreError::unreadable(store, error),
        ErrorKind::Extension if error.code() == Some("WRONGTYPE") => StoreError::unreadable(store, error),
        ErrorKind::Extension if error.code() == Some("OOM") => {
            StoreError::unavailable(store, format!("there is no room left ({error})"))
        }
        ErrorKind::Server(ServerErrorKind::ReadOnly) => {
            StoreError::unavailable(store, "it is a replica of another Redis, and takes no writes")
        }
        ErrorKind::Server(ServerErrorKind::Ask | ServerErrorKind::TryAgain) => {
            StoreError::unavailable(store, "the cluster moves its keys to another node now")
        }
        _ => StoreError::unavailable(store, error),
    }
}

/// What an error says about the connection.
pub(crate) fn verdict(error: &RedisError) -> Verdict {
    let is_elsewhere = match error.kind() {
        ErrorKind::Server(kind) => matches!(
            kind,
            ServerErrorKind::ReadOnly
                | ServerErrorKind::Moved
                | ServerErrorKind::MasterDown
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::BusyLoading
        ),
        // A replica ends the blocking reads that it has from its time as a master.
        ErrorKind::Extension => error.code() == Some("UNBLOCKED"),
        _ => false,
    };
    if error.is_timeout() {
        Verdict::Silent
    } else if is_elsewhere || error.is_io_error() || error.is_unrecoverable_error() {
        Verdict::Broken
    } else {
        Verdict::Works
    }
}

/// What may be wrong with an address whose server was reached and did not understand us, or was not trusted.
pub(crate) fn tls_hint(address: &ConnectionAddr, error: &RedisError) -> Option<&'static str> {
    let text = error.to_string();
    let is_dropped = error.is_connection_dropped() && !error.is_connection_refusal();
    match address {
        ConnectionAddr::Tcp(..) if is_dropped => {
            Some("if it asks for TLS, its address begins with rediss://")
        }
        ConnectionAddr::TcpTls { .. } if text.contains("invalid peer certificate") => Some(
            "if an authority of your own signed it, name that with ?ca=/path/to/ca.pem; nothing was sent without TLS",
        ),
        ConnectionAddr::TcpTls { .. } if text.contains("CertificateRequired") => {
            Some("it asks for a certificate of ours: ?cert=/path/to/cert.pem&key=/path/to/key.pem")
        }
        // A Redis without TLS waits for the rest of what it takes for a command.
        ConnectionAddr::TcpTls { .. }
            if is_dropped || error.is_timeout() || text.contains("corrupt message") =>
        {
            Some(
                "it may not speak TLS on this port, or ask for a certificate of ours (?cert=…&key=…); nothing was \
                 sent without TLS",
            )
        }
        _ => None,
    }
}
