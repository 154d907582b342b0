//! A comparison as text.

use std::collections::BTreeSet;

use crate::report::{Comparison, Fairness, LaneReport, Report};
use crate::script::Assumptions;
use crate::trace::TaskOutcome;

/// How many lanes are listed: those with the most tasks.
const LANES_MAX: usize = 20;
const NAME_WIDTH: usize = 28;
const VALUE_WIDTH: usize = 18;

/// The comparison as a text table.
pub fn table(comparison: &Comparison) -> String {
    let (before, after) = (&comparison.before, &comparison.after);
    let mut text = Text(String::new());
    text.line(&format!("{} arrivals from {} to {}", comparison.arrivals, comparison.from, comparison.to));
    comparison.missing.iter().for_each(|missing| text.line(&format!("not in the trace: {missing}")));
    text.line("");
    text.row("", &before.name, &after.name, "");
    outcomes(&mut text, before, after);
    waits(&mut text, before, after);
    slots(&mut text, before, after);
    text.heading("How evenly the waiting was spread (Jain's index; 1: all wait alike)");
    let index = |fairness: Fairness| format!("{:.3}", fairness.index);
    for (name, one, other) in
        [("fair keys", before.fair_keys, after.fair_keys), ("sessions", before.sessions, after.sessions)]
    {
        let name = format!("{} {name}", one.count.max(other.count));
        text.row(&name, &index(one), &index(other), &signed(other.index - one.index, 3));
    }
    assumptions(&mut text, before, after);
    text.0
}

fn outcomes(text: &mut Text, before: &Report, after: &Report) {
    text.heading("Ends");
    for outcome in TaskOutcome::ALL.iter().filter(|outcome| **outcome != TaskOutcome::Refused) {
        let count = |report: &Report| report.outcomes.get(outcome.as_str()).copied().unwrap_or_default();
        text.counts(outcome.as_str(), count(before), count(after));
    }
    for code in before.refusals.keys().chain(after.refusals.keys()).collect::<BTreeSet<_>>() {
        let count = |report: &Report| report.refusals.get(code).copied().unwrap_or_default();
        text.counts(&format!("refused {code}"), count(before), count(after));
    }
    let (one, other) = (before.span_ms, after.span_ms);
    text.row("all done after", &duration(one), &duration(other), &percent(one, other));
}

/// The lanes of either side, those with the most tasks first.
fn lanes<'a>(before: &'a Report, after: &'a Report) -> Vec<&'a str> {
    let names = before.lanes.iter().map(|lane| lane.lane.as_str());
    let new = after.lanes.iter().map(|lane| lane.lane.as_str()).filter(|lane| before.lane(lane).is_none());
    names.chain(new).collect()
}

fn waits(text: &mut Text, before: &Report, after: &Report) {
    type Part = (&'static str, fn(&LaneReport) -> u64);
    let parts: [Part; 4] = [
        ("p50", |lane| lane.wait_p50_ms),
        ("p90", |lane| lane.wait_p90_ms),
        ("p99", |lane| lane.wait_p99_ms),
        ("max", |lane| lane.wait_max_ms),
    ];
    text.heading("Waits of what ran");
    let names = lanes(before, after);
    for name in names.iter().take(LANES_MAX) {
        for (place, (part, value)) in parts.iter().enumerate() {
            let lane = if place == 0 { shortened(name) } else { String::new() };
            let value = |report: &Report| report.lane(name).filter(|lane| lane.ran > 0).map(value);
            let shown = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), duration);
            let (one, other) = (value(before), value(after));
            let change = one.zip(other).map_or_else(String::new, |(one, other)| percent(one, other));
            text.row(&format!("{lane:<22} {part}"), &shown(one), &shown(other), &change);
        }
    }
    if names.len() > LANES_MAX {
        text.line(&format!("  and {} lanes more; --json has all of them", names.len() - LANES_MAX));
    }
}

fn slots(text: &mut Text, before: &Report, after: &Report) {
    text.heading("Slots taken, on average");
    for name in lanes(before, after).into_iter().take(LANES_MAX) {
        let shown = |report: &Report| {
            let Some(lane) = report.lane(name) else { return "-".to_owned() };
            match lane.slots.zip(lane.utilisation()) {
                Some((slots, part)) => format!("{:.2} of {slots} ({:.0} %)", lane.busy, part * 100.0),
                None => format!("{:.2}", lane.busy),
            }
        };
        text.row(&shortened(name), &shown(before), &shown(after), "");
    }
}

fn assumptions(text: &mut Text, before: &Report, after: &Report) {
    type Part = (&'static str, fn(&Assumptions) -> u64);
    let parts: [Part; 5] = [
        ("runs of what never ran", |assumed| assumed.never_ran),
        ("runs that were cut off", |assumed| assumed.cut_off),
        ("attempts never recorded", |assumed| assumed.further),
        ("children without a parent", |assumed| assumed.orphans),
        ("children never asked for", |assumed| assumed.unasked),
    ];
    text.heading("Assumed");
    for (name, value) in parts {
        let value = |report: &Report| report.assumptions.as_ref().map(value);
        let shown = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
        if value(before).unwrap_or_default() + value(after).unwrap_or_default() > 0 {
            text.row(name, &shown(value(before)), &shown(value(after)), "");
        }
    }
    text.line(
        "  runs take their recorded time, and workers are always there; docs/guide/what-if.md has all of it",
    );
}

struct Text(String);

impl Text {
    fn line(&mut self, line: &str) {
        self.0.push_str(line.trim_end());
        self.0.push('\n');
    }

    fn heading(&mut self, heading: &str) {
        self.line("");
        self.line(heading);
    }

    fn row(&mut self, name: &str, before: &str, after: &str, change: &str) {
        self.line(&format!(
            "  {name:<NAME_WIDTH$}{before:>VALUE_WIDTH$}  {after:>VALUE_WIDTH$}  {change:>8}"
        ));
    }

    /// A row with two counts, unless both are zero.
    fn counts(&mut self, name: &str, before: u64, after: u64) {
        if before + after > 0 {
            let change = i128::from(after) - i128::from(before);
            let change = if change == 0 { "=".to_owned() } else { format!("{change:+}") };
            self.row(name, &before.to_string(), &after.to_string(), &change);
        }
    }
}

/// The name of a lane, or its two ends where it is long.
pub(crate) fn shortened(name: &str) -> String {
    let chars: Vec<char> =
        name.chars().map(|sign| if sign.is_control() { '\u{fffd}' } else { sign }).collect();
    match chars.len() {
        0..=22 => chars.into_iter().collect(),
        length => chars[..12].iter().chain(&['…']).chain(&chars[length - 9..]).collect(),
    }
}

/// A duration with the detail that a comparison needs.
pub(crate) fn duration(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..100_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        100_000..6_000_000 => format!("{}.{} min", millis / 60_000, millis % 60_000 / 6_000),
        _ => format!("{}.{} h", millis / 3_600_000, millis % 3_600_000 / 360_000),
    }
}

fn percent(before: u64, after: u64) -> String {
    match (before, after) {
        (before, after) if before == after => "=".to_owned(),
        (0, _) => "new".to_owned(),
        (before, after) => {
            let change = (after as f64 / before as f64 - 1.0) * 100.0;
            if change >= 1000.0 { format!("x{:.0}", change / 100.0 + 1.0) } else { format!("{change:+.0} %") }
        }
    }
}

fn signed(change: f64, decimals: usize) -> String {
    if change == 0.0 { "=".to_owned() } else { format!("{change:+.decimals$}") }
}
