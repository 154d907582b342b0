//! The listing of `laneway config check`: every effective value and its source.

use std::fmt;

use laneway_core::{
    BoostStrategy, Handler, LaneName, Millis, Order, PRIORITY_MAX, Pattern, Period, RetryStrategy, Settings,
};

use crate::blocks::lanes::{Lane, asked, group, layers};
use crate::blocks::places::without_secrets;
use crate::config::{Config, Runner};
use crate::source::ValueSource;

/// One effective value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectiveValue {
    /// The block as in a file. Empty at the top of the file.
    pub block: String,
    /// The key.
    pub key: String,
    /// The value as in a file, without passwords.
    pub value: String,
    /// Its source.
    pub source: ValueSource,
}

/// All effective values. They print as aligned text, one line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective(pub Vec<EffectiveValue>);

impl Effective {
    /// Removes values that are only defaults.
    #[must_use]
    pub fn without_defaults(mut self) -> Effective {
        self.0.retain(|value| value.source != ValueSource::Default);
        self
    }
}

impl fmt::Display for Effective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |value: &EffectiveValue| match value.block.as_str() {
            "" => value.key.clone(),
            block => format!("{block} {}", value.key),
        };
        let wide = |text: &str| text.chars().count();
        let names = self.0.iter().map(|value| wide(&name(value))).max().unwrap_or(0);
        let values = self.0.iter().map(|value| wide(&value.value)).max().unwrap_or(0);
        for value in &self.0 {
            writeln!(f, "{:names$}  {:values$}  {}", name(value), value.value, value.source)?;
        }
        Ok(())
    }
}

/// The lanes that the listing has even if nothing sets them.
const ALWAYS: &[&str] = &["global", "main", "subagent", "cron", "agent:*", "task:*", "session:*"];
const TOOL_LANES: &[&str] =
    &["session:*/control", "session:*/query", "session:*/execute", "session:*/generate"];

impl Config {
    /// Every effective value and its source: the listing of `laneway config check`.
    pub fn effective(&self) -> Effective {
        let mut list = List { config: self, values: Vec::new() };
        list.add("", "listen", self.listen.to_string());
        list.add("", "store", self.store.to_string());
        list.lanes();
        list.agents();
        list.schedules();
        list.messages();
        list.tools();
        list.server();
        Effective(list.values)
    }
}

struct List<'a> {
    config: &'a Config,
    values: Vec<EffectiveValue>,
}

