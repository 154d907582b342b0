//! Every error of `agent`, `handler`, `schedule`, `messages` and `queue`, with its exact text.

mod common;

use common::{NOTHING, check};
use laneway_config::{Profile, parse};

#[test]
fn an_agent_needs_exactly_one_runner() {
    let choices = "command, url, external = true or echo = true";
    check("agent \"a\" {}", &format!("a.hcl:1: agent \"a\": needs one of {choices}"));
    check("agent \"a\" { external = false }", &format!("a.hcl:1: agent \"a\": needs one of {choices}"));
    check(
        "agent \"a\" {\necho = true\nurl = \"http://x\"\n}",
        &format!("a.hcl:1: agent \"a\": needs only one of {choices}"),
    );
    check("handler \"a\" {}", "a.hcl:1: handler \"a\": needs one of command or url");
    check(
        "agent \"a\" { command = \"claude -p\" }",
        "a.hcl:1: agent \"a\": command must be a list of texts such as [\"claude\", \"-p\"]",
    );
    check("agent \"a\" { command = [] }", "a.hcl:1: agent \"a\": command must name a program");
    check(
        "agent \"a\" { command = [3] }",
        "a.hcl:1: agent \"a\": command must be a list of texts such as [\"claude\", \"-p\"]",
    );
    check(
        "agent \"a\" { url = \"ftp://x\" }",
        "a.hcl:1: agent \"a\": url must be an http:// or https:// URL",
    );
    check(
        "agent \"a\" { url = \"http://\" }",
        "a.hcl:1: agent \"a\": url must be an http:// or https:// URL",
    );
    check("agent \"a\" {\n echo = true\n cwd = \"/\"\n}", "a.hcl:3: agent \"a\": cwd needs a command");
    check(
        "agent \"a\" {\ncommand = [\"x\"]\nprotocol = \"xml\"\n}",
        "a.hcl:3: agent \"a\": protocol must be one of text, jsonl",
    );
    check(
        "agent \"a\" {\ncommand = [\"x\"]\nenv = [\"A=1\"]\n}",
        "a.hcl:3: agent \"a\": env must be a list of names; values come from the server's own environment",
    );
    check("agent \"a\" { echo = 1 }", "a.hcl:1: agent \"a\": echo must be true or false, not a number");
    check(
        "agent \"a\" {\necho = true\nlanes = [\"x*\"]\n}",
        "a.hcl:3: agent \"a\": lanes: '*' belongs in patterns, not in the name of a lane",
    );
    check(
        "agent \"a\" {\necho = true\nlanes = [\"x\", \"x\"]\n}",
        "a.hcl:3: agent \"a\": lanes names x twice",
    );
    check("agent \"a/b\" { echo = true }", "a.hcl:1: agent \"a/b\": the name must not contain a '/'");
    check(
        "agent \"a*\" { echo = true }",
        "a.hcl:1: agent \"a*\": '*' belongs in patterns, not in the name of a lane",
    );
    check(
        "agent \" a\" { echo = true }",
        "a.hcl:1: agent \" a\": the name must not begin or end with a space",
    );
    check(
        "agent \"a\" {\nexternal = true\nhandler = \"internal\"\n}",
        "a.hcl:2: agent \"a\": external = true, but the lane agent:a sets another handler",
    );
}

#[test]
fn a_schedule_needs_its_keys_and_an_existing_agent() {
    check(
        "schedule \"s\" {}",
        "a.hcl:1: schedule \"s\": needs cron
         a.hcl:1: schedule \"s\": needs agent
         a.hcl:1: schedule \"s\": needs message",
    );
    let schedule = |rest: &str| {
        format!("agent \"coder\" {{ echo = true }}\nschedule \"s\" {{\nmessage = \"m\"\n{rest}\n}}")
    };
    check(
        &schedule("cron = \"daily\"\nagent = \"coder\""),
        "a.hcl:4: schedule \"s\": cron must have five or six fields, such as \"0 9 * * 1-5\"",
    );
    check(
        &schedule("cron = \"@daily\"\nagent = \"codr\""),
        "a.hcl:5: schedule \"s\": agent \"codr\" is not defined; did you mean coder?",
    );
    check(
        &schedule("cron = \"@daily\"\nagent = \"xyz\""),
        "a.hcl:5: schedule \"s\": agent \"xyz\" is not defined; there are coder",
    );
    check(
        &schedule("cron = \"@daily\"\nagent = \"coder\"\ncatch_up = \"all\""),
        "a.hcl:6: schedule \"s\": catch_up must be one of skip, one",
    );
    check(
        &schedule("cron = \"@daily\"\nagent = \"coder\"\nenabled = \"yes\""),
        "a.hcl:6: schedule \"s\": enabled must be true or false, not a text",
    );
    check(
        "agent \"a\" {}\nschedule \"s\" {\ncron = \"@daily\"\nagent = \"a\"\nmessage = \"m\"\n}",
        "a.hcl:1: agent \"a\": needs one of command, url, external = true or echo = true",
    );
    // With the library's profile, a schedule may name an agent that is not in the file.
    let own = parse("a.hcl", &schedule("cron = \"@daily\"\nagent = \"mine\""), Profile::LIBRARY, NOTHING);
    assert_eq!(own.map(|config| config.schedules.len()), Ok(1));
}

