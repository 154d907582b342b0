//! The defaults of lanes without settings, and the settings that a change keeps.

#![allow(clippy::unwrap_used, reason = "a test stops at anything unexpected")]

use laneway_core::{Handler, LaneName, LaneSettings, Millis, Retry, RetryStrategy, Scheduler};

/// Slots, how many may wait, priority, how long an attempt may take, how long a task may wait.
type Defaults = (Option<u32>, u32, Option<u8>, Option<u64>, Option<u64>);

#[test]
fn each_family_of_lanes_has_its_own_defaults() {
    let scheduler = Scheduler::new(1);
    let plain: Defaults = (Some(1), 10, None, None, None);
    let tool = |slots: u32, priority: u8| (Some(slots), 10 * slots, Some(priority), Some(60), None);
    let families: [(&str, Defaults); 19] = [
        ("global", (None, 100_000, None, None, None)),
        ("main", (Some(4), 40, None, None, None)),
        ("subagent", (Some(8), 80, None, None, None)),
        ("cron", plain),
        ("agent:coder", (Some(1), 3, None, Some(600), Some(120))),
        ("agent:coder/part", plain),
        ("task:coder", (Some(10), 50, None, Some(300), None)),
        ("task:coder/part", plain),
        ("session:ann", (Some(1), 100, None, None, None)),
        ("session:ann/control", tool(2, 5)),
        ("session:ann/query", tool(4, 4)),
        ("session:ann/execute", tool(2, 3)),
        ("session:ann/generate", tool(1, 2)),
        ("session:ann/other", plain),
        ("external", (None, 100_000, None, None, None)),
        ("external/part", plain),
        ("token:ann", (None, 1_000_000_000, None, None, None)),
        ("token:ann/part", plain),
        ("whatever", plain),
    ];
    for (name, expected) in families {
        let settings = scheduler.settings_for(&LaneName::new(name).unwrap());
        let seconds = |length: Option<Millis>| length.map(|length| length.0 / 1000);
        let (timeout, wait_timeout) = (seconds(settings.timeout), seconds(settings.wait_timeout));
        let found = (settings.max_concurrency, settings.max_queued, settings.priority, timeout, wait_timeout);
        assert_eq!(found, expected, "{name}");
        let handler = if name == "external" { Handler::External } else { Handler::Internal };
        assert_eq!(settings.handler, handler, "{name}");
        assert_eq!((settings.retry.strategy, settings.retry.max_retries), (RetryStrategy::None, 0), "{name}");
    }
}

#[test]
fn another_retry_strategy_keeps_the_other_retry_settings_unless_it_was_none() {
    let mut settings = LaneSettings::default();
    let mut after = |key: &str, value: &str| {
        settings.set(key, value).unwrap();
        settings.retry.unwrap()
    };
    let five = Retry { max_retries: 5, ..Retry::STANDARD };
    assert_eq!(after("retry.max_retries", "5"), five);
    assert_eq!(after("retry.strategy", "fixed"), Retry { strategy: RetryStrategy::Fixed, ..five });
    assert_eq!(after("retry.strategy", "none"), Retry::NONE);
    assert_eq!(after("retry.strategy", "exponential"), Retry::STANDARD);
}
