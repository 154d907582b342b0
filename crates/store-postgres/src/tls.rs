//! TLS: which certificates of a server count.
//!
//! | `sslmode` | TLS | the certificate |
//! |---|---|---|
//! | `disable` | no | |
//! | `prefer`, the default | if the server has it | any |
//! | `require` | yes | any; with `sslrootcert` as `verify-ca` |
//! | `verify-ca` | yes | signed by an authority that we trust |
//! | `verify-full` | yes | the same, and for the host in the address |

use std::sync::Arc;

use laneway_store::StoreError;
use laneway_store_remote::{Identity, TlsFiles};
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::verifier::Verifier;

/// Which certificates count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    Any,
    Authority,
    Name,
}

/// What makes connections with TLS.
pub(crate) fn connector(trust: Trust, files: &TlsFiles) -> Result<MakeRustlsConnect, StoreError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(no_tls)?;
    let verifier = Arc::new(verifier(trust, files, provider)?);
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    let config = match files.identity()? {
        None => builder.with_no_client_auth(),
        Some(Identity { certificate, key }) => {
            let key =
                PrivateKeyDer::from_pem_slice(&key).map_err(|error| unfit(format!("sslkey: {error}")))?;
            builder.with_client_auth_cert(certificates(&certificate)?, key).map_err(no_tls)?
        }
    };
    Ok(MakeRustlsConnect::new(config))
}

fn verifier(trust: Trust, files: &TlsFiles, provider: Arc<CryptoProvider>) -> Result<Verifier, StoreError> {
    let signatures = provider.signature_verification_algorithms;
    if trust == Trust::Any {
        return Ok(Verifier { authority: None, checks_name: false, signatures });
    }
    let mut roots = RootCertStore::empty();
    if let Some(ca) = files.ca()? {
        for certificate in certificates(&ca)? {
            roots.add(certificate).map_err(|error| unfit(format!("sslrootcert cannot be used: {error}")))?;
        }
    } else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    let authority = built.map_err(|_| {
        unfit("this machine trusts no authority; name one with sslrootcert=/path/to/ca.pem".to_owned())
    })?;
    Ok(Verifier { authority: Some(authority), checks_name: trust == Trust::Name, signatures })
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(no_tls)
}

fn no_tls(error: impl ToString) -> StoreError {
    unfit(format!("no TLS: {}", error.to_string()))
}

fn unfit(reason: String) -> StoreError {
    StoreError::unfit("postgres", reason)
}
