//! The block `queue { … }`: the tool lanes of every session, `session:*/control` and so on.
//!
//! Its keys for one lane add to that lane's own `lane` block, and the same setting in both is an error. Its keys for all
//! lanes apply only to lanes that do not set the same group themselves.

use std::collections::BTreeMap;

use laneway_core::{COUNT_MAX, LaneSettings, Millis, Pattern, ToolLane, duration};

use crate::blocks::lanes::{Lanes, scalar};
use crate::config::ToolLaneConfig;
use crate::error::Expected;
use crate::fields::{Field, Fields, word};
use crate::formats::Value;
use crate::report::Report;

const BLOCK: &str = "queue";
const TOOL_LANES: [ToolLane; 4] = [ToolLane::Control, ToolLane::Query, ToolLane::Execute, ToolLane::Generate];
const WORDS: &[(&str, ToolLane)] = &[
    ("control", ToolLane::Control),
    ("query", ToolLane::Query),
    ("execute", ToolLane::Execute),
    ("generate", ToolLane::Generate),
];
const CHOICES: &str = "control, query, execute, generate";

/// Reads the block. Also returns the value of `storage_path`.
pub(crate) fn queue(
    report: &mut Report,
    top: &mut Fields<'_>,
    lanes: &mut Lanes,
) -> Option<(ToolLaneConfig, Option<String>)> {
    let field = top.take(BLOCK)?;
    let mut fields = Fields::of(report, BLOCK, "", field.node)?;
    for lane in TOOL_LANES {
        let key = format!("{}_max_concurrency", lane.as_str());
        if let Some(field) = fields.take(&key) {
            one(report, lanes, lane, "max_concurrency", &field);
        }
    }
    timeouts_and_handlers(report, &mut fields, lanes);
    if let Some(field) = fields.take("pressure_threshold") {
        let targets = silent(lanes, "pressure_threshold");
        let text = scalar(&field, "pressure_threshold");
        fill(report, lanes, &targets, ("pressure_threshold", text), &field);
    }
    dead_letters(report, &mut fields, lanes);
    let alerts = alerts(report, &mut fields, lanes);
    retry_policy(report, &mut fields, lanes);
    rate_limit(report, &mut fields, lanes);
    priority_boost(report, &mut fields, lanes);
    let metrics = fields.truth(report, "enable_metrics").unwrap_or(true);
    let tools = tools(report, &mut fields);
    let storage_path = fields.text(report, "storage_path");
    fields.finish(report);
    Some((ToolLaneConfig { metrics, alerts, tools }, storage_path))
}

fn pattern(lane: ToolLane) -> Option<Pattern> {
    Pattern::new(format!("session:*/{}", lane.as_str())).ok()
}

/// Sets a key of one lane.
fn one(report: &mut Report, lanes: &mut Lanes, lane: ToolLane, setting: &str, field: &Field<'_>) {
    let Some(lane) = pattern(lane).map(|pattern| lanes.lane(&pattern)) else { return };
    if let Some(first) = lane.given(setting) {
        return report.twice(field.line, BLOCK, &field.written, first.clone());
    }
    let result = scalar(field, setting)
        .and_then(|text| lane.assign(setting, &text, report.at(field.line)).map_err(Expected::from));
    if let Err(expected) = result {
        report.wrong(field.line, BLOCK, &field.written, &expected.0);
    }
}

/// The tool lanes that do not set any part of a group. Other lanes take none of the group from this block.
fn silent(lanes: &mut Lanes, group: &str) -> Vec<Pattern> {
    let patterns = TOOL_LANES.into_iter().filter_map(pattern);
    patterns.filter(|pattern| lanes.lane(pattern).given_within(group).is_none()).collect()
}

/// Sets a key of all `targets`. Reports an error once, and also without targets.
fn fill(
    report: &mut Report,
    lanes: &mut Lanes,
    targets: &[Pattern],
    (setting, text): (&str, Result<String, Expected>),
    field: &Field<'_>,
) {
    let checked = text.and_then(|text| {
        LaneSettings::default().set(setting, &text)?;
        Ok(text)
    });
    let text = match checked {
        Ok(text) => text,
        Err(expected) => return report.wrong(field.line, BLOCK, &field.written, &expected.0),
    };
    for pattern in targets {
        if let Err(error) = lanes.lane(pattern).assign(setting, &text, report.at(field.line)) {
            return report.wrong(field.line, BLOCK, &field.written, &error.expected);
        }
    }
}

