//! The address of a backend: its own parameters, and the files that they name.

use std::path::{Path, PathBuf};

use laneway_store::StoreError;
use percent_encoding::percent_decode_str;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Takes parameters out of an address that its driver does not know. `take` returns whether it has taken one; the others
/// stay in the address.
pub fn take_parameters(
    url: &str,
    mut take: impl FnMut(&str, &str) -> Result<bool, StoreError>,
) -> Result<String, StoreError> {
    let Some((base, parameters)) = url.split_once('?') else { return Ok(url.to_owned()) };
    let mut kept = Vec::new();
    for parameter in parameters.split('&') {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        if !take(name, value)? {
            kept.push(parameter);
        }
    }
    Ok(if kept.is_empty() { base.to_owned() } else { format!("{base}?{}", kept.join("&")) })
}

/// Writes characters that `is_plain` does not accept as a mark and two hexadecimal digits per byte, so that a namespace
/// cannot end the name that contains it.
pub fn escape(name: &str, mark: char, is_plain: impl Fn(u8) -> bool) -> String {
    let mut escaped = String::with_capacity(name.len());
    for byte in name.bytes() {
        if is_plain(byte) {
            escaped.push(byte.into());
        } else {
            escaped.push_str(&format!("{mark}{byte:02x}"));
        }
    }
    escaped
}

/// Our own certificate and its key, in PEM form.
pub struct Identity {
    /// The certificate.
    pub certificate: Vec<u8>,
    /// Its key.
    pub key: Vec<u8>,
}

/// The PEM files that an address names, each under the name of its parameter.
pub struct TlsFiles {
    backend: &'static str,
    ca: PemFile,
    certificate: PemFile,
    key: PemFile,
}

struct PemFile {
    parameter: &'static str,
    path: Option<PathBuf>,
}

impl TlsFiles {
    /// No files so far, and the parameters that may name them: the authority to trust, our own certificate and its key.
    pub fn new(backend: &'static str, [ca, certificate, key]: [&'static str; 3]) -> TlsFiles {
        let none = |parameter| PemFile { parameter, path: None };
        TlsFiles { backend, ca: none(ca), certificate: none(certificate), key: none(key) }
    }

    /// Takes a parameter, if it names one of the files.
    pub fn take(&mut self, name: &str, value: &str) -> Result<bool, StoreError> {
        let backend = self.backend;
        let files = [&mut self.ca, &mut self.certificate, &mut self.key];
        let Some(file) = files.into_iter().find(|file| file.parameter == name) else { return Ok(false) };
        let path = percent_decode_str(value).decode_utf8().ok().filter(|path| !path.is_empty());
        let path = path.ok_or_else(|| {
            StoreError::unfit(backend, format!("{name} in its address must be the path of a PEM file"))
        })?;
        file.path = Some(path.into_owned().into());
        Ok(true)
    }

    /// Whether the address names none.
    pub fn is_empty(&self) -> bool {
        !self.has_ca() && self.certificate.path.is_none() && self.key.path.is_none()
    }

    /// Whether the address names an authority.
    pub fn has_ca(&self) -> bool {
        self.ca.path.is_some()
    }

    /// The authorities to trust in place of those of this machine.
    pub fn ca(&self) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.ca.path.as_deref();
        path.map(|path| self.certificates(self.ca.parameter, path)).transpose()
    }

    /// Our own certificate, for a backend that asks for one.
    pub fn identity(&self) -> Result<Option<Identity>, StoreError> {
        let (certificate, key) = (&self.certificate, &self.key);
        match (&certificate.path, &key.path) {
            (None, None) => Ok(None),
            (Some(chain), Some(path)) => {
                let certificate = self.certificates(certificate.parameter, chain)?;
                Ok(Some(Identity { certificate, key: self.read(key.parameter, path)? }))
            }
            _ => Err(self.unfit(format!(
                "{} and {} belong together, and one of them is missing",
                certificate.parameter, key.parameter
            ))),
        }
    }

    /// Reads a file with at least one certificate: without one, the handshake would fail with an error that says less.
    fn certificates(&self, parameter: &str, path: &Path) -> Result<Vec<u8>, StoreError> {
        let pem = self.read(parameter, path)?;
        if matches!(CertificateDer::pem_slice_iter(&pem).next(), Some(Ok(_))) {
            return Ok(pem);
        }
        Err(self.unfit(format!("{parameter}: {} holds no certificate in PEM form", path.display())))
    }

    fn read(&self, parameter: &str, path: &Path) -> Result<Vec<u8>, StoreError> {
        let unreadable =
            |error| self.unfit(format!("{parameter}: {} cannot be read: {error}", path.display()));
        std::fs::read(path).map_err(unreadable)
    }

    fn unfit(&self, reason: String) -> StoreError {
        StoreError::unfit(self.backend, reason)
    }
}
