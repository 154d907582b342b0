//! Opening a directory, and making it the first time.
//!
//! A new database is made under another name, flushed, and renamed when it is complete. After a crash the next open finds
//! nothing, leftovers to remove, or a complete database.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use laneway_store::{BatchId, Damage, Head, StoreError, Version};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, TransactionBehavior};

use crate::error::{from_io, from_sqlite};
use crate::lock::DirLock;
use crate::schema::{APPLICATION_ID, LAYOUT, STEPS, TABLES};
use crate::wal::damage_in;

const DATABASE: &str = "laneway.db";
const UNFINISHED: &str = "laneway.db.new";
const LOCK: &str = "laneway.lock";
/// The files that SQLite makes next to a database.
const COMPANIONS: [&str; 3] = ["-journal", "-wal", "-shm"];
const PAGE_BYTES: u64 = 4096;
/// About how long the write-ahead log gets.
const WAL_BYTES: u64 = 16 * 1024 * 1024;

/// How to open a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The most bytes that the database may take; what does not fit is refused as unavailable. Its write-ahead log
    /// (some megabytes, or as much as the largest append) comes on top. Default: as much as the disk has.
    pub bytes_max: Option<u64>,
}

/// An opened directory.
pub(crate) struct Opened {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) lock: DirLock,
    pub(crate) writer: Connection,
    pub(crate) head: Head,
}

/// Opens the store in `dir`, which is made if it is not there.
pub(crate) fn open(dir: &Path, options: &Options) -> Result<Opened, StoreError> {
    let name = dir.display().to_string();
    make_dir(dir).map_err(|error| from_io(&name, dir, &error))?;
    let lock = DirLock::take(&name, &dir.join(LOCK))?;
    let path = dir.join(DATABASE);
    match fs::metadata(&path) {
        // SQLite would take this for a new database.
        Ok(found) if found.len() == 0 => {
            return Err(StoreError::unreadable(&name, format!("{} is empty", path.display())));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(&name, dir)?,
        Err(error) => return Err(from_io(&name, &path, &error)),
    }
    check_wal(&name, &path)?;
    let failed = |error: rusqlite::Error| from_sqlite(&name, &error);
    let mut writer = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(failed)?;
    let layout = check_identity(&name, &writer)?;
    bring_up_to_date(&mut writer, layout).map_err(failed)?;
    prepare(&writer, options).map_err(failed)?;
    let head = find_head(&name, &writer)?;
    Ok(Opened { name, path, lock, writer, head })
}

/// SQLite would silently drop everything that follows a damaged byte.
fn check_wal(name: &str, database: &Path) -> Result<(), StoreError> {
    let [_, wal, _] = companions(database);
    match damage_in(&wal, PAGE_BYTES).map_err(|error| from_io(name, &wal, &error))? {
        None => Ok(()),
        Some(at) => {
            let wal = wal.display();
            let reason = format!(
                "{wal} is damaged at byte {at}, and what was accepted after that is in it too: restore the directory from a \
                 backup, or, to go on without what this file holds, move it away"
            );
            Err(StoreError::unreadable(name, reason))
        }
    }
}

/// A connection to a database that exists; none is made.
pub(crate) fn connect(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    // Only our own threads compete for it, briefly.
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    Ok(connection)
}

fn make_dir(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    // Other users must not read payloads.
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    match dir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_dir(parent),
        _ => sync_dir(Path::new(".")),
    }
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

fn create(name: &str, dir: &Path) -> Result<(), StoreError> {
    let (unfinished, path) = (dir.join(UNFINISHED), dir.join(DATABASE));
    if let Some(orphan) = companions(&path).into_iter().find(|companion| companion.exists()) {
        let reason = format!("{} is there and {} is missing", orphan.display(), path.display());
        return Err(StoreError::unreadable(name, reason));
    }
    let failed = |error: io::Error| from_io(name, &unfinished, &error);
    for leftover in [unfinished.clone()].into_iter().chain(companions(&unfinished)) {
        match fs::remove_file(leftover) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
    // The directory may be readable for all users. SQLite gives its other files the mode of the database.
    File::options().write(true).create_new(true).mode(0o600).open(&unfinished).map_err(failed)?;
    make_tables(&unfinished).map_err(|error| from_sqlite(name, &error))?;
    let settled = || {
        File::open(&unfinished)?.sync_all()?;
        fs::rename(&unfinished, &path)?;
        sync_dir(dir)
    };
    settled().map_err(failed)
}

fn companions(path: &Path) -> [PathBuf; 3] {
    COMPANIONS.map(|suffix| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    })
}

fn make_tables(path: &Path) -> rusqlite::Result<()> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
    connection.pragma_update(None, "page_size", PAGE_BYTES)?;
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.execute_batch(&format!(
        "BEGIN; {TABLES} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {LAYOUT}; COMMIT;"
    ))?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.close().map_err(|(_, error)| error)
}

