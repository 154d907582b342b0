//! The block `queue`: the tool lanes of every session.

use laneway::{Durability, ToolLanes};

use crate::look::Look;
use crate::{check, open, seen};

const QUERY: &str = "session:ann/query";
const PLAIN: &str = "queue {\n#\n}";
/// Tasks that also need the lane `shared` wait.
const LINE: &str = "queue {
query_max_concurrency = 10
#
}
    lane \"shared\" {
max_queued = 1000
rate_limit {
per = \"hour\"
max = 1
}
pressure_threshold = 10000
      alerts {
warning = 10000
critical = 10000
}
}";
const ONE: &str = "queue {\nquery_max_concurrency = 1\n#\n}";
const INTERNAL: &str = "Internal: 0 pending, 1 run";
const EXTERNAL: &str = "External: 1 pending, 0 run";

/// Frame, line, look, what is seen without the line, what with it.
type Case = (&'static str, &'static str, Look, &'static str, &'static str);

const CASES: &[Case] = &[
    (PLAIN, "control_max_concurrency = 7", Look::Running("session:ann/control"), "2 run", "7 run"),
    (PLAIN, "query_max_concurrency = 7", Look::Running(QUERY), "4 run", "7 run"),
    (PLAIN, "execute_max_concurrency = 7", Look::Running("session:ann/execute"), "2 run", "7 run"),
    (PLAIN, "generate_max_concurrency = 7", Look::Running("session:ann/generate"), "1 run", "7 run"),
    (PLAIN, "enable_metrics = false", Look::Counted, "2 counted", "not counted"),
    (PLAIN, "enable_dlq = false", Look::Letters(QUERY), "3 letters", "0 letters"),
    (PLAIN, "dlq_max_size = 2", Look::Letters(QUERY), "3 letters", "2 letters"),
    (LINE, "enable_alerts = false", Look::Alerts(QUERY), "Warning 50 Critical 100", ""),
    (PLAIN, "default_timeout_ms = 7000", Look::Long(QUERY), "TimedOut at 61000", "TimedOut at 8000"),
    (PLAIN, "retry_policy {}", Look::Attempts(QUERY), "0", "0 100 300 700"),
    ("queue {\nretry_policy {\n#\n}\n}", "strategy = \"none\"", Look::Attempts(QUERY), "0 100 300 700", "0"),
    ("queue {\nretry_policy {\n#\n}\n}", "max_retries = 1", Look::Attempts(QUERY), "0 100 300 700", "0 100"),
    (
        "queue {\nretry_policy {\n#\n}\n}",
        "initial_delay_ms = 1000",
        Look::Attempts(QUERY),
        "0 100 300 700",
        "0 1000 3000 7000",
    ),
    (
        "queue {\nretry_policy {\nstrategy = \"fixed\"\n#\n}\n}",
        "fixed_delay_ms = 2000",
        Look::Attempts(QUERY),
        "0 1000 2000 3000",
        "0 2000 4000 6000",
    ),
    (
        "queue {\nretry_policy {\n#\n}\n}",
        "max_delay_ms = 150",
        Look::Attempts(QUERY),
        "0 100 300 700",
        "0 100 250 400",
    ),
    (
        "queue {\nretry_policy {\ninitial_delay_ms = 10000\n#\n}\n}",
        "jitter = true",
        Look::Jitter(QUERY),
        "plain",
        "spread",
    ),
    (
        PLAIN,
        "rate_limit {\nlimit_type = \"per_second\"\nmax_operations = 2\n}",
        Look::Starts(QUERY),
        "0 0 0 0 0 0",
        "0 0 500 1000 1500 2000",
    ),
    (
        PLAIN,
        "rate_limit {\nlimit_type = \"per_minute\"\nmax_operations = 2\n}",
        Look::Starts(QUERY),
        "0 0 0 0 0 0",
        "0 0 30000 60000 90000 120000",
    ),
    (
        PLAIN,
        "rate_limit {\nlimit_type = \"per_hour\"\nmax_operations = 4\n}",
        Look::Starts(QUERY),
        "0 0 0 0 0 0",
        "0 0 0 0 900000 1800000",
    ),
    (ONE, "priority_boost {}", Look::Boosts(QUERY, Some(50)), "", "1@12500 2@25000 3@37500 4@45000"),
    (
        "queue {\nquery_max_concurrency = 1\npriority_boost {\n#\n}\n}",
        "strategy = \"aggressive\"",
        Look::Boosts(QUERY, Some(50)),
        "1@12500 2@25000 3@37500 4@45000",
        "2@10000 4@20000 6@30000 8@40000",
    ),
    (
        "queue {\nquery_max_concurrency = 1\npriority_boost {\n#\n}\n}",
        "strategy = \"disabled\"",
        Look::Boosts(QUERY, Some(50)),
        "1@12500 2@25000 3@37500 4@45000",
        "",
    ),
    (
        "queue {\nquery_max_concurrency = 1\npriority_boost {\n#\n}\n}",
        "deadline_ms = 50000",
        Look::Boosts(QUERY, None),
        "",
        "1@12500 2@25000 3@37500 4@45000",
    ),
    (LINE, "pressure_threshold = 20", Look::Pressure(QUERY), "50", "20"),
    (
        PLAIN,
        "lane_timeouts {\ncontrol = 7000\n}",
        Look::Long("session:ann/control"),
        "TimedOut at 61000",
        "TimedOut at 8000",
    ),
    (PLAIN, "lane_timeouts {\nquery = 7000\n}", Look::Long(QUERY), "TimedOut at 61000", "TimedOut at 8000"),
    (
        PLAIN,
        "lane_timeouts {\nexecute = 7000\n}",
        Look::Long("session:ann/execute"),
        "TimedOut at 61000",
        "TimedOut at 8000",
    ),
    (
        PLAIN,
        "lane_timeouts {\ngenerate = 7000\n}",
        Look::Long("session:ann/generate"),
        "TimedOut at 61000",
        "TimedOut at 8000",
    ),
    (
        PLAIN,
        "lane_handlers {\ncontrol = { mode = \"external\" }\n}",
        Look::Mode("session:ann/control"),
        INTERNAL,
        EXTERNAL,
    ),
    (PLAIN, "lane_handlers {\nquery = \"external\"\n}", Look::Mode(QUERY), INTERNAL, EXTERNAL),
    (
        PLAIN,
        "lane_handlers {\nquery = { mode = \"hybrid\" }\n}",
        Look::Mode(QUERY),
        INTERNAL,
        "Hybrid: 0 pending, 1 run",
    ),
    (
        PLAIN,
        "lane_handlers {\nexecute = { mode = \"external\" }\n}",
        Look::Mode("session:ann/execute"),
        INTERNAL,
        EXTERNAL,
    ),
    (
        PLAIN,
        "lane_handlers {\ngenerate = { mode = \"external\" }\n}",
        Look::Mode("session:ann/generate"),
        INTERNAL,
        EXTERNAL,
    ),
    (
        "queue {\nlane_handlers {\nquery = { mode = \"external\", # }\n}\n}",
        "timeout_ms = 9000",
        Look::Long(QUERY),
        "WaitTimeout at 60000",
        "WaitTimeout at 9000",
    ),
    (
        "queue {\nlane_handlers {\nquery = { mode = \"internal\", # }\n}\n}",
        "timeout_ms = 9000",
        Look::Long(QUERY),
        "TimedOut at 61000",
        "TimedOut at 10000",
    ),
    // A call of `write` belongs to the lane in which calls run one after another.
    (PLAIN, "tools { write = \"query\" }", Look::Batch("write"), "2 s", "1 s"),
    (PLAIN, "tools { glob = \"execute\" }", Look::Batch("glob"), "1 s", "2 s"),
    // Without the block calls run one after another, directly.
    ("#", "queue {}", Look::Batch("glob"), "2 s", "1 s"),
];

