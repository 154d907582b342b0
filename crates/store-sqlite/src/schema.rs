//! The tables.

/// Marks a SQLite database as one of Laneway's ("LNWY").
pub(crate) const APPLICATION_ID: i32 = 0x4C4E_5759;
/// The layout that this program makes and reads. An older one is brought to it, a newer one is refused.
pub(crate) const LAYOUT: i32 = 2;
/// What brings each older layout to the next, from the first on.
pub(crate) const STEPS: [&str; LAYOUT as usize - 1] = ["ALTER TABLE finished ADD COLUMN result BLOB"];

/// A result up to this length is in the row of its task: most are short, and another row costs as much as that of the task.
pub(crate) const SHORT_BYTES_MAX: usize = 256;

/// Makes the tables of an empty database.
///
/// - `log`: one row per batch that is not trimmed.
/// - `blob`: payloads.
/// - `snapshot`: at most one row, the newest complete one; its bytes are the parts of that version in
///   `snapshot_part`, so that a large one is written piece by piece between appends. Parts of other versions
///   are leftovers.
/// - `finished` and `result`: the history; long results apart, so that a list does not read them. The labels of a task are
///   one text, each between two separators: an index over them would make each end five times as expensive.
///
/// Ids are blobs of 16 bytes, big endian. Rows that are found by id alone have no other key: one tree to change instead of
/// two.
pub(crate) const TABLES: &str = "
    CREATE TABLE log (version INTEGER PRIMARY KEY, batch BLOB NOT NULL, record BLOB NOT NULL) STRICT;
    CREATE TABLE blob (id BLOB PRIMARY KEY, record BLOB NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE snapshot (version INTEGER PRIMARY KEY, batch BLOB NOT NULL, parts INTEGER NOT NULL) STRICT;
    CREATE TABLE snapshot_part (
        version INTEGER NOT NULL, part INTEGER NOT NULL, bytes BLOB NOT NULL, UNIQUE (version, part)
    ) STRICT;
    CREATE TABLE finished (
        version INTEGER NOT NULL, position INTEGER NOT NULL, task BLOB NOT NULL UNIQUE,
        ended INTEGER NOT NULL, record BLOB NOT NULL, labels TEXT NOT NULL, result BLOB, PRIMARY KEY (version, position)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE result (task BLOB PRIMARY KEY, record BLOB NOT NULL) STRICT, WITHOUT ROWID;
";

/// The bytes of an id, as they are stored.
pub(crate) fn id_bytes(id: u128) -> [u8; 16] {
    id.to_be_bytes()
}

/// Stands before, between and after labels. No label contains it.
pub(crate) const SEPARATOR: char = '\u{1f}';

/// Labels as one text.
pub(crate) fn joined(labels: &[Box<str>]) -> String {
    let bytes: usize = labels.iter().map(|label| label.len() + 1).sum();
    let mut text = String::with_capacity(1 + bytes);
    text.push(SEPARATOR);
    for label in labels {
        text.push_str(label);
        text.push(SEPARATOR);
    }
    text
}