/// Reads `default_timeout_ms`, `lane_timeouts` and `lane_handlers`. If a lane and its handler both have a timeout, the
/// shorter one applies.
fn timeouts_and_handlers(report: &mut Report, fields: &mut Fields<'_>, lanes: &mut Lanes) {
    let default = fields.take_duration(report, "default_timeout");
    let mut lane_timeouts = fields.block(report, "lane_timeouts");
    let mut handlers = fields.block(report, "lane_handlers");
    for lane in TOOL_LANES {
        let own = lane_timeouts.as_mut().and_then(|fields| fields.take_duration(report, lane.as_str()));
        let handler = handlers.as_mut().and_then(|fields| fields.take(lane.as_str()));
        let handler_timeout = handler.and_then(|field| handler_of(report, lanes, lane, &field));
        let length = |field: &Field<'_>| {
            let text = scalar(field, "timeout").unwrap_or_default();
            duration("timeout", &text, Millis(1)).unwrap_or(Millis::MAX)
        };
        let mut both: Vec<Field<'_>> = own.into_iter().chain(handler_timeout).collect();
        both.sort_by_key(length);
        // Check the longer one too, so that its errors are reported.
        for field in both.iter().skip(1) {
            fill(report, lanes, &[], ("timeout", scalar(field, "timeout")), field);
        }
        if let Some(shorter) = both.first() {
            one(report, lanes, lane, "timeout", shorter);
        }
    }
    for fields in lane_timeouts.into_iter().chain(handlers) {
        fields.finish(report);
    }
    if let Some(field) = default {
        let targets = silent(lanes, "timeout");
        fill(report, lanes, &targets, ("timeout", scalar(&field, "timeout")), &field);
    }
}

/// Reads `execute = { mode = "external"  timeout_ms = 60000 }`, and returns the timeout.
fn handler_of<'a>(
    report: &mut Report,
    lanes: &mut Lanes,
    lane: ToolLane,
    field: &Field<'a>,
) -> Option<Field<'a>> {
    if matches!(field.value, Value::Text(_)) {
        one(report, lanes, lane, "handler", field);
        return None;
    }
    let mut inner = Fields::of(report, BLOCK, &format!("{}.", field.written), field.node)?;
    match inner.take("mode") {
        Some(mode) => one(report, lanes, lane, "handler", &mode),
        None => report.missing(field.line, BLOCK, &format!("{}.mode", field.written)),
    }
    let timeout = inner.take_duration(report, "timeout");
    inner.finish_as(report, &format!("lane_handlers.{}.", lane.as_str()));
    timeout
}

/// Reads `enable_dlq` and `dlq_max_size`.
fn dead_letters(report: &mut Report, fields: &mut Fields<'_>, lanes: &mut Lanes) {
    let switch = fields.peek("enable_dlq");
    let off = fields.truth(report, "enable_dlq") == Some(false);
    let size = fields.take("dlq_max_size");
    let targets = silent(lanes, "dead_letters_max");
    if let Some(field) = &size {
        let kept: &[Pattern] = if off { &[] } else { &targets };
        fill(report, lanes, kept, ("dead_letters_max", scalar(field, "dead_letters_max")), field);
        if off {
            report.warn(field.line, BLOCK, "dlq_max_size has no effect, because enable_dlq is false");
        }
    }
    if let Some(field) = switch.filter(|_| off) {
        fill(report, lanes, &targets, ("dead_letters_max", Ok("0".to_owned())), &field);
    }
}

/// Reads `enable_alerts`. With `false`, the thresholds are higher than the number of tasks in any lane.
fn alerts(report: &mut Report, fields: &mut Fields<'_>, lanes: &mut Lanes) -> bool {
    let field = fields.peek("enable_alerts");
    let on = fields.truth(report, "enable_alerts").unwrap_or(true);
    if let Some(field) = field.filter(|_| !on) {
        let targets = silent(lanes, "alerts");
        for setting in ["alerts.warning", "alerts.critical"] {
            fill(report, lanes, &targets, (setting, Ok(COUNT_MAX.to_string())), &field);
        }
    }
    on
}

