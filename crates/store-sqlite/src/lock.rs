//! One process at a time.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use laneway_store::StoreError;

use crate::error::from_io;

/// Holds a directory until it is dropped. The kernel releases it when the process dies.
pub(crate) struct DirLock {
    file: File,
}

impl Drop for DirLock {
    fn drop(&mut self) {
        // A process that is being started from this one has a copy of the file until it becomes another program, so
        // closing the file is not enough.
        drop(self.file.unlock());
    }
}

impl DirLock {
    /// Locks the file at `path`, or returns which process has it. The file stays behind; only the lock on it counts.
    pub(crate) fn take(store: &str, path: &Path) -> Result<DirLock, StoreError> {
        let failed = |error| from_io(store, path, &error);
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = options.open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::InUse { store: store.into(), pid: holder(&mut file) });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let mut write_pid = || {
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(format!("{}\n", std::process::id()).as_bytes())
        };
        // A full disk has no room for the number; the lock holds without it.
        match write_pid() {
            Err(error) if error.kind() != std::io::ErrorKind::StorageFull => Err(failed(error)),
            _ => Ok(DirLock { file }),
        }
    }
}

/// The process that wrote its number, if it has written it already.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
