//! The transcripts in `fixtures/`, from the client's side: each call makes that very request, and means that very
//! answer. The server's own tests make the same requests of a real server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;
use std::path::Path;

use laneway_client::{AskKind, AskOptions, ChartQuery, Client, Error, Events, TasksQuery, Watch};
use laneway_protocol::{EventFrame, EventName};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A fixture with something in the places of what differs from run to run.
fn filled(text: &str) -> Value {
    let mut text = text.replace("\"<millis>\"", "1500").replace("\"<seconds>\"", "2");
    text = text.replace("<time>", "2026-01-02T03:04:05.678Z");
    text = text.replace("<hash>", &"0".repeat(64));
    for number in 1..30 {
        text = text.replace(&format!("<id:{number}>"), &format!("01900000-0000-7000-8000-{number:012}"));
        text = text.replace(&format!("<event:{number}>"), &format!("1-{number}"));
        text = text.replace(&format!("<token:{number}>"), &format!("lw_{number}.secret"));
        text = text.replace(&format!("<token-id:{number}>"), &format!("lw_{number}"));
    }
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn a_call_makes_the_request_and_means_the_answer_of_the_fixture() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let mut replayed = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let fixture = filled(&std::fs::read_to_string(file.unwrap().path()).unwrap());
        for exchange in fixture["exchanges"].as_array().unwrap() {
            if let Some(frames) = exchange["response"]["frames"].as_array() {
                frames.iter().for_each(same_frame);
                continue;
            }
            // Numbers for those who gather numbers: the client has no call for them.
            if exchange["response"].get("families").is_some() {
                continue;
            }
            replay(exchange).await;
            replayed += 1;
        }
    }
    assert!(replayed > 100);
}

/// What is heard on a socket, which the client does not open itself, is what it reads from streams.
fn same_frame(heard: &Value) {
    let frame: EventFrame = serde_json::from_value(heard.clone()).unwrap();
    assert_eq!(&json!(frame), heard);
    let known: EventName = serde_json::from_value(heard["event"].clone()).unwrap();
    assert_eq!(known.as_str(), frame.event);
}

async fn replay(exchange: &Value) {
    let (request, response) = (&exchange["request"], &exchange["response"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let bearer = request["headers"]["authorization"].as_str().map(|text| text.trim_start_matches("Bearer "));
    let client = Client::new(&url, bearer).unwrap();
    let (asked, value) = tokio::join!(answer(&listener, response), call(&client, request));
    same_request(&asked, request);
    match value {
        Ok(value) => {
            let wanted = response.get("events").or(response.get("body")).unwrap_or(&Value::Null);
            assert_eq!(plain(&value), plain(wanted), "{}", exchange["name"]);
        }
        Err(Error::Refused(problem) | Error::Unauthorized(problem)) => {
            assert_eq!(plain(&json!(problem)), plain(&response["body"]), "{}", exchange["name"]);
        }
        Err(error) => panic!("{}: {error}", exchange["name"]),
    }
}

/// Takes one request, gives the answer, and returns what was asked.
async fn answer(listener: &TcpListener, response: &Value) -> Value {
    let (mut stream, _) = listener.accept().await.unwrap();
    let asked = read(&mut stream).await;
    let mut text = String::new();
    for event in response["events"].as_array().into_iter().flatten() {
        let id = event["id"].as_str().map_or(String::new(), |id| format!("id: {id}\n"));
        text += &format!("event: {}\ndata: {}\n{id}\n", event["event"].as_str().unwrap(), event["data"]);
    }
    if let Some(body) = response.get("body") {
        text = body.to_string();
    }
    let mut head = format!("HTTP/1.1 {} Told\r\ncontent-length: {}\r\n", response["status"], text.len());
    for (name, value) in response["headers"].as_object().unwrap() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        head += &format!("{name}: {value}\r\n");
    }
    // A status without a body has no length either.
    let head = if response["status"] == 204 { head.replace("content-length: 0\r\n", "") } else { head };
    stream.write_all(format!("{head}\r\n{text}").as_bytes()).await.unwrap();
    asked
}

async fn read(stream: &mut TcpStream) -> Value {
    let mut text = String::new();
    loop {
        let mut piece = [0; 4096];
        let length = stream.read(&mut piece).await.unwrap();
        assert!(length > 0, "the request broke off");
        text += std::str::from_utf8(&piece[..length]).unwrap();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let mut lines = head.lines();
        let mut first = lines.next().unwrap().split(' ');
        let (method, path) = (first.next().unwrap(), first.next().unwrap());
        let headers: BTreeMap<String, String> = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect();
        let wanted: usize = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
        if body.len() == wanted {
            let body: Value = serde_json::from_str(body).unwrap_or_default();
            return json!({ "method": method, "path": path, "headers": headers, "body": body });
        }
    }
}

fn same_request(asked: &Value, wanted: &Value) {
    assert_eq!(asked["method"], wanted["method"]);
    let place = |request: &Value| request["path"].as_str().unwrap().replace("%3A", ":").replace("%2A", "*");
    let parts = |request: &Value| {
        let mut parts: Vec<String> = place(request).split(['?', '&']).map(str::to_owned).collect();
        parts[1..].sort();
        parts
    };
    assert_eq!(parts(asked), parts(wanted));
    assert_eq!(plain(&asked["body"]), plain(&wanted["body"]), "{wanted}");
    for (name, value) in wanted["headers"].as_object().into_iter().flatten() {
        assert_eq!(&asked["headers"][name], value, "{name} of {wanted}");
    }
}

/// Without what is not there.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let there = fields.iter().filter(|(_, field)| !field.is_null());
            there.map(|(key, field)| (key.clone(), plain(field))).collect()
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        _ => value.clone(),
    }
}

