//! Settings by name, as people write them: the one list of keys, their spellings and their bounds.

use crate::api::lane_settings::*;
use crate::api::retry::{Retry, RetryStrategy};
use crate::api::time::Millis;

/// Why a setting was refused: which one, and what would be right. It never repeats the value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting} {expected}")]
pub struct SettingError {
    /// The setting's whole name, as in [`SETTING_KEYS`]; for an unknown one the first 64 characters of what was
    /// asked for, without control characters.
    pub setting: String,
    /// What would be right, as the end of a sentence that starts with the setting.
    pub expected: String,
}

/// Every key that [`LaneSettings::set`] takes.
pub const SETTING_KEYS: &[&str] = &[
    "max_concurrency",
    "max_queued",
    "order",
    "priority",
    "priority.user",
    "priority.schedule",
    "priority.agent",
    "priority.background",
    "weight",
    "wait_timeout",
    "timeout",
    "lease",
    "max_redelivery",
    "retry",
    "retry.strategy",
    "retry.max_retries",
    "retry.initial_delay",
    "retry.fixed_delay",
    "retry.max_delay",
    "retry.jitter",
    "rate_limit",
    "rate_limit.per",
    "rate_limit.max",
    "ageing",
    "ageing.after",
    "ageing.max",
    "boost",
    "boost.strategy",
    "boost.deadline",
    "pressure_threshold",
    "alerts.warning",
    "alerts.critical",
    "dead_letters_max",
    "notice_after",
    "handler",
];

fn wrong<T>(setting: &str, expected: impl Into<String>) -> Result<T, SettingError> {
    Err(SettingError { setting: setting.to_owned(), expected: expected.into() })
}

fn unknown<T>(key: &str) -> Result<T, SettingError> {
    let cut: String = key.chars().filter(|char| !char.is_control()).take(64).collect();
    wrong(&cut, format!("is not a setting of a lane; there are {}", SETTING_KEYS.join(", ")))
}

fn count(setting: &str, text: &str, least: u32, most: u32) -> Result<u32, SettingError> {
    match text.parse::<u32>() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => wrong(setting, format!("must be a whole number from {least} to {most}")),
    }
}

/// Reads a duration: a whole number with `ms`, `s`, `m`, `h` or `d`; without a unit, milliseconds.
pub fn duration(setting: &str, text: &str, least: Millis) -> Result<Millis, SettingError> {
    let digits = text.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(text.len());
    let unit = match text[digits..].trim() {
        "" | "ms" => Some(1),
        "s" => Some(1000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    };
    let length = unit.and_then(|unit| whole_millis(&text[..digits], unit));
    match length {
        Some(millis) if (least.0..=Millis::MAX.0).contains(&millis) => Ok(Millis(millis)),
        _ => wrong(
            setting,
            format!("must be a duration such as \"2s\" or 500 (milliseconds), from {least} to ten years"),
        ),
    }
}

/// A number such as `0.5` of units of this many milliseconds, if that is a whole number of milliseconds.
fn whole_millis(number: &str, unit: u64) -> Option<u64> {
    const DIGITS_MAX: usize = 9;
    let Some((whole, part)) = number.split_once('.') else {
        return number.parse::<u64>().ok()?.checked_mul(unit);
    };
    if part.is_empty() || part.len() > DIGITS_MAX || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let parts = part.parse::<u64>().ok()?.checked_mul(unit)?;
    let scale = 10_u64.pow(part.len() as u32);
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()? };
    (parts % scale == 0).then(|| whole.checked_mul(unit)?.checked_add(parts / scale))?
}

fn one_of<T: Copy>(setting: &str, text: &str, words: &[(&str, T)]) -> Result<T, SettingError> {
    match words.iter().find(|(word, _)| *word == text) {
        Some((_, value)) => Ok(*value),
        None => {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            wrong(setting, format!("must be one of {}", words.join(", ")))
        }
    }
}

fn switch<T>(
    text: &str,
    off: &[&str],
    read: impl FnOnce(&str) -> Result<T, SettingError>,
) -> Result<Switch<T>, SettingError> {
    if off.contains(&text) { Ok(Switch::Off) } else { read(text).map(Switch::On) }
}

