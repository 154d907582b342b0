//! The alert rules and the dashboard: each failure is made to happen, and its alert becomes true in a real Prometheus that
//! scrapes real servers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use laneway_test_services::{Prometheus, Proxy, Redis};
use serde_json::{Value, json};

/// How long a test waits. Only a failure reaches it.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(100);

fn packaged(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(packaged(name)).unwrap()
}

/// The alerts of the rules and their expressions.
fn alerts() -> Vec<(String, String)> {
    let mut alerts: Vec<(String, String)> = Vec::new();
    let mut is_expr = false;
    for line in read("prometheus/laneway.rules.yaml").lines() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("- alert: ") {
            alerts.push((name.to_owned(), String::new()));
        } else if let Some(expr) = line.strip_prefix("expr:") {
            is_expr = true;
            alerts.last_mut().unwrap().1 = expr.trim().trim_start_matches(">-").to_owned();
        } else if line.starts_with("for:") || line.starts_with("labels:") {
            is_expr = false;
        } else if is_expr {
            let (_, expr) = alerts.last_mut().unwrap();
            *expr = format!("{expr} {line}").trim().to_owned();
        }
    }
    alerts
}

fn alert(name: &str) -> String {
    let found = alerts().into_iter().find(|(known, _)| known == name);
    found.unwrap_or_else(|| panic!("no rule {name}")).1
}

/// The expressions of the dashboard, with values for its variables.
fn dashboard_expressions() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&read("grafana/laneway.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let expressions = targets.map(|target| target["expr"].as_str().unwrap());
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
    let variables = variables.map(|variable| format!("${}", variable["name"].as_str().unwrap()));
    let values: Vec<(String, &str)> = variables
        .map(|name| if name == "$lane" { (name, ".*") } else { (name, "laneway") })
        .chain([("$__rate_interval".to_owned(), "1m")])
        .collect();
    let filled =
        |text: &str| values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value));
    expressions.map(filled).collect()
}

/// The names of metrics in an expression.
fn names(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    let is_name = |word: &&str| word.starts_with("laneway_") || word.starts_with("process_") || *word == "up";
    words.filter(is_name).map(str::to_owned).collect()
}

fn client() -> reqwest::Client {
    // It may be installed already.
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::Client::new()
}

fn promtool(arguments: &[&str], dir: &Path) -> String {
    let output = Command::new("promtool").args(arguments).current_dir(dir).output();
    let output = output.expect("promtool is missing; `cargo xtask test` installs it");
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success(), "promtool {}: {said}", arguments.join(" "));
    said
}

/// A server in its own process, which ends with the test.
struct Served {
    process: Child,
    address: String,
    dir: tempfile::TempDir,
}

fn serve(config: &str, store: &str) -> Served {
    serve_in(tempfile::tempdir().unwrap(), config, store, "127.0.0.1:0")
}

fn serve_in(dir: tempfile::TempDir, config: &str, store: &str, listen: &str) -> Served {
    std::fs::write(dir.path().join("laneway.hcl"), config).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_laneway"));
    command.current_dir(dir.path()).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.args(["serve", "--json", "--log", "error", "--listen", listen, "--store", store]);
    let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let greeting: Value = serde_json::from_str(&line).expect("the server did not start");
    let address = greeting["url"].as_str().unwrap().trim_start_matches("http://").to_owned();
    Served { process, address, dir }
}

