//! Messages to sessions: turns of handlers and workers, steering, and the ends of messages.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{block, lanes, secs};
use laneway_core::{
    CancelReason, Dropped, MessageEnd, MessageId, MessageStatus, Mode, Otherwise, QueueOverrides, Rejection,
    SendOutcome, SessionDelta,
};
use laneway_engine::{
    ClaimRequest, Context, Error, Failure, Handle, HeartbeatReport, NewMessage, ToolResult, ToolUse,
    TurnPayload, Update,
};
use serde_json::{Value, json};
use tokio::sync::{Mutex, Notify, mpsc};

fn say(text: &str) -> NewMessage {
    NewMessage::new("alice", "bot", text).debounce(Duration::from_millis(100))
}

/// An agent that reports each turn to the test, and answers when the test allows it.
fn agent(lanes: &Handle) -> (mpsc::UnboundedReceiver<TurnPayload>, Arc<Notify>) {
    let (told, turns) = mpsc::unbounded_channel();
    let go = Arc::new(Notify::new());
    let answer = Arc::clone(&go);
    lanes
        .handler("bot", move |_: Context, turn: TurnPayload| {
            let (told, go) = (told.clone(), Arc::clone(&answer));
            async move {
                let text = turn.text.clone();
                told.send(turn).map_err(Failure::fatal)?;
                go.notified().await;
                Ok(text)
            }
        })
        .unwrap();
    (turns, go)
}

#[tokio::test(start_paused = true)]
async fn waiting_messages_become_one_turn() {
    let lanes = lanes();
    let (mut turns, go) = agent(&lanes);
    let first = lanes.send_message(say("hello")).await.unwrap();
    assert_eq!(first.outcome, SendOutcome::Started);
    assert_eq!(turns.recv().await.unwrap().text, "hello");
    let one = lanes.send_message(say("one").channel("discord").sender_name("Ann")).await.unwrap();
    let two = lanes.send_message(say("two").channel("discord")).await.unwrap();
    assert_eq!((two.outcome, two.position), (SendOutcome::Queued, Some(2)));
    go.notify_one();
    let turn = turns.recv().await.unwrap();
    let expected =
        "[Queued messages while agent was busy]\n\n---\nQueued #1 (from Ann)\none\n\n---\nQueued #2\ntwo";
    assert_eq!((turn.text.as_str(), turn.channel.as_deref()), (expected, Some("discord")));
    assert_eq!(turn.messages.len(), 2);
    go.notify_one();
    let end = lanes.message_ended(one.message).await.unwrap();
    let MessageEnd::Delivered { turn } = end else { panic!("{end:?}") };
    assert_eq!(lanes.message_ended(two.message).await.unwrap(), MessageEnd::Delivered { turn });
    assert_eq!(lanes.wait_for(turn).await.unwrap().into_result().unwrap(), json!(expected));
}

#[tokio::test(start_paused = true)]
async fn a_running_turn_takes_steering_at_a_tool_boundary() {
    let lanes = lanes();
    lanes.configure(vec![block("session:*/execute", "max_concurrency=1")]).await.unwrap();
    let results = Arc::new(Mutex::new(Vec::new()));
    let bash_runs = Arc::new(Notify::new());
    let (kept, runs) = (Arc::clone(&results), Arc::clone(&bash_runs));
    lanes
        .handler("bash", move |_: Context, _: Value| {
            let runs = Arc::clone(&runs);
            async move {
                runs.notify_one();
                tokio::time::sleep(secs(1)).await;
                Ok("ran")
            }
        })
        .unwrap();
    lanes
        .handler("bot", move |context: Context, _: TurnPayload| {
            let kept = Arc::clone(&kept);
            async move {
                context.set_steering(true).await.map_err(Failure::fatal)?;
                let calls = vec![ToolUse::new("bash", json!(1)), ToolUse::new("bash", json!(2))];
                let done = context.tools("alice").batch(calls, |_| std::future::ready(Ok(()))).await;
                *kept.lock().await = done.map_err(Failure::fatal)?;
                let taken = context.next_steering().await.map_err(Failure::fatal)?;
                Ok(taken.into_iter().map(|message| message.text).collect::<Vec<_>>())
            }
        })
        .unwrap();
    let first = lanes.send_message(say("go on")).await.unwrap();
    bash_runs.notified().await;
    let steer = lanes.send_message(say("stop that").mode(Mode::Steer)).await.unwrap();
    assert_eq!((steer.outcome, steer.turn), (SendOutcome::Steered, first.turn));
    let result = lanes.wait_for(first.turn.unwrap()).await.unwrap().into_result().unwrap();
    assert_eq!(result, json!(["stop that"]));
    assert_eq!(*results.lock().await, vec![ToolResult::Done(json!("ran")), ToolResult::Skipped]);
    let end = lanes.message_ended(steer.message).await.unwrap();
    assert_eq!(end, MessageEnd::Steered { turn: first.turn.unwrap() });
    let late = lanes.send_message(say("late").steer(first.turn.unwrap(), Otherwise::Reject)).await;
    assert_eq!(late, Err(Error::Rejected(Rejection::TurnOver { turn: first.turn.unwrap() })));
}

