//! Whether this server's configuration is the one that holds. Settings of lanes are part of the state that replicas share,
//! so one of several files holds at a time: that of whoever started, or read its file again, last.

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

/// How many differences are named in one line of the log; the rest is counted.
const NAMED_MAX: usize = 20;

/// How often to look without having heard of anything.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// One setting that holds and is not what a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Of which block: `lane "work"`, `messages`.
    pub(crate) block: String,
    pub(crate) key: String,
    /// What the file says, or leaves to the default.
    pub(crate) file: String,
    /// What holds.
    pub(crate) holds: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { block, key, file, holds } = self;
        write!(f, "{block} {key}: {holds} holds, the file says {file}")
    }
}

/// Every setting of every block, as text.
fn texts<'a>(
    blocks: impl Iterator<Item = (&'a Pattern, &'a LaneSettings)>,
) -> BTreeMap<String, Vec<(&'static str, String)>> {
    let text = |(lanes, settings): (&Pattern, &LaneSettings)| {
        let name = LaneName::new(lanes.as_str().replace('*', "x")).ok()?;
        Some((lanes.as_str().to_owned(), setting_texts(&Settings::for_lane(settings, &name))))
    };
    blocks.filter_map(text).collect()
}

/// What differs between what a file says and what holds. A block that only one of them has is compared with the defaults.
pub(crate) fn differences(wanted: &[Block], held: &[(Pattern, LaneSettings)]) -> Vec<Difference> {
    let nothing = LaneSettings::default();
    let is_wanted = |lanes: &Pattern| wanted.iter().any(|block| block.lanes == *lanes);
    let is_held = |lanes: &Pattern| held.iter().any(|(own, _)| own == lanes);
    let spoken = wanted.iter().map(|block| (&block.lanes, block.settings.as_ref().unwrap_or(&nothing)));
    let silent = held.iter().filter(|(lanes, _)| !is_wanted(lanes)).map(|(lanes, _)| (lanes, &nothing));
    let file = texts(spoken.chain(silent));
    let gone = wanted.iter().filter(|block| !is_held(&block.lanes)).map(|block| (&block.lanes, &nothing));
    let holds = texts(held.iter().map(|(lanes, settings)| (lanes, settings)).chain(gone));
    let mut found = Vec::new();
    for (lanes, wanted) in file {
        let Some(held) = holds.get(&lanes) else { continue };
        for ((key, file), (_, holds)) in wanted.into_iter().zip(held) {
            if file != *holds {
                let block = format!("lane \"{lanes}\"");
                found.push(Difference { block, key: key.to_owned(), file, holds: holds.clone() });
            }
        }
    }
    found
}

/// The same of how messages are queued.
fn message_differences(wanted: &MessageSettings, held: &MessageSettings) -> Vec<Difference> {
    let texts = |settings: &MessageSettings| {
        let mut texts = BTreeMap::new();
        flatten(String::new(), serde_json::to_value(settings).unwrap_or_default(), &mut texts);
        texts
    };
    let (file, holds) = (texts(wanted), texts(held));
    let keys: BTreeSet<&String> = file.keys().chain(holds.keys()).collect();
    let text = |texts: &BTreeMap<String, String>, key: &String| {
        texts.get(key).cloned().unwrap_or_else(|| "nothing".to_owned())
    };
    let difference = |key: &String| Difference {
        block: "messages".to_owned(),
        key: key.clone(),
        file: text(&file, key),
        holds: text(&holds, key),
    };
    keys.into_iter().filter(|key| file.get(*key) != holds.get(*key)).map(difference).collect()
}

/// Every value in a tree, by its path; what is not said is left out.
fn flatten(path: String, value: Value, texts: &mut BTreeMap<String, String>) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name } else { format!("{path}.{name}") };
                flatten(path, value, texts);
            }
        }
        value => drop(texts.insert(path, value.to_string())),
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
    /// What holds now and is not what this server's file says.
    pub(crate) async fn differences(&self) -> Result<Vec<Difference>, Error> {
        let config = self.config();
        let held = self.handle.blocks().await?;
        let messages = self.handle.read(|lanes| lanes.message_settings().clone()).await?;
        let mut found = differences(&lane_blocks(&config), &held);
        found.extend(message_differences(&config.messages.settings(), &messages));
        Ok(found)
    }
}

/// Says in the log whenever what holds begins to differ from this server's file, differs otherwise, or does no longer,
/// until the server ends.
pub(crate) async fn watch(app: Arc<App>, reconfigured: Arc<Notify>) {
    let mut known = Vec::new();
    loop {
        let looked = app.differences().await;
        if let Err(error @ Error::Broken(_)) = &looked {
            return tracing::error!(%error, "this server decides nothing any more; what it ran is taken over by others");
        }
        // A store that is away is not a difference.
        if let Ok(found) = looked
            && found != known
        {
            match found.is_empty() {
                true => tracing::info!("what holds is what this server's configuration says"),
                false => tracing::warn!(
                    differs = in_words(&found),
                    "what holds is not what this server's configuration says: another server or a call has changed it; \
                     all servers keep to what holds"
                ),
            }
            known = found;
        }
        tokio::select! {
            () = reconfigured.notified() => {}
            // A log that became unreadable makes no event.
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
        // A block that says only what holds anyway is no difference.
        check(&[block("work", "weight", "1")], &[], "");
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
