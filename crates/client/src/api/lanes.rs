//! Lanes, status, charts, health.

use laneway_protocol::{
    CancelManyAnswer, Health, HistoryPoints, LaneNumbers, Page, Readiness, ReleasedLane, StatusView,
};
use reqwest::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use utoipa::ToSchema;

use crate::client::Client;
use crate::error::Error;

/// Which points of a chart.
#[derive(Clone, Debug, Default)]
pub struct ChartQuery {
    /// `running` (the default), `waiting`, `started`, `completed` or `failed`.
    pub metric: Option<String>,
    /// Of which lane. Default `global`.
    pub lane: Option<String>,
    /// Milliseconds since 1970, or an RFC 3339 time. Default: all that there are.
    pub since: Option<String>,
}

impl Client {
    /// One page of any list that takes `limit` and `cursor`.
    pub async fn page<'a, T: DeserializeOwned + ToSchema>(
        &self,
        path: impl IntoIterator<Item = &'a str>,
        limit: Option<u32>,
        cursor: Option<&str>,
    ) -> Result<Page<T>, Error> {
        self.call(Method::GET, path)
            .query("limit", limit.map(|limit| limit.to_string()))
            .query("cursor", cursor)
            .send()
            .await
    }

    /// One page of lanes.
    pub async fn lanes(&self, limit: Option<u32>, cursor: Option<&str>) -> Result<Page<LaneNumbers>, Error> {
        self.page(["api", "lanes"], limit, cursor).await
    }

    /// One lane.
    pub async fn lane(&self, lane: &str) -> Result<LaneNumbers, Error> {
        self.get(["api", "lanes", lane]).await
    }

    /// Changes settings of a lane, or of all lanes that fit a pattern.
    pub async fn change_lane(&self, lane: &str, settings: &impl Serialize) -> Result<LaneNumbers, Error> {
        self.patch(["api", "lanes", lane], settings).await
    }

    /// Nothing starts in the lane until it is resumed.
    pub async fn pause(&self, lane: &str) -> Result<LaneNumbers, Error> {
        self.call(Method::POST, ["api", "lanes", lane, "pause"]).send().await
    }

    /// Ends a pause or a drain.
    pub async fn resume(&self, lane: &str) -> Result<LaneNumbers, Error> {
        self.call(Method::POST, ["api", "lanes", lane, "resume"]).send().await
    }

    /// The lane accepts nothing new until it is resumed.
    pub async fn drain(&self, lane: &str) -> Result<LaneNumbers, Error> {
        self.call(Method::POST, ["api", "lanes", lane, "drain"]).send().await
    }

    /// Cancels all tasks that wait in the lane.
    pub async fn clear_lane(&self, lane: &str) -> Result<CancelManyAnswer, Error> {
        self.call(Method::POST, ["api", "lanes", lane, "clear"]).send().await
    }

    /// Takes the slots of the lane's running tasks away.
    pub async fn release_lane(&self, lane: &str) -> Result<ReleasedLane, Error> {
        self.call(Method::POST, ["api", "lanes", lane, "release"]).send().await
    }

    /// What runs and what waits, over all lanes.
    pub async fn status(&self) -> Result<StatusView, Error> {
        self.status_of(None).await
    }

    /// What runs and what waits in a lane. Without a lane: over all lanes.
    pub async fn status_of(&self, lane: Option<&str>) -> Result<StatusView, Error> {
        self.call(Method::GET, ["api", "status"]).query("lane", lane).send().await
    }

    /// Points of a chart.
    pub async fn history(&self, query: &ChartQuery) -> Result<HistoryPoints, Error> {
        self.call(Method::GET, ["api", "history"])
            .query("metric", query.metric.as_deref())
            .query("lane", query.lane.as_deref())
            .query("since", query.since.as_deref())
            .send()
            .await
    }

    /// Whether the server is alive.
    pub async fn health(&self) -> Result<Health, Error> {
        self.get(["healthz"]).await
    }

    /// Whether the server takes work, and why not.
    pub async fn readiness(&self) -> Result<Readiness, Error> {
        let call = self.call(Method::GET, ["readyz"]);
        call.also_ok(503).send().await
    }

    /// All metrics, in the text format of Prometheus.
    pub async fn metrics(&self) -> Result<String, Error> {
        self.call(Method::GET, ["metrics"]).text().await
    }
}
