//! Errors that any block can have, with their exact texts.

mod common;

use common::{NOTHING, check, check_as};
use laneway_config::{Profile, load, parse};

#[test]
fn the_error_of_an_unknown_key_suggests_the_most_similar_one() {
    check(
        "lane \"main\" { max_concurency = 3 }",
        "a.hcl:1: lane \"main\": max_concurency is not a setting; did you mean max_concurrency?",
    );
    check(
        "lane \"main\" { maxConcurency = 3 }",
        "a.hcl:1: lane \"main\": maxConcurency is not a setting; did you mean max_concurrency?",
    );
    check(
        "\nlane \"main\" {\n  retry {\n    max_retrys = 3\n  }\n}",
        "a.hcl:4: lane \"main\": retry.max_retrys is not a setting; did you mean retry.max_retries?",
    );
    check("lanes \"x\" {}", "a.hcl:1: lanes is not a setting; did you mean lane?");
    check(
        "colour = \"red\"",
        "a.hcl:1: colour is not a setting; there are listen, store, lane, agents, agent, queue, handler, messages, server, schedule",
    );
    check(
        "agent \"a\" {\n lane = []\n echo = true\n}",
        "a.hcl:2: agent \"a\": lane is not a setting; did you mean lanes?",
    );
    check(
        "handler \"a\" {\nurl = \"http://x\"\nexternal = true\n}",
        "a.hcl:3: handler \"a\": external is not a setting; there are command, url, protocol, env, cwd",
    );
    check(
        "messages {\nque { }\n}",
        "a.hcl:2: messages: que is not a setting; there are redeliver, attempts, policy, queue",
    );
    check(
        "messages {\nqueue { debounc_ms = 1 }\n}",
        "a.hcl:2: messages.queue: debounc_ms is not a setting; did you mean debounce_ms?",
    );
    check(
        "messages {\nqueue {\nby_channel {\nx { capp = 1 }\n}\n}\n}",
        "a.hcl:4: messages.queue.by_channel \"x\": capp is not a setting; did you mean cap?",
    );
    check(
        "queue {\nlane_timeouts { qery = 1 }\n}",
        "a.hcl:2: queue: lane_timeouts.qery is not a setting; did you mean lane_timeouts.query?",
    );
    check(
        "queue {\nlane_handlers {\nquery {\nmode = \"external\"\ntimeot_ms = 1\n}\n}\n}",
        "a.hcl:5: queue: lane_handlers.query.timeot_ms is not a setting; did you mean lane_handlers.query.timeout_ms?",
    );
    check(
        "queue {\nrate_limit {\nlimit_type = \"unlimited\"\nmax_operation = 1\n}\n}",
        "a.hcl:4: queue: rate_limit.max_operation is not a setting; did you mean rate_limit.max_operations?",
    );
    check(
        "queue {\nretry_policy { retries = 1 }\n}",
        "a.hcl:2: queue: retry_policy.retries is not a setting; did you mean retry_policy.max_retries?",
    );
    check(
        "queue {\npriority_boost { deadlin = 1 }\n}",
        "a.hcl:2: queue: priority_boost.deadlin is not a setting; did you mean priority_boost.deadline?",
    );
    check(
        "queue { query_max_concurency = 1 }",
        "a.hcl:1: queue: query_max_concurency is not a setting; did you mean query_max_concurrency?",
    );
}