const STRATEGIES: &[(&str, RetryStrategy)] = &[
    ("none", RetryStrategy::None),
    ("fixed", RetryStrategy::Fixed),
    ("exponential", RetryStrategy::Exponential),
];
const BOOSTS: &[(&str, BoostStrategy)] =
    &[("standard", BoostStrategy::Standard), ("aggressive", BoostStrategy::Aggressive)];
const PERIODS: &[(&str, Period)] =
    &[("second", Period::Second), ("minute", Period::Minute), ("hour", Period::Hour)];

pub(crate) fn snake_case(key: &str) -> String {
    let mut snake = String::new();
    for char in key.chars() {
        if char.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(char.to_ascii_lowercase());
    }
    snake
}

/// The groups whose parts are one setting: changing a part is a change of the whole.
const GROUPS: &[&str] = &["retry", "rate_limit", "ageing", "boost"];

/// The setting that a key belongs to: `retry` for `retry.jitter`.
fn setting_of(key: &str) -> &str {
    match key.split_once('.') {
        Some((group, _)) if GROUPS.contains(&group) => group,
        Some(("priority", _)) => "priority.",
        _ => key,
    }
}

/// Whether two keys belong to the same setting.
pub(crate) fn is_same_setting(a: &str, b: &str) -> bool {
    setting_of(a) == setting_of(b)
}

impl LaneSettings {
    /// Takes the setting of a key from another block, also if that block leaves it open.
    pub(crate) fn take(&mut self, key: &str, from: &LaneSettings) -> Result<(), SettingError> {
        match setting_of(key) {
            "max_concurrency" => self.max_concurrency = from.max_concurrency,
            "max_queued" => self.max_queued = from.max_queued,
            "order" => self.order = from.order,
            "priority" => self.priority = from.priority,
            "priority." => self.priorities = from.priorities,
            "weight" => self.weight = from.weight,
            "wait_timeout" => self.wait_timeout = from.wait_timeout,
            "timeout" => self.timeout = from.timeout,
            "lease" => self.lease = from.lease,
            "max_redelivery" => self.max_redelivery = from.max_redelivery,
            "retry" => self.retry = from.retry,
            "rate_limit" => self.rate_limit = from.rate_limit,
            "ageing" => self.ageing = from.ageing,
            "boost" => self.boost = from.boost,
            "pressure_threshold" => self.pressure_threshold = from.pressure_threshold,
            "alerts.warning" => self.alert_warning = from.alert_warning,
            "alerts.critical" => self.alert_critical = from.alert_critical,
            "dead_letters_max" => self.dead_letters_max = from.dead_letters_max,
            "notice_after" => self.notice_after = from.notice_after,
            "handler" => self.handler = from.handler,
            _ => return unknown(key),
        }
        Ok(())
    }

    /// Whether another block says the same about the setting of a key.
    pub(crate) fn agrees(&self, key: &str, other: &LaneSettings) -> bool {
        let mut taken = self.clone();
        taken.take(key, other).is_ok() && taken == *self
    }

    /// Sets one setting by its name (`max_concurrency`, `retry.max_retries`; camelCase works too) from
    /// text. A refusal leaves everything as it was.
    pub fn set(&mut self, key: &str, text: &str) -> Result<(), SettingError> {
        let mut changed = self.clone();
        changed.assign(&snake_case(key), text.trim())?;
        changed.check()?;
        *self = changed;
        Ok(())
    }

    /// Sets one setting like [`set`](LaneSettings::set). The rest of a group such as `retry` is as in `all`, which are these
    /// settings and those of more general blocks.
    pub(crate) fn set_over(
        &mut self,
        key: &str,
        text: &str,
        all: &mut LaneSettings,
    ) -> Result<(), SettingError> {
        all.set(key, text)?;
        self.take_group(&snake_case(key), all);
        Ok(())
    }

