//! Settings that a caller has changed while the program runs. Each holds over the configuration until the configuration
//! changes the same setting, or a caller withdraws it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::api::lane_settings::LaneSettings;
use crate::api::name::Pattern;
use crate::api::settings_schema::{SettingError, is_same_setting, snake_case};
use crate::decide::notes::NoteChange;

/// A change of single settings of a lane or a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsChange {
    /// Which lane or pattern.
    pub lanes: Pattern,
    /// Each setting by its key, with its new value as [`LaneSettings::set`] reads it; `None`: as configured.
    pub settings: Vec<(Arc<str>, Option<Arc<str>>)>,
    /// What the block of the configuration says.
    pub configured: LaneSettings,
    /// Whether the lane has a block of its own afterwards.
    pub has_block: bool,
    /// The notes of the program that change with the settings, or neither changes.
    pub notes: NoteChange,
}

impl SettingsChange {
    /// These settings of a lane or a pattern.
    pub fn of(lanes: Pattern, settings: Vec<(Arc<str>, Arc<str>)>) -> SettingsChange {
        let settings = settings.into_iter().map(|(key, value)| (key, Some(value))).collect();
        let (configured, notes) = (LaneSettings::default(), NoteChange::default());
        SettingsChange { lanes, settings, configured, has_block: true, notes }
    }

    /// Makes the change in a block. `all` is what holds for its lanes.
    pub(crate) fn apply(&self, block: &mut LaneSettings, mut all: LaneSettings) -> Result<(), SettingError> {
        for (key, value) in &self.settings {
            match value {
                Some(value) => block.set_over(key, value, &mut all)?,
                None => block.take(key, &self.configured)?,
            }
        }
        Ok(())
    }
}

/// The settings of a lane or a pattern that hold over the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldSettings {
    /// Their keys.
    keys: BTreeSet<String>,
    /// Their values.
    values: LaneSettings,
    /// What the configuration said when they were changed.
    configured: LaneSettings,
}

impl HeldSettings {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether the setting of this key holds over the configuration.
    pub fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|held| is_same_setting(held, key))
    }

    /// Has a setting hold over the configuration, with its value in `values`.
    pub fn hold(
        &mut self,
        key: &str,
        values: &LaneSettings,
        configured: &LaneSettings,
    ) -> Result<(), SettingError> {
        let key = snake_case(key);
        self.values.take(&key, values)?;
        self.configured.take(&key, configured)?;
        self.keys.insert(key);
        Ok(())
    }

    /// Withdraws a setting, or all settings of a group such as `retry`. Returns the keys that were held.
    pub fn withdraw(&mut self, key: &str) -> Vec<String> {
        let key = &*snake_case(key);
        let is_part = |held: &str| held.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'));
        self.remove(|held| is_same_setting(held, key) || is_part(held))
    }

    /// Withdraws the settings that the configuration has changed since. Returns their keys.
    pub fn yield_to(&mut self, configured: &LaneSettings) -> Vec<String> {
        let before = self.configured.clone();
        self.remove(|key| !before.agrees(key, configured))
    }

    /// Lays the settings over a block.
    pub fn lay_over(&self, block: &mut LaneSettings) {
        for key in &self.keys {
            // `hold` has taken it before.
            drop(block.take(key, &self.values));
        }
    }

    fn remove(&mut self, is_gone: impl Fn(&str) -> bool) -> Vec<String> {
        let gone: Vec<String> = self.keys.iter().filter(|key| is_gone(key)).cloned().collect();
        let nothing = LaneSettings::default();
        for key in &gone {
            self.keys.remove(key);
            drop(self.values.take(key, &nothing));
            drop(self.configured.take(key, &nothing));
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(settings: &[(&str, &str)]) -> LaneSettings {
        let mut block = LaneSettings::default();
        settings.iter().for_each(|(key, value)| block.set(key, value).unwrap());
        block
    }

    fn held(settings: &[(&str, &str)], configured: &LaneSettings) -> HeldSettings {
        let mut held = HeldSettings::default();
        let values = block(settings);
        settings.iter().for_each(|(key, _)| held.hold(key, &values, configured).unwrap());
        held
    }

    fn over(held: &HeldSettings, configured: &LaneSettings) -> LaneSettings {
        let mut block = configured.clone();
        held.lay_over(&mut block);
        block
    }

    #[test]
    fn a_held_setting_yields_only_to_a_change_of_the_same_setting() {
        let file = block(&[("max_concurrency", "2"), ("timeout", "5s")]);
        let mut held = held(&[("max_concurrency", "9"), ("weight", "3")], &file);
        assert_eq!(held.yield_to(&file), Vec::<String>::new());
        let other = block(&[("max_concurrency", "2"), ("timeout", "9s"), ("max_queued", "7")]);
        assert_eq!(held.yield_to(&other), Vec::<String>::new());
        let both = [("max_concurrency", "9"), ("timeout", "9s"), ("max_queued", "7"), ("weight", "3")];
        assert_eq!(over(&held, &other), block(&both));
        let changed = block(&[("max_concurrency", "4")]);
        assert_eq!(held.yield_to(&changed), ["max_concurrency"]);
        assert_eq!(over(&held, &changed), block(&[("max_concurrency", "4"), ("weight", "3")]));
        // A file that names the setting for the first time has changed it too.
        assert_eq!(held.yield_to(&block(&[("weight", "1")])), ["weight"]);
        assert!(held.is_empty());
        assert_eq!(held, HeldSettings::default());
    }

    #[test]
    fn the_parts_of_a_group_are_one_setting_and_are_withdrawn_together() {
        let file = block(&[("retry", "exponential"), ("alerts.warning", "5")]);
        let changes = [("retry", "fixed"), ("retry.max_retries", "7"), ("alerts.warning", "6")];
        let mut held = held(&changes, &file);
        assert!(held.has("retry.jitter") && held.has("alerts.warning") && !held.has("alerts.critical"));
        assert_eq!(held.withdraw("retry.jitter"), ["retry", "retry.max_retries"]);
        assert_eq!(over(&held, &file).retry, file.retry);
        assert_eq!(held.withdraw("alerts"), ["alerts.warning"]);
        assert_eq!(held.withdraw("alerts"), Vec::<String>::new());
    }

    #[test]
    fn every_key_can_be_held() {
        let nothing = LaneSettings::default();
        for key in crate::SETTING_KEYS {
            HeldSettings::default().hold(key, &nothing, &nothing).unwrap();
        }
        assert!(HeldSettings::default().hold("colour", &nothing, &nothing).is_err());
    }
}
