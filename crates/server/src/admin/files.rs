//! Small files that survive a crash: written under another name, flushed, renamed.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use crate::error::{FileError, ServerError};

/// Replaces the content of a file. Only its owner may read it, because it may hold secrets.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
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

/// Opens a file to append lines.
pub(super) fn append_to(path: &Path) -> io::Result<File> {
    let dir = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(dir)?;
    let is_new = !path.exists();
    let file = owner_only().append(true).create(true).open(path)?;
    if is_new {
        File::open(dir)?.sync_all()?;
    }
    Ok(file)
}

/// How long to wait for a directory of another server, which may be about to end.
const LOCKED_MAX: Duration = Duration::from_secs(3);

/// Locks a directory for one server while the returned file is open. Two servers would overwrite each other's files.
pub(crate) async fn lock(dir: &Path) -> Result<File, ServerError> {
    let path = dir.join("lock");
    let cannot = FileError::of("lock", &path);
    std::fs::create_dir_all(dir).map_err(&cannot)?;
    let file = owner_only().write(true).create(true).truncate(false).open(&path).map_err(&cannot)?;
    let begun = tokio::time::Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if begun.elapsed() < LOCKED_MAX => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(TryLockError::WouldBlock) => {
                return Err(ServerError::InUse(dir.to_owned()));
            }
            Err(TryLockError::Error(error)) => return Err(cannot(error).into()),
        }
    }
}

/// Waits for the lock next to a file that several programs change. The lock ends with the returned file.
pub(super) fn lock_beside(path: &Path) -> io::Result<File> {
    std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let file = owner_only().write(true).create(true).truncate(false).open(Path::new(&name))?;
    file.lock()?;
    Ok(file)
}

fn owner_only() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// The content of a file; `None` if there is no file.
pub(super) fn read(path: &Path) -> io::Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