    fn assign(&mut self, key: &str, text: &str) -> Result<(), SettingError> {
        let moment = Millis(1);
        match key {
            "max_concurrency" => {
                self.max_concurrency = Some(switch(text, &["unlimited"], |t| count(key, t, 1, COUNT_MAX))?);
            }
            "max_queued" => self.max_queued = Some(count(key, text, 0, COUNT_MAX)?),
            "order" => self.order = Some(one_of(key, text, &[("fair", Order::Fair), ("fifo", Order::Fifo)])?),
            "priority" => {
                let read = |t: &str| count(key, t, 0, PRIORITY_MAX.into()).map(|level| level as u8);
                self.priority = Some(switch(text, &["source"], read)?);
            }
            "weight" => self.weight = Some(count(key, text, 1, WEIGHT_MAX)?),
            "wait_timeout" => {
                self.wait_timeout = Some(switch(text, &["none", "off"], |t| duration(key, t, Millis(0)))?)
            }
            "timeout" => self.timeout = Some(switch(text, &["none", "off"], |t| duration(key, t, moment))?),
            "lease" => self.lease = Some(duration(key, text, moment)?),
            "max_redelivery" => self.max_redelivery = Some(count(key, text, 0, COUNT_MAX)?),
            "pressure_threshold" => self.pressure_threshold = Some(count(key, text, 1, COUNT_MAX)?),
            "alerts.warning" => self.alert_warning = Some(count(key, text, 1, COUNT_MAX)?),
            "alerts.critical" => self.alert_critical = Some(count(key, text, 1, COUNT_MAX)?),
            "dead_letters_max" => self.dead_letters_max = Some(count(key, text, 0, COUNT_MAX)?),
            "notice_after" => {
                self.notice_after = Some(switch(text, &["none", "off"], |t| duration(key, t, moment))?)
            }
            "handler" => {
                let words = [
                    ("internal", Handler::Internal),
                    ("external", Handler::External),
                    ("hybrid", Handler::Hybrid),
                ];
                self.handler = Some(one_of(key, text, &words)?);
            }
            _ => return self.assign_nested(key, text),
        }
        Ok(())
    }

    fn assign_nested(&mut self, key: &str, text: &str) -> Result<(), SettingError> {
        let moment = Millis(1);
        let rate = self.rate_limit.and_then(Switch::on).unwrap_or(RateLimit { per: Period::Minute, max: 1 });
        let ageing = self.ageing.and_then(Switch::on);
        let ageing = ageing.unwrap_or(Ageing { after: Millis::from_secs(60), max: LEVEL_MAX });
        let boost = self.boost.and_then(Switch::on);
        let boost = boost.unwrap_or(Boost { strategy: BoostStrategy::Standard, deadline: None });
        match key {
            _ if key.starts_with("priority.") => self.assign_priority(key, text)?,
            "retry" => self.assign_retry("retry.strategy", text)?,
            _ if key.starts_with("retry.") => self.assign_retry(key, text)?,
            "rate_limit" => self.rate_limit = Some(switch(text, &["unlimited", "none", "off"], rate_limit)?),
            "rate_limit.per" => {
                self.rate_limit = Some(Switch::On(RateLimit { per: one_of(key, text, PERIODS)?, ..rate }))
            }
            "rate_limit.max" => {
                self.rate_limit =
                    Some(Switch::On(RateLimit { max: count(key, text, 1, COUNT_MAX)?, ..rate }));
            }
            "ageing" => {
                self.ageing = Some(switch(text, &["off", "none"], |t| {
                    Ok(Ageing { after: duration(key, t, moment)?, ..ageing })
                })?);
            }
            "ageing.after" => {
                self.ageing = Some(Switch::On(Ageing { after: duration(key, text, moment)?, ..ageing }))
            }
            "ageing.max" => {
                let max = count(key, text, 0, PRIORITY_MAX.into())? as u8;
                self.ageing = Some(Switch::On(Ageing { max, ..ageing }));
            }
            "boost" | "boost.strategy" => {
                self.boost = Some(switch(text, &["none", "off"], |t| {
                    Ok(Boost { strategy: one_of(key, t, BOOSTS)?, ..boost })
                })?);
            }
            "boost.deadline" => {
                let deadline = switch(text, &["none", "off"], |t| duration(key, t, moment))?.on();
                self.boost = Some(Switch::On(Boost { deadline, ..boost }));
            }
            _ => return unknown(key),
        }
        Ok(())
    }

    fn assign_priority(&mut self, key: &str, text: &str) -> Result<(), SettingError> {
        let level = count(key, text, 0, PRIORITY_MAX.into())? as u8;
        let old = self.priorities.unwrap_or_default();
        self.priorities = Some(match key {
            "priority.user" => Priorities { user: level, ..old },
            "priority.schedule" => Priorities { schedule: level, ..old },
            "priority.agent" => Priorities { agent: level, ..old },
            "priority.background" => Priorities { background: level, ..old },
            _ => return unknown(key),
        });
        Ok(())
    }

