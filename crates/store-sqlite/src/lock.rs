//! One process at a time.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use laneway_store::StoreError;

use crate::failure::from_io;

/// Holds a directory until it is dropped. The kernel lets go of it when the process dies, however it dies.
pub(crate) struct DirLock {
    file: File,
}

impl Drop for DirLock {
    fn drop(&mut self) {
        // Closing the file would do, but for a process that is just being started from this one, which has a
        // copy of it until it becomes another program. If this fails, closing is what is left.
        drop(self.file.unlock());
    }
}

impl DirLock {
    /// Takes the lock file at `path`, or says who has it. The file stays behind; only the lock on it counts.
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
        // On a full disk there is no room for the number; the lock holds all the same.
        match write_pid() {
            Err(error) if error.kind() != std::io::ErrorKind::StorageFull => Err(failed(error)),
            _ => Ok(DirLock { file }),
        }
    }
}

/// The process that wrote its number; none in the moment before it does.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
