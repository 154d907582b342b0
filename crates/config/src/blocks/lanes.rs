//! Settings of lanes. Every key goes through the core's list of settings.

use std::collections::BTreeMap;

use laneway_core::{
    Block, HeldSettings, LaneName, LaneSettings, Pattern, SETTING_KEYS, SettingError, Settings,
};

use crate::config::Config;
use crate::effective::setting_texts;
use crate::error::Expected;
use crate::fields::{Field, Fields};
use crate::formats::Value;
use crate::report::Report;
use crate::source::ValueSource;

/// The settings of a lane or of a pattern of lanes, each with its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// The lane or the pattern.
    pub lanes: Pattern,
    /// The given settings. Others come from more general patterns and the defaults.
    pub settings: LaneSettings,
    given: Vec<Given>,
    /// It is listed and counted by name, also without settings.
    declared: bool,
}

/// The blocks that apply to the lanes of a pattern: their own, and the patterns that cover it, the longest first.
pub(crate) fn layers<'a>(lanes: &'a [Lane], of: &Pattern) -> Vec<&'a Lane> {
    let covers = |lane: &&Lane| !lane.lanes.is_exact() && lane.lanes.covers(of) && lane.lanes != *of;
    let mut general: Vec<&Lane> = lanes.iter().filter(covers).collect();
    general.sort_by_key(|lane| std::cmp::Reverse(lane.lanes.as_str().len()));
    let first = lanes.iter().find(|lane| lane.lanes == *of);
    // The most special pattern says which others add to it.
    let first = first.or_else(|| general.first().copied());
    let Some(first) = first else { return Vec::new() };
    let added =
        general.into_iter().filter(|lane| lane.lanes != first.lanes && lane.lanes.covers(&first.lanes));
    std::iter::once(first).chain(added).collect()
}

/// What the layers say together.
pub(crate) fn asked(layers: &[&Lane]) -> LaneSettings {
    let mut asked = LaneSettings::default();
    layers.iter().for_each(|lane| asked.fill_from(&lane.settings));
    asked
}

/// One setting that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Given {
    /// The key, one of [`SETTING_KEYS`].
    setting: String,
    source: ValueSource,
}

/// The group of a setting: `retry` for `retry.jitter`.
pub(crate) fn group(setting: &str) -> &str {
    setting.split_once('.').map_or(setting, |(group, _)| group)
}

impl Lane {
    fn new(lanes: Pattern) -> Lane {
        Lane { lanes, settings: LaneSettings::default(), given: Vec::new(), declared: false }
    }

    /// The settings for the scheduler.
    pub fn block(&self) -> Block {
        Block { lanes: self.lanes.clone(), settings: Some(self.settings.clone()) }
    }

    /// The source of the setting `key` if this block has it. A part such as `retry.jitter` may come from the whole `retry`.
    pub fn source(&self, key: &str) -> ValueSource {
        self.given(key).cloned().unwrap_or(ValueSource::Default)
    }

    pub(crate) fn given(&self, key: &str) -> Option<&ValueSource> {
        let exact = self.given.iter().find(|given| given.setting == key);
        let whole = || self.given.iter().find(|given| given.setting == group(key));
        exact.or_else(whole).map(|given| &given.source)
    }

    /// The source of `group` or of any part of it.
    pub(crate) fn given_within(&self, group: &str) -> Option<&ValueSource> {
        self.given.iter().find(|given| self::group(&given.setting) == group).map(|given| &given.source)
    }

    /// Sets `key`, and replaces an earlier value.
    pub(crate) fn assign(&mut self, key: &str, text: &str, source: ValueSource) -> Result<(), SettingError> {
        self.settings.set(key, text)?;
        self.given.retain(|given| given.setting != key);
        self.given.push(Given { setting: key.to_owned(), source });
        Ok(())
    }

