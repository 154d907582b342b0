//! Looking from time to time whether an operator must repair something in a backend.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;

use crate::backend::Backend;

/// How often to look.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Looks until the store is closed. What a backend says that is away is what it said last.
pub(crate) async fn look<B: Backend>(backend: Weak<B>, warning: watch::Sender<Option<Arc<str>>>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Some(backend) = backend.upgrade() else { return };
        let Ok(now) = backend.warning().await else { continue };
        warning.send_if_modified(|warning| {
            let is_new = warning.as_deref() != now.as_deref();
            *warning = now.map(Into::into);
            is_new
        });
    }
}
