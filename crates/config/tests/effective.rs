//! The listing of all effective values.
#![allow(clippy::unwrap_used, clippy::panic)]

use laneway_config::{Profile, ValueSource, parse};
use laneway_core::{LaneName, LaneSettings, Settings};

const SAMPLE: &str = r#"
listen = "127.0.0.1:9"
store  = "postgres://laneway:hunter2@db/laneway"
lane "main" {
  max_concurrency = 6
  retry { max_retries = 2 }
  rate_limit {
    per = "minute"
    max = 60
  }
}
agent "coder" {
  command = ["claude", "-p"]
  timeout = "20m"
}
agent "gate"  { url = "https://me:hunter2@host/chat?key=hunter2" }
schedule "s" {
  cron = "0 9 * * *"
  agent = "coder"
  message = "go"
}
messages {
  queue {
    cap = 5
    by_channel {
      discord { mode = "steer" }
    }
  }
}
queue {
  query_max_concurrency = 10
  tools { bash = "query" }
}
"#;

fn listing() -> laneway_config::Effective {
    let environment = [("LANEWAY_MAX_CONCURRENT_TASKS", "30")];
    parse("a.hcl", SAMPLE, Profile::SERVER, environment).unwrap().effective()
}

#[test]
fn configured_values_are_listed_with_their_sources() {
    let expected = r#"
listen                                       127.0.0.1:9                     a.hcl:2
store                                        postgres://laneway:***@db/laneway  a.hcl:3
lane "agent:coder" timeout                   1200000ms                       a.hcl:14
lane "global" max_concurrency                30                              LANEWAY_MAX_CONCURRENT_TASKS
lane "main" max_concurrency                  6                               a.hcl:5
lane "main" retry.max_retries                2                               a.hcl:6
lane "main" rate_limit                       60/minute                       a.hcl:9
lane "session:*/query" max_concurrency       10                              a.hcl:31
agent "coder" command                        ["claude", "-p"]                a.hcl:13
agent "gate" url                             https://me:***@host/chat?***    a.hcl:16
schedule "s" cron                            0 9 * * *                       a.hcl:18
schedule "s" agent                           coder                           a.hcl:19
schedule "s" message                         "go"                            a.hcl:20
messages.queue cap                           5                               a.hcl:24
messages.queue.by_channel "discord" mode     steer                           a.hcl:26
messages.queue.by_channel "discord" cap      5                               a.hcl:24
queue tools.bash                             query                           a.hcl:32
"#;
    let words = |text: &str| {
        let lines = text.trim().lines();
        lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    let printed = listing().without_defaults().to_string();
    assert_eq!(words(&printed), words(expected));
    let columns: Vec<usize> =
        printed.lines().map(|line| line.find("a.hcl:").or_else(|| line.find("LANEWAY_")).unwrap()).collect();
    assert!(columns.windows(2).all(|pair| pair[0] == pair[1]), "{printed}");
}

#[test]
fn the_core_can_read_every_listed_setting_of_a_lane() {
    let mut lanes: std::collections::BTreeMap<String, LaneSettings> = std::collections::BTreeMap::new();
    for value in listing().0.iter().filter(|value| value.block.starts_with("lane ")) {
        let settings = lanes.entry(value.block.clone()).or_default();
        settings.set(&value.key, &value.value).unwrap_or_else(|error| panic!("{error} in {value:?}"));
    }
    assert_eq!(lanes.len(), 15, "{:?}", lanes.keys());
    let main = &lanes["lane \"main\""];
    let name = LaneName::main();
    assert_eq!(Settings::for_lane(main, &name).retry.max_retries, 2);
    // The listing has every setting, so that defaults of the lane's name add nothing.
    let elsewhere = LaneName::new("agent:x").unwrap();
    assert_eq!(Settings::for_lane(main, &name), Settings::for_lane(main, &elsewhere));
}

#[test]
fn defaults_are_listed() {
    let listing = listing();
    let find = |block: &str, key: &str| {
        let found = listing.0.iter().find(|value| value.block == block && value.key == key);
        found.map(|value| (value.value.as_str(), value.source == ValueSource::Default))
    };
    assert_eq!(find("lane \"subagent\"", "max_concurrency"), Some(("8", true)));
    assert_eq!(find("lane \"agent:*\"", "timeout"), Some(("600000ms", true)));
    assert_eq!(find("lane \"session:*/execute\"", "max_concurrency"), Some(("2", true)));
    assert_eq!(find("messages.queue", "mode"), Some(("collect", true)));
    assert_eq!(find("schedule \"s\"", "timezone"), Some(("UTC", true)));
    assert_eq!(find("queue", "enable_metrics"), Some(("true", true)));
    assert!(!listing.to_string().contains("hunter2"));
}
