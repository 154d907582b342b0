//! The audit log. A hash chains each line to the previous one, so that an edit shows.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use laneway_core::Timestamp;
use laneway_protocol::{At, AuditEntry, Code};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::admin::files;
use crate::admin::token_file::hex;
use crate::app::App;
use crate::error::FileError;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};

/// The API lists this many of the newest entries. The file holds all of them.
const LISTED_MAX: usize = 10_000;

/// The hash before the first line.
const BEGINNING: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Why an audit log cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is no log.
    #[error("there is no audit log {}", .0.display())]
    Missing(PathBuf),
    /// A line breaks the chain.
    #[error("{}, line {line}: {damage}", path.display())]
    Line {
        /// Which log.
        path: PathBuf,
        /// Which line, counted from one.
        line: u64,
        /// What is wrong with it.
        damage: AuditDamage,
    },
    /// The file with the length of the log cannot be read.
    #[error("{} cannot be read", .0.display())]
    End(PathBuf),
    /// The log is shorter than it was.
    #[error("{} has {lines} lines and had {had}: its last lines were removed", path.display())]
    Cut {
        /// Which log.
        path: PathBuf,
        /// How many lines it has.
        lines: usize,
        /// How many lines it had.
        had: u64,
    },
}

/// What is wrong with a line of an audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuditDamage {
    /// It is not an entry.
    #[error("cannot be read")]
    Unreadable,
    /// It has the number of another line.
    #[error("has number {0}: a line is missing or too many")]
    Number(u64),
    /// Its hash is not that of the line before.
    #[error("does not follow the line before it: something was changed or removed")]
    Order,
    /// Its own hash does not fit.
    #[error("was changed")]
    Changed,
}

/// The audit log. Clones are the same log.
#[derive(Clone)]
pub(crate) struct Audit(Arc<Mutex<Log>>);

struct Log {
    file: Option<File>,
    /// The file with the number and hash of the last line.
    end: PathBuf,
    last: String,
    next: u64,
    listed: VecDeque<AuditEntry>,
}

/// What was done to what, such as `("lane", "pause")`.
pub(super) type AuditAction = (&'static str, &'static str);

fn severity((_, verb): AuditAction) -> &'static str {
    match verb {
        "force_release" | "clear_queue" | "create_token" | "remove_token" | "remove_agent" => "warning",
        _ => "info",
    }
}

impl App {
    /// Records what a caller changed. The record is on the disk when this returns.
    pub(crate) async fn record(
        &self,
        caller: &Caller,
        action: AuditAction,
        target: &str,
        details: Value,
    ) -> ApiResult<()> {
        self.audit.record(self.now(), &caller.subject, action, target, details).await
    }
}

impl Audit {
    /// The log in a file, which may be missing. `None` keeps it in memory.
    pub(crate) fn open(path: Option<PathBuf>) -> Result<Audit, AuditError> {
        let mut log = Log {
            file: None,
            end: path.as_deref().map(end_of).unwrap_or_default(),
            last: BEGINNING.to_owned(),
            next: 1,
            listed: VecDeque::new(),
        };
        if let Some(path) = path {
            let cannot = FileError::of("open", &path);
            let good = read_whole_lines(&path).map_err(&cannot)?;
            for entry in verify_text(&path, &good)? {
                log.last.clone_from(&entry.hash);
                log.next = entry.id + 1;
                log.list(entry);
            }
            log.file = Some(files::append_to(&path).map_err(cannot)?);
        }
        Ok(Audit(Arc::new(Mutex::new(log))))
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a change. The record is on the disk when this returns.
    pub(crate) async fn record(
        &self,
        at: Timestamp,
        actor: &str,
        action: AuditAction,
        target: &str,
        details: Value,
    ) -> ApiResult<()> {
        let entry = AuditEntry {
            id: 0,
            at: At(at).to_string(),
            actor: actor.to_owned(),
            event_type: action.0.to_owned(),
            action: action.1.to_owned(),
            severity: severity(action).to_owned(),
            target: target.to_owned(),
            details,
            prev: String::new(),
            hash: String::new(),
        };
        let audit = self.clone();
        let written = tokio::task::spawn_blocking(move || audit.lock().add(entry)).await;
        if let Ok(Ok(())) = written {
            return Ok(());
        }
        tracing::error!("the audit log cannot be written");
        Err(ApiError::new(
            Code::StoreUnavailable,
            "the change was made, but the audit log could not be written",
        ))
    }

    /// The newest entries before `before`, the newest first.
    pub(crate) fn list(&self, before: Option<u64>, max: usize) -> Vec<AuditEntry> {
        let log = self.lock();
        let older = log.listed.iter().rev().filter(|entry| before.is_none_or(|before| entry.id < before));
        older.take(max).cloned().collect()
    }
}

impl Log {
    fn add(&mut self, mut entry: AuditEntry) -> std::io::Result<()> {
        entry.id = self.next;
        entry.prev.clone_from(&self.last);
        entry.hash = hash_of(&entry);
        if let Some(file) = &mut self.file {
            let mut line = serde_json::to_vec(&entry)?;
            line.push(b'\n');
            file.write_all(&line)?;
            file.sync_data()?;
            files::replace(&self.end, format!("{} {}\n", entry.id, entry.hash).as_bytes())?;
        }
        self.last.clone_from(&entry.hash);
        self.next += 1;
        self.list(entry);
        Ok(())
    }

