//! Inputs that are kept: examples of everything, and whatever was found.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where the inputs of a target are.
pub fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}

/// The inputs of a target with their names, in the order of these.
pub fn inputs(target: &str) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut inputs = Vec::new();
    for entry in fs::read_dir(folder(target))? {
        let entry = entry?;
        inputs.push((entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?));
    }
    inputs.sort();
    Ok(inputs)
}

/// Keeps an input that found something, so that the tests try it from now on; returns where it is.
pub fn keep(target: &str, input: &[u8]) -> io::Result<PathBuf> {
    // FNV-1a: the same input is the same file.
    let hash = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let path = folder(target).join(format!("found-{hash:016x}"));
    fs::write(&path, input)?;
    Ok(path)
}