#[test]
fn further_addresses_need_a_url_and_gateway_limits_are_given_once() {
    check(
        "agent \"a\" {\necho = true\nsteer_url = \"https://x/s\"\n}",
        "a.hcl:3: agent \"a\": steer_url needs a url",
    );
    check(
        "agent \"a\" {\nurl = \"https://x\"\ntask_url = \"x\"\n}",
        "a.hcl:3: agent \"a\": task_url must be an http:// or https:// URL",
    );
    check(
        "lane \"main\" { max_concurrency = 5 }\nagents {\ndefaults { max_concurrent = 4 }\n}",
        "a.hcl:3: agents.defaults: the lane main has a limit already, at a.hcl:1; give one of them",
    );
    check(
        "messages {\nqueue {\nby_channel {\nx { debounce = 1 }\n}\ndebounce_ms_by_channel {\nx = 2\n}\n}\n}",
        "a.hcl:7: messages.queue.by_channel \"x\": by_channel and debounce_ms_by_channel give different values; give one of them",
    );
    check(
        "messages {\nqueue {\ndebounce_ms_by_channel {\nx = \"2s\"\n}\n}\n}",
        "a.hcl:4: messages.queue: debounce_ms_by_channel.x must be a whole number of milliseconds",
    );
}

#[test]
fn messages_are_checked() {
    let modes = "collect, followup, steer, steer-backlog, interrupt, queue, reject, latest";
    check(
        "messages {\nqueue { mode = \"foo\" }\n}",
        &format!("a.hcl:2: messages.queue: mode must be one of {modes}"),
    );
    check(
        "messages {\nqueue { drop = \"maybe\" }\n}",
        "a.hcl:2: messages.queue: drop must be one of old, new, summarize",
    );
    check(
        "messages {\nqueue { cap = 0 }\n}",
        "a.hcl:2: messages.queue: cap must be a whole number from 1 to 1000000000",
    );
    check(
        "messages {\nqueue { debounce_ms = \"x\" }\n}",
        "a.hcl:2: messages.queue: debounce_ms must be a whole number of milliseconds",
    );
    check(
        "messages {\nqueue { debounce = [] }\n}",
        "a.hcl:2: messages.queue: debounce must be a duration such as \"2s\" or 500 (milliseconds)",
    );
    check(
        "messages {\nqueue { debounce = \"20s\" }\n}",
        "a.hcl:2: messages.queue: debounce (20000ms) must not be longer than max_wait (10000ms)",
    );
    check(
        "messages {\nqueue { by_channel = { x = \"foo\" } }\n}",
        &format!("a.hcl:2: messages.queue.by_channel \"x\" must be a block or one of {modes}"),
    );
    check(
        "messages {\npolicy { cap_max = 5 }\n}",
        "a.hcl:1: messages.queue: cap (20) is more than messages.policy.cap_max (5)",
    );
    check(
        "messages {\npolicy { wait_max = \"5s\" }\nqueue { max_wait = \"6s\" }\n}",
        "a.hcl:1: messages.queue: max_wait (6000ms) is longer than messages.policy.wait_max (5000ms)",
    );
    check(
        "messages {\npolicy { cap = 5 }\n}",
        "a.hcl:2: messages: policy.cap is not a setting; did you mean policy.cap_max?",
    );
    check("messages = 3", "a.hcl:1: messages must be a block, not a number");
}

#[test]
fn the_queue_is_checked() {
    let lanes = "control, query, execute, generate";
    check(
        "queue {\ntools { bash = \"fast\" }\n}",
        &format!("a.hcl:2: queue: tools.bash must be one of {lanes}"),
    );
    check(
        "queue { query_max_concurrency = 0 }",
        "a.hcl:1: queue: query_max_concurrency must be a whole number from 1 to 1000000000",
    );
    check("queue { enable_dlq = \"yes\" }", "a.hcl:1: queue: enable_dlq must be true or false, not a text");
    check(
        "queue { pressure_threshold = 0 }",
        "a.hcl:1: queue: pressure_threshold must be a whole number from 1 to 1000000000",
    );
    check(
        "queue {\nrate_limit {\nlimit_type = \"per_day\"\nmax_operations = 1\n}\n}",
        "a.hcl:3: queue: rate_limit.limit_type must be one of per_second, per_minute, per_hour, unlimited",
    );
    check(
        "queue {\nrate_limit { limit_type = \"per_hour\" }\n}",
        "a.hcl:2: queue: needs rate_limit.max_operations",
    );
    check("queue {\nrate_limit { max_operations = 1 }\n}", "a.hcl:2: queue: needs rate_limit.limit_type");
    check(
        "queue {\npriority_boost { strategy = \"wild\" }\n}",
        "a.hcl:2: queue: priority_boost.strategy must be one of standard, aggressive",
    );
    check(
        "queue {\nretry_policy { strategy = \"wild\" }\n}",
        "a.hcl:2: queue: retry_policy.strategy must be one of none, fixed, exponential",
    );
    check(
        "queue {\nlane_handlers { query = { timeout_ms = 1 } }\n}",
        "a.hcl:2: queue: needs lane_handlers.query.mode",
    );
    check(
        "queue {\nlane_handlers { query = \"far\" }\n}",
        "a.hcl:2: queue: lane_handlers.query must be one of internal, external, hybrid",
    );
    let zero = "must be a duration such as \"2s\" or 500 (milliseconds), from 1ms to ten years";
    check("queue {\nlane_timeouts { query = 0 }\n}", &format!("a.hcl:2: queue: lane_timeouts.query {zero}"));
    check(
        "queue {\n lane_timeouts { query = 0 }\n lane_handlers { query = { mode = \"hybrid\", timeout_ms = 5 } }\n}",
        &format!("a.hcl:2: queue: lane_timeouts.query {zero}"),
    );
    check(
        "lane \"m\" {\nrate_limit { max = 3 }\n}",
        "a.hcl:2: lane \"m\": needs rate_limit.per and rate_limit.max",
    );
    check("lane \"m\" {\nalerts {}\n}", "a.hcl:2: lane \"m\": needs alerts.warning or alerts.critical");
}
