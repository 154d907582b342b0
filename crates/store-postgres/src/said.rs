//! What is said and not kept: notifications on a channel beside that of the hints.

use std::sync::Arc;
use std::time::Duration;

use laneway_store::StoreError;
use tokio::sync::mpsc;

use crate::link::Link;
use crate::store::Shared;

/// So much may wait for a listener.
const BEHIND_MAX: usize = 1024;
/// As much of the schema's name goes into that of the channel.
const CHANNEL_BYTES_MAX: usize = 56;
/// How often to look whether the connection is still there.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Shared {
    /// Names of channels are short. Whoever hears somebody else's words does not know the tasks that they are of.
    fn channel(&self) -> String {
        let schema = &self.address.schema;
        let end = (0..=CHANNEL_BYTES_MAX.min(schema.len())).rev().find(|end| schema.is_char_boundary(*end));
        format!("{} said", &schema[..end.unwrap_or(0)])
    }

    pub(crate) async fn say(&self, words: Arc<str>) -> Result<(), StoreError> {
        let channel = self.channel();
        self.reader.query("SELECT pg_notify($1, $2)", &[&channel, &&*words]).await.map(drop)
    }

    /// Listens on a connection of its own, for as long as somebody wants to hear and it does not break.
    pub(crate) async fn listen(&self) -> Result<mpsc::Receiver<Arc<str>>, StoreError> {
        let (heard, words) = mpsc::channel(BEHIND_MAX);
        // Whoever is slow misses it.
        let tell = {
            let heard = heard.clone();
            move |words: &str| drop(heard.try_send(words.into()))
        };
        let link = Link::listening(&self.address, self.options.patience, self.channel(), tell);
        let session = link.session().await?;
        self.runtime.spawn(async move {
            // The connection ends with the link, and with it whoever tells.
            let _link = link;
            while !session.client.is_closed() {
                tokio::select! {
                    () = tokio::time::sleep(LOOK_EVERY) => {}
                    () = heard.closed() => return,
                }
            }
        });
        Ok(words)
    }
}
