//! A real server on a real socket, and an agent behind HTTP whose turns end when the test allows it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use futures_util::StreamExt;
use laneway_config::{Profile, parse};
use laneway_server::{Parts, Server, with_echo};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;

/// How long a test waits. Only a failure reaches it.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A server of one test.
pub struct Running {
    pub address: SocketAddr,
    pub reloader: laneway_server::Reloader,
    stop: Option<oneshot::Sender<()>>,
    served: Option<JoinHandle<()>>,
    client: reqwest::Client,
    pub token: Option<String>,
}

/// A complete answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text)
            .unwrap_or_else(|_| panic!("no JSON: {} {:?}", self.status, self.text))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// Opens a server with a configuration and no store.
pub async fn serve(config: &str) -> Running {
    serve_in(config, None, None).await
}

/// Waits until a condition holds.
pub async fn until<F: Future<Output = bool>>(what: &str, is_so: impl Fn() -> F) {
    let waiting = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
}

pub async fn serve_in(
    config: &str,
    store: Option<Arc<dyn laneway_store::Store>>,
    state_dir: Option<std::path::PathBuf>,
) -> Running {
    let nothing: [(&str, &str); 0] = [];
    let mut parsed = parse("test.hcl", config, Profile::SERVER, nothing).unwrap_or_else(|e| panic!("{e}"));
    with_echo(&mut parsed);
    let config_file = state_dir.as_ref().map(|dir| dir.join("laneway.hcl")).filter(|file| file.exists());
    let server =
        Server::open(Parts { config: parsed, config_file, overrides: Vec::new(), store, state_dir }).await;
    let server = server.unwrap_or_else(|error| panic!("{error}"));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let reloader = server.reloader();
    let served = tokio::spawn(async move {
        let stopped = async { drop(stopped.await) };
        server.serve(listener, stopped).await.unwrap();
    });
    let client = reqwest::Client::builder().pool_max_idle_per_host(0).build().unwrap();
    Running { address, reloader, stop: Some(stop), served: Some(served), client, token: None }
}

impl Running {
    /// The same server as clients see it through a proxy.
    pub fn behind(&self, port: u16) -> Running {
        let (reloader, token, client) = (self.reloader.clone(), self.token.clone(), self.client.clone());
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        Running { address, reloader, stop: None, served: None, client, token }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let request = self.client.request(method, self.url(path)).timeout(PATIENCE);
        match &self.token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    pub async fn get(&self, path: &str) -> Answer {
        answer(self.request("GET", path)).await
    }

    pub async fn send(&self, method: &str, path: &str, body: Value) -> Answer {
        self.send_with(method, path, body, &[]).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, body).await
    }

    pub async fn send_with(&self, method: &str, path: &str, body: Value, headers: &[(&str, &str)]) -> Answer {
        let request = self.request(method, path).header("content-type", "application/json");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        answer(request.body(body.to_string())).await
    }

    /// The numbers of running and waiting tasks.
    pub async fn numbers(&self) -> (u64, u64) {
        let status = self.get("/api/status").await.json();
        (status["running"].as_u64().unwrap(), status["waiting"].as_u64().unwrap())
    }

    /// Waits until these numbers of tasks run and wait.
    pub async fn until_numbers(&self, numbers: (u64, u64)) {
        let mut events = Events::open(self, "/api/events?lane=global", &[]).await;
        while self.numbers().await != numbers {
            // Every change of the lane sends an event, so wait for one.
            tokio::time::timeout(PATIENCE, events.next_named("changed"))
                .await
                .unwrap_or_else(|_| panic!("it never became {numbers:?}"));
        }
    }

    /// Opens an event stream.
    pub async fn events(&self, path: &str) -> Events {
        Events::open(self, path, &[]).await
    }

    /// Stops the server, as SIGTERM does.
    pub fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    pub async fn stopped(&mut self) {
        tokio::time::timeout(PATIENCE, self.served.take().unwrap()).await.unwrap().unwrap();
    }
}

pub async fn answer(request: reqwest::RequestBuilder) -> Answer {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Answer { status, headers, text: response.text().await.unwrap() }
}

/// Events over SSE, on a socket that the test can close.
pub struct Events {
    stream: TcpStream,
    pub head: String,
    buffer: String,
    ready: VecDeque<Event>,
}

#[derive(Clone, Debug)]
pub struct Event {
    pub name: String,
    pub id: String,
    pub data: Value,
}

