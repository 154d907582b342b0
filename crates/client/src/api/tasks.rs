//! Tasks, groups, batches, slots.

use std::time::Duration;

use laneway_protocol::{
    AcceptedTask, BatchAnswer, BatchRequest, CancelAnswer, CancelManyAnswer, CancelManyRequest, ExplainView,
    GroupView, Page, SlotAnswer, SlotRequest, TaskChange, TaskRequest, TaskView,
};
use reqwest::Method;

use crate::client::Client;
use crate::error::Error;

/// Which tasks to list: those to which all of this applies.
#[derive(Clone, Debug, Default)]
pub struct TasksQuery {
    /// `queued`, `running`, `retrying`, or an end.
    pub status: Option<String>,
    /// Tasks that name this lane.
    pub lane: Option<String>,
    /// Turns of this session.
    pub session: Option<String>,
    /// Tasks of this kind.
    pub kind: Option<String>,
    /// Tasks with this label.
    pub group: Option<String>,
    /// How many at most. Default 50, at most 500.
    pub limit: Option<u32>,
    /// The end of the page before.
    pub cursor: Option<String>,
}

impl Client {
    /// Submits a task. A second call with the same key joins the first.
    ///
    /// In the handler of a [`Worker`](crate::Worker), the new task is a detached child of the handler's task. To wait for it,
    /// name that task as its `parent`.
    pub async fn submit(&self, request: &TaskRequest, key: Option<&str>) -> Result<AcceptedTask, Error> {
        let call = self.call(Method::POST, ["api", "tasks"]).child_of(None);
        call.header("x-detach", Some("true")).body(request).key(key).send().await
    }

    /// One page of tasks.
    pub async fn tasks(&self, query: &TasksQuery) -> Result<Page<TaskView>, Error> {
        self.call(Method::GET, ["api", "tasks"])
            .query("status", query.status.as_deref())
            .query("lane", query.lane.as_deref())
            .query("session", query.session.as_deref())
            .query("kind", query.kind.as_deref())
            .query("group", query.group.as_deref())
            .query("limit", query.limit.map(|limit| limit.to_string()))
            .query("cursor", query.cursor.as_deref())
            .send()
            .await
    }

    /// One task, live or ended.
    pub async fn task(&self, id: &str) -> Result<TaskView, Error> {
        self.get(["api", "tasks", id]).await
    }

    /// Changes a waiting task.
    pub async fn change_task(&self, id: &str, change: &TaskChange) -> Result<TaskView, Error> {
        self.patch(["api", "tasks", id], change).await
    }

    /// Cancels a task; the answer says what state it was in.
    pub async fn cancel(&self, id: &str) -> Result<CancelAnswer, Error> {
        self.delete(["api", "tasks", id]).await
    }

    /// Cancels all selected waiting tasks.
    pub async fn cancel_many(&self, which: &CancelManyRequest) -> Result<CancelManyAnswer, Error> {
        self.post(["api", "tasks", "cancel"], which).await
    }

    /// Why a task waits.
    pub async fn explain(&self, id: &str) -> Result<ExplainView, Error> {
        self.get(["api", "tasks", id, "explain"]).await
    }

    /// Makes the tool calls of one model turn, and waits for all of them. In the handler of a [`Worker`](crate::Worker), they
    /// are children of the handler's task.
    pub async fn batch(&self, request: &BatchRequest) -> Result<BatchAnswer, Error> {
        let call = self.call(Method::POST, ["api", "tasks", "batch"]).child_of(None);
        call.body(request).within(None).send().await
    }

    /// The tasks with one label.
    pub async fn group(&self, group: &str) -> Result<GroupView, Error> {
        self.get(["api", "groups", group]).await
    }

    /// Takes a slot in each of some lanes, for work of the caller. [`Client::heartbeat`] renews it, and
    /// [`Client::give_back`] or [`Client::complete`] ends it. In the handler of a [`Worker`](crate::Worker), it is a child of
    /// the handler's task.
    pub async fn slot(&self, request: &SlotRequest) -> Result<SlotAnswer, Error> {
        let within = request.wait_ms.map(|wait| self.timeout + Duration::from_millis(wait));
        let call = self.call(Method::POST, ["api", "slots"]).child_of(None);
        call.body(request).within(within).send().await
    }

    /// Gives a slot back. A second call is no error.
    pub async fn give_back(&self, slot: &str, fence: u64) -> Result<(), Error> {
        let fence = fence.to_string();
        self.call(Method::DELETE, ["api", "slots", slot]).query("fence", Some(fence.as_str())).send().await
    }
}
