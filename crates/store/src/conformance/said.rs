//! What is said and not kept.

use super::Site;
use crate::WORDS_BYTES_MAX;

pub(super) async fn all_who_listen_hear_what_is_said(site: &impl Site) {
    let store = site.open().await.expect("it opens");
    store.say("nobody hears this".into()).await.expect("it is said");
    let Some(mut first) = store.listen().await.expect("it listens") else { return };
    let mut second = store.listen().await.expect("it listens").expect("as before");
    let long = "\u{e9}".repeat(WORDS_BYTES_MAX / 2);
    for words in ["one", "'two' \\ \"\n", &long] {
        store.say(words.into()).await.expect("it is said");
        for listener in [&mut first, &mut second] {
            assert_eq!(listener.recv().await.as_deref(), Some(words));
        }
    }
    // Whoever does not listen any more holds up nobody.
    drop(first);
    store.say("three".into()).await.expect("it is said");
    assert_eq!(second.recv().await.as_deref(), Some("three"));
}
