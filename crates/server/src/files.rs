//! Small files beside the store that survive a crash at any moment: written whole under another name, flushed, renamed.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Puts `bytes` in the place of whatever the file held. Readable only by the owner: there may be secrets in it.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(dir)?;
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.new", std::process::id()));
    let temporary = Path::new(&temporary);
    let mut file = owner_only().write(true).create(true).truncate(true).open(temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(temporary, path)?;
    File::open(dir)?.sync_all()
}

/// A file to add lines to.
pub(crate) fn append_to(path: &Path) -> io::Result<File> {
    let dir = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(dir)?;
    let is_new = !path.exists();
    let file = owner_only().append(true).create(true).open(path)?;
    if is_new {
        File::open(dir)?.sync_all()?;
    }
    Ok(file)
}

fn owner_only() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// What the file holds; `None`: there is none.
pub(crate) fn read(path: &Path) -> io::Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
