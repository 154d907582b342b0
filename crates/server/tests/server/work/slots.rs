//! Slots with names of their callers' own, and what watchers of a lane see.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::common::{Events, PATIENCE, serve};

const WAITS: &str = "01900000-0000-7000-8000-00000000000a";

#[tokio::test]
async fn a_caller_chooses_the_id_of_a_slot_and_can_cancel_it_while_it_waits() {
    let server = serve("").await;
    let held = json!({"lanes": ["one"], "label": "Refactor", "priority": "background"});
    let held = server.post("/api/slots", held).await.json();
    let mut events = Events::open(&server, "/api/events?lane=one", &[]).await;
    let waiting = async {
        let slot = json!({"lanes": ["one"], "id": WAITS, "label": "Review", "source": "schedule"});
        server.post("/api/slots", slot).await
    };
    let cancelling = async {
        events.next_named("queued").await;
        let view = server.get(&format!("/api/tasks/{WAITS}")).await.json();
        let shown = (&view["status"], &view["label"], &view["source"], &view["priority"]);
        assert_eq!(shown, (&json!("queued"), &json!("Review"), &json!("schedule"), &json!(1)));
        let twice = server.post("/api/slots", json!({"lanes": ["other"], "id": WAITS})).await;
        assert_eq!((twice.status, &twice.json()["task_id"]), (409, &json!(WAITS)), "{twice:?}");
        let list = server.get("/api/tasks?lane=one").await.json();
        let labels: Vec<_> = list["items"].as_array().unwrap().iter().map(|task| &task["label"]).collect();
        assert_eq!(labels, [&json!("Refactor"), &json!("Review")]);
        let cancelled = server.send("DELETE", &format!("/api/tasks/{WAITS}"), json!(null)).await;
        assert_eq!(cancelled.json()["status"], "cancelled_while_queued");
    };
    let (slot, ()) = futures_util::future::join(waiting, cancelling).await;
    assert_eq!((slot.status, &slot.json()["code"]), (409, &json!("CANCELLED")), "{slot:?}");
    let first = server.get(&format!("/api/tasks/{}", held["id"].as_str().unwrap())).await.json();
    assert_eq!((&first["source"], &first["priority"]), (&json!("background"), &json!(0)));
    for (wrong, why) in [
        (json!({"lanes": ["one"], "id": "x"}), "id must be a UUID"),
        (json!({"lanes": ["one"], "label": ""}), "label"),
        (json!({"lanes": ["one"], "source": "robot"}), "source must be one of"),
        (json!({"lanes": ["one"], "priority": "boss"}), "priority must be 0 to 9, or one of"),
    ] {
        let refused = server.post("/api/slots", wrong).await;
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(refused.status == 400 && detail.starts_with(why), "{refused:?}");
    }
}

#[tokio::test]
async fn a_watcher_of_a_lane_first_gets_its_numbers_and_hears_of_a_limit_that_changes() {
    let server = serve("lane \"three\" { max_concurrency = 3 }").await;
    server.post("/api/slots", json!({"lanes": ["three"]})).await;
    let mut events = Events::open(&server, "/api/events?lane=three", &[]).await;
    let first = events.next().await.unwrap();
    let numbers = |event: &crate::common::Event| {
        let of = |key: &str| event.data[key].clone();
        (event.name.clone(), of("lane"), of("running"), of("waiting"), of("max_concurrent"))
    };
    let changed = |lane: &str, running: u32, limit: u32| {
        ("changed".to_owned(), json!(lane), json!(running), json!(0), json!(limit))
    };
    assert_eq!(numbers(&first), changed("three", 1, 3));
    server.post("/api/slots", json!({"lanes": ["three"]})).await;
    assert_eq!(numbers(&events.next_named("changed").await), changed("three", 2, 3));

    // Nothing uses this lane.
    let mut events = Events::open(&server, "/api/events?lane=idle", &[]).await;
    assert_eq!(numbers(&events.next().await.unwrap()), changed("idle", 0, 1));
    server.send("PATCH", "/api/lanes/idle", json!({"max_concurrency": 5})).await;
    assert_eq!(numbers(&events.next_named("changed").await), changed("idle", 0, 5));

    // The stream of everything has the numbers too.
    let mut events = server.events("/api/events").await;
    server.send("PATCH", "/api/lanes/idle", json!({"max_concurrency": 7})).await;
    assert_eq!(events.next_named("configured").await.data["lanes"], json!(["idle"]));
    assert_eq!(numbers(&events.next().await.unwrap()), changed("idle", 0, 7));

    let status = server.get("/api/status?lane=three").await.json();
    assert_eq!((&status["line"], &status["max_concurrent"]), (&json!("Agent: 2/3"), &json!(3)));
    assert_eq!(server.get("/api/status").await.json()["line"], "Agent: 2/∞", "global has no limit");
}

#[tokio::test]
async fn a_subscriber_on_a_socket_first_gets_the_numbers_of_its_lane() {
    let server = serve("lane \"three\" { max_concurrency = 3 }").await;
    server.post("/api/slots", json!({"lanes": ["three"]})).await;
    let url = format!("ws://{}/api/ws?lane=three", server.address);
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
    let subscribe = json!({"event": "subscribe", "data": {"lane": "idle"}}).to_string();
    socket.send(Message::text(subscribe)).await.unwrap();
    for (lane, running, limit) in [("three", 1, 3), ("idle", 0, 1)] {
        let frame = tokio::time::timeout(PATIENCE, socket.next()).await.expect("no frame came").unwrap();
        let frame: Value = serde_json::from_str(frame.unwrap().to_text().unwrap()).unwrap();
        let data = &frame["data"];
        let seen = (&frame["event"], &data["lane"], &data["running"], &data["max_concurrent"]);
        assert_eq!(seen, (&json!("changed"), &json!(lane), &json!(running), &json!(limit)), "{frame}");
    }
}
