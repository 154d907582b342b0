//! Whether the write-ahead log is whole.
//!
//! SQLite reads it up to the first frame with a wrong checksum and takes that for its end. After a power cut this is right:
//! the last transaction may be there in part. But a transaction starts only when the one before is flushed. So if frames of
//! the same log follow after a later commit, the wrong frame was whole once, and SQLite would silently drop the rest.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// The last bit is the byte order of the checksum.
const MAGIC: u32 = 0x377f_0682;

/// A running checksum over all that came before.
type Sums = (u32, u32);
/// Numbers that the frames of one log share.
type Salts = (u32, u32);

/// The byte of this write-ahead log at which it is damaged, although a later transaction follows. `None`: it is whole, or
/// there is none.
pub(crate) fn damage_in(path: &Path, page_bytes: u64) -> io::Result<Option<u64>> {
    let mut file = match File::open(path) {
        Ok(file) => BufReader::with_capacity(1 << 18, file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut header = [0; HEADER_BYTES];
    if !fill(&mut file, &mut header)? {
        return Ok(None);
    }
    let is_big_endian = word(&header, 0) == MAGIC | 1;
    let sums = add((0, 0), &header[..24], is_big_endian);
    let is_whole = word(&header, 0) & !1 == MAGIC && sums == pair(&header, 24);
    let mut reading = Reading { is_big_endian, sums, ..Reading::default() };
    if is_whole {
        reading.salts = Some(pair(&header, 16));
    } else {
        reading.broken_at = Some(0);
    }
    let mut frame = vec![0; FRAME_HEADER_BYTES + page_bytes as usize];
    let mut at = HEADER_BYTES as u64;
    while fill(&mut file, &mut frame)? {
        if reading.is_behind_damage(at, &frame) {
            return Ok(reading.broken_at);
        }
        at += frame.len() as u64;
    }
    Ok(None)
}

#[derive(Default)]
struct Reading {
    is_big_endian: bool,
    sums: Sums,
    /// Those of the header or, if that is damaged, of the first frame.
    salts: Option<Salts>,
    broken_at: Option<u64>,
    /// A commit came at or after the damage.
    has_commit: bool,
}

impl Reading {
    /// Takes the next frame; returns whether it was written after the damaged bytes were on the disk.
    fn is_behind_damage(&mut self, at: u64, frame: &[u8]) -> bool {
        let is_of_this_log = *self.salts.get_or_insert(pair(frame, 8)) == pair(frame, 8);
        if self.broken_at.is_none() {
            let sums = add(self.sums, &frame[..8], self.is_big_endian);
            self.sums = add(sums, &frame[FRAME_HEADER_BYTES..], self.is_big_endian);
            if is_of_this_log && self.sums == pair(frame, 16) {
                return false;
            }
            self.broken_at = Some(at);
        }
        let is_commit = word(frame, 4) != 0;
        let is_behind = is_of_this_log && self.has_commit;
        self.has_commit |= is_of_this_log && is_commit;
        is_behind
    }
}

/// Fills the buffer; returns false at the end of the file.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn add((mut first, mut second): Sums, bytes: &[u8], is_big_endian: bool) -> Sums {
    for two in bytes.chunks_exact(8) {
        let of = |at| {
            let word = word(two, at);
            if is_big_endian { word } else { word.swap_bytes() }
        };
        first = first.wrapping_add(of(0)).wrapping_add(second);
        second = second.wrapping_add(of(4)).wrapping_add(first);
    }
    (first, second)
}

fn pair(bytes: &[u8], at: usize) -> (u32, u32) {
    (word(bytes, at), word(bytes, at + 4))
}

/// The number at this place; headers are written with the highest byte first.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |four| four.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}
