//! The parameters of an address that say how TLS is used, which the driver does not know.

use std::path::PathBuf;

use laneway_store::StoreError;
use percent_encoding::percent_decode_str;

use crate::failure::unfit;

/// The files that an address names.
#[derive(Default)]
pub(crate) struct Files {
    /// Whom to trust, in place of those whom this machine trusts.
    pub(crate) sslrootcert: Option<PathBuf>,
    /// Our own certificate, for a server that asks for one.
    pub(crate) sslcert: Option<PathBuf>,
    /// Its key.
    pub(crate) sslkey: Option<PathBuf>,
}

/// Whose certificate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    Anybody,
    Authority,
    Name,
}

/// Takes what the driver does not know out of an address, and puts what it does in its place.
pub(crate) fn split(url: &str) -> Result<(String, Trust, Files), StoreError> {
    let (mut files, mut mode) = (Files::default(), None);
    let Some((base, parameters)) = url.split_once('?') else {
        return Ok((url.to_owned(), Trust::Anybody, files));
    };
    let mut others = Vec::new();
    for parameter in parameters.split('&') {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let place = match name {
            "sslmode" => {
                mode = Some(value);
                continue;
            }
            "sslrootcert" => &mut files.sslrootcert,
            "sslcert" => &mut files.sslcert,
            "sslkey" => &mut files.sslkey,
            _ => {
                others.push(parameter.to_owned());
                continue;
            }
        };
        let path = percent_decode_str(value).decode_utf8().ok().filter(|path| !path.is_empty());
        let Some(path) = path else {
            return Err(unfit("postgres", &format!("{name} in its address must be the path of a PEM file")));
        };
        *place = Some(path.into_owned().into());
    }
    let (word, trust) = trust(mode, files.sslrootcert.is_some())?;
    others.push(format!("sslmode={word}"));
    Ok((format!("{base}?{}", others.join("&")), trust, files))
}

/// The mode as the driver knows it, and whose certificate counts.
fn trust(mode: Option<&str>, has_authority: bool) -> Result<(&'static str, Trust), StoreError> {
    Ok(match mode {
        Some("require") if has_authority => ("require", Trust::Authority),
        Some("require") => ("require", Trust::Anybody),
        Some("verify-ca") => ("require", Trust::Authority),
        Some("verify-full") => ("require", Trust::Name),
        // An authority that nobody would ask is a mistake that should not be found out later.
        None | Some("prefer" | "disable") if has_authority => {
            return Err(unfit(
                "postgres",
                &"sslrootcert has a meaning only with sslmode=verify-full or require",
            ));
        }
        None | Some("prefer") => ("prefer", Trust::Anybody),
        Some("disable") => ("disable", Trust::Anybody),
        Some(_) => {
            let reason = "sslmode in its address must be disable, prefer, require, verify-ca or verify-full";
            return Err(unfit("postgres", &reason));
        }
    })
}