#[test]
fn the_error_of_a_wrong_value_says_what_would_be_right() {
    let number = "must be a whole number from 1 to 1000000000";
    for value in
        ["0", "-3", "3.7", "\"abc\"", "\"\"", "\"4\"", "true", "[4]", "{ a = 4 }", "null", "99999999999"]
    {
        check(
            &format!("lane \"main\" {{ max_concurrency = {value} }}"),
            &format!("a.hcl:1: lane \"main\": max_concurrency {number}"),
        );
    }
    check("lane \"m\" { order = \"lifo\" }", "a.hcl:1: lane \"m\": order must be one of fair, fifo");
    check(
        "lane \"m\" {\nretry { jitter = \"true\" }\n}",
        "a.hcl:2: lane \"m\": retry.jitter must be one of true, false",
    );
    let duration = "must be a duration such as \"2s\" or 500 (milliseconds), from 1ms to ten years";
    check("lane \"m\" { lease = 0 }", &format!("a.hcl:1: lane \"m\": lease {duration}"));
    check("lane \"m\" { lease = \"2 weeks\" }", &format!("a.hcl:1: lane \"m\": lease {duration}"));
    check(
        "lane \"m\" { leaseMs = \"2s\" }",
        "a.hcl:1: lane \"m\": leaseMs must be a whole number of milliseconds",
    );
    check("lane \"m\" { alerts = 3 }", "a.hcl:1: lane \"m\": alerts must be a block, not a number");
    check(
        "lane \"m\" { rate_limit = \"lots\" }",
        "a.hcl:1: lane \"m\": rate_limit must read like 60/minute, or be unlimited",
    );
    check(
        "lane \"m\" {\nweight { x = 1 }\n}",
        "a.hcl:2: lane \"m\": weight must be a whole number from 1 to 1000",
    );
    check("lane = 3", "a.hcl:1: lane must be a block, not a number");
    check("lane { max_concurrency = 3 }", "a.hcl:1: lane \"max_concurrency\" must be a block, not a number");
    check(
        "lane \"a\\tb\" {}",
        "a.hcl:1: lane \"a\\tb\": a name has no control characters, this one has one as character 2",
    );
    check("listen = \"nowhere\"", "a.hcl:1: listen must be a host and a port, such as \"127.0.0.1:7717\"");
    check("listen = \"a:99999\"", "a.hcl:1: listen must be a host and a port, such as \"127.0.0.1:7717\"");
    check("listen = 7717", "a.hcl:1: listen must be a text, not a number");
    check("store = \" \"", "a.hcl:1: store must not be blank");
    check(
        "store = \"mysql://x\"",
        "a.hcl:1: store must be \"memory\", a directory, or a redis://, redis+sentinel:// or postgres:// URL",
    );
    check("store = \"redis://\"", "a.hcl:1: store must name a host after the ://");
    for typo in ["redis:/u:p@10.0.0.5", "Postgresql:10.0.0.5/lanes", "rediss:host"] {
        let error = "a.hcl:1: store must have // after the scheme, as in redis://HOST:PORT/0 or postgres://HOST/DATABASE";
        check(&format!("store = \"{typo}\""), error);
    }
}

#[test]
fn a_setting_given_twice_is_an_error() {
    check(
        "lane \"main\" {\n  max_queued = 1\n  maxQueued = 1\n}",
        "a.hcl:3: lane \"main\": maxQueued is given twice; first at a.hcl:2",
    );
    check(
        "lane \"m\" {\n timeout = 1\n timeout_ms = 1\n}",
        "a.hcl:3: lane \"m\": timeout_ms is given twice; first at a.hcl:2",
    );
    check("lane \"main\" {}\nlane \"main\" {}", "a.hcl:2: lane \"main\" is given twice; first at a.hcl:1");
    check(
        "lane \"main\" { weight = 1 }\nlane \" main \" { weight = 2 }",
        "a.hcl:2: lane \" main \": weight is given twice; first at a.hcl:1",
    );
    check("queue {}\nqueue {}", "a.hcl:2: queue is given twice; first at a.hcl:1");
    check(
        "lane \"agent:a\" { max_queued = 1 }\nagent \"a\" {\necho = true\nmax_queued = 2\n}",
        "a.hcl:4: agent \"a\": max_queued is given twice; first at a.hcl:1",
    );
    check(
        "lane \"session:*/query\" { max_concurrency = 1 }\nqueue { query_max_concurrency = 2 }",
        "a.hcl:2: queue: query_max_concurrency is given twice; first at a.hcl:1",
    );
    check_as(
        "a.json5",
        "{\n listen: 'a:1',\n listen: 'a:2'\n}",
        "a.json5:3: listen is given twice; first at a.json5:2",
    );
    check_as(
        "a.json5",
        "{ lane: {\n main: {},\n 'main': {} } }",
        "a.json5:3: lane \"main\" is given twice; first at a.json5:2",
    );
}

#[test]
fn all_errors_are_reported_in_the_order_of_the_file() {
    check(
        "listen = 1\nqueue { enable_dlq = 3 }\nagent \"a\" {}\nlane \"m\" {\n weight = 0\n wieght = 1\n}\nfoo = 1",
        "a.hcl:1: listen must be a text, not a number
         a.hcl:2: queue: enable_dlq must be true or false, not a number
         a.hcl:3: agent \"a\": needs one of command, url, external = true or echo = true
         a.hcl:5: lane \"m\": weight must be a whole number from 1 to 1000
         a.hcl:6: lane \"m\": wieght is not a setting; did you mean weight?
         a.hcl:8: foo is not a setting; there are listen, store, lane, agents, agent, queue, handler, messages, server, schedule",
    );
}

