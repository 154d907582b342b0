//! The tool calls of one model turn.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

mod common;

use std::sync::{Arc, Mutex};

use common::{lanes, numbers, secs};
use laneway_core::ToolLane;
use laneway_engine::{Context, Error, Failure, Handle, Task, ToolRefusal, ToolResult, ToolUse};
use serde_json::{Value, json};

/// Tools that take a second each, and a record of their calls.
fn with_tools(lanes: &Handle) -> Arc<Mutex<Vec<String>>> {
    let diary: Arc<Mutex<Vec<String>>> = Arc::default();
    for tool in ["read", "bash", "write"] {
        let diary = Arc::clone(&diary);
        let start = tokio::time::Instant::now();
        lanes
            .handler(tool, move |_: Context, argument: Value| {
                let diary = Arc::clone(&diary);
                diary.lock().unwrap().push(format!("{} {tool} {argument}", start.elapsed().as_secs()));
                async move {
                    tokio::time::sleep(secs(1)).await;
                    if argument == json!("bad") { Err(Failure::new("bad")) } else { Ok(argument) }
                }
            })
            .unwrap();
    }
    diary
}

fn uses(calls: &[(&str, &str)]) -> Vec<ToolUse> {
    calls.iter().map(|(tool, argument)| ToolUse::new(*tool, json!(argument))).collect()
}

async fn fine(_: ToolUse) -> Result<(), ToolRefusal> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn reads_run_together_with_bash_and_write_comes_after_bash() {
    let lanes = lanes();
    let diary = with_tools(&lanes);
    let calls = uses(&[("read", "a"), ("read", "b"), ("bash", "bad"), ("read", "c"), ("write", "d")]);
    let results = lanes.tools("ann").batch(calls, |call| fine(call.clone())).await.unwrap();
    let words: Vec<String> = results
        .iter()
        .map(|result| match result {
            ToolResult::Done(value) => value.to_string(),
            ToolResult::Refused(why) => why.to_string(),
            ToolResult::Skipped => "skipped".to_owned(),
            ToolResult::Failed { error, .. } => error.to_string(),
        })
        .collect();
    assert_eq!(words, ["\"a\"", "\"b\"", "failed: bad", "\"c\"", "\"d\""]);
    let mut diary = diary.lock().unwrap().clone();
    diary[..4].sort();
    assert_eq!(diary, ["0 bash \"bad\"", "0 read \"a\"", "0 read \"b\"", "0 read \"c\"", "1 write \"d\""]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_is_never_submitted() {
    let lanes = lanes();
    let diary = with_tools(&lanes);
    let calls = uses(&[("bash", "rm"), ("read", "a")]);
    let check = |call: &ToolUse| {
        let may = call.tool != "bash";
        async move { if may { Ok(()) } else { Err("not allowed".into()) } }
    };
    let results = lanes.tools("ann").batch(calls, check).await.unwrap();
    assert_eq!(results, [ToolResult::Refused("not allowed".into()), ToolResult::Done(json!("a"))]);
    assert_eq!(*diary.lock().unwrap(), ["0 read \"a\""]);
    let nothing = lanes.tools("ann").batch(uses(&[("bash", "x")]), check).await.unwrap();
    assert_eq!(nothing, [ToolResult::Refused("not allowed".into())]);
}

#[tokio::test(start_paused = true)]
async fn the_map_of_tools_can_be_changed_and_an_unknown_tool_is_refused() {
    let lanes = lanes();
    let diary = with_tools(&lanes);
    let tools = lanes.tools("ann").tool("bash", ToolLane::Query);
    assert_eq!(tools.lane_of("write"), ToolLane::Execute);
    let calls = uses(&[("bash", "1"), ("bash", "2")]);
    tools.batch(calls, |call| fine(call.clone())).await.unwrap();
    let mut diary = diary.lock().unwrap().clone();
    diary.sort();
    assert_eq!(diary, ["0 bash \"1\"", "0 bash \"2\""], "as queries they run side by side");
    let refused = tools.batch(uses(&[("fly", "")]), |call| fine(call.clone())).await.unwrap_err();
    assert!(matches!(refused, Error::NoHandler { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_turn_s_calls_are_its_children_and_end_with_it() {
    let lanes = lanes();
    let _diary = with_tools(&lanes);
    lanes
        .handler("turn", |context: Context, _: Value| async move {
            let calls = uses(&[("bash", "1"), ("bash", "2"), ("bash", "3")]);
            context.tools("ann").batch(calls, |call| fine(call.clone())).await?;
            Ok(())
        })
        .unwrap();
    let turn = lanes.submit(Task::new("main").session("ann").kind("turn")).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    assert_eq!(numbers(&lanes, "session:ann/execute").await, (1, 2));
    turn.cancel().await.unwrap();
    assert!(turn.wait().await.is_err());
    tokio::time::sleep(secs(2)).await;
    assert_eq!(numbers(&lanes, "session:ann/execute").await, (0, 0));
}
