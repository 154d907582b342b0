//! Texts that are published and not kept.

use super::Site;
use crate::PUBLISHED_BYTES_MAX;

pub(super) async fn every_subscriber_gets_what_is_published(site: &impl Site) {
    let store = site.open().await.expect("it opens");
    store.publish("without a subscriber".into()).await.expect("it is published");
    let Some(mut first) = store.subscribe().await.expect("it subscribes") else { return };
    let mut second = store.subscribe().await.expect("it subscribes").expect("as before");
    let long = "\u{e9}".repeat(PUBLISHED_BYTES_MAX / 2);
    for text in ["one", "'two' \\ \"\n", &long] {
        store.publish(text.into()).await.expect("it is published");
        for subscriber in [&mut first, &mut second] {
            assert_eq!(subscriber.recv().await.as_deref(), Some(text));
        }
    }
    // A subscriber that is gone holds up no other.
    drop(first);
    store.publish("three".into()).await.expect("it is published");
    assert_eq!(second.recv().await.as_deref(), Some("three"));
}