#[tokio::test(start_paused = true)]
async fn every_key_of_the_queue_has_an_effect() {
    let mut wrong = Vec::new();
    for (frame, line, look, without, with) in CASES {
        wrong.extend(check(frame, line, *look, without, with).await);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn the_storage_path_is_the_store_where_none_is_given() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("queue_data");
    let text = format!("queue {{\nstorage_path = {:?}\n}}", place.to_str().unwrap());
    let (lanes, _) = open(dir.path(), &text).await;
    assert_eq!(lanes.durability(), Durability::Disk);
    assert!(place.is_dir());
    lanes.shutdown(std::time::Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn unlimited_is_no_limit_whatever_stands_beside_it() {
    for (kind, starts) in [("per_hour", "0 1800000 3600000"), ("unlimited", "0 0 0 0 0 0")] {
        let text = format!("queue {{\nrate_limit {{\nlimit_type = \"{kind}\"\nmax_operations = 2\n}}\n}}");
        let told = seen(&text, Look::Starts(QUERY)).await;
        assert!(told.contains(starts), "{kind}: {told}");
    }
}

/// The same as a program says it, without a file: each feature is off until it is asked for.
#[tokio::test(start_paused = true)]
async fn a_program_sets_up_tool_lanes_with_features_or_without() {
    for (tools, look, expected) in [
        (ToolLanes::default(), Look::Running("session:ann/control"), "2 run"),
        (ToolLanes::default(), Look::Running(QUERY), "4 run"),
        (ToolLanes::default(), Look::Running("session:ann/execute"), "2 run"),
        (ToolLanes::default(), Look::Running("session:ann/generate"), "1 run"),
        (ToolLanes::default(), Look::Letters(QUERY), "0 letters"),
        (ToolLanes::default().with_lane_features(), Look::Letters(QUERY), "3 letters"),
        (ToolLanes::default(), Look::Counted, "not counted"),
        (ToolLanes::default().with_lane_features(), Look::Counted, "2 counted"),
        (ToolLanes::default(), Look::Long(QUERY), "never"),
        (ToolLanes::default().with_lane_features(), Look::Long(QUERY), "TimedOut at 61000"),
        (many(ToolLanes::default()), Look::Alerts(QUERY), ""),
        (many(ToolLanes::default().with_lane_features()), Look::Alerts(QUERY), "Warning 50 Critical 100"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let text = LINE.replace("query_max_concurrency = 10 #", "");
        let (lanes, diary) = open(dir.path(), &format!("store = \"memory\"\n{text}")).await;
        lanes.configure_tools(tools.clone()).await.unwrap();
        assert_eq!(look.at(&lanes, &diary).await, expected, "{look:?} {tools:?}");
    }
}

/// Enough slots for a long line to be allowed.
fn many(tools: ToolLanes) -> ToolLanes {
    ToolLanes { query_max_concurrency: 20, ..tools }
}
