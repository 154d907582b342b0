//! What waits does not start in the order in which it came, but people first.

use laneway::{Laneway, Source, Task};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lanes = Laneway::in_memory();
    let held = lanes.slot(["cron"]).await?;
    let asked = [Source::Background, Source::Schedule, Source::User];
    let waiting = asked.map(|source| {
        let lanes = lanes.clone();
        tokio::spawn(async move {
            lanes.run(Task::new("cron").source(source), async { println!("{source:?} runs") }).await
        })
    });
    while lanes.tasks().await?.len() < 4 {
        tokio::task::yield_now().await;
    }
    for view in lanes.tasks().await?.iter().skip(1) {
        let position = lanes.position(view.id).await?.unwrap_or(0);
        println!("{:?} came with priority {} and waits at place {position}", view.source, view.priority);
    }
    drop(held);
    for task in waiting {
        task.await??;
    }
    Ok(())
}