/// Whether this is a database of ours that this program can read; if so, its layout.
fn check_identity(name: &str, connection: &Connection) -> Result<usize, StoreError> {
    let number = |pragma| {
        let read = connection.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
        read.map_err(|error| from_sqlite(name, &error))
    };
    if number("application_id")? != APPLICATION_ID {
        return Err(StoreError::unreadable(
            name,
            format!("{DATABASE} is a SQLite database, but not one of Laneway's"),
        ));
    }
    match number("user_version")? {
        found @ 1..=LAYOUT => Ok(found.unsigned_abs() as usize),
        found => {
            let (found, known) = (u32::try_from(found).unwrap_or(0), LAYOUT.unsigned_abs());
            Err(StoreError::damaged(name, Damage::UnknownFormat { found, known }))
        }
    }
}

/// Brings an older layout to that of this program, in one step.
fn bring_up_to_date(writer: &mut Connection, layout: usize) -> rusqlite::Result<()> {
    let steps = STEPS.get(layout - 1..).unwrap_or_default();
    if steps.is_empty() {
        return Ok(());
    }
    let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
    steps.iter().try_for_each(|step| transaction.execute_batch(step))?;
    transaction.pragma_update(None, "user_version", LAYOUT)?;
    transaction.commit()
}

fn prepare(writer: &Connection, options: &Options) -> rusqlite::Result<()> {
    writer.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    writer.pragma_update(None, "synchronous", "FULL")?;
    // The writer moves pages to the database when the log is this long: a page that many batches changed is moved once.
    // Appends wait meanwhile, so it is not longer.
    writer.pragma_update_and_check(None, "wal_autocheckpoint", WAL_BYTES / PAGE_BYTES, |_| Ok(()))?;
    // After a large append the write-ahead log shrinks to this again.
    writer.pragma_update_and_check(None, "journal_size_limit", WAL_BYTES, |_| Ok(()))?;
    // The limit belongs to the connection, so a larger one takes effect at the next open.
    let pages = options.bytes_max.map_or(u64::from(u32::MAX) - 1, |bytes| (bytes / PAGE_BYTES).max(1));
    writer.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
    writer.set_prepared_statement_cache_capacity(32);
    Ok(())
}

/// Where the log ends: at its last batch or, when all are trimmed, at the snapshot.
pub(crate) fn find_head(name: &str, connection: &Connection) -> Result<Head, StoreError> {
    let one = |sql: &str| connection.query_row(sql, [], read_head).optional();
    let find = || {
        let first = one("SELECT version, batch FROM log ORDER BY version LIMIT 1")?;
        let last = one("SELECT version, batch FROM log ORDER BY version DESC LIMIT 1")?;
        let snapshot = one("SELECT version, batch FROM snapshot ORDER BY version DESC LIMIT 1")?;
        Ok((first, last, snapshot))
    };
    let (first, last, snapshot) = find().map_err(|error| from_sqlite(name, &error))?;
    let snapshot = snapshot.unwrap_or(Head::EMPTY);
    match first {
        Some(first) if first.version > snapshot.version.next() => Err(StoreError::unreadable(
            name,
            format!(
                "its log begins at version {} and its snapshot holds only what came before {}",
                first.version,
                snapshot.version.next()
            ),
        )),
        _ => Ok(last.filter(|last| last.version > snapshot.version).unwrap_or(snapshot)),
    }
}

fn read_head(row: &Row<'_>) -> rusqlite::Result<Head> {
    let batch: [u8; 16] = row.get(1)?;
    Ok(Head { version: Version(row.get(0)?), batch: BatchId(u128::from_be_bytes(batch)) })
}
