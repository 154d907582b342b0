//! The transcripts in `fixtures/`. The test sends each request to a real server and compares the answer.
//! `UPDATE=1 cargo test -p laneway-server --test server fixtures` records the answers again.
//!
//! The tests of the SDKs and of the client replay the same files as a server.

use std::path::{Path, PathBuf};

use futures_util::{SinkExt, StreamExt};
use laneway_protocol::Code;
use serde_json::{Map, Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::common::{Answer, Events, Running, answer, serve_in};

/// The headers that clients read.
const HEADERS: [&str; 7] = [
    "content-type",
    "location",
    "retry-after",
    "retry-after-ms",
    "x-should-retry",
    "x-laneway-task-id",
    "www-authenticate",
];
/// Keys whose numbers depend on the speed of the machine.
const MILLIS: [&str; 11] = [
    "wait_ms",
    "run_ms",
    "eta_ms",
    "remaining_ms",
    "timeout_ms",
    "waited_ms",
    "retry_after_ms",
    "p50_ms",
    "p90_ms",
    "p95_ms",
    "p99_ms",
];

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|file| file.extension().is_some_and(|ending| ending == "json")).collect();
    files.sort();
    files
}

fn read(file: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

#[tokio::test]
async fn the_servers_answers_match_the_fixtures() {
    let is_recording = std::env::var_os("UPDATE").is_some();
    for file in files() {
        let mut fixture = read(&file);
        let state = tempfile::tempdir().unwrap();
        let config = fixture["config"].as_str().unwrap();
        let server = serve_in(config, None, Some(state.path().to_owned())).await;
        let mut masks = Masks::default();
        for exchange in fixture["exchanges"].as_array_mut().unwrap() {
            match exchange.get("before").and_then(Value::as_str) {
                None => {}
                Some("a file is where the state directory was") => {
                    std::fs::remove_dir_all(state.path()).unwrap();
                    std::fs::write(state.path(), "").unwrap();
                }
                Some(other) => panic!("there is no setup named {other}"),
            }
            let told = ask(&server, &mut masks, &exchange["request"]).await;
            if is_recording {
                exchange["response"] = told;
            } else {
                let name = format!("{}: {}", file.display(), exchange["name"]);
                assert_eq!(pretty(&told), pretty(&exchange["response"]), "{name}; UPDATE=1 records it again");
            }
        }
        if is_recording {
            std::fs::write(&file, pretty(&fixture) + "\n").unwrap();
        }
    }
}

#[test]
fn every_refusal_that_a_client_can_cause_is_in_the_fixtures() {
    let mut told = Vec::new();
    for file in files() {
        for exchange in read(&file)["exchanges"].as_array().unwrap() {
            let code = &exchange["response"]["body"]["code"];
            if code.is_string() {
                assert_eq!(code, &exchange["name"], "the name of a refusal is its code");
                told.push(code.as_str().unwrap().to_owned());
            }
        }
    }
    let missing: Vec<_> = Code::ALL
        .iter()
        .map(|code| code.as_str())
        .filter(|code| !told.iter().any(|one| one == code))
        .collect();
    // No request causes these: a server that was killed during an attempt (the SDKs' tests kill one), and a bug.
    assert_eq!(missing, ["LOST", "INTERNAL"]);
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

/// Sends a request, and returns the answer in the form of the file.
async fn ask(server: &Running, masks: &mut Masks, request: &Value) -> Value {
    let request: Value = serde_json::from_str(&masks.fill(&request.to_string())).unwrap();
    let (method, path) = (request["method"].as_str().unwrap(), request["path"].as_str().unwrap());
    let none = Map::new();
    let headers = request["headers"].as_object().unwrap_or(&none);
    if let Some(said) = request["frames"].as_array() {
        return talk(server, masks, path, said, request["take"].as_u64().unwrap()).await;
    }
    if let Some(take) = request["take"].as_u64() {
        return watch(server, masks, path, headers, take).await;
    }
    let mut asked = server.request(method, path);
    for (name, value) in headers {
        asked = asked.header(name, value.as_str().unwrap());
    }
    if let Some(body) = request.get("body") {
        asked = asked.header("content-type", "application/json").body(body.to_string());
    }
    let told = answer(asked).await;
    let mut response = json!({ "status": told.status, "headers": heads(masks, &told) });
    if told.header("content-type").starts_with("text/event-stream") {
        response["events"] = told.text.split("\n\n").filter_map(|block| event(masks, block)).collect();
    } else if told.header("content-type").starts_with("text/plain") {
        response["families"] = told.text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    } else if !told.text.is_empty() {
        let mut body = told.json();
        masks.learn(&body);
        masks.mask("", &mut body);
        response["body"] = body;
    }
    response
}

/// Sends frames on a WebSocket, and returns a number of answers.
async fn talk(server: &Running, masks: &mut Masks, path: &str, said: &[Value], take: u64) -> Value {
    let url = format!("ws://{}{path}", server.address);
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.unwrap();
    for frame in said {
        socket.send(Message::text(frame.to_string())).await.unwrap();
    }
    let mut frames = Vec::new();
    while (frames.len() as u64) < take {
        let Message::Text(text) = socket.next().await.unwrap().unwrap() else { continue };
        let mut frame: Value = serde_json::from_str(&text).unwrap();
        masks.mask("", &mut frame["data"]);
        if let Some(id) = frame["id"].as_str() {
            frame["id"] = masks.event(id).into();
        }
        frames.push(frame);
    }
    json!({ "frames": frames })
}

/// The first events of an endless stream.
async fn watch(
    server: &Running,
    masks: &mut Masks,
    path: &str,
    headers: &Map<String, Value>,
    take: u64,
) -> Value {
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (name.as_str(), value.as_str().unwrap())).collect();
    let mut stream = Events::open(server, path, &headers).await;
    assert!(stream.head.starts_with("HTTP/1.1 200"), "{}", stream.head);
    let mut events = Vec::new();
    for _ in 0..take {
        let mut event = stream.next().await.unwrap();
        masks.mask("", &mut event.data);
        let mut told = json!({ "event": event.name, "data": event.data });
        if !event.id.is_empty() {
            told["id"] = masks.event(&event.id).into();
        }
        events.push(told);
    }
    json!({ "status": 200, "headers": { "content-type": "text/event-stream" }, "events": events })
}

/// One event of a stream, or `None` for a keep-alive comment.
fn event(masks: &mut Masks, block: &str) -> Option<Value> {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let mut data = serde_json::from_str(field("data:")?).unwrap();
    masks.mask("", &mut data);
    let mut told = json!({ "event": field("event:")?, "data": data });
    if let Some(id) = field("id:") {
        told["id"] = masks.event(id).into();
    }
    Some(told)
}

fn heads(masks: &mut Masks, told: &Answer) -> Value {
    let mut heads = Map::new();
    for name in HEADERS.into_iter().filter(|name| told.headers.contains_key(*name)) {
        let value = match name {
            "retry-after" => "<seconds>".to_owned(),
            "retry-after-ms" => "<millis>".to_owned(),
            _ => masks.text(told.header(name)),
        };
        heads.insert(name.to_owned(), value.into());
    }
    Value::Object(heads)
}

/// The values that differ in each recording, by their placeholders: `<id:1>` is the first id in an answer.
#[derive(Default)]
struct Masks {
    ids: Vec<String>,
    events: Vec<String>,
    tokens: Vec<String>,
}

impl Masks {
    /// Replaces placeholders in a request with values of earlier answers.
    fn fill(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (index, id) in self.ids.iter().enumerate() {
            text = text.replace(&format!("<id:{}>", index + 1), id);
        }
        for (index, event) in self.events.iter().enumerate() {
            text = text.replace(&format!("<event:{}>", index + 1), event);
        }
        for (index, token) in self.tokens.iter().enumerate() {
            let id = token.split('.').next().unwrap();
            text = text.replace(&format!("<token:{}>", index + 1), token);
            text = text.replace(&format!("<token-id:{}>", index + 1), id);
        }
        assert!(
            !["<id:", "<event:", "<token"].iter().any(|mask| text.contains(mask)),
            "nothing was told yet for {text}"
        );
        text
    }

    /// Remembers a new token, whose secret only this answer holds.
    fn learn(&mut self, body: &Value) {
        if let Some(token) = body["token"].as_str() {
            self.tokens.push(token.to_owned());
        }
    }

    fn mask(&mut self, key: &str, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask("", item)),
            Value::Object(fields) => fields.iter_mut().for_each(|(key, field)| self.mask(key, field)),
            Value::Number(_) if MILLIS.contains(&key) => *value = "<millis>".into(),
            Value::Number(_) if key == "retry_after" => *value = "<seconds>".into(),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (index, token) in self.tokens.iter().enumerate() {
            text = text.replace(token, &format!("<token:{}>", index + 1));
            text = text.replace(token.split('.').next().unwrap(), &format!("<token-id:{}>", index + 1));
        }
        let mut masked = String::new();
        let mut rest = text.as_str();
        while let Some(next) = rest.chars().next() {
            let taken = if let Some(id) =
                rest.get(..36).filter(|id| has_shape(id, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"))
            {
                masked += &self.id(id);
                36
            } else if rest.get(..24).is_some_and(|time| has_shape(time, "dddd-dd-ddTdd:dd:dd.dddZ")) {
                masked += "<time>";
                24
            } else if rest.get(..64).is_some_and(|hash| has_shape(hash, &"x".repeat(64))) {
                masked += "<hash>";
                64
            } else {
                masked.push(next);
                next.len_utf8()
            };
            rest = &rest[taken..];
        }
        masked
    }

    fn event(&mut self, id: &str) -> String {
        let known = self.events.iter().position(|known| known == id);
        let index = known.unwrap_or_else(|| {
            self.events.push(id.to_owned());
            self.events.len() - 1
        });
        format!("<event:{}>", index + 1)
    }

    fn id(&mut self, id: &str) -> String {
        // An id that a request chose itself needs no placeholder.
        if id.starts_with("01900000-") {
            return id.to_owned();
        }
        let known = self.ids.iter().position(|known| known == id);
        let index = known.unwrap_or_else(|| {
            self.ids.push(id.to_owned());
            self.ids.len() - 1
        });
        format!("<id:{}>", index + 1)
    }
}

/// `d` is a digit and `x` a hexadecimal one; anything else is itself.
fn has_shape(text: &str, shape: &str) -> bool {
    text.len() == shape.len()
        && text.chars().zip(shape.chars()).all(|(sign, wanted)| match wanted {
            'd' => sign.is_ascii_digit(),
            'x' => sign.is_ascii_hexdigit(),
            _ => sign == wanted,
        })
}