impl List<'_> {
    fn add(&mut self, block: &str, key: &str, value: String) {
        let source = self.config.given(block, key).unwrap_or(ValueSource::Default);
        self.values.push(EffectiveValue { block: block.to_owned(), key: key.to_owned(), value, source });
    }

    /// Lists the configured lanes, then the lanes that are always listed.
    fn lanes(&mut self) {
        for lane in &self.config.lanes {
            self.lane(&lane.lanes);
        }
        let tool_lanes = if self.config.tools.is_some() { TOOL_LANES } else { &[] };
        for text in ALWAYS.iter().chain(tool_lanes) {
            let is_listed = self.config.lanes.iter().any(|lane| lane.lanes.as_str() == *text);
            if let (false, Ok(pattern)) = (is_listed, Pattern::new(text)) {
                self.lane(&pattern);
            }
        }
    }

    fn lane(&mut self, pattern: &Pattern) {
        // A pattern has the defaults of any lane that matches it.
        let Ok(name) = LaneName::new(pattern.as_str().replace('*', "x")) else { return };
        let layers = layers(&self.config.lanes, pattern);
        for (key, value) in setting_texts(&Settings::for_lane(&asked(&layers), &name)) {
            let gives = |lane: &&Lane| lane.given(key).or_else(|| lane.given_within(key)).cloned();
            // A group such as `retry` comes from one layer.
            let source = layers.iter().find(|lane| lane.given_within(group(key)).is_some()).and_then(gives);
            let (block, key) = (format!("lane \"{pattern}\""), key.to_owned());
            self.values.push(EffectiveValue {
                block,
                key,
                value,
                source: source.unwrap_or(ValueSource::Default),
            });
        }
    }

    fn agents(&mut self) {
        for agent in &self.config.agents {
            let block = format!("agent \"{}\"", agent.name);
            self.runner(&block, &agent.runner);
            let urls = [
                ("task_url", &agent.urls.task),
                ("steer_url", &agent.urls.steer),
                ("cancel_url", &agent.urls.cancel),
            ];
            for (key, url) in urls {
                if let Some(url) = url {
                    self.add(&block, key, without_secrets(url));
                }
            }
            let lanes = agent.lanes.as_ref().map_or("main, cron or subagent".to_owned(), |lanes| {
                format!("[{}]", lanes.iter().map(|lane| lane.to_string()).collect::<Vec<_>>().join(", "))
            });
            self.add(&block, "lanes", lanes);
        }
        for handler in &self.config.handlers {
            self.runner(&format!("handler \"{}\"", handler.kind), &handler.runner);
        }
    }

    fn runner(&mut self, block: &str, runner: &Runner) {
        match runner {
            Runner::Program(program) => {
                self.add(block, "command", format!("{:?}", program.command));
                self.add(block, "protocol", format!("{:?}", program.protocol).to_lowercase());
                let env =
                    program.env.as_ref().map_or("the server's default".to_owned(), |env| format!("{env:?}"));
                self.add(block, "env", env);
                let cwd = program.cwd.as_ref().map_or(".".to_owned(), |cwd| cwd.display().to_string());
                self.add(block, "cwd", cwd);
            }
            Runner::Url(url) => self.add(block, "url", without_secrets(url)),
            Runner::External => self.add(block, "external", "true".to_owned()),
            Runner::Echo => self.add(block, "echo", "true".to_owned()),
        }
    }

    fn schedules(&mut self) {
        for schedule in &self.config.schedules {
            let block = format!("schedule \"{}\"", schedule.name);
            self.add(&block, "cron", schedule.cron.clone());
            self.add(&block, "timezone", schedule.timezone.clone());
            self.add(&block, "agent", schedule.agent.to_string());
            self.add(&block, "message", format!("{:?}", schedule.message));
            let session = schedule.session.clone().unwrap_or_else(|| "none".to_owned());
            self.add(&block, "session", session);
            for (key, value) in [("user", &schedule.user), ("user_email", &schedule.user_email)] {
                if let Some(value) = value {
                    self.add(&block, key, value.clone());
                }
            }
            self.add(&block, "enabled", schedule.enabled.to_string());
            self.add(&block, "catch_up", format!("{:?}", schedule.catch_up).to_lowercase());
        }
    }

    fn messages(&mut self) {
        let messages = &self.config.messages;
        self.add("messages", "redeliver", messages.redeliver.to_string());
        self.add("messages", "attempts", messages.attempts.to_string());
        self.add("messages", "policy.cap_max", messages.policy.cap_max.to_string());
        self.add("messages", "policy.wait_max", messages.policy.wait_max.to_string());
        let everywhere = ("messages.queue".to_owned(), messages.queue);
        let channels = messages.by_channel.keys().map(|channel| {
            (format!("messages.queue.by_channel \"{channel}\""), messages.in_channel(channel))
        });
        for (block, queue) in std::iter::once(everywhere).chain(channels) {
            let values = [
                ("mode", queue.mode.as_str().to_owned()),
                ("debounce", queue.debounce.to_string()),
                ("max_wait", queue.max_wait.to_string()),
                ("cap", queue.cap.to_string()),
                ("drop", queue.drop.as_str().to_owned()),
            ];
            for (key, value) in values {
                // A channel inherits what it does not set.
                let given = self.config.given(&block, key);
                let source = given.or_else(|| self.config.given("messages.queue", key));
                let (block, key) = (block.clone(), key.to_owned());
                let source = source.unwrap_or(ValueSource::Default);
                self.values.push(EffectiveValue { block, key, value, source });
            }
        }
    }

    fn server(&mut self) {
        for (key, value) in crate::blocks::server::values(&self.config.server) {
            self.add("server", key, value);
        }
    }

    fn tools(&mut self) {
        let Some(tools) = &self.config.tools else { return };
        self.add("queue", "enable_metrics", tools.metrics.to_string());
        self.add("queue", "enable_alerts", tools.alerts.to_string());
        for (tool, lane) in &tools.tools {
            self.add("queue", &format!("tools.{tool}"), lane.as_str().to_owned());
        }
    }
}

