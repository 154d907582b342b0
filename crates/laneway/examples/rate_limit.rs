//! A provider that allows five calls a second: the burst goes through at once, the rest as the bucket fills.

use laneway::{Block, LaneSettings, Laneway, Pattern, Task};
use tokio::time::Instant;

// On a paused clock, which jumps to whatever is waited for: the example takes no time and always says the same.
#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lanes = Laneway::in_memory();
    let mut settings = LaneSettings::default();
    settings.set("max_concurrency", "10")?;
    settings.set("rate_limit", "5/second")?;
    lanes.configure(vec![Block { lanes: Pattern::new("provider:llm")?, settings: Some(settings) }]).await?;
    let start = Instant::now();
    for number in 1..=7 {
        lanes.run(Task::new("main").lane("provider:llm"), async {}).await?;
        println!("call {number} after {} x 200 ms", (start.elapsed().as_millis() + 20) / 200);
    }
    Ok(())
}
