//! Calls of workers: claims, heartbeats, reports.

use std::time::Duration;

use laneway_protocol::{
    ClaimAnswer, ClaimBody, CompleteBody, ExternalTask, HeartbeatAnswer, HeartbeatBody, Page, TaskView,
    WorkerView,
};
use reqwest::Method;

use crate::client::Client;
use crate::error::Error;

impl Client {
    /// Claims tasks. Never repeated by itself: a claim whose answer was lost may hold tasks until their leases lapse.
    pub async fn claim(&self, claim: &ClaimBody) -> Result<ClaimAnswer, Error> {
        let within = self.timeout + Duration::from_millis(claim.wait_ms.unwrap_or(0));
        self.call(Method::POST, ["api", "claim"]).body(claim).within(Some(within)).send().await
    }

    /// Renews a lease. A fence guards the call, so it may be repeated.
    pub async fn heartbeat(&self, id: &str, beat: &HeartbeatBody) -> Result<HeartbeatAnswer, Error> {
        self.call(Method::POST, ["api", "tasks", id, "heartbeat"]).body(beat).repeatable().send().await
    }

    /// Reports how an attempt ended. A fence guards the call, so it may be repeated: the server refuses a second report
    /// of the same attempt as `STALE_LEASE`.
    pub async fn complete(&self, id: &str, outcome: &CompleteBody) -> Result<TaskView, Error> {
        self.call(Method::POST, ["api", "tasks", id, "complete"]).body(outcome).repeatable().send().await
    }

    /// One page of the tasks that wait for a worker, in the order of the line.
    pub async fn external_tasks(
        &self,
        limit: Option<u32>,
        cursor: Option<&str>,
    ) -> Result<Page<ExternalTask>, Error> {
        self.page(["api", "external-tasks"], limit, cursor).await
    }

    /// The workers that have work.
    pub async fn workers(&self) -> Result<Page<WorkerView>, Error> {
        self.get(["api", "workers"]).await
    }
}
