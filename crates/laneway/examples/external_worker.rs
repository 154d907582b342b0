//! A worker on another thread: it claims, gives signs of life, completes. Nothing of it runs in the queue's own tasks.

use laneway::{Block, ClaimRequest, Error, LaneSettings, Laneway, Pattern, Task};
use serde_json::json;
use tokio::time::Duration;

fn work(lanes: &Laneway) -> Result<u32, Box<dyn std::error::Error + Send + Sync>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(async {
        let mut done = 0;
        loop {
            let request = ClaimRequest::new("worker-1", ["gpu"]).lease(Duration::from_secs(10));
            let claims = match lanes.claim_when_there_is(request).await {
                Err(Error::Closed) => return Ok(done),
                claims => claims?,
            };
            for claim in claims {
                let frame: u64 = serde_json::from_slice(claim.payload.as_deref().unwrap_or_default())?;
                lanes.heartbeat(claim.task, claim.fence).await?;
                let result = serde_json::to_vec(&json!(format!("frame {frame} rendered")))?;
                lanes.complete(claim.task, claim.fence, Some(result.into())).await?;
                done += 1;
            }
        }
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lanes = Laneway::in_memory();
    let mut settings = LaneSettings::default();
    settings.set("handler", "external")?;
    lanes.configure(vec![Block { lanes: Pattern::new("gpu")?, settings: Some(settings) }]).await?;
    let mut tasks = Vec::new();
    for frame in 1..=3 {
        tasks.push(lanes.submit(Task::new("gpu").kind("render").payload(frame)).await?);
    }
    println!("{} tasks wait for a worker", lanes.pending().await?.len());
    let worker = std::thread::spawn({
        let lanes = lanes.clone();
        move || work(&lanes)
    });
    for task in tasks {
        println!("{}", task.wait().await?);
    }
    lanes.shutdown(Duration::from_secs(1)).await;
    let done = worker.join().map_err(|_| "the worker panicked")?.map_err(|error| error.to_string())?;
    println!("the worker did {done} tasks");
    Ok(())
}