fn retry_policy(report: &mut Report, fields: &mut Fields<'_>, lanes: &mut Lanes) {
    let Some(outer) = fields.take("retry_policy") else { return };
    let Some(mut inner) = Fields::of(report, BLOCK, "retry_policy.", outer.node) else { return };
    let targets = silent(lanes, "retry");
    // Missing keys are as in an empty `retry` block. The strategy comes last, so that `none` switches retries off.
    fill(report, lanes, &targets, ("retry.strategy", Ok("exponential".to_owned())), &outer);
    for part in ["jitter", "max_delay", "fixed_delay", "initial_delay", "max_retries", "strategy"] {
        let setting = format!("retry.{part}");
        let field =
            if part.ends_with("_delay") { inner.take_duration(report, part) } else { inner.take(part) };
        if let Some(field) = field {
            fill(report, lanes, &targets, (&setting, scalar(&field, &setting)), &field);
        }
    }
    inner.finish_as(report, "retry_policy.");
}

/// Reads `limit_type = "per_second"  max_operations = 100`, or `limit_type = "unlimited"`.
fn rate_limit(report: &mut Report, fields: &mut Fields<'_>, lanes: &mut Lanes) {
    const TYPES: &[(&str, Option<&str>)] = &[
        ("per_second", Some("second")),
        ("per_minute", Some("minute")),
        ("per_hour", Some("hour")),
        ("unlimited", None),
    ];
    let Some(outer) = fields.take("rate_limit") else { return };
    let Some(mut inner) = Fields::of(report, BLOCK, "rate_limit.", outer.node) else { return };
    let targets = silent(lanes, "rate_limit");
    let max = inner.take("max_operations");
    if let Some(max) = &max {
        fill(report, lanes, &targets, ("rate_limit.max", scalar(max, "rate_limit.max")), max);
    }
    match inner.take("limit_type") {
        None => report.missing(outer.line, BLOCK, "rate_limit.limit_type"),
        Some(field) => match word(field.value, TYPES) {
            None => {
                let expected = "must be one of per_second, per_minute, per_hour, unlimited";
                report.wrong(field.line, BLOCK, &field.written, expected);
            }
            Some(None) => {
                if let Some(max) = max {
                    report.warn(
                        max.line,
                        BLOCK,
                        "rate_limit.max_operations has no effect, because limit_type is unlimited",
                    );
                }
                fill(report, lanes, &targets, ("rate_limit", Ok("unlimited".to_owned())), &field);
            }
            Some(Some(_)) if max.is_none() => {
                report.missing(outer.line, BLOCK, "rate_limit.max_operations");
            }
            Some(Some(per)) => {
                fill(report, lanes, &targets, ("rate_limit.per", Ok(per.to_owned())), &field);
            }
        },
    }
    inner.finish_as(report, "rate_limit.");
}

fn priority_boost(report: &mut Report, fields: &mut Fields<'_>, lanes: &mut Lanes) {
    let Some(outer) = fields.take("priority_boost") else { return };
    let Some(mut inner) = Fields::of(report, BLOCK, "priority_boost.", outer.node) else { return };
    let targets = silent(lanes, "boost");
    fill(report, lanes, &targets, ("boost.strategy", Ok("standard".to_owned())), &outer);
    if let Some(field) = inner.take_duration(report, "deadline") {
        fill(report, lanes, &targets, ("boost.deadline", scalar(&field, "boost.deadline")), &field);
    }
    if let Some(field) = inner.take("strategy") {
        let text = scalar(&field, "boost.strategy");
        let text = text.map(|text| if text.trim() == "disabled" { "none".to_owned() } else { text });
        fill(report, lanes, &targets, ("boost.strategy", text), &field);
    }
    inner.finish_as(report, "priority_boost.");
}

/// Reads `tools { read = "query" }`.
fn tools(report: &mut Report, fields: &mut Fields<'_>) -> BTreeMap<String, ToolLane> {
    let mut tools = BTreeMap::new();
    for entry in fields.named(report, "tools") {
        let key = format!("tools.{}", entry.key);
        match word(&entry.node.value, WORDS) {
            Some(lane) => {
                report.remember(BLOCK, &key, entry.line);
                tools.insert(entry.key.clone(), lane);
            }
            None => report.wrong(entry.line, BLOCK, &key, &format!("must be one of {CHOICES}")),
        }
    }
    tools
}
