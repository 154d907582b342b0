//! How many threads answer.

use std::num::NonZero;
use std::thread::available_parallelism;

use laneway_config::Store as StorePlace;
use tokio::runtime::{Builder, Runtime};

/// What tokio is asked with for another number.
const ASKED: &str = "TOKIO_WORKER_THREADS";

/// The runtime of a server on this store.
///
/// It has a thread for each core. A store in a directory has a thread of its own that writes, and every answer waits for it: one
/// core is left to that one, so that it is not kept waiting by requests which would wait for it in turn.
pub fn runtime(store: &StorePlace) -> std::io::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    if matches!(store, StorePlace::Path(_)) && std::env::var_os(ASKED).is_none() {
        let cores = available_parallelism().map_or(1, NonZero::get);
        builder.worker_threads(cores.saturating_sub(1).max(1));
    }
    builder.enable_all().build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_core_is_left_to_the_thread_that_writes() {
        let cores = available_parallelism().map_or(1, NonZero::get);
        let threads = |store: StorePlace| runtime(&store).unwrap().metrics().num_workers();
        assert_eq!(threads(StorePlace::Memory), cores);
        assert_eq!(threads(StorePlace::Path("anywhere".into())), (cores - 1).max(1));
    }
}