/// Each setting of a lane in the form that `LaneSettings::set` reads.
pub fn setting_texts(settings: &Settings) -> Vec<(&'static str, String)> {
    let length = |length: Option<Millis>| length.map_or("none".to_owned(), |length| length.to_string());
    let word = |word: &str| word.to_owned();
    let mut texts = vec![
        ("max_concurrency", settings.max_concurrency.map_or(word("unlimited"), |limit| limit.to_string())),
        ("max_queued", settings.max_queued.to_string()),
        ("order", word(if settings.order == Order::Fair { "fair" } else { "fifo" })),
        ("priority", settings.priority.map_or(word("source"), |priority| priority.to_string())),
        ("weight", settings.weight.to_string()),
        ("wait_timeout", length(settings.wait_timeout)),
        ("timeout", length(settings.timeout)),
        ("lease", settings.lease.to_string()),
        ("max_redelivery", settings.max_redelivery.to_string()),
        ("pressure_threshold", settings.pressure_threshold.to_string()),
        ("alerts.warning", settings.alert_warning.to_string()),
        ("alerts.critical", settings.alert_critical.to_string()),
        ("dead_letters_max", settings.dead_letters_max.to_string()),
        ("notice_after", length(settings.notice_after)),
        ("handler", word(handler(settings.handler))),
    ];
    if let Some(priorities) = settings.priorities {
        texts.push(("priority.user", priorities.user.to_string()));
        texts.push(("priority.schedule", priorities.schedule.to_string()));
        texts.push(("priority.agent", priorities.agent.to_string()));
        texts.push(("priority.background", priorities.background.to_string()));
    }
    texts.extend(retry(settings));
    texts.extend(limits(settings));
    texts
}

fn handler(handler: Handler) -> &'static str {
    match handler {
        Handler::Internal => "internal",
        Handler::External => "external",
        Handler::Hybrid => "hybrid",
    }
}

fn retry(settings: &Settings) -> Vec<(&'static str, String)> {
    let retry = &settings.retry;
    let strategy = match retry.strategy {
        RetryStrategy::None => return vec![("retry", "none".to_owned())],
        RetryStrategy::Fixed => "fixed",
        RetryStrategy::Exponential => "exponential",
    };
    vec![
        ("retry.strategy", strategy.to_owned()),
        ("retry.max_retries", retry.max_retries.to_string()),
        ("retry.initial_delay", retry.initial_delay.to_string()),
        ("retry.fixed_delay", retry.fixed_delay.to_string()),
        ("retry.max_delay", retry.max_delay.to_string()),
        ("retry.jitter", retry.jitter.to_string()),
    ]
}

fn limits(settings: &Settings) -> Vec<(&'static str, String)> {
    let rate = settings.rate_limit.map_or("unlimited".to_owned(), |rate| {
        let per = match rate.per {
            Period::Second => "second",
            Period::Minute => "minute",
            Period::Hour => "hour",
        };
        format!("{}/{per}", rate.max)
    });
    let mut texts = vec![("rate_limit", rate)];
    match settings.ageing {
        None => texts.push(("ageing", "off".to_owned())),
        Some(ageing) => {
            texts.push(("ageing.after", ageing.after.to_string()));
            if ageing.max <= PRIORITY_MAX {
                texts.push(("ageing.max", ageing.max.to_string()));
            }
        }
    }
    match settings.boost {
        None => texts.push(("boost", "none".to_owned())),
        Some(boost) => {
            let standard = boost.strategy == BoostStrategy::Standard;
            let deadline = boost.deadline.map_or("none".to_owned(), |deadline| deadline.to_string());
            texts.push(("boost.strategy", (if standard { "standard" } else { "aggressive" }).to_owned()));
            texts.push(("boost.deadline", deadline));
        }
    }
    texts
}
