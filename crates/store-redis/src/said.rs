//! What is said and not kept: published on a channel of the namespace.

use std::sync::Arc;

use futures_util::StreamExt;
use laneway_store::StoreError;
use redis::cmd;
use tokio::sync::mpsc;

use crate::failure::from_redis;
use crate::store::Shared;

/// So much may wait for a listener.
const BEHIND_MAX: usize = 1024;

impl Shared {
    pub(crate) async fn say(&self, words: Arc<str>) -> Result<(), StoreError> {
        self.send(cmd("PUBLISH").arg(&self.keys.said).arg(&*words)).await.map(drop)
    }

    /// Listens on a connection of its own, for as long as somebody wants to hear and it does not break.
    pub(crate) async fn listen(&self) -> Result<mpsc::Receiver<Arc<str>>, StoreError> {
        let failed = |error| from_redis(&self.link.name, &error);
        let mut listening = self.link.client()?.get_async_pubsub().await.map_err(failed)?;
        listening.subscribe(&self.keys.said).await.map_err(failed)?;
        let (heard, words) = mpsc::channel(BEHIND_MAX);
        self.runtime.spawn(async move {
            let mut messages = listening.into_on_message();
            loop {
                tokio::select! {
                    message = messages.next() => match message.map(|message| message.get_payload::<String>()) {
                        // Whoever is slow misses it.
                        Some(Ok(words)) => drop(heard.try_send(words.into())),
                        Some(Err(_)) => {}
                        None => return,
                    },
                    () = heard.closed() => return,
                }
            }
        });
        Ok(words)
    }
}
