//! Registering handlers, and how tool calls run.

use std::sync::{Arc, PoisonError};

use laneway_core::Name;
use laneway_process::Program;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Failure};
use crate::handle::Handle;
use crate::runs::context::Context;
use crate::runs::handler::{Handlers, typed};
use crate::runs::program_handler;
use crate::runs::tool_lanes::ToolCalls;

impl Handle {
    /// Registers a handler for tasks of a kind: a function of the attempt's [`Context`] and the payload. It replaces an
    /// earlier one for attempts to come.
    ///
    /// A panic is a failed attempt. A payload that cannot be read as `P` is a failure that no retry helps.
    pub fn handler<P, R, F, Fut>(&self, kind: impl Into<Arc<str>>, function: F) -> Result<(), Error>
    where
        P: DeserializeOwned + Send + 'static,
        R: Serialize + Send + 'static,
        F: Fn(Context, P) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        let kind = Name::new(kind)?;
        self.resources().handlers.insert(kind, typed(function));
        Ok(())
    }

    /// Registers a program for tasks of a kind: it gets the payload on its standard input, and its output is streamed
    /// as deltas and becomes the result, as JSON if it is JSON, else as text. Any exit code but 0 is a failure.
    ///
    /// It finds its task in `LANEWAY_TASK_ID` and `LANEWAY_FENCE`. A timeout or a cancellation stops all its processes
    /// before the slot is free, except that no slot is held for longer than 5 s after that.
    pub fn command(&self, kind: impl Into<Arc<str>>, program: Program) -> Result<(), Error> {
        let kind = Name::new(kind)?;
        self.resources().handlers.insert(kind, program_handler::handler(program));
        Ok(())
    }

    /// Removes the handler of a kind. What runs goes on; what waits fails when its turn comes, and its dead letter can
    /// be run again.
    pub fn remove_handler(&self, kind: &Name) {
        self.resources().handlers.remove(kind);
    }

    /// Says how the calls of tools are run, from the next batch on. Default: in lanes.
    pub fn set_tool_calls(&self, calls: ToolCalls) {
        *self.resources().tool_calls.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(calls);
    }

    /// How the calls of tools are run.
    pub fn tool_calls(&self) -> Arc<ToolCalls> {
        Arc::clone(&self.resources().tool_calls.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn handlers(&self) -> &Handlers {
        &self.resources().handlers
    }
}
