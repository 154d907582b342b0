//! Payloads.

use super::{Site, append_all, batch, blob_id, noise, open};
use crate::{Entry, Head};

pub(super) async fn payloads_come_and_go_with_their_batch(site: &impl Site) {
    let log = open(site).await;
    assert_eq!(log.payload(blob_id(1)).await, Ok(None));
    let with = |number, payloads: &[u128], dropped: &[u128]| Entry {
        payloads: payloads.iter().map(|id| (blob_id(*id), format!("payload {id}").into())).collect(),
        dropped: dropped.iter().map(|id| blob_id(*id)).collect(),
        ..batch(number)
    };
    let head = log.append(Head::EMPTY, &with(1, &[1, 2, 3, 4], &[])).await.expect("appended");
    assert_eq!(log.payload(blob_id(2)).await, Ok(Some("payload 2".into())));
    // A refused batch leaves nothing behind and takes nothing away.
    assert!(log.append(Head::EMPTY, &with(2, &[5], &[1])).await.is_err());
    assert_eq!(log.payload(blob_id(5)).await, Ok(None));
    assert_eq!(log.payload(blob_id(1)).await, Ok(Some("payload 1".into())));
    let head = log.append(head, &with(3, &[6], &[1, 77])).await.expect("appended");
    assert_eq!(log.payload(blob_id(1)).await, Ok(None));
    assert_eq!(log.payload(blob_id(6)).await, Ok(Some("payload 6".into())));
    log.store().remove_blobs(vec![blob_id(2), blob_id(3), blob_id(88)]).await.expect("removed");
    for gone in [2, 3] {
        assert_eq!(log.payload(blob_id(gone)).await, Ok(None));
    }
    // The same id again: the newer payload counts.
    let again = Entry { payloads: vec![(blob_id(4), "newer".into())], ..batch(4) };
    let head = log.append(head, &again).await.expect("appended");
    assert_eq!(log.payload(blob_id(4)).await, Ok(Some("newer".into())));
    // A repeated batch does not bring back what went since.
    let entry = log.seal(head, &with(5, &[9], &[])).expect("it can be encoded");
    let done = log.store().append(entry.clone()).await.expect("appended");
    log.append(done, &with(6, &[], &[9])).await.expect("appended");
    log.store().append(entry).await.expect("the same batch once more is a success");
    assert_eq!(log.payload(blob_id(9)).await, Ok(None));
}

pub(super) async fn large_payloads_come_back_whole(site: &impl Site) {
    let log = open(site).await;
    let large = noise(1024 * 1024);
    let payloads: Vec<_> = (1..=12).map(|id| (blob_id(id), large.slice(id as usize..))).collect();
    let entry = Entry { payloads: payloads.clone(), ..batch(1) };
    let head = log.append(Head::EMPTY, &entry).await.expect("appended");
    let empty = Entry { payloads: vec![(blob_id(99), "".into())], ..batch(2) };
    let head = log.append(head, &empty).await.expect("appended");
    append_all(&log, head, [3]).await;
    for (id, payload) in payloads {
        assert!(log.payload(id).await == Ok(Some(payload)), "{id:?} is another one");
    }
    assert_eq!(log.payload(blob_id(99)).await, Ok(Some("".into())), "an empty payload is not a missing one");
}