#[test]
fn a_syntax_error_has_its_line() {
    check(
        "a = 1\nb = = 2",
        r#"a.hcl:2: invalid expression; expected `"`, `[`, `{`, `-`, `!`, `(`, `_`, `<`, letter or digit"#,
    );
    check(
        "lane \"x\" {\nweight = 1\nlease = = 2\n}",
        r#"a.hcl:3: invalid expression; expected `"`, `[`, `{`, `-`, `!`, `(`, `_`, `<`, letter or digit"#,
    );
    check("\nlane \"m\" { weight = x }", "a.hcl:2: undefined variable `x` in expression `x`");
    check(
        "a = 1\na = 2",
        "a.hcl:2: invalid attribute; expected unique attribute key; found redefined attribute",
    );
    check("lane \"a\" \"b\" {}", "a.hcl:1: a block has one name, but lane has 2");
    check_as("a.json5", "{\n a: }", "a.json5:2: expected value");
    check_as("a.json", "{} x", "a.json:1: trailing characters");
    check_as("a.json5", "[1]", "a.json5: the file must hold one object");
    check_as("a.json5", &"[".repeat(1000), "a.json5:1: the nesting is too deep");
    check_as("a.toml", "a = 1\nb = \n", "a.toml:2: string values must be quoted, expected literal string");
    check_as("a.toml", "listen = 2026-01-01", "a.toml:1: listen must be a text, not a date");
    check_as("a.yaml", "a: 1", "a.yaml: the file's name must end in .hcl, .json5, .json or .toml");
    check_as(
        "a.hcl",
        &" ".repeat(laneway_config::FILE_BYTES_MAX + 1),
        "a.hcl: the file has more than 1048576 bytes",
    );
}

#[test]
fn the_error_of_an_unreadable_file_names_it() {
    let nowhere = std::path::Path::new("nowhere/laneway.hcl");
    let errors = load(nowhere, Profile::SERVER, NOTHING).unwrap_err();
    let text = errors.to_string();
    assert!(text.starts_with("nowhere/laneway.hcl: cannot be read: "), "{text}");
    assert_eq!(errors.iter().map(|error| error.problem.code()).collect::<Vec<_>>(), ["UNREADABLE"]);
}

#[test]
fn attributes_that_share_a_line_are_refused_with_advice() {
    let advice = "several attributes or blocks share this line; write each on its own line, or write an object \
                  with commas, such as retry = { strategy = \"fixed\", max_retries = 2 }";
    for text in [
        "\nlane \"m\" { max_queued = 1  weight = 2 }",
        "\nlane \"m\" { retry { max_retries = 2 } }",
        "\nlane \"m\" { max_queued = 1\n weight = 2\n}",
        "lane \"m\" {\n weight = 2 }",
        "retry = {}\nqueue = { a = 1  b = 2 }",
    ] {
        check(text, &format!("a.hcl:2: {advice}"));
    }
}

#[test]
fn a_limit_that_is_never_reached_is_a_warning_that_names_its_bound() {
    let warnings = |text: &str, environment: &[(&str, &str)]| {
        parse("a.hcl", text, Profile::SERVER, environment.iter().copied()).unwrap().warnings
    };
    let main = "lane \"main\" { max_concurrency = 50 }\n";
    let nothing: [&str; 0] = [];
    assert_eq!(warnings(main, &[]), nothing, "global has no limit");
    let limit = [("LANEWAY_MAX_CONCURRENT_TASKS", "10")];
    assert_eq!(warnings(main, &limit), ["a.hcl:1: main 50 is never reached: global is 10"]);
    // An agent's turns also need its further lanes; the lowest one counts. Without any, that is `main`.
    let agents = "agent \"a\" {\n echo = true\n max_concurrency = 8\n}\n\
        agent \"b\" {\n echo = true\n max_concurrency = 8\n lanes = [\"llm\", \"wide\"]\n}\n\
        agent \"c\" {\n echo = true\n max_concurrency = 8\n lanes = [\"wide\"]\n}\n\
        lane \"wide\" { max_concurrency = 9 }\nlane \"global\" { max_concurrency = 9 }";
    assert_eq!(
        warnings(agents, &[]),
        ["a.hcl:3: agent:a 8 is never reached: main is 4", "a.hcl:7: agent:b 8 is never reached: llm is 1",]
    );
    // Lanes of agents take the limit of their pattern, which is one sentence.
    let pattern = "lane \"agent:*\" { max_concurrency = 12 }\nlane \"*\" { max_concurrency = 11 }\n\
        agent \"a\" { echo = true }";
    assert_eq!(warnings(pattern, &[]), ["a.hcl:1: agent:* 12 is never reached: global is 11"]);
}

#[test]
fn a_setting_without_effect_is_a_warning() {
    let text = "queue {\n enable_dlq = false\n dlq_max_size = 9\n rate_limit {\n limit_type = \"unlimited\"\n max_operations = 1\n }\n}";
    let config = parse("a.hcl", text, Profile::SERVER, NOTHING).unwrap();
    assert_eq!(
        config.warnings,
        [
            "a.hcl:3: queue: dlq_max_size has no effect, because enable_dlq is false",
            "a.hcl:6: queue: rate_limit.max_operations has no effect, because limit_type is unlimited",
        ]
    );
}
