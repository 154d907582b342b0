//! Every key has its own effect: a configuration with it differs from one without it, and from those with other keys.
#![allow(clippy::panic, clippy::unwrap_used)]

use laneway_config::{Config, Profile, parse};
use laneway_core::SETTING_KEYS;

fn read(text: &str) -> Config {
    let nothing: [(&str, &str); 0] = [];
    parse("a.hcl", text, Profile::SERVER, nothing).unwrap_or_else(|errors| panic!("{errors}\nin:\n{text}"))
}

/// The values that a program gets, without their sources.
fn seen(text: &str) -> String {
    let config = read(text);
    let Config { listen, store, agents, handlers, schedules, messages, tools, server, .. } = &config;
    let store = format!("{store}");
    let parts = (listen, store, agents, handlers, schedules, messages, tools, server, config.lane_blocks());
    format!("{parts:?}")
}

/// Checks that each line has its own effect in place of the `#` in `frame`.
#[track_caller]
fn check(frame: &str, lines: &[&str]) {
    let mut before = vec![(seen(&frame.replace('#', "")), "nothing")];
    for line in lines {
        let now = seen(&frame.replace('#', line));
        let same = before.iter().find(|(earlier, _)| *earlier == now);
        assert_eq!(same.map(|(_, line)| line), None, "{line} has no effect of its own");
        before.push((now, line));
    }
}

/// Each setting of a lane, with a line that sets it.
const LANE_LINES: &[(&str, &str)] = &[
    ("max_concurrency", "max_concurrency = 7"),
    ("max_queued", "max_queued = 0"),
    ("order", "order = \"fifo\""),
    ("priority", "priority = 9"),
    ("priority.user", "priority { user = 5 }"),
    ("priority.schedule", "priority { schedule = 5 }"),
    ("priority.agent", "priority { agent = 5 }"),
    ("priority.background", "priority { background = 5 }"),
    ("weight", "weight = 3"),
    ("wait_timeout", "wait_timeout = \"2m\""),
    ("timeout", "timeout = \"none\""),
    ("lease", "lease = \"5s\""),
    ("max_redelivery", "max_redelivery = 0"),
    ("retry", "retry = \"fixed\""),
    ("retry.strategy", "retry { strategy = \"none\" }"),
    ("retry.max_retries", "retry { max_retries = 9 }"),
    ("retry.initial_delay", "retry { initial_delay = 50 }"),
    ("retry.fixed_delay", "retry { fixed_delay = \"2s\" }"),
    ("retry.max_delay", "retry { max_delay = \"1h\" }"),
    ("retry.jitter", "retry { jitter = true }"),
    ("rate_limit", "rate_limit = \"60/hour\""),
    ("rate_limit.per", "rate_limit {\nper = \"second\"\nmax = 5\n}"),
    ("rate_limit.max", "rate_limit {\nper = \"second\"\nmax = 6\n}"),
    ("ageing", "ageing = \"off\""),
    ("ageing.after", "ageing { after = \"10s\" }"),
    ("ageing.max", "ageing { max = 3 }"),
    ("boost", "boost = \"standard\""),
    ("boost.strategy", "boost { strategy = \"aggressive\" }"),
    ("boost.deadline", "boost { deadline = \"5m\" }"),
    ("pressure_threshold", "pressure_threshold = 10"),
    ("alerts.warning", "alerts { warning = 20 }"),
    ("alerts.critical", "alerts { critical = 30 }"),
    ("dead_letters_max", "dead_letters_max = 0"),
    ("notice_after", "notice_after = \"500ms\""),
    ("handler", "handler = \"hybrid\""),
];

#[test]
fn every_setting_of_a_lane_has_an_effect_in_a_lane_and_in_an_agent() {
    let settings: Vec<&str> = LANE_LINES.iter().map(|(setting, _)| *setting).collect();
    assert_eq!(settings, SETTING_KEYS, "a setting of the core has no line here");
    let lines: Vec<&str> = LANE_LINES.iter().map(|(_, line)| *line).collect();
    check("lane \"main\" {\n#\n}", &lines);
    check("agent \"a\" {\necho = true\n#\n}", &lines);
}