    fn list(&mut self, entry: AuditEntry) {
        if self.listed.len() >= LISTED_MAX {
            self.listed.pop_front();
        }
        self.listed.push_back(entry);
    }
}

/// The whole lines of the file. Removes a last line without its end: the process died before it confirmed that line.
fn read_whole_lines(path: &Path) -> std::io::Result<String> {
    let Some(text) = files::read(path)? else { return Ok(String::new()) };
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    if whole < text.len() {
        let file = File::options().write(true).open(path)?;
        file.set_len(whole as u64)?;
        file.sync_all()?;
    }
    Ok(text[..whole].to_owned())
}

fn hash_of(entry: &AuditEntry) -> String {
    let mut hasher = Sha256::new();
    let details = entry.details.to_string();
    let id = entry.id.to_string();
    let parts = [
        &entry.prev,
        &id,
        &entry.at,
        &entry.actor,
        &entry.event_type,
        &entry.action,
        &entry.severity,
        &entry.target,
        &details,
    ];
    for part in parts {
        // The length keeps entries apart whose parts join to the same text.
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hex(&hasher.finalize())
}

/// The file with the number of lines that the log has had, and the hash of the last one.
fn end_of(log: &Path) -> PathBuf {
    log.with_extension("end")
}

/// Checks the chain of a log and returns how many lines it has.
pub fn verify(path: &Path) -> Result<u64, AuditError> {
    let text = files::read(path).map_err(FileError::of("read", path))?;
    match text {
        Some(text) => verify_text(path, &text).map(|entries| entries.len() as u64),
        None => Err(AuditError::Missing(path.to_owned())),
    }
}

fn verify_text(path: &Path, text: &str) -> Result<Vec<AuditEntry>, AuditError> {
    let mut last = BEGINNING.to_owned();
    let mut entries = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let place = number as u64 + 1;
        let broken = |damage| AuditError::Line { path: path.to_owned(), line: place, damage };
        let entry: AuditEntry = serde_json::from_str(line).map_err(|_| broken(AuditDamage::Unreadable))?;
        if entry.id != place {
            return Err(broken(AuditDamage::Number(entry.id)));
        }
        if entry.prev != last {
            return Err(broken(AuditDamage::Order));
        }
        if entry.hash != hash_of(&entry) {
            return Err(broken(AuditDamage::Changed));
        }
        last.clone_from(&entry.hash);
        entries.push(entry);
    }
    check_end(path, &entries)?;
    Ok(entries)
}

/// A log that was cut off between two lines is a valid chain. Only the file with its end shows the cut.
fn check_end(path: &Path, entries: &[AuditEntry]) -> Result<(), AuditError> {
    let end = end_of(path);
    let text = files::read(&end).map_err(FileError::of("read", &end))?;
    let Some(text) = text else { return Ok(()) };
    let (count, hash) = text.trim().split_once(' ').unwrap_or_default();
    let count: u64 = count.parse().map_err(|_| AuditError::End(end.clone()))?;
    // The log writes the line first, so after a crash there may be one more.
    match entries.iter().find(|entry| entry.id == count) {
        Some(entry) if entry.hash == hash => Ok(()),
        Some(_) => Err(AuditError::Line { path: path.to_owned(), line: count, damage: AuditDamage::Changed }),
        None => Err(AuditError::Cut { path: path.to_owned(), lines: entries.len(), had: count }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn clear(audit: &Audit, at: u64, target: &str) {
        let details = serde_json::json!({ "cleared_count": 2 });
        audit.record(Timestamp(at), "ann", ("agent_queue", "clear_queue"), target, details).await.unwrap();
    }

    #[tokio::test]
    async fn any_edit_of_the_file_shows_and_a_torn_last_line_does_not_hurt() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        let audit = Audit::open(Some(path.clone())).unwrap();
        for target in ["a", "b", "c"] {
            clear(&audit, 7, target).await;
        }
        assert_eq!(verify(&path).unwrap(), 3);
        let good = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = good.lines().collect();
        let edits = [
            good.replace("\"b\"", "\"x\""),
            good.replacen("ann", "bob", 1),
            format!("{}\n{}\n", lines[0], lines[2]),
            format!("{}\n{}\n{}\n", lines[1], lines[0], lines[2]),
            good.replace(":2}", ":3}"),
            format!("{}\n{}\n", lines[0], lines[1]),
            String::new(),
        ];
        for edited in edits {
            assert_ne!(edited, good);
            std::fs::write(&path, edited).unwrap();
            assert!(verify(&path).is_err());
            assert!(Audit::open(Some(path.clone())).is_err());
        }
        std::fs::write(&path, format!("{good}{{\"id\":4,\"at")).unwrap();
        let audit = Audit::open(Some(path.clone())).unwrap();
        clear(&audit, 8, "d").await;
        assert_eq!(verify(&path).unwrap(), 4);
        assert_eq!(audit.list(Some(4), 2).iter().map(|entry| entry.id).collect::<Vec<_>>(), [3, 2]);
    }
}
