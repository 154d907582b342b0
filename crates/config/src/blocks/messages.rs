//! The block `messages { queue { … } }`.

use std::collections::BTreeMap;

use laneway_core::{
    ATTEMPTS_MAX, DropRule, MessagePolicy, MessageQueue, MessageSettings, Millis, Mode, QueueOverrides,
    duration,
};

use crate::blocks::message_types::Messages;
use crate::fields::{Fields, word};
use crate::formats::{Entry, Value};
use crate::report::Report;

const MODES: &[(&str, Mode)] = Mode::WORDS;
const MODE_CHOICES: &str = Mode::CHOICES;
const DROPS: &[(&str, DropRule)] = DropRule::WORDS;
const DROP_CHOICES: &str = DropRule::CHOICES;

pub(crate) fn messages(report: &mut Report, top: &mut Fields<'_>) -> Messages {
    let mut messages = Messages {
        queue: MessageQueue::default(),
        given: QueueOverrides::default(),
        by_channel: BTreeMap::new(),
        policy: MessagePolicy::default(),
        redeliver: MessageSettings::default().redeliver,
        attempts: MessageSettings::default().attempts,
    };
    let Some(field) = top.take("messages") else { return messages };
    let Some(mut outer) = Fields::of(report, "messages", "", field.node) else { return messages };
    if let Some(redeliver) = outer.truth(report, "redeliver") {
        messages.redeliver = redeliver;
    }
    let line = outer.peek("attempts").and_then(|field| field.line);
    match outer.count(report, "attempts", 1).map(u8::try_from) {
        Some(Ok(attempts)) if attempts <= ATTEMPTS_MAX => messages.attempts = attempts,
        Some(_) => {
            let expected = format!("must be a whole number from 1 to {ATTEMPTS_MAX}");
            report.wrong(line, "messages", "attempts", &expected);
        }
        None => {}
    }
    if let Some(mut fields) = outer.block(report, "policy") {
        policy(report, &mut fields, &mut messages.policy);
        fields.finish_as(report, "policy.");
    }
    if let Some(field) = outer.take("queue")
        && let Some(mut fields) = Fields::of(report, QUEUE, "", field.node)
    {
        let line = fields.line;
        let everywhere = channel_queue(report, &mut fields);
        messages.given = everywhere;
        messages.by_channel.insert(String::new(), everywhere);
        messages.queue = messages.in_channel("");
        messages.by_channel.clear();
        check_waits(report, line, QUEUE, &messages.queue);
        for entry in fields.named(report, "by_channel") {
            channel(report, entry, &mut messages);
        }
        for entry in fields.named(report, "debounce_ms_by_channel") {
            channel_debounce(report, entry, &mut messages);
        }
        fields.finish(report);
    }
    check_policy(report, outer.line, QUEUE, &messages.queue, messages.policy);
    outer.finish(report);
    messages
}

const QUEUE: &str = "messages.queue";

/// Reads a channel: `discord = "collect"`, or a block with its own settings.
fn channel(report: &mut Report, entry: &Entry, messages: &mut Messages) {
    let block = format!("{QUEUE}.by_channel \"{}\"", entry.key);
    let own = match &entry.node.value {
        Value::Table(_) => {
            let Some(mut fields) = Fields::of(report, &block, "", &entry.node) else { return };
            let own = channel_queue(report, &mut fields);
            fields.finish(report);
            own
        }
        value => match word(value, MODES) {
            Some(mode) => {
                report.remember(&block, "mode", entry.line);
                QueueOverrides { mode: Some(mode), ..QueueOverrides::default() }
            }
            None => {
                let expected = format!("must be a block or one of {MODE_CHOICES}");
                return report.wrong(entry.line, &block, "", &expected);
            }
        },
    };
    messages.by_channel.insert(entry.key.clone(), own);
    let queue = messages.in_channel(&entry.key);
    check_waits(report, entry.line, &block, &queue);
    check_policy(report, entry.line, &block, &queue, messages.policy);
}

/// Reads `debounce_ms_by_channel { discord = 1500 }`, which is the debounce of a channel.
fn channel_debounce(report: &mut Report, entry: &Entry, messages: &mut Messages) {
    let block = format!("{QUEUE}.by_channel \"{}\"", entry.key);
    let length = match &entry.node.value {
        Value::Number(text) => duration("debounce", text, Millis(0)).ok(),
        _ => None,
    };
    let Some(length) = length else {
        let key = format!("debounce_ms_by_channel.{}", entry.key);
        return report.wrong(entry.line, QUEUE, &key, "must be a whole number of milliseconds");
    };
    let own = messages.by_channel.entry(entry.key.clone()).or_default();
    if own.debounce.is_some_and(|known| known != length) {
        let sentence =
            "by_channel and debounce_ms_by_channel give different values; give one of them".to_owned();
        return report.contradiction(entry.line, &block, sentence);
    }
    own.debounce = Some(length);
    report.remember(&block, "debounce", entry.line);
    let queue = messages.in_channel(&entry.key);
    check_waits(report, entry.line, &block, &queue);
    check_policy(report, entry.line, &block, &queue, messages.policy);
}

fn channel_queue(report: &mut Report, fields: &mut Fields<'_>) -> QueueOverrides {
    QueueOverrides {
        mode: fields.word(report, "mode", MODES, MODE_CHOICES),
        debounce: fields.duration(report, "debounce", Millis(0)),
        max_wait: fields.duration(report, "max_wait", Millis(0)),
        cap: fields.count(report, "cap", 1),
        drop: fields.word(report, "drop", DROPS, DROP_CHOICES),
    }
}

fn policy(report: &mut Report, fields: &mut Fields<'_>, policy: &mut MessagePolicy) {
    if let Some(cap) = fields.count(report, "cap_max", 1) {
        policy.cap_max = cap;
    }
    if let Some(wait) = fields.duration(report, "wait_max", Millis(0)) {
        policy.wait_max = wait;
    }
}

/// Refuses settings beyond the policy, because the scheduler would lower them silently.
fn check_policy(
    report: &mut Report,
    line: Option<u32>,
    block: &str,
    queue: &MessageQueue,
    policy: MessagePolicy,
) {
    if queue.cap > policy.cap_max {
        let sentence =
            format!("cap ({}) is more than messages.policy.cap_max ({})", queue.cap, policy.cap_max);
        report.contradiction(line, block, sentence);
    }
    for (key, length) in [("debounce", queue.debounce), ("max_wait", queue.max_wait)] {
        if length > policy.wait_max {
            let most = policy.wait_max;
            let sentence = format!("{key} ({length}) is longer than messages.policy.wait_max ({most})");
            report.contradiction(line, block, sentence);
        }
    }
}

/// Refuses a debounce longer than `max_wait`, because it would have no effect.
fn check_waits(report: &mut Report, line: Option<u32>, block: &str, queue: &MessageQueue) {
    if queue.debounce > queue.max_wait {
        let sentence =
            format!("debounce ({}) must not be longer than max_wait ({})", queue.debounce, queue.max_wait);
        report.contradiction(line, block, sentence);
    }
}