    fn assign_retry(&mut self, key: &str, text: &str) -> Result<(), SettingError> {
        let old = self.retry.unwrap_or(Retry::STANDARD);
        let no_time = Millis(0);
        self.retry = Some(match key {
            "retry.strategy" => match one_of(key, text, STRATEGIES)? {
                RetryStrategy::None => Retry::NONE,
                // After `none`, which has no retries, the standard ones are meant.
                strategy if old == Retry::NONE => Retry { strategy, ..Retry::STANDARD },
                strategy => Retry { strategy, ..old },
            },
            "retry.max_retries" => Retry { max_retries: count(key, text, 0, COUNT_MAX)?, ..old },
            "retry.initial_delay" => Retry { initial_delay: duration(key, text, no_time)?, ..old },
            "retry.fixed_delay" => Retry { fixed_delay: duration(key, text, no_time)?, ..old },
            "retry.max_delay" => Retry { max_delay: duration(key, text, no_time)?, ..old },
            "retry.jitter" => {
                Retry { jitter: one_of(key, text, &[("true", true), ("false", false)])?, ..old }
            }
            _ => return unknown(key),
        });
        Ok(())
    }

    /// The first setting that makes no sense. [`set`](LaneSettings::set) never lets one in; a program
    /// that fills in the fields itself can.
    pub fn check(&self) -> Result<(), SettingError> {
        let within = |setting: &str, value: Option<u32>, least: u32, most: u32| match value {
            Some(number) if !(least..=most).contains(&number) => {
                wrong(setting, format!("must be a whole number from {least} to {most}"))
            }
            _ => Ok(()),
        };
        let length = |setting: &str, value: Option<Millis>, least: u64| match value {
            Some(Millis(millis)) if !(least..=Millis::MAX.0).contains(&millis) => {
                wrong(setting, format!("must be from {least}ms to ten years"))
            }
            _ => Ok(()),
        };
        let priority = self.priority.and_then(Switch::on).map(u32::from);
        let boost = self.boost.and_then(Switch::on);
        let ageing = self.ageing.and_then(Switch::on);
        within("max_concurrency", self.max_concurrency.and_then(Switch::on), 1, COUNT_MAX)?;
        within("max_queued", self.max_queued, 0, COUNT_MAX)?;
        within("priority", priority, 0, PRIORITY_MAX.into())?;
        for source in [Source::User, Source::Schedule, Source::Agent, Source::Background] {
            let level = self.priorities.map(|priorities| u32::from(priorities.of(source)));
            within("priority", level, 0, PRIORITY_MAX.into())?;
        }
        within("weight", self.weight, 1, WEIGHT_MAX)?;
        within("max_redelivery", self.max_redelivery, 0, COUNT_MAX)?;
        within("retry.max_retries", self.retry.map(|retry| retry.max_retries), 0, COUNT_MAX)?;
        within("rate_limit.max", self.rate_limit.and_then(Switch::on).map(|rate| rate.max), 1, COUNT_MAX)?;
        let bound = ageing.map(|ageing| ageing.max).filter(|max| *max != LEVEL_MAX);
        within("ageing.max", bound.map(u32::from), 0, PRIORITY_MAX.into())?;
        within("pressure_threshold", self.pressure_threshold, 1, COUNT_MAX)?;
        within("alerts.warning", self.alert_warning, 1, COUNT_MAX)?;
        within("alerts.critical", self.alert_critical, 1, COUNT_MAX)?;
        within("dead_letters_max", self.dead_letters_max, 0, COUNT_MAX)?;
        length("wait_timeout", self.wait_timeout.and_then(Switch::on), 0)?;
        length("timeout", self.timeout.and_then(Switch::on), 1)?;
        length("lease", self.lease, 1)?;
        length("notice_after", self.notice_after.and_then(Switch::on), 1)?;
        length("ageing.after", ageing.map(|ageing| ageing.after), 1)?;
        length("boost.deadline", boost.and_then(|boost| boost.deadline), 1)?;
        length("retry.initial_delay", self.retry.map(|retry| retry.initial_delay), 0)?;
        length("retry.fixed_delay", self.retry.map(|retry| retry.fixed_delay), 0)?;
        length("retry.max_delay", self.retry.map(|retry| retry.max_delay), 0)
    }
}

