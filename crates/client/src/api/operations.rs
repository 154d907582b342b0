//! Schedules, tokens, the audit log, the configuration.

use laneway_protocol::{
    AuditEntry, ConfigView, CreatedToken, Me, NewSchedule, NewToken, Page, ScheduleChange, ScheduleRun,
    ScheduleView, TokenView,
};
use reqwest::Method;

use crate::client::Client;
use crate::error::Error;

impl Client {
    /// The caller, as the server sees it.
    pub async fn me(&self) -> Result<Me, Error> {
        self.get(["api", "me"]).await
    }

    /// All tokens, without their secrets.
    pub async fn tokens(&self) -> Result<Page<TokenView>, Error> {
        self.get(["api", "tokens"]).await
    }

    /// Makes a token. Only this answer holds its secret.
    pub async fn create_token(&self, new: &NewToken) -> Result<CreatedToken, Error> {
        self.post(["api", "tokens"], new).await
    }

    /// Removes a token.
    pub async fn remove_token(&self, id: &str) -> Result<(), Error> {
        self.call(Method::DELETE, ["api", "tokens"]).query("id", Some(id)).send().await
    }

    /// All schedules.
    pub async fn schedules(&self) -> Result<Page<ScheduleView>, Error> {
        self.get(["api", "schedules"]).await
    }

    /// One schedule.
    pub async fn schedule(&self, name: &str) -> Result<ScheduleView, Error> {
        self.get(["api", "schedules", name]).await
    }

    /// Makes a schedule.
    pub async fn create_schedule(&self, new: &NewSchedule) -> Result<ScheduleView, Error> {
        self.post(["api", "schedules"], new).await
    }

    /// Changes a schedule.
    pub async fn change_schedule(&self, name: &str, change: &ScheduleChange) -> Result<ScheduleView, Error> {
        self.patch(["api", "schedules", name], change).await
    }

    /// Removes a schedule.
    pub async fn remove_schedule(&self, name: &str) -> Result<(), Error> {
        self.delete(["api", "schedules", name]).await
    }

    /// Fires a schedule now.
    pub async fn run_schedule(&self, name: &str) -> Result<ScheduleRun, Error> {
        self.call(Method::POST, ["api", "schedules", name, "run"]).send().await
    }

    /// The last firings of a schedule.
    pub async fn schedule_runs(&self, name: &str) -> Result<Page<ScheduleRun>, Error> {
        self.get(["api", "schedules", name, "runs"]).await
    }

    /// One page of the audit log.
    pub async fn audit(&self, limit: Option<u32>, cursor: Option<&str>) -> Result<Page<AuditEntry>, Error> {
        self.page(["api", "audit"], limit, cursor).await
    }

    /// The configuration in force, and where each value comes from.
    pub async fn config(&self) -> Result<ConfigView, Error> {
        self.get(["api", "config"]).await
    }
}
