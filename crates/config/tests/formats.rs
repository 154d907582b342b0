//! One configuration in three formats: the same values, each with its own lines.
#![allow(clippy::panic)]

use laneway_config::{Config, DropRule, Mode, Profile, Protocol, Runner, StoreLocation, parse};
use laneway_core::{Handler, Millis, Period, RateLimit, Retry, Switch, ToolLane};

const HCL: &str = include_str!("samples/laneway.hcl");
const JSON5: &str = include_str!("samples/laneway.json5");
const TOML: &str = include_str!("samples/laneway.toml");

const NOTHING: [(&str, &str); 0] = [];

fn read(file: &str, text: &str) -> Config {
    parse(file, text, Profile::SERVER, NOTHING).unwrap_or_else(|errors| panic!("{errors}"))
}

/// All values without their sources.
fn values(config: &Config) -> impl PartialEq + std::fmt::Debug + use<> {
    let listing: Vec<(String, String, String, bool)> = config
        .effective()
        .0
        .into_iter()
        .map(|value| {
            (value.block, value.key, value.value, value.source == laneway_config::ValueSource::Default)
        })
        .collect();
    let Config { listen, store, agents, handlers, schedules, messages, tools, .. } = config.clone();
    (listing, config.lane_blocks(), (listen, store, agents, handlers, schedules, messages, tools))
}

#[test]
fn the_same_file_has_the_same_values_in_three_formats() {
    let hcl = values(&read("laneway.hcl", HCL));
    assert_eq!(hcl, values(&read("laneway.json5", JSON5)));
    assert_eq!(hcl, values(&read("laneway.toml", TOML)));
}

#[test]
fn keys_may_be_written_in_camel_case_in_every_format() {
    let camel = |text: &str| {
        let mut camel = String::new();
        let mut chars = text.chars().peekable();
        while let Some(char) = chars.next() {
            match chars.peek() {
                Some(next) if char == '_' && camel.ends_with(char::is_alphabetic) => {
                    camel.push(next.to_ascii_uppercase());
                    chars.next();
                }
                _ => camel.push(char),
            }
        }
        // Only keys change, not words and paths.
        camel.replace("perSecond", "per_second").replace("queueData", "queue_data")
    };
    for (file, text) in [("a.hcl", HCL), ("a.toml", TOML)] {
        let changed = camel(text);
        assert!(changed.contains("maxConcurrency") && !changed.contains("max_concurrency"), "{changed}");
        assert_eq!(values(&read(file, text)), values(&read(file, &changed)));
    }
}

#[test]
fn the_sample_has_the_expected_values() {
    let config = read("laneway.hcl", HCL);
    assert_eq!(config.listen.to_string(), "127.0.0.1:7717");
    assert!(config.listen.is_loopback());
    assert_eq!(config.store, StoreLocation::Path("./queue_data".into()));
    assert_eq!(config.warnings, Vec::<String>::new());

    let names: Vec<&str> = config.agents.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["browser", "builder", "coder"]);
    let coder = config.agent("coder").unwrap();
    let Runner::Program(program) = &coder.runner else { panic!("{coder:?}") };
    assert_eq!((program.command.join(" ").as_str(), program.protocol), ("claude -p", Protocol::Text));
    let lanes: Vec<String> = coder.lanes.iter().flatten().map(|lane| lane.to_string()).collect();
    assert_eq!(lanes, ["main", "provider:llm"]);
    assert_eq!(config.agent("builder").unwrap().runner, Runner::External);
    assert_eq!(config.handlers[0].kind.as_str(), "bash");
    assert_eq!(config.schedules[0].timezone, "Europe/Berlin");

    let discord = config.messages.in_channel("discord");
    assert_eq!((discord.mode, discord.drop), (Mode::Collect, DropRule::Summarize));
    assert_eq!((discord.debounce, discord.max_wait), (Millis(1000), Millis(10_000)));
    assert_eq!(config.tools.as_ref().unwrap().lane_of("read"), ToolLane::Query);
}

#[test]
fn the_queue_block_becomes_the_tool_lanes_of_every_session() {
    let config = read("laneway.hcl", HCL);
    let lane = |name: &str| {
        let lane = config.lanes.iter().find(|lane| lane.lanes.as_str() == name);
        lane.unwrap_or_else(|| panic!("no {name}")).settings.clone()
    };
    let limits: Vec<_> = ["control", "query", "execute", "generate"]
        .iter()
        .map(|tool| lane(&format!("session:*/{tool}")).max_concurrency.unwrap())
        .collect();
    assert_eq!(limits, [Switch::On(2), Switch::On(10), Switch::On(5), Switch::On(1)]);
    let query = lane("session:*/query");
    assert_eq!(query.timeout, Some(Switch::On(Millis(30_000))));
    assert_eq!(query.wait_timeout, None);
    assert_eq!(query.retry, Some(Retry::STANDARD));
    assert_eq!(query.rate_limit, Some(Switch::On(RateLimit { per: Period::Second, max: 100 })));
    assert_eq!(lane("session:*/generate").timeout, Some(Switch::On(Millis(60_000))));
    let execute = lane("session:*/execute");
    // The lane's timeout is 120 s and its handler's is 60 s; the shorter one ends the attempt.
    assert_eq!(execute.timeout, Some(Switch::On(Millis(60_000))));
    assert_eq!(execute.handler, Some(Handler::External));
}

#[test]
fn two_different_stores_are_an_error_and_the_same_store_twice_is_not() {
    let both = include_str!("samples/both_stores.hcl");
    let errors = parse("laneway.hcl", both, Profile::SERVER, NOTHING).unwrap_err();
    assert_eq!(
        errors.to_string(),
        "laneway.hcl:50: queue: storage_path is ./queue_data and store is ./laneway-data; give one of them"
    );
    let same = read("laneway.hcl", &both.replace("./laneway-data", "./queue_data"));
    assert_eq!(same.store, StoreLocation::Path("./queue_data".into()));
}

#[test]
fn every_value_has_its_line() {
    let place = |config: &Config, block: &str, key: &str| config.source(block, key).to_string();
    for (file, text, needle) in [
        ("a.hcl", HCL, "max = 60"),
        ("a.json5", JSON5, "\"provider:llm\": {"),
        ("a.toml", TOML, "rate_limit = { per"),
    ] {
        let config = read(file, text);
        let line = 1 + text.lines().position(|line| line.contains(needle)).unwrap();
        assert_eq!(place(&config, "lane \"provider:llm\"", "rate_limit.max"), format!("{file}:{line}"));
        let cron = 1 + text.lines().position(|line| line.contains("0 9 * * 1-5")).unwrap();
        assert_eq!(place(&config, "schedule \"standup\"", "cron"), format!("{file}:{cron}"));
        assert_eq!(place(&config, "", "listen"), format!("{file}:{}", if file == "a.json5" { 2 } else { 1 }));
        assert_eq!(place(&config, "schedule \"standup\"", "enabled"), "default");
        let unplaced = config.effective().0.into_iter().find(|value| value.source.to_string() == file);
        assert_eq!(unplaced, None);
    }
}