    /// Lays settings over this lane that callers have changed. `before` is what the configuration says about it.
    fn hold(&mut self, held: &HeldSettings, before: &Lane) {
        let Ok(sample) = LaneName::new(self.lanes.as_str().replace('*', "x")) else { return };
        let texts = |settings: &LaneSettings| setting_texts(&Settings::for_lane(settings, &sample));
        let (mut all, old) = (before.settings.clone(), texts(&before.settings));
        held.lay_over(&mut self.settings);
        held.lay_over(&mut all);
        for (key, _) in texts(&all).into_iter().filter(|(key, _)| held.has(key)) {
            let source = before.given(key).or_else(|| before.given_within(group(key)));
            let source = source.cloned().unwrap_or(ValueSource::Default);
            let said = |name: &str| old.iter().find(|(other, _)| *other == name).map(|(_, text)| text);
            let configured = match said(key).or_else(|| said(group(key))) {
                Some(text) => format!("{source} says {text}"),
                None => format!("{source} does not set it"),
            };
            self.given.retain(|given| given.setting != key);
            let source = ValueSource::Api { configured: configured.into() };
            self.given.push(Given { setting: key.to_owned(), source });
        }
    }
}

impl Config {
    /// What the block of a lane or pattern says.
    pub fn own(&self, lanes: &Pattern) -> LaneSettings {
        self.lanes
            .iter()
            .find(|lane| lane.lanes == *lanes)
            .map(|lane| lane.settings.clone())
            .unwrap_or_default()
    }

    /// What the configuration says about the lanes of a pattern, in their own block and in those of more general patterns.
    pub fn asked_for(&self, lanes: &Pattern) -> LaneSettings {
        asked(&layers(&self.lanes, lanes))
    }

    /// Lays settings over a lane or a pattern that callers have changed while the server runs.
    pub fn hold(&mut self, lanes: &Pattern, held: &HeldSettings) {
        let found = layers(&self.lanes, lanes);
        let mut before = Lane::new(lanes.clone());
        before.settings = asked(&found);
        before.given = found.iter().flat_map(|lane| lane.given.clone()).collect();
        let mut all = Lanes::from(std::mem::take(&mut self.lanes));
        all.declared(lanes).hold(held, &before);
        self.lanes = all.into_vec();
    }
}

/// All lanes and patterns with settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lanes(BTreeMap<Pattern, Lane>);

impl From<Vec<Lane>> for Lanes {
    fn from(lanes: Vec<Lane>) -> Lanes {
        Lanes(lanes.into_iter().map(|lane| (lane.lanes.clone(), lane)).collect())
    }
}

impl Lanes {
    pub(crate) fn lane(&mut self, lanes: &Pattern) -> &mut Lane {
        self.0.entry(lanes.clone()).or_insert_with(|| Lane::new(lanes.clone()))
    }

    /// A lane that is listed and counted by name, also without settings.
    pub(crate) fn declared(&mut self, lanes: &Pattern) -> &mut Lane {
        let lane = self.lane(lanes);
        lane.declared = true;
        lane
    }

    /// The lanes with settings or a block.
    pub(crate) fn into_vec(self) -> Vec<Lane> {
        let is_configured = |lane: &Lane| lane.declared || lane.settings != LaneSettings::default();
        self.0.into_values().filter(is_configured).collect()
    }
}

/// Reads every lane setting of a block.
pub(crate) fn take_settings(report: &mut Report, fields: &mut Fields<'_>, lane: &mut Lane) {
    let mut groups: Vec<&str> = Vec::new();
    for key in SETTING_KEYS {
        let group = group(key);
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    for group in groups {
        let parts: Vec<&str> =
            SETTING_KEYS.iter().filter_map(|key| key.strip_prefix(group)?.strip_prefix('.')).collect();
        if parts.is_empty() {
            if let Some(field) = take(report, fields, group, group) {
                set(report, &fields.block, &field, group, lane);
            }
        } else if let Some(field) = fields.take(group) {
            take_group(report, &fields.block, &field, (group, &parts), lane);
        }
    }
}

/// Takes `key` out of a block. A duration may also be `key_ms`.
fn take<'a>(report: &mut Report, fields: &mut Fields<'a>, key: &str, setting: &str) -> Option<Field<'a>> {
    if is_duration(setting) { fields.take_duration(report, key) } else { fields.take(key) }
}

