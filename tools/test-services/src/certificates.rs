//! Certificates for servers that speak TLS.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

/// An authority of our own, and a certificate for `127.0.0.1` and `localhost` that it signed, as PEM files.
pub struct Certificates {
    dir: TempDir,
}

impl Certificates {
    /// Makes both, new.
    pub fn make() -> Certificates {
        Certificates::make_for(&["127.0.0.1", "localhost"])
    }

    /// The same for a server with other names.
    pub fn make_for(names: &[&str]) -> Certificates {
        let dir = TempDir::new().expect("there is room for a directory");
        let mut authority = CertificateParams::new(Vec::<String>::new()).expect("good parameters");
        authority.distinguished_name.push(DnType::CommonName, "an authority of our own");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority_key = KeyPair::generate().expect("a key");
        let ca = authority.self_signed(&authority_key).expect("it signs itself");
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let server = CertificateParams::new(names).expect("good names");
        let key = KeyPair::generate().expect("a key");
        let issuer = Issuer::new(authority, authority_key);
        let certificate = server.signed_by(&key, &issuer).expect("it is signed");
        let texts = [("ca.pem", ca.pem()), ("cert.pem", certificate.pem()), ("key.pem", key.serialize_pem())];
        for (name, text) in texts {
            std::fs::write(dir.path().join(name), text).expect("there is room for a file");
        }
        open_to_others(dir.path(), 0o755);
        open_to_others(&dir.path().join("key.pem"), 0o600);
        Certificates { dir }
    }

    /// The authority.
    pub fn ca(&self) -> PathBuf {
        self.dir.path().join("ca.pem")
    }

    /// The certificate of the server.
    pub fn cert(&self) -> PathBuf {
        self.dir.path().join("cert.pem")
    }

    /// Its key.
    pub fn key(&self) -> PathBuf {
        self.dir.path().join("key.pem")
    }

    /// Gives the key to the user of the server: Postgres takes only a key that no other user can read.
    pub(crate) fn give_to(&self, user: u32, group: u32) {
        chown(self.key(), Some(user), Some(group)).expect("root may do that");
    }
}

fn open_to_others(path: &Path, mode: u32) {
    let permissions = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(path, permissions).expect("it is ours");
}
