//! Compares this server's configuration with the settings in force. Replicas share the settings of lanes, so the file of
//! the replica that started or reloaded last is in force.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use laneway_config::setting_texts;
use laneway_core::{Block, LaneName, LaneSettings, MessageSettings, Pattern, Settings};
use laneway_engine::Error;
use serde_json::Value;
use tokio::sync::Notify;

use crate::app::App;
use crate::server::lane_blocks;

/// One log line names this many differences and counts the rest.
const NAMED_MAX: usize = 20;

/// How often to compare without a notification.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// One setting in force that differs from the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The block, such as `lane "work"` or `messages`.
    pub(crate) block: String,
    pub(crate) key: String,
    /// The value of the file, or the default.
    pub(crate) file: String,
    /// The value in force.
    pub(crate) holds: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { block, key, file, holds } = self;
        write!(f, "{block} {key}: {holds} holds, the file says {file}")
    }
}

/// Values by block and key.
type Values = BTreeMap<(String, String), String>;

/// The differences between a file and the settings in force. A block that only one of them has is compared with the
/// defaults.
pub(crate) fn differences(wanted: &[Block], held: &[(Pattern, LaneSettings)]) -> Vec<Difference> {
    let defaults = LaneSettings::default();
    let wanted = wanted.iter().map(|block| (&block.lanes, block.settings.as_ref().unwrap_or(&defaults)));
    let wanted: BTreeMap<&Pattern, &LaneSettings> = wanted.collect();
    let held: BTreeMap<_, _> = held.iter().map(|(lanes, settings)| (lanes, settings)).collect();
    let (mut file, mut holds) = (Values::new(), Values::new());
    for lanes in wanted.keys().chain(held.keys()) {
        let Ok(name) = LaneName::new(lanes.as_str().replace('*', "x")) else { continue };
        for (blocks, values) in [(&wanted, &mut file), (&held, &mut holds)] {
            let settings = blocks.get(lanes).copied().unwrap_or(&defaults);
            for (key, text) in setting_texts(&Settings::for_lane(settings, &name)) {
                values.insert((format!("lane \"{lanes}\""), key.to_owned()), text);
            }
        }
    }
    compare(&file, &holds)
}

fn compare(file: &Values, holds: &Values) -> Vec<Difference> {
    let keys: BTreeSet<_> = file.keys().chain(holds.keys()).collect();
    let value = |values: &Values, key: &(String, String)| {
        values.get(key).cloned().unwrap_or_else(|| "nothing".to_owned())
    };
    let difference = |key: &(String, String)| Difference {
        block: key.0.clone(),
        key: key.1.clone(),
        file: value(file, key),
        holds: value(holds, key),
    };
    keys.into_iter().filter(|key| file.get(*key) != holds.get(*key)).map(difference).collect()
}

/// The differences in the settings for messages.
fn message_differences(wanted: &MessageSettings, held: &MessageSettings) -> Vec<Difference> {
    let values = |settings: &MessageSettings| {
        let mut values = Values::new();
        flatten(String::new(), serde_json::to_value(settings).unwrap_or_default(), &mut values);
        values
    };
    compare(&values(wanted), &values(held))
}

/// Adds every value of a tree by its path, without nulls.
fn flatten(path: String, value: Value, values: &mut Values) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name } else { format!("{path}.{name}") };
                flatten(path, value, values);
            }
        }
        value => drop(values.insert(("messages".to_owned(), path), value.to_string())),
    }
}

/// A line for the log, of bounded length.
pub(crate) fn in_words(differences: &[Difference]) -> String {
    let named: Vec<String> = differences.iter().take(NAMED_MAX).map(Difference::to_string).collect();
    let rest = differences.len() - named.len();
    let rest = if rest > 0 { format!("; and {rest} more") } else { String::new() };
    named.join("; ") + &rest
}

