//! Queues to measure.

use laneway_core::{Block, LaneSettings, Pattern};
use laneway_engine::{Handle, Options};

use crate::Failed;

pub fn block(lanes: &str, slots: u32) -> Result<Block, Failed> {
    let mut settings = LaneSettings::default();
    settings.set("max_concurrency", &slots.to_string())?;
    settings.set("max_queued", "10000000")?;
    Ok(Block { lanes: Pattern::new(lanes)?, settings: Some(settings) })
}

/// A queue in memory with `slots` slots in each of its lanes `lane0` to `lane5`.
pub async fn in_memory(slots: u32) -> Result<Handle, Failed> {
    let lanes = Handle::in_memory(Options::default());
    lanes.configure(vec![block("global", 1_000_000)?, block("lane*", slots)?]).await?;
    Ok(lanes)
}

/// A runtime with one thread, on which bounds are measured, or with several.
pub fn runtime(threads: usize) -> Result<tokio::runtime::Runtime, Failed> {
    let mut builder = match threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    Ok(builder.enable_all().build()?)
}
