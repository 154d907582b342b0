//! The tool calls of one model turn: reads side by side, the rest one after another.

use std::collections::BTreeMap;
use std::sync::Arc;

use laneway_core::{
    CancelReason, Command, End, LaneName, Name, Parent, TaskId, ToolBatch, ToolCall, ToolLane,
};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::driver::mailbox::{ReplyTo, Request, Waiter};
use crate::error::{Error, RunError};
use crate::handle::Handle;
use crate::runs::context::Context;
use crate::runs::direct_tools;
use crate::runs::tool_lanes::ToolCalls;

/// A call that a model made.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolUse {
    /// The tool: the handler of that name runs it.
    pub tool: String,
    /// What the handler gets.
    pub arguments: Value,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolResult {
    /// It was done, with this result.
    Done(Value),
    /// The caller's checks refused it; it was never submitted.
    Refused(ToolRefusal),
    /// A message for the turn came before it started.
    Skipped,
    /// It was accepted and came to another end.
    Failed {
        /// Which end.
        error: RunError,
        /// What the call produced all the same.
        output: Option<Value>,
    },
}

impl ToolResult {
    /// It came to another end and produced nothing.
    pub fn failed(error: RunError) -> ToolResult {
        ToolResult::Failed { error, output: None }
    }
}

/// Why a caller's checks refuse a call, in the caller's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolRefusal(pub String);

impl<T: Into<String>> From<T> for ToolRefusal {
    fn from(why: T) -> ToolRefusal {
        ToolRefusal(why.into())
    }
}

/// The tool lanes of one session.
#[derive(Clone)]
#[must_use]
pub struct Tools {
    handle: Handle,
    session: Arc<str>,
    parent: Option<Context>,
    /// The running task that asks from elsewhere, such as a worker's over HTTP.
    remote_parent: Option<TaskId>,
    group: Option<Name>,
    asker: Option<LaneName>,
    caller: Option<Name>,
    trace: Option<Arc<str>>,
    map: BTreeMap<String, ToolLane>,
}

impl ToolUse {
    /// A call of a tool.
    pub fn new(tool: impl Into<String>, arguments: Value) -> ToolUse {
        ToolUse { tool: tool.into(), arguments }
    }
}

impl Tools {
    pub(crate) fn new(handle: Handle, session: Arc<str>) -> Tools {
        Tools {
            handle,
            session,
            parent: None,
            remote_parent: None,
            group: None,
            asker: None,
            caller: None,
            trace: None,
            map: BTreeMap::new(),
        }
    }

    pub(super) fn parent(mut self, parent: Context) -> Tools {
        self.parent = Some(parent);
        self
    }

    /// Says where a tool belongs, in place of what [`Handle::set_tool_calls`] and [`ToolLane::of_tool`] say.
    pub fn tool(mut self, tool: impl Into<String>, lane: ToolLane) -> Tools {
        self.map.insert(tool.into(), lane);
        self
    }

    /// The running task that asks for the calls from outside this engine, such as the task of a worker. The calls are its
    /// children: they borrow its slots, and a message for its turn skips those that have not started.
    pub fn child_of(mut self, parent: Option<TaskId>) -> Tools {
        self.remote_parent = parent;
        self
    }

    /// The label of all calls, by which those that wait can be cancelled together.
    pub fn group(mut self, group: Name) -> Tools {
        self.group = Some(group);
        self
    }

    /// A further lane that each call needs: that of the caller, say, so that it bounds how many of theirs wait.
    pub fn asker(mut self, lane: LaneName) -> Tools {
        self.asker = Some(lane);
        self
    }

    /// The token that asks for the calls, and the trace that they belong to.
    pub fn asked_by(mut self, caller: Option<Name>, trace: Option<Arc<str>>) -> Tools {
        (self.caller, self.trace) = (caller, trace);
        self
    }

    /// Where a tool belongs.
    pub fn lane_of(&self, tool: &str) -> ToolLane {
        let own = self.map.get(tool).copied();
        own.unwrap_or_else(|| self.handle.tool_calls().lane_of(tool))
    }

