//! Logs what an operator should repair in the store.

use std::sync::Arc;

use tokio::sync::watch;

/// Logs each warning when it comes, and when it was repaired, until the store is closed.
pub(crate) async fn watch(mut warnings: watch::Receiver<Option<Arc<str>>>) {
    while warnings.changed().await.is_ok() {
        match warnings.borrow_and_update().as_deref() {
            Some(reason) => tracing::warn!(reason, "the store may lose accepted work"),
            None => tracing::info!("the store keeps accepted work again"),
        }
    }
}
