//! TLS: which authority is trusted, who we are, and what an error in the handshake means.

use std::path::{Path, PathBuf};

use laneway_store::StoreError;
use redis::{Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, RedisError, TlsCertificates};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::failure::unfit;

/// The files that an address names.
#[derive(Default)]
pub(crate) struct Files {
    /// Whom to trust, in place of those whom this machine trusts.
    pub(crate) ca: Option<PathBuf>,
    /// Our own certificate, for a Redis that asks for one.
    pub(crate) cert: Option<PathBuf>,
    /// Its key.
    pub(crate) key: Option<PathBuf>,
}

impl Files {
    /// The address with what is in the files.
    pub(crate) fn into_address(self, address: ConnectionInfo) -> Result<ConnectionInfo, StoreError> {
        let refused = |reason: &str| Err(unfit("redis", &reason));
        if !matches!(address.addr(), ConnectionAddr::TcpTls { .. }) {
            return match self {
                Files { ca: None, cert: None, key: None } => Ok(address),
                _ => refused("ca, cert and key have a meaning only with rediss://"),
            };
        }
        // Whoever was first has chosen one for the whole program, which is as good.
        drop(rustls::crypto::ring::default_provider().install_default());
        let root_cert = self.ca.as_deref().map(|path| certificates("ca", path)).transpose()?;
        let client_tls = match (&self.cert, &self.key) {
            (None, None) => None,
            (Some(cert), Some(key)) => Some(ClientTlsConfig {
                client_cert: certificates("cert", cert)?,
                client_key: read("key", key)?,
            }),
            _ => return refused("cert and key belong together, and one of them is missing"),
        };
        let made = Client::build_with_tls(address, TlsCertificates { client_tls, root_cert });
        match made {
            Ok(client) => Ok(client.get_connection_info().clone()),
            Err(error) => refused(&format!("its certificates cannot be used: {error}")),
        }
    }
}

/// A file with at least one certificate: with none, nobody would be trusted, and the error would come later and say less.
fn certificates(what: &str, path: &Path) -> Result<Vec<u8>, StoreError> {
    let bytes = read(what, path)?;
    match CertificateDer::pem_slice_iter(&bytes).next() {
        Some(Ok(_)) => Ok(bytes),
        _ => Err(unfit("redis", &format!("{what}: {} holds no certificate in PEM form", path.display()))),
    }
}

fn read(what: &str, path: &Path) -> Result<Vec<u8>, StoreError> {
    let cannot = |error| unfit("redis", &format!("{what}: {} cannot be read: {error}", path.display()));
    std::fs::read(path).map_err(cannot)
}

/// What may be wrong with an address whose server was reached and did not understand us, or we did not trust.
pub(crate) fn hint(address: &ConnectionAddr, error: &RedisError) -> Option<&'static str> {
    let said = error.to_string();
    let is_dropped = error.is_connection_dropped() && !error.is_connection_refusal();
    match address {
        ConnectionAddr::Tcp(..) if is_dropped => {
            Some("if it asks for TLS, its address begins with rediss://")
        }
        ConnectionAddr::TcpTls { .. } if said.contains("invalid peer certificate") => Some(
            "if an authority of your own signed it, name that with ?ca=/path/to/ca.pem; nothing was sent without TLS",
        ),
        ConnectionAddr::TcpTls { .. } if said.contains("CertificateRequired") => {
            Some("it asks for a certificate of ours: ?cert=/path/to/cert.pem&key=/path/to/key.pem")
        }
        // A Redis without TLS waits for more of what it takes for a command.
        ConnectionAddr::TcpTls { .. }
            if is_dropped || error.is_timeout() || said.contains("corrupt message") =>
        {
            Some(
                "it may not speak TLS on this port, or ask for a certificate of ours (?cert=…&key=…); nothing was \
                 sent without TLS",
            )
        }
        _ => None,
    }
}
