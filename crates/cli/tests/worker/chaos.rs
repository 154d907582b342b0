//! Workers that are killed and paused at random.

use std::collections::BTreeMap;

use laneway_client::{Client, TasksQuery, Watch};
use serde_json::json;
use tokio::sync::watch;

use crate::common::{PATIENCE, Process, Served, serve, submit, worker};

const TASKS: usize = 1000;
/// So many completions lie between two accidents.
const BETWEEN: usize = 60;
const SERVER: &str = r#"
    lane "global"   { max_concurrency = 64 }
    lane "external" { handler = "external"  max_queued = 2000  max_redelivery = 1000 }
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

/// Counts how often each task was completed, as the server tells.
async fn count(client: Client, told: watch::Sender<BTreeMap<String, u32>>) {
    let mut events = client.events(Watch::everything().lasting()).await.unwrap();
    told.send_modify(|_| {});
    while let Some(event) = events.next().await.unwrap() {
        assert_ne!(event.event, "gap", "every event is seen");
        if event.event == "completed" {
            let task = event.data["task_id"].as_str().unwrap().to_owned();
            told.send_modify(|completed| *completed.entry(task).or_default() += 1);
        }
    }
}

struct Accidents<'a> {
    dir: &'a std::path::Path,
    served: &'a Served,
    file: String,
    workers: [Process; 2],
    seed: u64,
    kills: u32,
    pauses: u32,
}

impl Accidents<'_> {
    fn chance(&mut self) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.seed >> 33
    }

    /// Kills one worker and starts another, or pauses one until its leases have lapsed.
    async fn happen(&mut self) {
        let which = (self.chance() % 2) as usize;
        if self.chance().is_multiple_of(2) {
            self.workers[which].signal("-KILL");
            self.kills += 1;
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

    /// What is claimed now, each task with its attempt.
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
    let (tell, mut completed) = watch::channel(BTreeMap::new());
    let counting = tokio::spawn(count(client.clone(), tell));
    completed.changed().await.unwrap();
    for n in 0..TASKS {
        submit(client, "count", json!({ "n": n })).await;
    }

    let log = dir.path().join("runs");
    let file = file(&log);
    let workers = ["w0", "w1"].map(|name| worker(dir.path(), &served, name, &file));
    let seed = 20_261_115;
    let mut accidents =
        Accidents { dir: dir.path(), served: &served, file, workers, seed, kills: 0, pauses: 0 };
    let mut next = BETWEEN;
    while next < TASKS {
        let reached = completed.wait_for(|completed| completed.len() >= next);
        drop(tokio::time::timeout(PATIENCE, reached).await.expect("work goes on").unwrap());
        accidents.happen().await;
        next += BETWEEN;
    }
    let all = completed.wait_for(|completed| completed.len() == TASKS);
    let all = tokio::time::timeout(PATIENCE, all).await.expect("all are done").unwrap().clone();

    assert!(all.values().all(|times| *times == 1), "a task was completed twice");
    let lane = client.lane("external").await.unwrap();
    assert_eq!((lane.counters.completed, lane.running, lane.waiting), (TASKS as u64, 0, 0));
    let runs = std::fs::read_to_string(log).unwrap();
    let mut seen: Vec<usize> = runs.lines().map(|line| line.parse().unwrap()).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen, (0..TASKS).collect::<Vec<_>>(), "each was run");
    // Not vacuous: workers died and slept with work in their hands, and what came too late was refused.
    let metrics = client.metrics().await.unwrap();
    let stale: f64 = metrics
        .lines()
        .filter(|line| line.starts_with("laneway_stale_total"))
        .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
        .sum();
    assert!(accidents.kills >= 4 && accidents.pauses >= 4, "{} {}", accidents.kills, accidents.pauses);
    assert!(stale >= 1.0 && runs.lines().count() > TASKS, "stale {stale}, runs {}", runs.lines().count());
    counting.abort();
}