/// Reads `60/minute`.
fn rate_limit(text: &str) -> Result<RateLimit, SettingError> {
    let Some((max, per)) = text.split_once('/') else {
        return wrong("rate_limit", "must read like 60/minute, or be unlimited");
    };
    Ok(RateLimit {
        max: count("rate_limit.max", max.trim(), 1, COUNT_MAX)?,
        per: one_of("rate_limit.per", per.trim(), PERIODS)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_may_have_a_fraction_of_its_unit() {
        let read = |text| duration("x", text, Millis(0)).ok().map(|length| length.0);
        for (text, millis) in [("0.5s", 500), ("1.25m", 75_000), (".1s", 100), ("2.0", 2), ("0.001 s", 1)] {
            assert_eq!(read(text), Some(millis), "{text}");
        }
        for text in ["0.5", "1.5ms", "0.0001s", "1.s", "1.2.3s", "-1.5s", ".", "s", "1e3s", "1.0000000001s"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused_by_name_and_the_old_value_stays() {
        let mut settings = LaneSettings::default();
        settings.set("maxConcurrency", "3").unwrap();
        for nonsense in ["0", "-3", "abc", "3.7", "", "99999999999"] {
            let error = settings.set("max_concurrency", nonsense).unwrap_err();
            assert_eq!(error.to_string(), "max_concurrency must be a whole number from 1 to 1000000000");
            assert_eq!(settings.max_concurrency, Some(Switch::On(3)));
        }
    }

    #[test]
    fn every_key_has_an_effect_and_none_is_taken_for_another() {
        let samples = [
            ("max_concurrency", "7"),
            ("max_queued", "0"),
            ("order", "fifo"),
            ("priority", "9"),
            ("priority.user", "5"),
            ("priority.schedule", "5"),
            ("priority.agent", "5"),
            ("priority.background", "5"),
            ("weight", "3"),
            ("wait_timeout", "2m"),
            ("timeout", "none"),
            ("lease", "5s"),
            ("max_redelivery", "0"),
            ("retry", "exponential"),
            ("retry.strategy", "fixed"),
            ("retry.max_retries", "9"),
            ("retry.initial_delay", "50"),
            ("retry.fixed_delay", "2s"),
            ("retry.max_delay", "1h"),
            ("retry.jitter", "true"),
            ("rate_limit", "60/hour"),
            ("rate_limit.per", "second"),
            ("rate_limit.max", "5"),
            ("ageing", "off"),
            ("ageing.after", "10s"),
            ("ageing.max", "3"),
            ("boost", "standard"),
            ("boost.strategy", "aggressive"),
            ("boost.deadline", "5m"),
            ("pressure_threshold", "10"),
            ("alerts.warning", "20"),
            ("alerts.critical", "30"),
            ("dead_letters_max", "0"),
            ("notice_after", "500ms"),
            ("handler", "hybrid"),
        ];
        let keys: Vec<&str> = samples.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, SETTING_KEYS);
        let mut seen = vec![LaneSettings::default()];
        for (key, text) in samples {
            let mut settings = LaneSettings::default();
            settings.set(key, text).unwrap();
            assert!(!seen.contains(&settings), "{key} = {text} changed nothing of its own");
            seen.push(settings);
        }
    }

    #[test]
    fn a_strategy_after_none_has_the_standard_values() {
        for strategy in ["exponential", "fixed"] {
            let (mut settings, mut fresh) = (LaneSettings::default(), LaneSettings::default());
            settings.set("retry.max_retries", "7").unwrap();
            settings.set("retry", "none").unwrap();
            settings.set("retry", strategy).unwrap();
            fresh.set("retry", strategy).unwrap();
            assert_eq!(settings, fresh);
            assert_eq!(settings.retry.map(|retry| retry.max_retries), Some(3));
        }
    }

    #[test]
    fn unknown_words_are_answered_with_the_choices() {
        let mut settings = LaneSettings::default();
        let message = |error: SettingError| error.to_string();
        assert_eq!(
            settings.set("order", "lifo").map_err(message),
            Err("order must be one of fair, fifo".into())
        );
        let unknown = settings.set("max_concurency", "3").map_err(message).unwrap_err();
        assert!(unknown.starts_with("max_concurency is not a setting of a lane; there are max_concurrency"));
        assert!(settings.set("lease", "0").is_err());
        assert!(LaneSettings::default().set("lease", "3660d").is_ok());
        assert!(settings.set("lease", "3661d").is_err());
        assert!(settings.set("lease", "99999999999999999999s").is_err());
        assert_eq!(settings, LaneSettings::default());
    }
}