fn body<T: DeserializeOwned>(request: &Value) -> T {
    serde_json::from_value(request["body"].clone()).unwrap()
}

fn told(value: Result<impl Serialize, Error>) -> Result<Value, Error> {
    value.map(|value| serde_json::to_value(value).unwrap())
}

/// Makes the request by the method that is there for it.
async fn call(client: &Client, request: &Value) -> Result<Value, Error> {
    let path = request["path"].as_str().unwrap().replace("%3A", ":").replace("%2A", "*");
    let (path, query) = path.split_once('?').unwrap_or((&path, ""));
    let query: BTreeMap<&str, &str> = query.split('&').filter_map(|pair| pair.split_once('=')).collect();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let key = request["headers"]["idempotency-key"].as_str();
    let after = request["headers"]["last-event-id"].as_str().map(str::to_owned);
    match (request["method"].as_str().unwrap(), &parts[..]) {
        ("GET", ["healthz"]) => told(client.health().await),
        ("GET", ["api", "status"]) => told(client.status().await),
        ("GET", ["api", "audit"]) => told(client.audit(Some(1), None).await),
        ("GET", ["api", "tasks"]) => {
            let of = |name: &str| query.get(name).map(|&value| value.to_owned());
            let query = TasksQuery { lane: of("lane"), status: of("status"), ..TasksQuery::default() };
            told(client.tasks(&query).await)
        }
        ("POST", ["api", "tasks"]) => told(client.submit(&body(request), key).await),
        ("POST", ["api", "tasks", "cancel"]) => told(client.cancel_many(&body(request)).await),
        ("POST", ["api", "tasks", "batch"]) => told(client.batch(&body(request)).await),
        ("GET", ["api", "tasks", id, "events"]) => {
            let events = client.events(Watch::task(*id).after(after)).await?;
            told(all(events).await)
        }
        ("GET", ["api", "events"]) => {
            let watch = query.get("lane").map_or_else(Watch::everything, |lane| Watch::lane(*lane));
            told(all(client.events(watch.after(after)).await?).await)
        }
        ("GET", ["api", "sessions", key, "events"]) => {
            told(all(client.events(Watch::session(*key).after(after)).await?).await)
        }
        ("GET", ["readyz"]) => told(client.readiness().await),
        ("GET", ["api", "config"]) => told(client.config().await),
        ("GET", ["api", "history"]) => {
            let of = |name: &str| query.get(name).map(|&value| value.to_owned());
            let query = ChartQuery { metric: of("metric"), lane: of("lane"), since: of("since") };
            told(client.history(&query).await)
        }
        ("GET", ["api", "tasks", id, "explain"]) => told(client.explain(id).await),
        ("POST", ["api", "tasks", id, "heartbeat"]) => told(client.heartbeat(id, &body(request)).await),
        ("POST", ["api", "tasks", id, "complete"]) => told(client.complete(id, &body(request)).await),
        ("GET", ["api", "tasks", id]) => told(client.task(id).await),
        ("PATCH", ["api", "tasks", id]) => told(client.change_task(id, &body(request)).await),
        ("DELETE", ["api", "tasks", id]) => told(client.cancel(id).await),
        ("GET", ["api", "groups", group]) => told(client.group(group).await),
        ("POST", ["api", "slots"]) => told(client.slot(&body(request)).await),
        ("DELETE", ["api", "slots", id]) => told(client.give_back(id, query["fence"].parse().unwrap()).await),
        ("POST", ["api", "claim"]) => told(client.claim(&body(request)).await),
        ("GET", ["api", "external-tasks"]) => told(client.external_tasks(None, None).await),
        ("GET", ["api", "workers"]) => told(client.workers().await),
        ("GET", ["api", "dead-letters"]) => told(client.dead_letters(None, None).await),
        ("POST", ["api", "dead-letters", id, "redrive"]) => told(client.redrive(id).await),
        ("DELETE", ["api", "dead-letters"]) => {
            let which = serde_json::from_value(json!(query)).unwrap();
            told(client.discard_many(&which).await)
        }
        (_, ["api", "agents", rest @ ..]) => call_agent(client, rest, request).await,
        (method, ["api", "lanes", rest @ ..]) => call_lane(client, method, rest, request).await,
        (method, ["api", "sessions", rest @ ..]) => call_session(client, method, rest, request).await,
        (method, ["api", "schedules", rest @ ..]) => call_schedule(client, method, rest, request).await,
        ("GET", ["api", "tokens"]) => told(client.tokens().await),
        ("POST", ["api", "tokens"]) => told(client.create_token(&body(request)).await),
        ("DELETE", ["api", "tokens"]) => told(client.remove_token(query["id"]).await),
        _ => panic!("no method for {request}"),
    }
}