fn is_duration(setting: &str) -> bool {
    LaneSettings::default().set(setting, "1s").is_ok()
}

/// Reads a group: `retry { … }`, or `retry = "…"`.
fn take_group(
    report: &mut Report,
    block: &str,
    field: &Field<'_>,
    (group, parts): (&str, &[&str]),
    lane: &mut Lane,
) {
    if !matches!(field.value, Value::Table(_)) {
        if SETTING_KEYS.contains(&group) {
            return set(report, block, field, group, lane);
        }
        let expected = format!("must be a block, not {}", field.value.what());
        return report.wrong(field.line, block, &field.written, &expected);
    }
    let Some(mut inner) = Fields::of(report, block, &format!("{}.", field.written), field.node) else {
        return;
    };
    let mut found = Vec::new();
    // The strategy is first in the list and must be set last, so that `none` switches the group off.
    for part in parts.iter().rev() {
        let setting = format!("{group}.{part}");
        if let Some(part_field) = take(report, &mut inner, part, &setting) {
            set(report, block, &part_field, &setting, lane);
            found.push(*part);
        }
    }
    inner.finish_as(report, &format!("{group}."));
    complete(report, block, field, (group, &found), lane);
}

/// Completes a block that leaves out some or all keys.
fn complete(
    report: &mut Report,
    block: &str,
    field: &Field<'_>,
    (group, found): (&str, &[&str]),
    lane: &mut Lane,
) {
    let empty = matches!(field.value, Value::Table(entries) if entries.is_empty());
    let standard = match group {
        "retry" => "exponential",
        "boost" => "standard",
        "ageing" => "60s",
        "rate_limit" if found.len() < 2 => {
            let needed = format!("{0}.per and {0}.max", field.written);
            return report.missing(field.line, block, &needed);
        }
        "alerts" if empty => {
            let needed = format!("{0}.warning or {0}.critical", field.written);
            return report.missing(field.line, block, &needed);
        }
        _ => return,
    };
    if empty {
        assign(report, block, field, (group, standard), lane);
    }
}

fn set(report: &mut Report, block: &str, field: &Field<'_>, setting: &str, lane: &mut Lane) {
    let text = match scalar(field, setting) {
        Ok(text) => text,
        Err(expected) => return report.wrong(field.line, block, &field.written, &expected.0),
    };
    assign(report, block, field, (setting, &text), lane);
}

fn assign(
    report: &mut Report,
    block: &str,
    field: &Field<'_>,
    (setting, text): (&str, &str),
    lane: &mut Lane,
) {
    if let Some(first) = lane.given(setting) {
        return report.twice(field.line, block, &field.written, first.clone());
    }
    if let Err(error) = lane.assign(setting, text, report.at(field.line)) {
        report.wrong(field.line, block, &field.written, &error.expected);
    }
}

/// The text of a value for the core, or what the core expects instead.
pub(crate) fn scalar(field: &Field<'_>, setting: &str) -> Result<String, Expected> {
    let wanted = || match LaneSettings::default().set(setting, "?") {
        Err(error) => error.into(),
        Ok(()) => Expected("has a value of the wrong type".into()),
    };
    match field.value {
        Value::Number(text) => Ok(text.clone()),
        Value::Bool(truth) => Ok(truth.to_string()),
        _ if field.millis => Err(Expected("must be a whole number of milliseconds".into())),
        // A number or `true` in quotes is a text, which is wrong for a number or a switch.
        Value::Text(text) if !is_duration(setting) && (text.parse::<f64>().is_ok() || is_truth(text)) => {
            Err(wanted())
        }
        Value::Text(text) => Ok(text.clone()),
        _ => Err(wanted()),
    }
}

fn is_truth(text: &str) -> bool {
    matches!(text, "true" | "false")
}