fn takes_steering(open: bool, taken: Option<Vec<MessageId>>) -> HeartbeatReport {
    HeartbeatReport { takes_steering: Some(open), taken, ..HeartbeatReport::default() }
}

#[tokio::test(start_paused = true)]
async fn a_worker_gets_steering_with_its_heartbeat() {
    let lanes = lanes();
    lanes.configure(vec![block("agent:bot", "handler=external")]).await.unwrap();
    lanes.send_message(say("hello")).await.unwrap();
    let claims = lanes.claim(ClaimRequest::new("w", ["agent:*"])).await.unwrap();
    let turn: TurnPayload = serde_json::from_slice(claims[0].payload.as_ref().unwrap()).unwrap();
    assert_eq!((turn.session.as_str(), turn.text.as_str()), ("alice", "hello"));
    let (task, fence) = (claims[0].task, claims[0].fence);
    assert_eq!(lanes.heartbeat_with(task, fence, takes_steering(true, None)).await.unwrap().steer, vec![]);
    let sent = lanes.send_message(say("left").mode(Mode::Steer)).await.unwrap();
    assert_eq!(lanes.message(sent.message).await.unwrap(), Some(MessageStatus::Steering { turn: task }));
    let beat = lanes.heartbeat_with(task, fence, takes_steering(false, None)).await.unwrap();
    assert_eq!(beat.steer[0].text, "left");
    let next = lanes.send_message(say("right").mode(Mode::Steer)).await.unwrap();
    assert_eq!(next.outcome, SendOutcome::Queued);
    lanes.complete(task, fence, None).await.unwrap();
    assert_eq!(lanes.message_ended(sent.message).await.unwrap(), MessageEnd::Steered { turn: task });
}

