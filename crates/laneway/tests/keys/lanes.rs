//! The settings of lanes.

use laneway_core::SETTING_KEYS;

use crate::check;
use crate::look::Look;

struct Case {
    setting: &'static str,
    /// With a `#` in place of the line.
    frame: &'static str,
    line: &'static str,
    look: Look,
    without: &'static str,
    with: &'static str,
}

/// A lane with one slot.
const ONE: &str = "lane \"main\" {\nmax_concurrency = 1\n#\n}";
const PLAIN: &str = "lane \"main\" {\n#\n}";
const WORKERS: &str = "lane \"main\" {\nhandler = \"external\"\n#\n}";
const RETRY: &str = "lane \"main\" {\nretry {\nstrategy = \"exponential\"\nmax_retries = 3\n#\n}\n}";
const RETRY_SLOW: &str = "lane \"main\" {\nretry {\ninitial_delay = \"10s\"\nmax_retries = 3\n#\n}\n}";
/// Lanes in which 140 tasks wait, because one of them is never free.
const LINE: &str = "lane \"main\" {
max_queued = 1000
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

macro_rules! case {
    ($setting:literal, $frame:expr, $line:expr, $look:expr, $without:expr => $with:expr) => {
        Case { setting: $setting, frame: $frame, line: $line, look: $look, without: $without, with: $with }
    };
}