#[test]
fn every_duration_may_be_given_in_milliseconds() {
    for (frame, plain, millis) in [
        ("lane \"m\" {\n#\n}", "wait_timeout = \"2s\"", "wait_timeout_ms = 2000"),
        ("lane \"m\" {\n#\n}", "timeout = \"2s\"", "timeoutMs = 2000"),
        ("lane \"m\" {\n#\n}", "lease = \"2s\"", "lease_ms = 2000"),
        ("lane \"m\" {\n#\n}", "notice_after = \"2s\"", "notice_after_ms = 2000"),
        ("lane \"m\" {\nretry {\n#\n}\n}", "initial_delay = \"2s\"", "initial_delay_ms = 2000"),
        ("lane \"m\" {\nretry {\n#\n}\n}", "fixed_delay = \"2s\"", "fixedDelayMs = 2000"),
        ("lane \"m\" {\nretry {\n#\n}\n}", "max_delay = \"2s\"", "max_delay_ms = 2000"),
        ("lane \"m\" {\nageing {\n#\n}\n}", "after = \"2s\"", "after_ms = 2000"),
        ("lane \"m\" {\nboost {\n#\n}\n}", "deadline = \"2s\"", "deadline_ms = 2000"),
        ("messages {\nqueue {\n#\n}\n}", "debounce = \"2s\"", "debounceMs = 2000"),
        ("messages {\nqueue {\n#\n}\n}", "max_wait = \"2s\"", "max_wait_ms = 2000"),
        ("queue {\n#\n}", "default_timeout = \"2s\"", "default_timeout_ms = 2000"),
        ("queue {\nlane_timeouts {\n#\n}\n}", "query = \"2s\"", "query_ms = 2000"),
    ] {
        assert_eq!(seen(&frame.replace('#', plain)), seen(&frame.replace('#', millis)), "{plain}");
    }
}

#[test]
fn an_empty_block_has_the_standard_values() {
    for (empty, written) in [
        ("retry {}", "retry {\nstrategy = \"exponential\"\nmax_retries = 3\ninitial_delay_ms = 100\n}"),
        ("boost {}", "boost { strategy = \"standard\" }"),
        ("ageing {}", "ageing { after = \"60s\" }"),
    ] {
        let frame = "lane \"main\" {\n#\n}";
        assert_eq!(seen(&frame.replace('#', empty)), seen(&frame.replace('#', written)));
    }
}

#[test]
fn none_switches_a_group_off_whatever_its_other_keys_are() {
    let frame = "lane \"main\" {\n#\n}";
    for (none, written) in [
        ("boost = \"none\"", "boost {\nstrategy = \"none\"\ndeadline = \"5m\"\n}"),
        ("retry = \"none\"", "retry {\nstrategy = \"none\"\nmax_retries = 3\n}"),
    ] {
        assert_eq!(seen(&frame.replace('#', none)), seen(&frame.replace('#', written)));
    }
}

#[test]
fn every_key_at_the_top_has_an_effect() {
    check(
        "#",
        &[
            "listen = \"0.0.0.0:80\"",
            "store = \"memory\"",
            "store = \"./elsewhere\"",
            "store = \"redis://localhost\"",
            "store = \"postgres://localhost\"",
            "lane \"x\" { weight = 2 }",
            "agent \"x\" { echo = true }",
            "handler \"x\" { url = \"http://localhost\" }",
            "messages {\nqueue { cap = 3 }\n}",
            "queue {}",
        ],
    );
}