async fn all(mut events: Events) -> Result<Vec<Value>, Error> {
    let mut found = Vec::new();
    while let Some(event) = events.next().await? {
        found.push(serde_json::to_value(event).unwrap());
    }
    Ok(found)
}

async fn call_agent(client: &Client, rest: &[&str], request: &Value) -> Result<Value, Error> {
    let header = |name: &str| request["headers"][name].as_str().map(str::to_owned);
    let options = AskOptions {
        key: header("idempotency-key"),
        source_agent: header("x-source-agent"),
        parent: header("x-laneway-parent"),
        ..AskOptions::default()
    };
    match *rest {
        [] => told(client.agents().await),
        [agent] => told(client.agent(agent).await),
        [agent, "queue"] => told(client.queue(agent).await),
        [agent, "queue", "clear"] => told(client.clear_queue(agent).await),
        [agent, "queue", "release"] => told(client.release_queue(agent).await),
        [agent, form] => {
            let form = if form == "task" { AskKind::Task } else { AskKind::Chat };
            let asked = body(request);
            if header("accept").is_some() {
                let events = client.chat_events(agent, form, &asked, &options).await?;
                told(all(events).await)
            } else if header("prefer").is_some() {
                told(client.chat_later(agent, form, &asked, &options).await)
            } else {
                told(client.chat(agent, form, &asked, &options).await)
            }
        }
        _ => panic!("no method for {request}"),
    }
}

async fn call_lane(client: &Client, method: &str, rest: &[&str], request: &Value) -> Result<Value, Error> {
    match (method, rest) {
        ("GET", []) => told(client.lanes(None, None).await),
        ("GET", [lane]) => told(client.lane(lane).await),
        ("PATCH", [lane]) => told(client.change_lane(lane, &request["body"]).await),
        ("POST", [lane, "pause"]) => told(client.pause(lane).await),
        ("POST", [lane, "resume"]) => told(client.resume(lane).await),
        ("POST", [lane, "drain"]) => told(client.drain(lane).await),
        ("POST", [lane, "clear"]) => told(client.clear_lane(lane).await),
        _ => panic!("no method for {request}"),
    }
}

async fn call_session(client: &Client, method: &str, rest: &[&str], request: &Value) -> Result<Value, Error> {
    match (method, rest) {
        ("GET", []) => told(client.sessions(None, None).await),
        ("GET", [key]) => told(client.session(key).await),
        ("GET", [key, "stats"]) => told(client.session_stats(key).await),
        ("PATCH", [key]) => told(client.change_session(key, &body(request)).await),
        ("POST", [key, "messages"]) => told(client.send_message(key, &body(request)).await),
        ("POST", [key, "clear"]) => told(client.clear_session(key).await),
        ("GET", [key, "messages", id]) => told(client.receipt(key, id).await),
        ("DELETE", [key, "messages", id]) => told(client.withdraw_message(key, id).await),
        ("POST", [key, "messages", id, "move"]) => {
            told(client.move_message(key, id, request["body"]["before"].as_str()).await)
        }
        ("POST", [key, "messages", id, "send-now"]) => told(client.send_now(key, id).await),
        ("POST", [key, "interrupt"]) => told(client.interrupt(key).await),
        ("POST", [key, "steer"]) => told(client.steer(key, request["body"]["text"].as_str().unwrap()).await),
        _ => panic!("no method for {request}"),
    }
}

async fn call_schedule(
    client: &Client,
    method: &str,
    rest: &[&str],
    request: &Value,
) -> Result<Value, Error> {
    match (method, rest) {
        ("GET", []) => told(client.schedules().await),
        ("POST", []) => told(client.create_schedule(&body(request)).await),
        ("PATCH", [name]) => told(client.change_schedule(name, &body(request)).await),
        ("DELETE", [name]) => told(client.remove_schedule(name).await),
        ("POST", [name, "run"]) => told(client.run_schedule(name).await),
        ("GET", [name, "runs"]) => told(client.schedule_runs(name).await),
        _ => panic!("no method for {request}"),
    }
}