    /// Checks each call, in order; submits those that pass, all of them or none; and waits for them. Results come
    /// in call order. A failure stops nothing. Dropping the future cancels what has not ended.
    ///
    /// Where calls run [directly](ToolCalls::Direct) nothing is submitted: they run here, one after another.
    pub async fn batch<C, Fut>(&self, calls: Vec<ToolUse>, mut check: C) -> Result<Vec<ToolResult>, Error>
    where
        C: FnMut(&ToolUse) -> Fut,
        Fut: Future<Output = Result<(), ToolRefusal>>,
    {
        let mut verdicts = Vec::with_capacity(calls.len());
        for call in &calls {
            verdicts.push(check(call).await.err());
        }
        let passed = calls.iter().zip(&verdicts).filter(|(_, refused)| refused.is_none());
        let passed = passed.map(|(call, _)| call);
        if matches!(*self.handle.tool_calls(), ToolCalls::Direct) {
            let mut done = direct_tools::run(&self.handle, self.parent.as_ref(), passed).await?.into_iter();
            let closed = || ToolResult::failed(RunError::Refused(Error::Closed));
            let result = |refused: Option<ToolRefusal>| match refused {
                Some(why) => ToolResult::Refused(why),
                None => done.next().unwrap_or_else(closed),
            };
            return Ok(verdicts.into_iter().map(result).collect());
        }
        let mut batch = self.submit(passed).await?;
        let mut results = Vec::with_capacity(calls.len());
        for refused in verdicts {
            results.push(match refused {
                Some(why) => ToolResult::Refused(why),
                None => batch.next().await,
            });
        }
        Ok(results)
    }

    fn parent_task(&self) -> Option<TaskId> {
        let own = self.parent.as_ref().filter(|parent| parent.is_task).map(Context::task);
        own.or(self.remote_parent)
    }

    async fn submit(&self, calls: impl Iterator<Item = &ToolUse>) -> Result<Running, Error> {
        let mut payloads = Vec::new();
        let mut submitted = Vec::new();
        for call in calls {
            let tool = Name::new(call.tool.as_str())?;
            let arguments = serde_json::to_vec(&call.arguments);
            let arguments = arguments.map_err(|error| Error::Json(error.to_string().into()))?;
            let (task, blob) = (self.handle.new_id(), self.handle.new_blob());
            payloads.push((blob, arguments.into()));
            submitted.push(ToolCall { task, tool, lane: self.lane_of(&call.tool), payload: Some(blob) });
        }
        let mut running = Running { handle: self.handle.clone(), calls: Vec::new(), next: 0 };
        if submitted.is_empty() {
            return Ok(running);
        }
        let tasks: Vec<TaskId> = submitted.iter().map(|call| call.task).collect();
        let batch = ToolBatch {
            session: Arc::clone(&self.session),
            calls: submitted,
            parent: self.parent_task().map(|task| Parent { task, detached: false }),
            group: self.group.clone(),
            asker: self.asker.clone(),
            caller: self.caller.clone(),
            trace: self.trace.clone(),
        };
        let (answer, waiters) = oneshot::channel();
        let mut request = Request::new(Command::SubmitBatch(Box::new(batch)), ReplyTo::Batch(answer));
        request.payloads = payloads;
        self.handle.send(request).await?;
        let waiters = waiters.await.map_err(|_| Error::Closed)??;
        running.calls = tasks.into_iter().zip(waiters).collect();
        Ok(running)
    }
}

/// Calls that were submitted, in order. Dropping it cancels those that have not ended.
struct Running {
    handle: Handle,
    calls: Vec<(TaskId, Waiter)>,
    next: usize,
}

impl Running {
    async fn next(&mut self) -> ToolResult {
        let Some((_, waiter)) = self.calls.get_mut(self.next) else {
            return ToolResult::failed(RunError::Refused(Error::Closed));
        };
        let ending = waiter.await;
        self.next += 1;
        let Ok(ending) = ending else { return ToolResult::failed(RunError::Refused(Error::Closed)) };
        let output = ending.output();
        match ending.into_result() {
            Ok(value) => ToolResult::Done(value),
            Err(RunError::Ended(End::Cancelled { reason: CancelReason::Steered })) => ToolResult::Skipped,
            Err(error) => ToolResult::Failed { error, output },
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for (task, _) in &self.calls[self.next.min(self.calls.len())..] {
            self.handle.report(crate::driver::mailbox::Report::Leave { task: *task });
        }
    }
}