#[test]
fn every_key_of_an_agent_has_an_effect() {
    check(
        "#",
        &[
            "agent \"a\" { command = [\"x\"] }",
            "agent \"a\" { command = [\"x\", \"y\"] }",
            "agent \"a\" {\ncommand = [\"x\"]\nprotocol = \"jsonl\"\n}",
            "agent \"a\" {\ncommand = [\"x\"]\nenv = [\"HOME\"]\n}",
            "agent \"a\" {\ncommand = [\"x\"]\ncwd = \"/tmp\"\n}",
            "agent \"a\" {\ncommand = [\"x\"]\nlanes = []\n}",
            "agent \"a\" {\ncommand = [\"x\"]\nlanes = [\"gpu\"]\n}",
            "agent \"a\" { url = \"https://localhost/x\" }",
            "agent \"a\" {\nurl = \"https://localhost/x\"\ntask_url = \"https://localhost/t\"\n}",
            "agent \"a\" {\nurl = \"https://localhost/x\"\nsteerUrl = \"https://localhost/t\"\n}",
            "agent \"a\" {\nurl = \"https://localhost/x\"\ncancel_url = \"https://localhost/t\"\n}",
            "agent \"a\" { external = true }",
            "agent \"a\" { echo = true }",
            "handler \"a\" { command = [\"x\"] }",
            "handler \"a\" {\ncommand = [\"x\"]\nprotocol = \"jsonl\"\n}",
            "handler \"a\" {\ncommand = [\"x\"]\nenv = [\"HOME\"]\n}",
            "handler \"a\" {\ncommand = [\"x\"]\ncwd = \"/tmp\"\n}",
            "handler \"a\" { url = \"https://localhost/x\" }",
        ],
    );
}

#[test]
fn every_key_of_a_schedule_has_an_effect() {
    let line = |rest: &str| {
        let frame = "agent \"a\" { echo = true }\nagent \"b\" { echo = true }\nschedule \"s\" {\n";
        format!("{frame}{rest}\n}}")
    };
    let lines = [
        "cron = \"0 9 * * 1-5\"\nagent = \"a\"\nmessage = \"m\"",
        "cron = \"0 8 * * 1-5\"\nagent = \"a\"\nmessage = \"m\"",
        "cron = \"0 9 * * 1-5\"\nagent = \"b\"\nmessage = \"m\"",
        "cron = \"0 9 * * 1-5\"\nagent = \"a\"\nmessage = \"n\"",
        "cron = \"0 9 * * 1-5\"\nagent = \"a\"\nmessage = \"m\"\ntimezone = \"Asia/Tokyo\"",
        "cron = \"0 9 * * 1-5\"\nagent = \"a\"\nmessage = \"m\"\nsession = \"s\"",
        "cron = \"0 9 * * 1-5\"\nagent = \"a\"\nmessage = \"m\"\nenabled = false",
        "cron = \"0 9 * * 1-5\"\nagent = \"a\"\nmessage = \"m\"\ncatch_up = \"one\"",
    ]
    .map(line);
    check("#", &lines.each_ref().map(String::as_str));
}

#[test]
fn every_key_of_the_message_queue_has_an_effect_everywhere_and_in_one_channel() {
    let mut lines =
        vec!["debounce_ms = 500", "max_wait_ms = 5000", "cap = 3", "drop = \"old\"", "drop = \"new\""];
    check("messages {\nqueue {\n#\n}\n}", &lines);
    lines.push("drop = \"summarize\"");
    check("messages {\nqueue {\nby_channel {\nx = { # }\n}\n}\n}", &lines);
    let modes = ["followup", "steer", "steer-backlog", "interrupt", "reject", "latest"];
    let modes = modes.map(|mode| format!("mode = \"{mode}\""));
    check("messages {\nqueue {\n#\n}\n}", &modes.each_ref().map(String::as_str));
    check(
        "messages {\n#\n}",
        &["redeliver = false", "attempts = 3", "policy { cap_max = 50 }", "policy { wait_max = \"2m\" }"],
    );
    let gateway = seen("messages {\nqueue {\ndebounceMsByChannel {\ndiscord = 500\n}\n}\n}");
    assert_eq!(gateway, seen("messages {\nqueue {\nbyChannel {\ndiscord { debounce = \"0.5s\" }\n}\n}\n}"));
    let short = seen("messages {\nqueue { by_channel = { discord = \"Abort\" } }\n}");
    assert_eq!(short, seen("messages {\nqueue {\nbyChannel {\ndiscord { mode = \"interrupt\" }\n}\n}\n}"));
}

#[test]
fn the_limits_of_a_chat_gateway_limit_lanes() {
    let gateway = seen("agents {\ndefaults {\nmaxConcurrent = 7\nsubagents { maxConcurrent = 9 }\n}\n}");
    let lanes = seen("lane \"main\" { max_concurrency = 7 }\nlane \"subagent\" { max_concurrency = 9 }");
    assert_eq!(gateway, lanes);
}

