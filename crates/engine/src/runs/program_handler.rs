//! Handlers that are programs.

use std::time::Duration;

use bytes::Bytes;
use laneway_process::{Program, ProgramEnd};
use serde_json::Value;

use crate::error::Failure;
use crate::runs::context::Context;
use crate::runs::handler::Handler;

/// How long a group that was killed may take to vanish, beyond its own grace.
const VANISHING: Duration = Duration::from_millis(500);

/// A program as the handler of a kind.
pub(crate) fn handler(program: Program) -> Handler {
    let grace = program.grace_len() + VANISHING;
    let work = move |context: Context, payload: Bytes| {
        let program = program
            .clone()
            .variable("LANEWAY_TASK_ID", context.task().to_string())
            .variable("LANEWAY_FENCE", context.fence().0.to_string());
        let future: crate::runs::handler::Work =
            Box::pin(async move { run(&program, &context, payload).await });
        future
    };
    Handler::new(work).with_grace(grace)
}

async fn run(program: &Program, context: &Context, payload: Bytes) -> Result<Bytes, Failure> {
    let stop = async {
        context.stop().wait().await;
    };
    // No other attempt would find what is missing here.
    let done = program.run(payload, stop, |text| context.delta(text)).await.map_err(Failure::fatal)?;
    match done.error() {
        Some(error) => Err(Failure::new(error)),
        None => result(done),
    }
}

fn result(done: ProgramEnd) -> Result<Bytes, Failure> {
    if serde_json::from_str::<serde::de::IgnoredAny>(&done.stdout).is_ok() {
        return Ok(done.stdout.into());
    }
    let text = serde_json::to_vec(&Value::String(done.stdout));
    Ok(text.map_err(Failure::fatal)?.into())
}
