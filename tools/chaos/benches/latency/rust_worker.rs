//! The worker in Rust.

use laneway_client::{Attempt, AttemptFailure, Client, Worker};
use tokio::net::UdpSocket;

pub(crate) async fn run(url: String, port: u16) {
    let turn = move |attempt: Attempt| async move {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let say = async |text: String| {
            socket.send_to(text.as_bytes(), ("127.0.0.1", port)).await.unwrap();
        };
        let text = attempt.task().payload["text"].as_str().unwrap_or_default().to_owned();
        say(format!("begins {text}")).await;
        loop {
            tokio::select! {
                _ = attempt.stopped() => break,
                message = attempt.next_steering() => say(format!("takes {}", message.text)).await,
            }
        }
        say(format!("stops {text}")).await;
        Err::<serde_json::Value, _>(AttemptFailure::fatal("stopped"))
    };
    let worker = Worker::new(Client::new(&url, None).unwrap(), "bench").lanes(["agent:rust"]);
    worker.handler("agent:rust", turn).run(std::future::pending()).await.unwrap();
}