#[test]
fn every_key_of_the_queue_has_an_effect() {
    check(
        "queue {\n#\n}",
        &[
            "control_max_concurrency = 7",
            "query_max_concurrency = 7",
            "execute_max_concurrency = 7",
            "generate_max_concurrency = 7",
            "enable_metrics = false",
            "enable_dlq = false",
            "dlq_max_size = 7",
            "enable_alerts = false",
            "storage_path = \"./x\"",
            "default_timeout_ms = 7",
            "pressure_threshold = 7",
            "retry_policy {}",
            "retry_policy { strategy = \"none\" }",
            "retry_policy { strategy = \"fixed\" }",
            "retry_policy { max_retries = 7 }",
            "retry_policy { initial_delay_ms = 7 }",
            "retry_policy { fixed_delay_ms = 7 }",
            "retry_policy { max_delay_ms = 7 }",
            "retry_policy { jitter = true }",
            "rate_limit {\nlimit_type = \"per_second\"\nmax_operations = 7\n}",
            "rate_limit {\nlimit_type = \"per_minute\"\nmax_operations = 7\n}",
            "rate_limit {\nlimit_type = \"per_hour\"\nmax_operations = 7\n}",
            "rate_limit {\nlimit_type = \"per_hour\"\nmax_operations = 8\n}",
            "rate_limit { limit_type = \"unlimited\" }",
            "priority_boost { strategy = \"standard\" }",
            "priority_boost { strategy = \"aggressive\" }",
            "priority_boost { strategy = \"disabled\" }",
            "priority_boost { deadline_ms = 7 }",
            "lane_timeouts { control = 7 }",
            "lane_timeouts { query = 7 }",
            "lane_timeouts { execute = 7 }",
            "lane_timeouts { generate = 7 }",
            "lane_handlers { control = { mode = \"external\" } }",
            "lane_handlers { query = { mode = \"hybrid\" } }",
            "lane_handlers { query = \"external\" }",
            "lane_handlers { execute = { mode = \"external\" } }",
            "lane_handlers { execute = { mode = \"external\", timeout_ms = 7 } }",
            "lane_handlers { generate = { mode = \"external\" } }",
            "tools { bash = \"query\" }",
            "tools { bash = \"control\" }",
            "tools { WebFetch = \"query\" }",
        ],
    );
}

#[test]
fn a_lanes_own_group_overrides_the_queues_keys_for_all_lanes() {
    let config = read(
        "lane \"session:*/query\" {
           retry { max_retries = 1 }
           pressure_threshold = 3
         }
         queue {
           retry_policy = { max_retries = 9, initial_delay_ms = 7 }
           pressure_threshold = 20
         }",
    );
    let lane = |name: &str| config.lanes.iter().find(|lane| lane.lanes.as_str() == name).unwrap();
    let query = &lane("session:*/query").settings;
    assert_eq!((query.retry.unwrap().max_retries, query.retry.unwrap().initial_delay.0), (1, 100));
    assert_eq!(query.pressure_threshold, Some(3));
    let execute = &lane("session:*/execute").settings;
    assert_eq!((execute.retry.unwrap().max_retries, execute.retry.unwrap().initial_delay.0), (9, 7));
    assert_eq!(execute.pressure_threshold, Some(20));
    assert_eq!(config.source("lane \"session:*/query\"", "retry.max_retries").to_string(), "a.hcl:2");
    assert_eq!(config.source("lane \"session:*/execute\"", "retry.max_retries").to_string(), "a.hcl:6");
}

fn lane<'a>(config: &'a Config, name: &str) -> &'a laneway_core::LaneSettings {
    let lane = config.lanes.iter().find(|lane| lane.lanes.as_str() == name);
    lane.map_or_else(|| panic!("{name} is not configured"), |lane| &lane.settings)
}

