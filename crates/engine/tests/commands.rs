//! Programs as handlers, and calls of tools that run directly.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

mod common;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{block, lanes};
use laneway_core::{End, TaskId};
use laneway_engine::{
    Context, Error, Failure, Filter, Handle, Program, RunError, Subscription, Task, ToolCalls, ToolRefusal,
    ToolResult, ToolUse, Update,
};
use serde_json::{Value, json};

fn sh(script: &str) -> Program {
    Program::new(["sh", "-c", script]).unwrap()
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// The next text that a task writes.
async fn delta(updates: &mut Subscription, of: TaskId) -> String {
    loop {
        match updates.next().await.unwrap() {
            Update::Delta { task, text, .. } if task == of => return text.to_string(),
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_program_gets_its_payload_and_task_and_its_output_is_streamed_and_kept() {
    let lanes = lanes();
    let script = "echo \"$LANEWAY_TASK_ID $LANEWAY_FENCE\"; cat";
    lanes.command("show", sh(script)).unwrap();
    let mut updates = lanes.subscribe(Filter::default());
    let task = lanes.submit(Task::new("main").kind("show").payload("hi")).await.unwrap();
    let id = task.id();
    let result = task.wait().await.unwrap();
    assert_eq!(result, json!(format!("{id} 1\n\"hi\"")));
    let mut streamed = delta(&mut updates, id).await;
    while streamed.len() < result.as_str().unwrap().len() {
        streamed.push_str(&delta(&mut updates, id).await);
    }
    assert_eq!(result, streamed);
}

/// Runs three processes that ignore SIGTERM in a lane of one slot. The next task in the lane must find none of them.
async fn next_task_finds_no_process(
    lanes: &Handle,
    timeout: Duration,
    stop: impl AsyncFnOnce(&Handle, TaskId),
    expected: End,
) {
    lanes.configure(vec![block("one", "max_concurrency=1")]).await.unwrap();
    let deaf = "trap '' TERM; sleep 1000 & a=$!; sleep 1000 & echo $$ $a $!; wait";
    lanes.command("deaf", sh(deaf).grace(Duration::from_millis(100))).unwrap();
    lanes
        .handler("look", |_: Context, pids: Vec<String>| async move {
            Ok(pids.iter().filter(|pid| is_alive(pid)).count())
        })
        .unwrap();
    let mut updates = lanes.subscribe(Filter::default());
    let task = Task::new("one").kind("deaf").timeout(timeout);
    let task = lanes.submit(task).await.unwrap();
    let output = delta(&mut updates, task.id()).await;
    let pids: Vec<&str> = output.split_whitespace().collect();
    assert!(pids.len() > 2 && pids.iter().all(|pid| is_alive(pid)), "{output}");
    let next = lanes.submit(Task::new("one").kind("look").payload(&pids)).await.unwrap();
    stop(lanes, task.id()).await;
    assert_eq!(task.ending().await.unwrap().end, expected);
    assert_eq!(next.wait().await.unwrap(), json!(0), "{pids:?}");
}

#[tokio::test]
async fn a_cancelled_program_is_gone_before_its_slot_is_free() {
    let reason = laneway_core::CancelReason::Caller;
    let cancel = async |lanes: &Handle, task| drop(lanes.cancel(task).await.unwrap());
    next_task_finds_no_process(&lanes(), Duration::from_secs(600), cancel, End::Cancelled { reason }).await;
}

#[tokio::test]
async fn a_program_that_times_out_is_gone_before_its_slot_is_free() {
    // The timeout leaves time to start three processes.
    next_task_finds_no_process(&lanes(), Duration::from_secs(3), async |_, _| {}, End::TimedOut).await;
}

#[tokio::test]
async fn a_shutdown_ends_programs() {
    let lanes = lanes();
    // Its grace is longer than the shutdown waits for other handlers.
    let deaf = sh("trap '' TERM; echo $$; sleep 1000").grace(Duration::from_millis(2200));
    lanes.command("deaf", deaf).unwrap();
    let mut updates = lanes.subscribe(Filter::default());
    let task = lanes.submit(Task::new("main").kind("deaf")).await.unwrap();
    let pid = delta(&mut updates, task.id()).await;
    lanes.shutdown(Duration::ZERO).await;
    assert!(!is_alive(pid.trim()));
}

fn uses(calls: &[(&str, Value)]) -> Vec<ToolUse> {
    calls.iter().map(|(tool, argument)| ToolUse::new(*tool, argument.clone())).collect()
}

async fn fine(_: ToolUse) -> Result<(), ToolRefusal> {
    Ok(())
}

/// Tools that take a second, fail or panic, and a record of when each started.
fn with_tools(lanes: &Handle) -> Arc<Mutex<Vec<String>>> {
    let diary: Arc<Mutex<Vec<String>>> = Arc::default();
    let (notes, start) = (Arc::clone(&diary), tokio::time::Instant::now());
    let read = move |context: Context, argument: Value| {
        let at = start.elapsed().as_secs();
        notes.lock().unwrap().push(format!("{at} {argument} {}", context.lanes().len()));
        async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            match argument.as_str() {
                Some("fail") => Err(Failure::new("bad")),
                Some("panic") => panic!("oh"),
                _ => Ok(argument),
            }
        }
    };
    lanes.handler("read", read).unwrap();
    lanes.set_tool_calls(ToolCalls::Direct);
    diary
}

#[tokio::test(start_paused = true)]
async fn direct_calls_run_one_after_another_in_no_lane() {
    let lanes = lanes();
    let diary = with_tools(&lanes);
    let calls =
        uses(&[("read", json!(1)), ("read", json!("fail")), ("read", json!("panic")), ("read", json!(4))]);
    let check = |call: &ToolUse| {
        let may = call.arguments != json!(4);
        async move { if may { Ok(()) } else { Err("no".into()) } }
    };
    let results = lanes.tools("ann").batch(calls, check).await.unwrap();
    let failed = |error: &str| ToolResult::failed(RunError::Ended(End::Failed { error: error.into() }));
    let expected =
        [ToolResult::Done(json!(1)), failed("bad"), failed("panicked: oh"), ToolResult::Refused("no".into())];
    assert_eq!(results, expected);
    assert_eq!(*diary.lock().unwrap(), ["0 1 0", "1 \"fail\" 0", "2 \"panic\" 0"]);
    assert_eq!(lanes.snapshot().await.unwrap(), [], "no lane was named");
    let unknown = uses(&[("read", json!(1)), ("fly", json!(2))]);
    let refused = lanes.tools("ann").batch(unknown, |call| fine(call.clone())).await.unwrap_err();
    assert!(matches!(refused, Error::NoHandler { .. }));
    assert_eq!(diary.lock().unwrap().len(), 3, "nothing of it ran");
}

#[tokio::test(start_paused = true)]
async fn direct_calls_of_a_turn_are_part_of_it() {
    let lanes = lanes();
    let _diary = with_tools(&lanes);
    let seen: Arc<Mutex<Vec<TaskId>>> = Arc::default();
    let noted = Arc::clone(&seen);
    lanes
        .handler("child", move |context: Context, _: Value| {
            noted.lock().unwrap().push(context.task());
            // The turn is the parent of this task.
            async move { Ok(context.run(Task::new("main"), async { 7 }).await?) }
        })
        .unwrap();
    lanes
        .handler("turn", |context: Context, _: Value| async move {
            let calls = uses(&[("child", json!(0)), ("child", json!(0))]);
            let results = context.tools("ann").batch(calls, |call| fine(call.clone())).await?;
            Ok(results.len())
        })
        .unwrap();
    lanes.configure(vec![block("main", "max_concurrency=1")]).await.unwrap();
    let turn = lanes.submit(Task::new("main").kind("turn")).await.unwrap();
    let id = turn.id();
    assert_eq!(turn.wait().await.unwrap(), json!(2), "the child borrows the one slot of its parent");
    assert_eq!(*seen.lock().unwrap(), [id, id]);
    let outside = lanes.tools("ann").batch(uses(&[("child", json!(0))]), |call| fine(call.clone())).await;
    assert_eq!(outside.unwrap(), [ToolResult::Done(json!(7))], "without a task there is no parent");
}
