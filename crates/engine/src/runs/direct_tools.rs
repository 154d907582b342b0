//! Calls of tools that run where they are asked for, in no lane.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use laneway_core::{End, Fence, Name};

use crate::error::{Error, Failure, RunError};
use crate::handle::Handle;
use crate::runs::context::Context;
use crate::runs::handler::Handler;
use crate::runs::panic::catch_panic;
use crate::runs::stop::StopSignal;
use crate::runs::tools::{ToolResult, ToolUse};

/// Runs calls one after another; a failure stops nothing. A tool that nothing runs is an error before any call is run.
pub(super) async fn run(
    handle: &Handle,
    parent: Option<&Context>,
    calls: impl Iterator<Item = &ToolUse>,
) -> Result<Vec<ToolResult>, Error> {
    let calls: Vec<(Handler, Bytes)> = calls.map(|call| ready(handle, call)).collect::<Result<_, _>>()?;
    let mut results = Vec::with_capacity(calls.len());
    for (handler, arguments) in calls {
        let context = parent.cloned().unwrap_or_else(|| outside(handle));
        results.push(one(&handler, context, arguments).await);
    }
    Ok(results)
}

fn ready(handle: &Handle, call: &ToolUse) -> Result<(Handler, Bytes), Error> {
    let kind = Name::new(call.tool.as_str())?;
    let arguments = serde_json::to_vec(&call.arguments);
    let arguments = arguments.map_err(|error| Error::Json(error.to_string().into()))?;
    let handler = handle.handlers().get(&kind).ok_or(Error::NoHandler { kind })?;
    Ok((handler, arguments.into()))
}

/// Where no task asks. What runs in a task is part of that.
fn outside(handle: &Handle) -> Context {
    Context {
        task: handle.new_id(),
        fence: Fence(0),
        attempt: 1,
        timeout_at: None,
        deadline: None,
        lanes: Arc::new([]),
        trace: None,
        stop: StopSignal::default(),
        handle: handle.clone(),
        is_task: false,
    }
}

async fn one(handler: &Handler, context: Context, arguments: Bytes) -> ToolResult {
    let work = pin!(async move { handler.start(context, arguments).await });
    let failed = |error: String, output| ToolResult::Failed {
        error: RunError::Ended(End::Failed { error: error.into() }),
        output,
    };
    match catch_panic(work).await {
        Ok(Ok(result)) => match serde_json::from_slice(&result) {
            Ok(value) => ToolResult::Done(value),
            Err(error) => failed(format!("the result cannot be read: {error}"), None),
        },
        Ok(Err(Failure { error, output, .. })) => failed(error, output),
        Err(panic) => failed(panic.to_string(), None),
    }
}
