//! Workers that the test kills and pauses at random.

use std::collections::BTreeMap;
use std::time::Duration;

use laneway_client::protocol::{ClaimBody, CompleteBody};
use laneway_client::{Client, Events, TasksQuery, Watch};
use laneway_seeded::Random;
use serde_json::{Value, json};

use crate::common::{PATIENCE, Process, Served, serve, task, worker};

const TASKS: usize = 1000;
/// How many completions lie between two accidents.
const BETWEEN: usize = 60;
const SERVER: &str = r#"
    lane "global"   { max_concurrency = 64 }
    lane "external" {
      handler = "external"
      max_queued = 2000
      max_redelivery = 1000
    }
"#;

fn file(log: &std::path::Path) -> String {
    format!(
        r#"
        concurrency = 6
        lease       = "1s"
        handler "count" {{
          command = ["sh", "-c", "echo \"$1\" >> \"$2\"; cat", "--", "{{{{payload.n}}}}", "{}"]
        }}
        "#,
        log.display()
    )
}

/// Waits until `enough` tasks are done. Checks after 20 events, or after 200 ms.
async fn done(client: &Client, events: &mut Events, enough: usize) {
    let waited = async {
        while (client.group("all").await.unwrap().done as usize) < enough {
            let some = async {
                for _ in 0..20 {
                    events.next().await.unwrap().expect("the stream lasts");
                }
            };
            drop(tokio::time::timeout(Duration::from_millis(200), some).await);
        }
    };
    tokio::time::timeout(PATIENCE * 2, waited).await.expect("tasks complete");
}

/// How often the server accepted the completion of each task, by the workers' logs.
fn completions(lines: &[String]) -> BTreeMap<String, u32> {
    let mut times = BTreeMap::new();
    for line in lines {
        let record: Value = serde_json::from_str(line).unwrap();
        if record["message"] == "ended" && record["is_success"] == true && record["reported"] == "Accepted" {
            *times.entry(record["task"].as_str().unwrap().to_owned()).or_default() += 1;
        }
    }
    times
}

struct Accidents<'a> {
    dir: &'a std::path::Path,
    served: &'a Served,
    file: String,
    workers: [Process; 2],
    random: Random,
    kills: u32,
    pauses: u32,
    /// The logs of killed workers.
    lines: Vec<String>,
}

impl Accidents<'_> {
    /// Kills one worker and starts another, or pauses one until its leases have lapsed.
    async fn happen(&mut self) {
        let which = self.random.index(2);
        if self.random.percent(50) {
            self.workers[which].signal("-KILL");
            self.kills += 1;
            self.lines.extend(self.workers[which].said());
            let name = format!("w{which}-{}", self.kills);
            self.workers[which] = worker(self.dir, self.served, &name, &self.file);
            return;
        }
        self.pauses += 1;
        self.workers[which].signal("-STOP");
        let stopped = self.held().await;
        let lapsed = async { while self.held().await.iter().any(|task| stopped.contains(task)) {} };
        tokio::time::timeout(PATIENCE, lapsed).await.expect("its leases lapse");
        self.workers[which].signal("-CONT");
    }

    /// The claimed tasks, each with the number of its attempt.
    async fn held(&self) -> Vec<(String, u32)> {
        let query = TasksQuery { status: Some("running".into()), limit: Some(100), ..TasksQuery::default() };
        let tasks = self.served.client.tasks(&query).await.unwrap();
        tasks.items.into_iter().map(|task| (task.id, task.attempts)).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_tasks_are_each_completed_once_although_workers_are_killed_and_paused() {
    let dir = tempfile::tempdir().unwrap();
    let served = serve(dir.path(), SERVER);
    let client = &served.client;
    for n in 0..TASKS {
        let mut asked = task("count", json!({ "n": n }));
        asked.group = Some("all".to_owned());
        client.submit(&asked, None).await.unwrap();
    }

    // This worker reports after its lease has lapsed.
    let mut claim = ClaimBody::new("sleeper", vec!["external".to_owned()]);
    claim.lease_ms = Some(1000);
    let overslept = client.claim(&claim).await.unwrap().tasks.remove(0);

    let log = dir.path().join("runs");
    let file = file(&log);
    let workers = ["w0", "w1"].map(|name| worker(dir.path(), &served, name, &file));
    let random = Random::new(20_261_115);
    let mut events = client.events(Watch::lane("external").lasting()).await.unwrap();
    let (lines, kills, pauses) = (Vec::new(), 0, 0);
    let mut accidents =
        Accidents { dir: dir.path(), served: &served, file, workers, random, kills, pauses, lines };
    for reached in (BETWEEN..TASKS).step_by(BETWEEN) {
        done(client, &mut events, reached).await;
        accidents.happen().await;
    }
    done(client, &mut events, TASKS).await;

    let group = client.group("all").await.unwrap();
    assert_eq!((group.done, group.total, group.failed), (TASKS as u64, TASKS as u64, 0));
    let Accidents { workers, mut lines, kills, pauses, .. } = accidents;
    for worker in workers {
        worker.signal("-TERM");
        lines.extend(worker.says_until_its_end());
    }
    let completions = completions(&lines);
    assert!(completions.values().all(|times| *times == 1), "a task was completed twice: {completions:?}");
    assert!(completions.len() > TASKS / 2, "{} were reported", completions.len());
    let lane = client.lane("external").await.unwrap();
    assert_eq!((lane.counters.completed, lane.running, lane.waiting), (TASKS as u64, 0, 0));
    let runs = std::fs::read_to_string(log).unwrap();
    let mut seen: Vec<usize> = runs.lines().map(|line| line.parse().unwrap()).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, (0..TASKS).collect::<Vec<_>>(), "each task ran");
    // The test is not vacuous: the accidents hit workers with running attempts.
    assert!(kills >= 4 && pauses >= 4, "{kills} {pauses}");
    assert!(runs.lines().count() > TASKS, "runs {}", runs.lines().count());
    let late = CompleteBody {
        fence: overslept.fence,
        success: true,
        result: None,
        error: None,
        retryable: None,
        steered: vec![],
    };
    let refused = client.complete(&overslept.id, &late).await.unwrap_err();
    assert!(format!("{refused:?}").contains("STALE_LEASE"), "{refused:?}");
    let metrics = client.metrics().await.unwrap();
    let stale: f64 = metrics
        .lines()
        .filter(|line| line.starts_with("laneway_stale_total"))
        .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
        .sum();
    assert!(stale >= 1.0, "{stale}");
}
