//! Work that survives `kill -9`: a child process accepts five tasks and is killed in the middle of the second; the
//! parent opens the same directory and finishes them.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use laneway::{Context, Failure, Laneway, Retry, Task};
use serde_json::Value;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    match std::env::args().nth(1) {
        Some(dir) => child(Path::new(&dir)).await,
        None => parent().await,
    }
}

async fn child(dir: &Path) -> Outcome<()> {
    let lanes = Laneway::open(dir).handler("letter", write_or_hang).await?;
    for number in 1..=5 {
        // One at a time, and again after a crash.
        let task = Task::new("cron").kind("letter").payload(number).retry(Retry::STANDARD);
        lanes.submit(task).await?.detach();
    }
    println!("accepted");
    std::future::pending().await
}

async fn write_or_hang(_: Context, number: Value) -> Result<(), Failure> {
    println!("letter {number}");
    if number == 2 {
        std::future::pending::<()>().await;
    }
    Ok(())
}

async fn parent() -> Outcome<()> {
    let place = std::env::temp_dir().join(format!("laneway-example-{}", std::process::id()));
    let mut child = Command::new(std::env::current_exe()?).arg(&place).stdout(Stdio::piped()).spawn()?;
    let mut told = BufReader::new(child.stdout.take().ok_or("the child has no pipe")?).lines();
    let mut heard = Vec::new();
    while !(heard.contains(&"accepted".to_owned()) && heard.contains(&"letter 2".to_owned())) {
        heard.push(told.next().ok_or("the child ended")??);
    }
    child.kill()?;
    child.wait()?;
    heard.retain(|line| line != "accepted");
    println!("killed after {}", heard.join(", "));

    let (tell, mut written) = tokio::sync::mpsc::unbounded_channel();
    let lanes = Laneway::open(&place)
        .handler("letter", move |context: Context, number: Value| {
            let told = tell.send((number, context.attempt()));
            async move { told.map_err(Failure::new) }
        })
        .await?;
    let mut letters = Vec::new();
    for _ in 2..=5 {
        letters.push(written.recv().await.ok_or("nothing more comes")?);
    }
    // The second one came back after a short back-off, and meanwhile the others were not held up.
    letters.sort_by_key(|(number, _)| number.as_u64());
    for (number, attempt) in letters {
        println!("letter {number}, attempt {attempt}");
    }
    lanes.shutdown(std::time::Duration::from_secs(5)).await;
    std::fs::remove_dir_all(place)?;
    Ok(())
}