impl Events {
    pub async fn open(server: &Running, path: &str, headers: &[(&str, &str)]) -> Events {
        let mut request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n", server.address);
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        Events::start(server, request + "\r\n").await
    }

    /// Starts a chat, and reads its events.
    pub async fn chat(server: &Running, path: &str, body: Value, headers: &[(&str, &str)]) -> Events {
        let body = body.to_string();
        let mut request = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\naccept: text/event-stream\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
            server.address,
            body.len()
        );
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        Events::start(server, request + "\r\n" + &body).await
    }

    async fn start(server: &Running, request: String) -> Events {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut events =
            Events { stream, head: String::new(), buffer: String::new(), ready: VecDeque::new() };
        while !events.buffer.contains("\r\n\r\n") {
            assert!(events.read().await, "the answer broke off: {:?}", events.buffer);
        }
        let (head, rest) = events.buffer.split_once("\r\n\r\n").unwrap();
        let (head, rest) = (head.to_owned(), rest.to_owned());
        (events.head, events.buffer) = (head, rest);
        events
    }

    async fn read(&mut self) -> bool {
        let mut bytes = [0; 16 * 1024];
        let read = tokio::time::timeout(PATIENCE, self.stream.read(&mut bytes)).await.expect("nothing came");
        let read = read.unwrap_or(0);
        self.buffer.push_str(&String::from_utf8_lossy(&bytes[..read]));
        read > 0
    }

    /// The next event, or `None` at the end of the stream.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            self.parse();
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.buffer.ends_with("\r\n0\r\n\r\n") || !self.read().await {
                self.parse();
                return self.ready.pop_front();
            }
        }
    }

    /// Parses whole events out of the received text, and ignores lines with chunk sizes.
    fn parse(&mut self) {
        while let Some(end) = self.buffer.find("\n\n") {
            let block: String = self.buffer.drain(..end + 2).collect();
            let field = |name: &str| {
                block.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
            };
            if let Some(name) = field("event:") {
                let data = field("data:").unwrap_or_default();
                let data = serde_json::from_str(&data).unwrap_or(Value::String(data));
                self.ready.push_back(Event { name, id: field("id:").unwrap_or_default(), data });
            }
        }
    }

    pub async fn next_named(&mut self, name: &str) -> Event {
        loop {
            let event = self.next().await.unwrap_or_else(|| panic!("no {name} came before the end"));
            if event.name == name {
                return event;
            }
        }
    }

    pub async fn rest(mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            let is_last = event.name == "done";
            events.push(event);
            if is_last {
                break;
            }
        }
        events
    }
}

/// An agent behind HTTP. Each turn ends when the test allows it.
pub struct Gate {
    pub url: String,
    pub state: Arc<GateState>,
}

pub struct GateState {
    doors: Semaphore,
    arrived: Mutex<mpsc::UnboundedSender<Value>>,
    heard: tokio::sync::Mutex<mpsc::UnboundedReceiver<Value>>,
}

impl Gate {
    pub async fn open() -> Gate {
        let (arrived, heard) = mpsc::unbounded_channel();
        let state = Arc::new(GateState {
            doors: Semaphore::new(0),
            arrived: Mutex::new(arrived),
            heard: tokio::sync::Mutex::new(heard),
        });
        let router = axum::Router::new().route("/run", post(run)).route("/stream", post(stream));
        let router = router.with_state(Arc::clone(&state));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/run", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Gate { url, state }
    }

    /// Waits for a turn to start, and returns its request.
    pub async fn arrival(&self) -> Value {
        let mut heard = self.state.heard.lock().await;
        tokio::time::timeout(PATIENCE, heard.recv()).await.expect("no run began").unwrap()
    }

    /// Lets a number of turns end.
    pub fn let_go(&self, runs: usize) {
        self.state.doors.add_permits(runs);
    }
}

async fn run(State(state): State<Arc<GateState>>, headers: HeaderMap, body: String) -> String {
    let mut asked: Value = serde_json::from_str(&body).unwrap();
    asked["traceparent"] = headers.get("traceparent").map_or(Value::Null, |t| t.to_str().unwrap().into());
    let message = asked["message"].as_str().unwrap_or_default().to_owned();
    state.arrived.lock().unwrap().send(asked).unwrap();
    state.doors.acquire().await.unwrap().forget();
    format!("answer to {message}")
}

/// Streams some text and never ends.
async fn stream() -> axum::body::Body {
    let begun = futures_util::stream::once(async { Ok::<_, std::io::Error>("begun") });
    axum::body::Body::from_stream(begun.chain(futures_util::stream::pending()))
}
