//! TLS: whom we trust, and the handshake.
//!
//! | `sslmode` | TLS | the certificate |
//! |---|---|---|
//! | `disable` | no | |
//! | `prefer`, the default | if the server has it | anybody's |
//! | `require` | yes | anybody's; with `sslrootcert` as `verify-ca` |
//! | `verify-ca` | yes | signed by an authority that we trust |
//! | `verify-full` | yes | that, and for the name in the address |

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use laneway_store::StoreError;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::{TlsConnector, client};

use crate::failure::unfit;
use crate::parameters::{Files, Trust};
use crate::trust::Verifier;

/// Makes TLS connections.
#[derive(Clone)]
pub(crate) struct Tls(TlsConnector);

impl Tls {
    pub(crate) fn new(trust: Trust, files: &Files) -> Result<Tls, StoreError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let refused = |error: &dyn ToString| unfit("postgres", &format!("no TLS: {}", error.to_string()));
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| refused(&error))?;
        let verifier = verifier(trust, files.sslrootcert.as_deref(), provider)?;
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        let config = match (&files.sslcert, &files.sslkey) {
            (None, None) => builder.with_no_client_auth(),
            (Some(cert), Some(key)) => {
                let chain = certificates("sslcert", cert)?;
                let key_read = PrivateKeyDer::from_pem_file(key);
                let key = key_read
                    .map_err(|error| unfit("postgres", &format!("sslkey: {}: {error}", key.display())))?;
                builder.with_client_auth_cert(chain, key).map_err(|error| refused(&error))?
            }
            _ => return Err(refused(&"sslcert and sslkey belong together, and one of them is missing")),
        };
        Ok(Tls(TlsConnector::from(Arc::new(config))))
    }
}

fn verifier(trust: Trust, ca: Option<&Path>, provider: Arc<CryptoProvider>) -> Result<Verifier, StoreError> {
    if trust == Trust::Anybody {
        return Ok(Verifier::Anybody(provider));
    }
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            for certificate in certificates("sslrootcert", path)? {
                let cannot = |error| {
                    unfit("postgres", &format!("sslrootcert: {} cannot be used: {error}", path.display()))
                };
                roots.add(certificate).map_err(cannot)?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let inner = built.map_err(|_| {
        let reason = "this machine trusts no authority; name one with sslrootcert=/path/to/ca.pem";
        unfit("postgres", &reason)
    })?;
    Ok(match trust {
        Trust::Authority => Verifier::Authority(inner),
        _ => Verifier::Name(inner),
    })
}

/// What a file holds: at least one.
fn certificates(what: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let said = |reason: &dyn ToString| {
        unfit("postgres", &format!("{what}: {} {}", path.display(), reason.to_string()))
    };
    let bytes = std::fs::read(path).map_err(|error| said(&format!("cannot be read: {error}")))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(said(&"holds no certificate in PEM form")),
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Tls {
    type Stream = Stream<S>;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Handshake> {
        // A socket of this machine has no name, and no server speaks TLS over it.
        let name = ServerName::try_from(host.to_owned()).ok();
        Ok(Handshake { connector: self.0.clone(), name })
    }
}

/// A handshake to come.
pub(crate) struct Handshake {
    connector: TlsConnector,
    name: Option<ServerName<'static>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Handshake {
    type Stream = Stream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let name = self.name.ok_or_else(|| io::Error::other("the host has no name that TLS knows"))?;
            self.connector.connect(name, stream).await.map(|stream| Stream(Box::new(stream)))
        })
    }
}

/// A connection with TLS.
pub(crate) struct Stream<S>(Box<client::TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> tokio_postgres::tls::TlsStream for Stream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}
