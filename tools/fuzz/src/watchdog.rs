//! An input that is never done being read: nobody can stop the thread that reads it, so the process ends, and says which.

use std::path::PathBuf;
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

/// The input that is being read, and since when.
static READING: Mutex<Option<(Instant, Vec<u8>)>> = Mutex::new(None);

/// Ends the process when one input is read for longer than `patience`: the input is printed, and written to `file`.
/// Only the first call counts.
pub fn watch_for_hangs(patience: Duration, file: Option<PathBuf>) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(patience / 10);
                let reading = READING.lock().unwrap_or_else(PoisonError::into_inner);
                let Some((since, input)) = reading.as_ref().filter(|(since, _)| since.elapsed() > patience)
                else {
                    continue;
                };
                eprintln!(
                    "fuzz: an input is read for {:.0?} already: {}",
                    since.elapsed(),
                    input.escape_ascii()
                );
                if let Some(file) = &file
                    && let Err(error) = std::fs::write(file, input)
                {
                    eprintln!("fuzz: {}: {error}", file.display());
                }
                // The thread that reads would go on behind any gentler end.
                std::process::abort();
            }
        });
    });
}

/// Marks an input as being read until it is dropped.
pub(crate) struct Reading;

impl Reading {
    pub(crate) fn of(input: &[u8]) -> Reading {
        *READING.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), input.to_vec()));
        Reading
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        *READING.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
