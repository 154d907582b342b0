//! Slots that callers hold for work of their own.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::time::At;
use crate::words::PriorityRequest;

/// A slot in each lane, for work of the caller's own.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SlotRequest {
    /// The lanes; the first is the home lane.
    #[schema(min_items = 1)]
    pub lanes: Vec<String>,
    /// The id of the slot's task, a UUID that was never used. With it, the caller can look at the slot and cancel it while it
    /// waits. Default: the server chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "uuid")]
    pub id: Option<String>,
    /// A name for people who look at the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128)]
    pub label: Option<String>,
    /// `user`, `schedule`, `agent` or `background`. Default: the priority, if it is one of these, else `agent` for a child and
    /// `user` for any other slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 100)]
    pub session: Option<String>,
    /// The longest wait; with 0 the server answers at once. Default: the setting of the home lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// The lease without a heartbeat. Default: the setting of the home lane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub lease_ms: Option<u64>,
    /// The worker that holds the slot, as `GET /api/workers/{worker}/events` knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 128)]
    pub worker: Option<String>,
    /// 0 to 9, or the name of a source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<PriorityRequest>,
}

/// A slot that the caller holds until the lease lapses.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SlotAnswer {
    /// The task that holds the slot, for heartbeats and completion.
    pub id: String,
    /// The fence, for heartbeats and completion.
    pub fence: u64,
    /// When the lease lapses without a heartbeat.
    pub lease_until: At,
}
