//! Reading the log, page by page.

use laneway_store::{Head, READ_BATCHES_MAX, READ_BYTES_MAX, StoreError, StoredBatch, Version};

use crate::backend::{Backend, LogPage};

/// The most batches of one page. Batches may be large.
pub const PAGE_BATCHES: usize = 128;

pub(crate) async fn read<B: Backend>(backend: &B, after: Version) -> Result<Vec<StoredBatch>, StoreError> {
    let known = backend.recent().after(after);
    if !known.is_empty() {
        return Ok(known);
    }
    let (mut batches, mut bytes) = (Vec::<StoredBatch>::new(), 0);
    while batches.len() < READ_BATCHES_MAX && bytes < READ_BYTES_MAX {
        let last = batches.last().map_or(after, |batch| batch.version);
        let page = page(backend, last).await?;
        if let Some(first) = page.first()
            && first.version > last.next()
        {
            // The batches between were trimmed meanwhile. Those that were read before are still in order.
            if batches.is_empty() {
                return Err(StoreError::Trimmed { asked: after, oldest: first.version });
            }
            break;
        }
        bytes += page.iter().map(|batch| batch.record.len()).sum::<usize>();
        let is_end = page.len() < PAGE_BATCHES;
        batches.extend(page);
        if is_end {
            break;
        }
    }
    if batches.is_empty() {
        let head = reaching(backend, after).await?;
        if after < head.version {
            return read_again(backend, after, head).await;
        }
    }
    Ok(batches)
}

/// There was nothing after a version, and a moment later the log was longer: either it has just grown, or the snapshot
/// holds the rest.
async fn read_again<B: Backend>(
    backend: &B,
    after: Version,
    head: Head,
) -> Result<Vec<StoredBatch>, StoreError> {
    let batches = page(backend, after).await?;
    match batches.first().map(|first| first.version) {
        Some(first) if first == after.next() => Ok(batches),
        first => Err(StoreError::Trimmed { asked: after, oldest: first.unwrap_or(head.version.next()) }),
    }
}

async fn page<B: Backend>(backend: &B, after: Version) -> Result<Vec<StoredBatch>, StoreError> {
    let page: LogPage = backend.page(after).await?;
    backend.recent().note_page(&page);
    Ok(page.batches)
}

/// The end of the log, if it reaches this version.
pub(crate) async fn reaching<B: Backend>(backend: &B, after: Version) -> Result<Head, StoreError> {
    let current = backend.head().await?;
    if after <= current.version { Ok(current) } else { Err(StoreError::beyond_end(after, current)) }
}