impl App {
    /// The settings in force that differ from this server's file.
    pub(crate) async fn differences(&self) -> Result<Vec<Difference>, Error> {
        let config = self.config();
        let held = self.handle.blocks().await?;
        let messages = self.handle.read(|lanes| lanes.message_settings().clone()).await?;
        let mut found = differences(&lane_blocks(&config), &held);
        found.extend(message_differences(&config.messages.settings(), &messages));
        Ok(found)
    }
}

/// Logs every change of the differences until the server ends.
pub(crate) async fn watch(app: Arc<App>, reconfigured: Arc<Notify>) {
    let mut known = Vec::new();
    loop {
        let looked = app.differences().await;
        if let Err(error @ Error::Broken(_)) = &looked {
            return tracing::error!(%error, "this server has stopped deciding; other replicas take over its tasks");
        }
        // An unreachable store is not a difference.
        if let Ok(found) = looked
            && found != known
        {
            if found.is_empty() {
                tracing::info!("the settings in force are those of this server's configuration");
            } else {
                tracing::warn!(
                    differs = in_words(&found),
                    "the settings in force are not those of this server's configuration: another replica or a request has \
                     changed them; all replicas follow the settings in force"
                );
            }
            known = found;
        }
        tokio::select! {
            () = reconfigured.notified() => {}
            // An unreadable log sends no event.
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = app.closing.given() => return,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn block(lanes: &str, key: &str, value: &str) -> Block {
        let mut settings = LaneSettings::default();
        settings.set(key, value).unwrap();
        Block { lanes: Pattern::new(lanes).unwrap(), settings: Some(settings) }
    }

    fn check(wanted: &[Block], held: &[Block], expected: &str) {
        let held: Vec<_> =
            held.iter().map(|block| (block.lanes.clone(), block.settings.clone().unwrap())).collect();
        assert_eq!(in_words(&differences(wanted, &held)), expected);
    }

    #[test]
    fn each_setting_that_differs_is_named_with_what_holds() {
        let four = || block("work", "max_concurrency", "4");
        check(&[four()], &[four()], "");
        check(
            &[block("work", "max_concurrency", "2")],
            &[four()],
            "lane \"work\" max_concurrency: 4 holds, the file says 2; lane \"work\" max_queued: 40 holds, the file says 20",
        );
        check(
            &[],
            &[block("agent:*", "timeout", "5s")],
            "lane \"agent:*\" timeout: 5000ms holds, the file says 600000ms",
        );
        // A block with only default values is no difference.
        check(&[block("work", "weight", "1")], &[], "");
    }

    #[test]
    fn a_setting_that_only_one_side_has_does_not_shift_the_others() {
        let wanted = [block("work", "retry.max_retries", "5"), block("zoo", "weight", "2")];
        let held: Vec<_> = [block("work", "rate_limit", "60/minute"), block("zoo", "weight", "2")]
            .into_iter()
            .map(|block| (block.lanes, block.settings.unwrap()))
            .collect();
        let found = differences(&wanted, &held);
        for difference in &found {
            assert_eq!(difference.block, "lane \"work\"");
            let is_named = ["retry", "rate_limit"].iter().any(|group| difference.key.starts_with(group));
            assert!(is_named, "{difference}");
        }
        let says = |key: &str| {
            let difference = found.iter().find(|difference| difference.key == key).unwrap();
            (difference.holds.clone(), difference.file.clone())
        };
        let pair = |holds: &str, file: &str| (holds.to_owned(), file.to_owned());
        assert_eq!(says("retry"), pair("none", "nothing"));
        assert_eq!(says("retry.max_retries"), pair("nothing", "5"));
        assert_eq!(says("rate_limit"), pair("60/minute", "unlimited"));
    }

    #[test]
    fn so_are_those_of_messages() {
        let wanted = MessageSettings::default();
        let held = MessageSettings { redeliver: false, ..MessageSettings::default() };
        assert_eq!(
            in_words(&message_differences(&wanted, &held)),
            "messages redeliver: false holds, the file says true"
        );
        assert_eq!(message_differences(&wanted, &wanted), []);
    }
}
