//! One input, tried: whatever goes wrong is told, a panic in any thread included.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use crate::Target;
use crate::watchdog::Reading;

/// No input takes longer than this to be read or refused.
const TIME_MAX: Duration = Duration::from_secs(5);

/// The last panic, of whichever thread.
static PANICKED: Mutex<Option<String>> = Mutex::new(None);
/// Whether an input is being tried; a panic at another time is none of its doing.
static TRYING: AtomicBool = AtomicBool::new(false);

fn listen_for_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let otherwise = panic::take_hook();
        panic::set_hook(Box::new(move |found| {
            if !TRYING.load(Ordering::SeqCst) {
                return otherwise(found);
            }
            let mut panicked = PANICKED.lock().unwrap_or_else(PoisonError::into_inner);
            panicked.get_or_insert_with(|| found.to_string());
        }));
    });
}

/// Has `target` read `input`. The outcome, or what is wrong with how it was read.
pub fn try_input(target: &mut dyn Target, input: &[u8]) -> Result<String, String> {
    listen_for_panics();
    let began = Instant::now();
    TRYING.store(true, Ordering::SeqCst);
    let reading = Reading::of(input);
    let read = panic::catch_unwind(AssertUnwindSafe(|| target.read(input)));
    drop(reading);
    TRYING.store(false, Ordering::SeqCst);
    if let Some(panicked) = PANICKED.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(panicked);
    }
    let took = began.elapsed();
    if took > TIME_MAX {
        return Err(format!("it took {took:.1?} to read"));
    }
    read.unwrap_or_else(|_| Err("it panicked".to_owned()))
}
