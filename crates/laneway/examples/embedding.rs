//! Lanes in three lines: two turns of one conversation never run at once, two conversations do.

use laneway::{Laneway, Task};
use tokio::time::{Duration, Instant, sleep};

async fn call_model(prompt: &str) -> String {
    sleep(Duration::from_millis(100)).await;
    format!("an answer to {prompt:?}")
}

// On a paused clock, which jumps to whatever is waited for: the example takes no time and always says the same.
#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lanes = Laneway::in_memory();
    let answer = lanes.run(Task::new("main").session("alice"), call_model("hello")).await?;
    println!("alice gets {answer}");

    let turn = |session, prompt| lanes.run(Task::new("main").session(session), call_model(prompt));
    let start = Instant::now();
    let (one, two) = tokio::join!(turn("alice", "one"), turn("bob", "two"));
    println!("side by side: {}, {}; {} turns long", one?, two?, start.elapsed().as_millis() / 100);
    let start = Instant::now();
    let (one, two) = tokio::join!(turn("alice", "one"), turn("alice", "two"));
    println!("one by one: {}, {}; {} turns long", one?, two?, start.elapsed().as_millis() / 100);

    // A slot is a value that gives itself back.
    let slot = lanes.slot(["cron"]).await?;
    let refused = lanes.try_slot(["cron"]).await.err();
    println!("while it is held: {}", refused.map(|why| why.to_string()).unwrap_or_default());
    drop(slot);
    println!("afterwards: {}", if lanes.try_slot(["cron"]).await.is_ok() { "free" } else { "taken" });
    Ok(())
}