#[test]
fn an_agents_lanes_keep_the_settings_of_patterns() {
    let config = read(
        "lane \"agent:*\" {
           weight = 3
           max_queued = 9
           retry = { strategy = \"fixed\", jitter = true }
         }
         agent \"a\" { echo = true }
         agent \"b\" {
           echo = true
           max_queued = 5
           retry { max_retries = 1 }
         }
         agent \"c\" {
           echo = true
           max_queued = 5
         }
         lane \"agent:c\" { priority = 1 }",
    );
    let names: Vec<String> = config.lanes.iter().map(|lane| lane.lanes.to_string()).collect();
    assert_eq!(names, ["agent:*", "agent:a", "agent:b", "agent:c", "global", "task:a", "task:b", "task:c"]);
    // A part of the group `retry` stands for the whole group.
    for (lane, weight, max_queued, retries, jitter) in
        [("a", "3", "9", "3", "true"), ("b", "3", "5", "1", "false"), ("c", "3", "5", "3", "true")]
    {
        let held = |key: &str| holds(&config, &format!("agent:{lane}"), key);
        let all = [held("weight"), held("max_queued"), held("retry.max_retries"), held("retry.jitter")];
        assert_eq!(all, [weight, max_queued, retries, jitter], "{lane}");
    }
    assert_eq!(config.source("lane \"agent:b\"", "weight").to_string(), "a.hcl:2");
    assert_eq!(config.source("lane \"agent:b\"", "max_queued").to_string(), "a.hcl:9");
    assert_eq!(holds(&config, "agent:c", "priority"), "1");
}

/// What holds for a lane, as the listing has it.
fn holds(config: &Config, lane: &str, key: &str) -> String {
    let block = format!("lane \"{lane}\"");
    let values = config.effective().0;
    values.into_iter().find(|value| value.block == block && value.key == key).unwrap().value
}

#[test]
fn an_external_agent_waits_for_workers_in_both_lanes() {
    let config =
        read("lane \"task:*\" {\nweight = 3\nhandler = \"hybrid\"\n}\nagent \"a\" { external = true }");
    let external = Some(laneway_core::Handler::External);
    assert_eq!((lane(&config, "agent:a").handler, lane(&config, "task:a").handler), (external, external));
    assert_eq!(holds(&config, "task:a", "weight"), "3");
    assert_eq!(lane(&config, "task:*").handler, Some(laneway_core::Handler::Hybrid));
}

#[test]
fn what_a_block_leaves_open_comes_from_the_next_more_general_one() {
    let text = "lane \"x*\" {\nweight = 3\nmax_queued = 4\n}\nlane \"xy*\" { weight = 5 }\nlane \"xyz\" {}";
    let config = read(text);
    assert_eq!(
        (holds(&config, "xyz", "weight"), holds(&config, "xyz", "max_queued")),
        ("5".into(), "4".into())
    );
    assert_eq!(config.source("lane \"xyz\"", "weight").to_string(), "a.hcl:5");
    assert_eq!(config.source("lane \"xyz\"", "max_queued").to_string(), "a.hcl:3");
}

#[test]
fn expressions_are_evaluated() {
    assert_eq!(
        seen("lane \"main\" { max_concurrency = 2 * 3 + 1 }"),
        seen("lane \"main\" { max_concurrency = 7 }")
    );
}

#[test]
fn a_changed_file_changes_only_the_lanes_that_differ() {
    let before = read("lane \"a\" { weight = 1 }\nlane \"b\" { weight = 2 }\nlane \"c\" { weight = 3 }");
    let after = read("lane \"b\" { weight = 2 }\n\nlane \"c\" { weight = 4 }\nlane \"d\" { weight = 5 }");
    let changes = after.lane_changes(&before);
    let told: Vec<(&str, Option<u32>)> = changes
        .iter()
        .map(|block| (block.lanes.as_str(), block.settings.as_ref().and_then(|settings| settings.weight)))
        .collect();
    assert_eq!(told, [("a", None), ("c", Some(4)), ("d", Some(5))]);
}

#[test]
fn every_key_of_the_server_block_has_an_effect() {
    check(
        "server {\n#\n}",
        &[
            "hosts = [\"lanes.example\"]",
            "origins = [\"https://chat.example\"]",
            "url = \"https://lanes.example\"",
            "state = \"/var/lib/laneway\"",
            "body_bytes_max = 2048",
            "body_timeout = \"5s\"",
            "header_timeout_ms = 700",
            "connections_max = 7",
            "drain_grace = 0",
            "ready_when_full = false",
            "mcp_answer_within = \"2s\"",
            "history_max = 5",
            "token_requests_per_minute = 60",
            "token_bytes_per_minute = 100000",
            "token_connections = 4",
            "token_waiting = 0",
        ],
    );
}