#[tokio::test(start_paused = true)]
async fn steering_that_a_worker_does_not_confirm_stays_offered_and_waits_again_after_the_turn() {
    let lanes = lanes();
    lanes.configure(vec![block("agent:bot", "handler=external")]).await.unwrap();
    lanes.send_message(say("hello")).await.unwrap();
    let claims = lanes.claim(ClaimRequest::new("w", ["agent:*"])).await.unwrap();
    let (task, fence) = (claims[0].task, claims[0].fence);
    let beat = |taken: Vec<MessageId>| {
        let lanes = lanes.clone();
        async move {
            let heard = lanes.heartbeat_with(task, fence, takes_steering(true, Some(taken))).await.unwrap();
            heard.steer.into_iter().map(|message| message.text).collect::<Vec<_>>()
        }
    };
    assert_eq!(beat(vec![]).await, Vec::<String>::new());
    let left = lanes.send_message(say("left").mode(Mode::Steer)).await.unwrap().message;
    let right = lanes.send_message(say("right").mode(Mode::Steer)).await.unwrap().message;
    // The answer with the offer may be lost, so the next answer repeats it.
    assert_eq!(beat(vec![]).await, ["left", "right"]);
    assert_eq!(beat(vec![]).await, ["left", "right"]);
    assert_eq!(lanes.message(left).await.unwrap(), Some(MessageStatus::Steering { turn: task }));
    assert_eq!(beat(vec![left]).await, ["right"]);
    // The worker confirms again, because the answer to the first confirmation may be lost.
    assert_eq!(beat(vec![left]).await, ["right"]);
    lanes.complete(task, fence, None).await.unwrap();
    assert_eq!(lanes.message_ended(left).await.unwrap(), MessageEnd::Steered { turn: task });
    let next = lanes.claim_when_there_is(ClaimRequest::new("w", ["agent:*"])).await.unwrap();
    assert_eq!(lanes.message(right).await.unwrap(), Some(MessageStatus::InTurn { turn: next[0].task }));
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_stops_the_turn_and_runs_the_newest_message() {
    let lanes = lanes();
    let (mut turns, go) = agent(&lanes);
    let first = lanes.send_message(say("first")).await.unwrap();
    turns.recv().await.unwrap();
    let waiting = lanes.send_message(say("second")).await.unwrap();
    let now = lanes.send_message(say("now").mode(Mode::Interrupt)).await.unwrap();
    assert_eq!(now.outcome, SendOutcome::Interrupted);
    assert_eq!(turns.recv().await.unwrap().text, "now");
    go.notify_one();
    let interrupted = MessageEnd::Cancelled { reason: CancelReason::Interrupted };
    assert_eq!(lanes.message_ended(first.message).await.unwrap(), interrupted);
    assert_eq!(lanes.message_ended(waiting.message).await.unwrap(), interrupted);
}

#[tokio::test(start_paused = true)]
async fn waiting_messages_can_be_withdrawn_moved_and_watched() {
    let lanes = lanes();
    let (mut turns, go) = agent(&lanes);
    let mut updates = lanes.session_events("alice").unwrap();
    lanes.send_message(say("first")).await.unwrap();
    turns.recv().await.unwrap();
    let queue = QueueOverrides { mode: Some(Mode::Followup), ..QueueOverrides::default() };
    lanes.configure_session("alice", queue).await.unwrap();
    let mut sent = vec![];
    for text in ["a", "b", "c"] {
        sent.push(lanes.send_message(say(text)).await.unwrap().message);
    }
    lanes.withdraw(sent[0]).await.unwrap();
    lanes.move_message(sent[2], Some(sent[1])).await.unwrap();
    let view = lanes.session("alice").await.unwrap().unwrap();
    assert_eq!(view.waiting.iter().map(|message| &*message.text).collect::<Vec<_>>(), ["c", "b"]);
    assert!(view.busy && view.typing);
    let beat = lanes.send_message(say("beat").heartbeat()).await.unwrap();
    assert_eq!(beat.outcome, SendOutcome::Dropped(Dropped::Heartbeat));
    go.notify_one();
    assert_eq!(turns.recv().await.unwrap().text, "c");
    assert_eq!(lanes.clear_session("alice").await.unwrap(), 1);
    go.notify_one();
    lanes.message_ended(sent[2]).await.unwrap();
    let mut ends = 0;
    while let Some(update) = updates.try_next() {
        if let Update::Event { event, .. } = update
            && let laneway_core::Event::Session(event) = &*event
            && matches!(event.change, SessionDelta::Ended { .. })
        {
            ends += 1;
        }
    }
    assert_eq!(ends, 5, "first, a, beat, b and c");
}

#[tokio::test(start_paused = true)]
async fn a_directive_gets_a_reply_and_an_agent_without_a_handler_is_refused() {
    let lanes = lanes();
    let refused = lanes.send_message(say("hello")).await;
    assert!(matches!(refused, Err(Error::NoHandler { .. })), "{refused:?}");
    let _agent = agent(&lanes);
    let reply = lanes.send_message(say("/queue steer cap:3").may_configure()).await.unwrap();
    assert_eq!(reply.reply.as_deref(), Some("Queue set for this session: mode steer, cap 3."));
    let queue = lanes.queue_for("alice", None).await.unwrap();
    assert_eq!((queue.mode.value, queue.mode.origin.as_str()), (Mode::Steer, "session"));
}