impl Served {
    async fn post(&self, path: &str, body: Value) -> (u16, String) {
        let request = client().post(format!("http://{}{path}", self.address)).timeout(PATIENCE);
        let answer = request.header("content-type", "application/json").body(body.to_string()).send().await;
        let answer = answer.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    async fn task(&self, lane: &str) -> u16 {
        self.post("/api/tasks", json!({"kind": "work", "lanes": [lane]})).await.0
    }

    async fn metrics(&self) -> String {
        let url = format!("http://{}/metrics", self.address);
        client().get(url).send().await.unwrap().text().await.unwrap()
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Kills the server and starts it again at the same address.
    fn restart(mut self, config: &str, store: &str) -> Served {
        self.kill();
        let (address, dir) =
            (self.address.clone(), std::mem::replace(&mut self.dir, tempfile::tempdir().unwrap()));
        serve_in(dir, config, store, &address)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A Prometheus that has scraped these servers.
struct Watch(Prometheus);

impl Watch {
    async fn over(servers: &[&Served]) -> Watch {
        let addresses: Vec<String> = servers.iter().map(|server| server.address.clone()).collect();
        let watch = Watch(Prometheus::scrape(&addresses));
        watch.until(&format!("count(laneway_build_info) == {}", servers.len())).await;
        watch
    }

    /// What an expression gives now.
    async fn ask(&self, expression: &str) -> Vec<Value> {
        let mut url = reqwest::Url::parse(&self.0.url()).unwrap();
        url.set_path("/api/v1/query");
        url.query_pairs_mut().append_pair("query", expression);
        // Prometheus answers 503 until it has started.
        let Ok(answer) = client().get(url).send().await else { return Vec::new() };
        let text = answer.text().await.unwrap();
        let Ok(answer) = serde_json::from_str::<Value>(&text) else { return Vec::new() };
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
        answer["data"]["result"].as_array().unwrap().clone()
    }

    /// Waits until an expression is true.
    async fn until(&self, expression: &str) -> Vec<Value> {
        self.until_with(expression, async || {}).await
    }

    /// Does something again and again until an expression is true.
    async fn until_with(&self, expression: &str, again: impl AsyncFn()) -> Vec<Value> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = self.ask(expression).await;
            if !found.is_empty() {
                return found;
            }
            assert!(Instant::now() < deadline, "never: {expression}");
            again().await;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// No alert of these is true.
    async fn is_quiet(&self, names: &[&str]) {
        for name in names {
            let found = self.ask(&alert(name)).await;
            assert!(found.is_empty(), "{name}: {found:?}");
        }
    }
}

#[test]
fn promtool_accepts_the_rules_their_tests_and_every_expression_of_the_dashboard() {
    let dir = packaged("prometheus");
    assert!(promtool(&["check", "rules", "laneway.rules.yaml"], &dir).contains("12 rules found"));
    promtool(&["test", "rules", "laneway.rules.test.yaml"], &dir);
    let tests = read("prometheus/laneway.rules.test.yaml");
    for (name, _) in alerts() {
        let fires = format!("alertname: {name}\n        exp_alerts:");
        assert!(tests.contains(&fires), "no test has {name} fire");
    }
    let expressions = dashboard_expressions();
    let rules = expressions.iter().enumerate();
    let rules = rules.map(|(number, expr)| json!({"record": format!("panel:{number}"), "expr": expr}));
    let rules = json!({"groups": [{"name": "dashboard", "rules": rules.collect::<Vec<_>>()}]});
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("dashboard.json"), rules.to_string()).unwrap();
    promtool(&["check", "rules", "dashboard.json"], here.path());
}

#[test]
fn the_dashboard_is_whole() {
    let dashboard: Value = serde_json::from_str(&read("grafana/laneway.json")).unwrap();
    let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        let place = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        for (x, y) in (0..place("w")).flat_map(|x| (0..place("h")).map(move |y| (x, y))) {
            let is_free = taken.insert((place("x") + x, place("y") + y));
            assert!(is_free && place("x") + x < 24, "{} lies over another", panel["title"]);
        }
        let is_row = panel["type"] == "row";
        assert!(
            is_row || (panel["description"].is_string() && panel["targets"][0]["expr"].is_string()),
            "{panel}"
        );
        assert!(is_row || panel["datasource"]["uid"] == "${datasource}", "{panel}");
    }
}

#[tokio::test]
async fn every_expression_names_metrics_that_exist_and_the_reference_has_all() {
    let redis = Redis::start();
    let served = serve("agent \"coder\" { echo = true }", &redis.url());
    assert_eq!(served.post("/api/agents/coder/chat", json!({"message": "x"})).await.0, 200);
    assert_eq!(served.post("/api/agents/unknown/chat", json!({"message": "x"})).await.0, 404);
    let text = served.metrics().await;
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let known: BTreeSet<&str> = samples.map(|line| line.split(['{', ' ']).next().unwrap()).collect();
    let expressions = alerts().into_iter().map(|(_, expression)| expression).chain(dashboard_expressions());
    for expression in expressions {
        let used = names(&expression);
        assert!(!used.is_empty(), "{expression}");
        for name in used.iter().filter(|name| *name != "up") {
            assert!(known.contains(name.as_str()), "no metric {name}, of {expression}, in\n{text}");
        }
    }
    let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let families: BTreeSet<&str> = families.collect();
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/metrics.md");
    let reference = std::fs::read_to_string(reference).unwrap();
    let rows = reference.lines().filter_map(|line| line.strip_prefix("| `")?.split(['`', '{']).next());
    let described: BTreeSet<&str> = rows.collect();
    assert_eq!(described, families);
    let (dir, file) = (tempfile::tempdir().unwrap(), "metrics.txt");
    std::fs::write(dir.path().join(file), &text).unwrap();
    let check = format!("promtool check metrics < {file}");
    let output = Command::new("sh").args(["-c", &check]).current_dir(dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test]
async fn a_server_that_is_killed_or_restarts_again_and_again_is_noticed() {
    let config = "agent \"coder\" { echo = true }";
    let mut served = serve(config, "memory");
    let watch = Watch::over(&[&served]).await;
    watch.is_quiet(&["LanewayServerDown", "LanewayRestarting", "LanewayNotReady"]).await;
    for restarts in 1..=3 {
        served.kill();
        watch.until(&alert("LanewayServerDown")).await;
        served = served.restart(config, "memory");
        watch.until(&format!("changes(process_start_time_seconds[15m]) >= {restarts}")).await;
    }
    watch.until(&alert("LanewayRestarting")).await;
    watch.is_quiet(&["LanewayServerDown"]).await;
}

#[tokio::test]
async fn a_store_that_goes_away_and_comes_back_without_its_last_writes_is_noticed() {
    let mut redis = Redis::start();
    let served = serve("lane \"gpu\" { handler = \"external\" }", &redis.url());
    let watch = Watch::over(&[&served]).await;
    assert_eq!(served.task("gpu").await, 202);
    let earlier = redis.copy();
    assert_eq!(served.task("gpu").await, 202);
    let all = ["LanewayStoreDown", "LanewayNotReady", "LanewayTurnedAway", "LanewayLogLost"];
    watch.is_quiet(&all).await;
    redis.kill();
    let refused = async || assert_eq!(served.task("gpu").await, 503);
    watch.until_with(&alert("LanewayStoreDown"), &refused).await;
    watch.until(&alert("LanewayNotReady")).await;
    watch.until_with(&alert("LanewayTurnedAway"), &refused).await;
    redis.restart_from(&earlier);
    let lost = watch.until(&alert("LanewayLogLost")).await;
    assert_eq!(lost.len(), 1, "{lost:?}");
    watch.until("laneway_store_up == 1 and laneway_ready == 1").await;
    watch.until("laneway_log_tasks_restored_total == 1").await;
}

#[tokio::test]
async fn a_slow_store_is_noticed() {
    let redis = Redis::start();
    let proxy = Proxy::to(redis.port());
    let served = serve(
        "lane \"gpu\" {\n handler = \"external\"\n max_queued = 100000\n}",
        &format!("redis://127.0.0.1:{}/0", proxy.port()),
    );
    let watch = Watch::over(&[&served]).await;
    let submit = async || assert_eq!(served.task("gpu").await, 202);
    watch.until_with("rate(laneway_store_append_seconds_count[5m]) > 0", &submit).await;
    watch.is_quiet(&["LanewayStoreSlow"]).await;
    proxy.delay(Duration::from_millis(700));
    watch.until_with(&alert("LanewayStoreSlow"), &submit).await;
}

#[tokio::test]
async fn silent_workers_long_lines_refusals_and_failures_are_noticed() {
    let config = "lane \"gpu\" {\n handler = \"external\"\n lease = \"1s\"\n}\n\
                  lane \"full\" {\n handler = \"external\"\n max_queued = 1\n}\n\
                  agent \"broken\" { command = [\"false\"] }";
    let served = serve(config, "memory");
    let watch = Watch::over(&[&served]).await;
    let all = ["LanewayLeasesLapsing", "LanewayWaitTooLong", "LanewayRefusing", "LanewayFailing"];
    watch.is_quiet(&all).await;
    assert_eq!(served.task("full").await, 202);
    let refuse = async || assert_eq!(served.task("full").await, 429);
    let refusing = watch.until_with(&alert("LanewayRefusing"), refuse).await;
    assert_eq!(refusing[0]["metric"]["lane"], "full");
    // A wait of ten minutes is an hour of tests.
    let wait = alert("LanewayWaitTooLong");
    assert!(wait.ends_with("> 600"), "{wait}");
    watch.until(&wait.replace("> 600", "> 1")).await;
    assert_eq!(served.task("gpu").await, 202);
    let claim = json!({"worker": "w", "lanes": ["gpu"], "lease_ms": 1000});
    assert!(served.post("/api/claim", claim).await.1.contains("fence"));
    watch.until(&alert("LanewayLeasesLapsing")).await;
    let fail = async || {
        let (status, body) = served.post("/api/agents/broken/chat", json!({"message": "x"})).await;
        assert_eq!(status, 502, "{body}");
    };
    let failing = watch.until_with(&alert("LanewayFailing"), fail).await;
    assert!(failing.iter().any(|found| found["metric"]["lane"] == "agent:broken"), "{failing:?}");
}

#[tokio::test]
async fn replicas_add_up_and_different_files_are_noticed() {
    let redis = Redis::start();
    let config = |slots: u32| {
        format!("agent \"coder\" {{\n echo = true\n max_concurrency = {slots}\n max_queued = 50\n}}")
    };
    let servers = [0, 1, 2].map(|_| serve(&config(2), &redis.url()));
    let [a, b, c] = &servers;
    let watch = Watch::over(&[a, b, c]).await;
    const EACH: usize = 10;
    for server in [a, b, c] {
        for _ in 0..EACH {
            assert_eq!(server.post("/api/agents/coder/chat", json!({"message": "x"})).await.0, 200);
        }
    }
    assert_eq!(a.task("gpu").await, 202);
    let whole = [
        ("sum(laneway_tasks_accepted_total{lane=\"agent:coder\"})", 3 * EACH),
        ("sum(laneway_tasks_total{lane=\"agent:coder\",outcome=\"completed\"})", 3 * EACH),
        ("sum(laneway_wait_seconds_count{lane=\"agent:coder\"})", 3 * EACH),
        ("sum(laneway_run_seconds_bucket{lane=\"agent:coder\",le=\"+Inf\"})", 3 * EACH),
        ("max(laneway_cluster_waiting{lane=\"global\"})", 1),
        ("min(laneway_cluster_waiting{lane=\"global\"})", 1),
    ];
    for (expression, number) in whole {
        watch.until(&format!("{expression} == {number}")).await;
    }
    // Every replica has a part.
    watch.until("count(laneway_tasks_accepted_total{lane=\"agent:coder\"} > 0) == 3").await;
    watch.is_quiet(&["LanewayConfigDiffers"]).await;
    let _other = serve(&config(3), &redis.url());
    let found = watch.until(&format!("count({}) == 3", alert("LanewayConfigDiffers"))).await;
    assert_eq!(found.len(), 1);
}
