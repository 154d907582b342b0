//! An agent whose model is a script: each turn is a task of its conversation, and the tool calls that the model makes
//! go through the conversation's tool lanes, after the caller's checks.

use laneway::{Context, Failure, Laneway, Task, ToolRefusal, ToolResult, ToolUse};
use serde_json::{Value, json};
use tokio::time::{Duration, sleep};

/// What the model says to the results of its last calls.
fn model(round: usize) -> Vec<ToolUse> {
    match round {
        0 => vec![
            ToolUse::new("read", json!("main.rs")),
            ToolUse::new("read", json!("lib.rs")),
            ToolUse::new("bash", json!("cargo test")),
        ],
        1 => vec![ToolUse::new("bash", json!("rm -rf /")), ToolUse::new("write", json!("main.rs"))],
        _ => vec![],
    }
}

/// The caller's rule: nothing is removed.
async fn check(call: ToolUse) -> Result<(), ToolRefusal> {
    match call.arguments.as_str() {
        Some(text) if text.starts_with("rm ") => Err("removing is not allowed".into()),
        _ => Ok(()),
    }
}

async fn turn(context: Context, message: String) -> Result<String, Failure> {
    context.delta(format!("working on {message:?}"));
    let tools = context.tools("alice");
    for round in 0.. {
        let calls = model(round);
        if calls.is_empty() {
            break;
        }
        let names: Vec<String> = calls.iter().map(|call| call.tool.clone()).collect();
        let results = tools.batch(calls, |call| check(call.clone())).await?;
        for (tool, result) in names.iter().zip(results) {
            match result {
                ToolResult::Done(value) => println!("{tool}: {value}"),
                ToolResult::Refused(why) => println!("{tool}: refused, {why}"),
                ToolResult::Skipped => println!("{tool}: skipped, a message came first"),
                ToolResult::Failed { error, .. } => println!("{tool}: {error}"),
            }
        }
    }
    Ok("done".to_owned())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lanes = Laneway::in_memory();
    for (tool, result) in [("read", "some text"), ("bash", "3 tests passed"), ("write", "written")] {
        lanes.handler(tool, move |_: Context, _: Value| async move {
            sleep(Duration::from_millis(10)).await;
            Ok(result)
        })?;
    }
    lanes.handler("turn", turn)?;
    let turn = Task::new("main").session("alice").kind("turn").payload("fix the bug");
    println!("alice: {}", lanes.submit(turn).await?.wait().await?);
    Ok(())
}
