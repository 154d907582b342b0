//! Looking at what waits, and watching it.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::other::{Client, Other};
use crate::{Bound, TASK, Table, Threads, median};

const WATCHERS: usize = 10_000;
const WAITING: usize = 100_000;

pub(crate) async fn looks(table: &mut Table) {
    let (many, few) = (Other::start("memory", Threads::Many), Other::start("memory", Threads::Many));
    for (other, count) in [(&many, WAITING), (&few, 100)] {
        let mut clients = Vec::new();
        for _ in 0..10 {
            let address = other.address;
            clients.push(tokio::spawn(async move {
                let mut client = Client::connect(address).await;
                for _ in 0..count / 10 {
                    assert_eq!(client.ask("POST", "/api/tasks", TASK).await.0, 202);
                }
            }));
        }
        for client in clients {
            client.await.unwrap();
        }
    }
    let (mut at_many, mut at_few) = (Client::connect(many.address).await, Client::connect(few.address).await);
    for path in ["/api/status", "/api/lanes", "/api/tasks"] {
        let mut rounds = Vec::new();
        for _ in 0..201 {
            let asked = Instant::now();
            assert_eq!(at_many.ask("GET", path, "").await.0, 200);
            let ours = asked.elapsed().as_secs_f64() * 1e6;
            let asked = Instant::now();
            at_few.ask("GET", path, "").await;
            rounds.push((ours, asked.elapsed().as_secs_f64() * 1e6));
        }
        let (ours, reference) =
            (median(rounds.iter().map(|r| r.0).collect()), median(rounds.iter().map(|r| r.1).collect()));
        let what = format!("GET {path} with 100 000 waiting, us");
        table.row(&what, ours, reference, ours / reference, Bound::AtMost(2.0));
    }
}

/// Every watcher gets every event of its task; how much memory each takes.
pub(crate) async fn watchers(table: &mut Table) {
    let other = Other::start("memory", Threads::Many);
    let mut client = Client::connect(other.address).await;
    let mut ids = Vec::new();
    for _ in 0..WATCHERS {
        let (_, body) = client.ask("POST", "/api/tasks", TASK).await;
        ids.push(body.split('"').nth(3).unwrap().to_owned());
    }
    let before = other.resident_kb();
    let mut streams = Vec::new();
    for id in &ids {
        let mut stream = TcpStream::connect(other.address).await.unwrap();
        let request = format!("GET /api/tasks/{id}/events HTTP/1.1\r\nhost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    // The first events of each: all are connected.
    for stream in &mut streams {
        read_until(stream, "event: queued").await;
    }
    let each = (other.resident_kb().saturating_sub(before)) as f64 / WATCHERS as f64;
    table.row("memory of a watcher, KB", each, 25.0, each / 25.0, Bound::AtMost(1.0));
    // A new connection: the server closes idle ones, and this many rounds take long on a busy machine.
    let mut client = Client::connect(other.address).await;
    let (status, _) = client.ask("POST", "/api/tasks/cancel", "{\"kind\": \"index\"}").await;
    assert_eq!(status, 200);
    let mut complete = 0;
    for stream in &mut streams {
        let text = read_until(stream, "event: done").await;
        complete += usize::from(text.contains("event: cancelled"));
    }
    let share = complete as f64 / WATCHERS as f64;
    table.row("watchers that got every event", complete as f64, WATCHERS as f64, share, Bound::AtLeast(1.0));
}

async fn read_until(stream: &mut TcpStream, word: &str) -> String {
    let mut text = String::new();
    let mut piece = [0; 4096];
    while !text.contains(word) {
        let read = tokio::time::timeout(Duration::from_secs(60), stream.read(&mut piece)).await;
        let read = read.expect("nothing came").unwrap();
        assert!(read > 0, "the stream broke off");
        text.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    text
}