const CASES: &[Case] = &[
    case!("max_concurrency", PLAIN, "max_concurrency = 7", Look::Running("main"), "4 run" => "7 run"),
    case!("max_queued", ONE, "max_queued = 3", Look::Accepted("main"), "11 accepted" => "4 accepted"),
    case!("order", ONE, "order = \"fifo\"", Look::Turns("main"), "a1 b1 a2 b2" => "a1 a2 b1 b2"),
    case!("priority", PLAIN, "priority = 9", Look::Sharing("main"),
        "o1 m1 o2 m2 o3 m3 o4 m4" => "m1 m2 m3 m4 o1 o2 o3 o4"),
    case!("priority.user", PLAIN, "priority { user = 5 }", Look::Priorities("main"), "2 1 0 0" => "5 1 0 0"),
    case!("priority.schedule", PLAIN, "priority { schedule = 5 }", Look::Priorities("main"),
        "2 1 0 0" => "2 5 0 0"),
    case!("priority.agent", PLAIN, "priority { agent = 5 }", Look::Priorities("main"), "2 1 0 0" => "2 1 5 0"),
    case!("priority.background", PLAIN, "priority { background = 5 }", Look::Priorities("main"),
        "2 1 0 0" => "2 1 0 5"),
    case!("priority.background", "lane \"global\" {\n#\n}", "priority { background = 5 }",
        Look::Priorities("main"), "2 1 0 0" => "2 1 0 5"),
    case!("weight", PLAIN, "weight = 3", Look::Sharing("main"),
        "o1 m1 o2 m2 o3 m3 o4 m4" => "o1 m1 m2 m3 m4 o2 o3 o4"),
    case!("wait_timeout", ONE, "wait_timeout = \"2m\"", Look::Waiting("main"), "never" => "WaitTimeout at 120000"),
    case!("timeout", PLAIN, "timeout = \"2m\"", Look::Long("main"), "never" => "TimedOut at 121000"),
    case!("lease", WORKERS, "lease = \"5s\"", Look::Lease("main"), "10000 ms" => "5000 ms"),
    case!("max_redelivery", WORKERS, "max_redelivery = 1", Look::Silence("main"),
        "again again again Failed" => "again Failed"),
    case!("retry", PLAIN, "retry = \"fixed\"", Look::Attempts("main"), "0" => "0 1000 2000 3000"),
    case!("retry.strategy", "lane \"main\" {\nretry {\nmax_retries = 2\n#\n}\n}", "strategy = \"fixed\"",
        Look::Attempts("main"), "0 100 300" => "0 1000 2000"),
    case!("retry.max_retries", "lane \"main\" {\nretry {\n#\n}\n}", "max_retries = 1", Look::Attempts("main"),
        "0 100 300 700" => "0 100"),
    case!("retry.initial_delay", RETRY, "initial_delay = \"1s\"", Look::Attempts("main"),
        "0 100 300 700" => "0 1000 3000 7000"),
    case!("retry.fixed_delay", "lane \"main\" {\nretry {\nstrategy = \"fixed\"\nmax_retries = 2\n#\n}\n}",
        "fixed_delay = \"2s\"", Look::Attempts("main"), "0 1000 2000" => "0 2000 4000"),
    case!("retry.max_delay", RETRY, "max_delay = \"150ms\"", Look::Attempts("main"),
        "0 100 300 700" => "0 100 250 400"),
    case!("retry.jitter", RETRY_SLOW, "jitter = true", Look::Jitter("main"), "plain" => "spread"),
    case!("rate_limit", "lane \"main\" {\nmax_concurrency = 100\n#\n}", "rate_limit = \"2/minute\"",
        Look::Starts("main"), "0 0 0 0 0 0" => "0 0 30000 60000 90000 120000"),
    case!("rate_limit.per", "lane \"main\" {\nmax_concurrency = 100\n#\n}", "rate_limit {\nper = \"second\"\nmax = 2\n}",
        Look::Starts("main"), "0 0 0 0 0 0" => "0 0 500 1000 1500 2000"),
    case!("rate_limit.max", "lane \"main\" {\nmax_concurrency = 100\n#\n}", "rate_limit {\nper = \"minute\"\nmax = 4\n}",
        Look::Starts("main"), "0 0 0 0 0 0" => "0 0 0 0 15000 30000"),
    case!("ageing", ONE, "ageing = \"off\"", Look::Ageing("main"),
        "1@60000 2@120000 3@180000 4@240000 5@300000" => ""),
    case!("ageing.after", ONE, "ageing { after = \"100s\" }", Look::Ageing("main"),
        "1@60000 2@120000 3@180000 4@240000 5@300000" => "1@100000 2@200000 3@300000"),
    case!("ageing.max", ONE, "ageing { max = 2 }", Look::Ageing("main"),
        "1@60000 2@120000 3@180000 4@240000 5@300000" => "1@60000 2@120000"),
    case!("boost", ONE, "boost = \"standard\"", Look::Boosts("main", Some(100)),
        "" => "1@25000 2@50000 3@75000 4@90000"),
    case!("boost.strategy", "lane \"main\" {\nmax_concurrency = 1\nboost {\n#\n}\n}", "strategy = \"aggressive\"",
        Look::Boosts("main", Some(100)), "1@25000 2@50000 3@75000 4@90000" => "2@20000 4@40000 6@60000 8@80000"),
    case!("boost.deadline", "lane \"main\" {\nmax_concurrency = 1\nboost {\nstrategy = \"standard\"\n#\n}\n}",
        "deadline = \"200s\"", Look::Boosts("main", None), "" => "1@50000 2@100000 3@150000 4@180000"),
    case!("pressure_threshold", LINE, "pressure_threshold = 20", Look::Pressure("main"), "50" => "20"),
    case!("alerts.warning", LINE, "alerts { warning = 20 }", Look::Alerts("main"),
        "Warning 50 Critical 100" => "Warning 20 Critical 100"),
    case!("alerts.critical", LINE, "alerts { critical = 60 }", Look::Alerts("main"),
        "Warning 50 Critical 100" => "Warning 50 Critical 60"),
    case!("dead_letters_max", PLAIN, "dead_letters_max = 2", Look::Letters("main"), "3 letters" => "2 letters"),
    case!("notice_after", ONE, "notice_after = \"500ms\"", Look::Notice("main"), "2000" => "500"),
    case!("handler", PLAIN, "handler = \"external\"", Look::Mode("main"),
        "Internal: 0 pending, 1 run" => "External: 1 pending, 0 run"),
    case!("handler", PLAIN, "handler = \"hybrid\"", Look::Mode("main"),
        "Internal: 0 pending, 1 run" => "Hybrid: 0 pending, 1 run"),
];

#[tokio::test(start_paused = true)]
async fn every_setting_of_a_lane_has_an_effect() {
    let mut settings: Vec<&str> = CASES.iter().map(|case| case.setting).collect();
    settings.dedup();
    assert_eq!(settings, SETTING_KEYS, "a setting has no case here");
    let mut wrong = Vec::new();
    for case in CASES {
        wrong.extend(check(case.frame, case.line, case.look, case.without, case.with).await);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn a_pattern_speaks_for_its_lanes_and_an_agent_s_block_for_its_lane() {
    let (internal, external) = ("Internal: 0 pending, 1 run", "External: 1 pending, 0 run");
    let worker = "agent \"coder\" {\nexternal = true\n}";
    let agent = "agent \"coder\" {\necho = true\n#\n}";
    for (frame, line, look, without, with) in [
        ("lane \"main*\" {\n#\n}", "max_concurrency = 7", Look::Running("main-1"), "1 run", "7 run"),
        (agent, "max_concurrency = 7", Look::Running("agent:coder"), "1 run", "7 run"),
        ("#", worker, Look::Mode("agent:coder"), internal, external),
        ("#", worker, Look::Mode("task:coder"), internal, external),
    ] {
        assert_eq!(check(frame, line, look, without, with).await, None);
    }
}
