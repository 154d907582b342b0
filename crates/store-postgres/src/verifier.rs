//! How a server's certificate is checked.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

/// How much of a certificate counts. The server must have its key in any case.
#[derive(Debug)]
pub(crate) enum Verifier {
    /// Nothing: the connection is only safe from a passive listener.
    Any(Arc<CryptoProvider>),
    /// Its authority.
    Authority(Arc<WebPkiServerVerifier>),
    /// Its authority and its name.
    Name(Arc<WebPkiServerVerifier>),
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self {
            Verifier::Any(_) => Ok(ServerCertVerified::assertion()),
            Verifier::Name(inner) => inner.verify_server_cert(end_entity, intermediates, name, ocsp, now),
            // The name is checked last, so everything else is right then.
            Verifier::Authority(inner) => {
                match inner.verify_server_cert(end_entity, intermediates, name, ocsp, now) {
                    Err(Error::InvalidCertificate(
                        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
                    )) => Ok(ServerCertVerified::assertion()),
                    checked => checked,
                }
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self {
            Verifier::Any(provider) => {
                let known = &provider.signature_verification_algorithms;
                verify_tls12_signature(message, certificate, signed, known)
            }
            Verifier::Authority(inner) | Verifier::Name(inner) => {
                inner.verify_tls12_signature(message, certificate, signed)
            }
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self {
            Verifier::Any(provider) => {
                let known = &provider.signature_verification_algorithms;
                verify_tls13_signature(message, certificate, signed, known)
            }
            Verifier::Authority(inner) | Verifier::Name(inner) => {
                inner.verify_tls13_signature(message, certificate, signed)
            }
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        match self {
            Verifier::Any(provider) => provider.signature_verification_algorithms.supported_schemes(),
            Verifier::Authority(inner) | Verifier::Name(inner) => inner.supported_verify_schemes(),
        }
    }
}
