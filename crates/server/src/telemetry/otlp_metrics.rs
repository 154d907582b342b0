//! The metrics of a scrape in the JSON encoding of OTLP 1, for an OpenTelemetry collector.

use std::collections::BTreeMap;
use std::sync::Weak;
use std::time::Duration;

use laneway_core::Timestamp;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::telemetry::collector::{Collector, TRIES};

/// Sums count from the start of this server.
const CUMULATIVE: u32 = 2;

/// Sends all metrics from time to time, and once more at the end.
pub(crate) async fn run(app: Weak<App>, collector: Collector, every: Duration, stop: CancellationToken) {
    let Some(started) = app.upgrade().map(|app| app.now()) else { return };
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + every, every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        let is_last = tokio::select! {
            () = stop.cancelled() => true,
            _ = ticks.tick() => false,
        };
        let Some(app) = app.upgrade() else { return };
        // Writing to a string cannot fail.
        let text = app.open_metrics().await.unwrap_or_default();
        let body = request(&text, collector.resource(), (started, app.now()));
        drop(app);
        collector.send("metrics", &body, if is_last { 1 } else { TRIES }).await;
        if is_last {
            return;
        }
    }
}

/// The body of a request to the collector.
fn request(text: &str, resource: &Value, times: (Timestamp, Timestamp)) -> Value {
    let scope = json!({ "name": "laneway", "version": env!("CARGO_PKG_VERSION") });
    json!({ "resourceMetrics": [{
        "resource": resource,
        "scopeMetrics": [{ "scope": scope, "metrics": metrics(text, times) }],
    }] })
}

/// One line of the text: the name, its labels and the value.
struct Sample<'a> {
    name: &'a str,
    labels: Vec<(String, String)>,
    value: &'a str,
}

impl Sample<'_> {
    fn parse(line: &str) -> Option<Sample<'_>> {
        let name_end = line.find(['{', ' '])?;
        let (name, mut rest) = line.split_at(name_end);
        let mut labels = Vec::new();
        if let Some(inside) = rest.strip_prefix('{') {
            rest = inside;
            while !rest.starts_with('}') {
                let (key, quoted) = rest.trim_start_matches(',').split_once("=\"")?;
                let (value, after) = unquote(quoted)?;
                labels.push((key.to_owned(), value));
                rest = after;
            }
            rest = &rest[1..];
        }
        // An exemplar may follow.
        Some(Sample { name, labels, value: rest.split_ascii_whitespace().next()? })
    }

    fn number(&self) -> f64 {
        self.value.parse().unwrap_or_default()
    }

    fn attributes(&self) -> Value {
        let attribute =
            |(key, value): &(String, String)| json!({ "key": key, "value": { "stringValue": value } });
        self.labels.iter().map(attribute).collect()
    }
}

/// The text up to the closing quote, and what follows.
fn unquote(quoted: &str) -> Option<(String, &str)> {
    let (mut value, mut characters) = (String::new(), quoted.char_indices());
    while let Some((place, character)) = characters.next() {
        match character {
            '"' => return Some((value, &quoted[place + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

#[derive(Default)]
struct Family<'a> {
    help: &'a str,
    kind: &'a str,
    samples: Vec<Sample<'a>>,
}

fn metrics(text: &str, times: (Timestamp, Timestamp)) -> Vec<Value> {
    let mut families: Vec<(&str, Family<'_>)> = Vec::new();
    for line in text.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            families.push((name, Family { help, ..Family::default() }));
        } else if let Some((_, family)) = families.last_mut() {
            match line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
                Some((_, kind)) => family.kind = kind,
                None => family
                    .samples
                    .extend(Some(line).filter(|line| !line.starts_with('#')).and_then(Sample::parse)),
            }
        }
    }
    families.retain(|(_, family)| !family.samples.is_empty());
    families.into_iter().map(|(name, family)| metric(name, &family, times)).collect()
}

fn nanos(at: Timestamp) -> String {
    (u128::from(at.0) * 1_000_000).to_string()
}

fn metric(name: &str, family: &Family<'_>, (started, now): (Timestamp, Timestamp)) -> Value {
    let unit = if name.ends_with("_seconds") {
        "s"
    } else if name.ends_with("_bytes") {
        "By"
    } else {
        "1"
    };
    let (started, now) = (nanos(started), nanos(now));
    let point = |sample: &Sample<'_>| {
        let value = match sample.value.parse::<i64>() {
            Ok(_) => json!({ "asInt": sample.value }),
            Err(_) => json!({ "asDouble": sample.number() }),
        };
        let mut point = json!({ "attributes": sample.attributes(), "timeUnixNano": now });
        merge(&mut point, value);
        point
    };
    let since = |mut point: Value| {
        point["startTimeUnixNano"] = json!(started);
        point
    };
    let mut metric = json!({ "name": name, "description": family.help, "unit": unit });
    match family.kind {
        "counter" => {
            let points: Vec<Value> = family.samples.iter().map(point).map(since).collect();
            metric["sum"] =
                json!({ "dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": true });
        }
        "histogram" => {
            let points: Vec<Value> = histograms(name, family)
                .map(|mut point| {
                    point["timeUnixNano"] = json!(now);
                    since(point)
                })
                .collect();
            metric["histogram"] = json!({ "dataPoints": points, "aggregationTemporality": CUMULATIVE });
        }
        _ => metric["gauge"] = json!({ "dataPoints": family.samples.iter().map(point).collect::<Vec<_>>() }),
    }
    metric
}

fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}

/// A point for each set of labels. The text counts each bucket together with those below; a point counts each alone.
fn histograms(name: &str, family: &Family<'_>) -> impl Iterator<Item = Value> {
    let mut points: BTreeMap<Vec<(String, String)>, Vec<&Sample<'_>>> = BTreeMap::new();
    for sample in &family.samples {
        let labels = sample.labels.iter().filter(|(key, _)| key != "le").cloned().collect();
        points.entry(labels).or_default().push(sample);
    }
    points.into_values().map(move |samples| {
        let of = |suffix: &str| samples.iter().find(|sample| sample.name.strip_prefix(name) == Some(suffix));
        let buckets = samples.iter().filter(|sample| sample.name.strip_prefix(name) == Some("_bucket"));
        let (mut bounds, mut counts, mut before) = (Vec::new(), Vec::new(), 0);
        for sample in buckets {
            let bound = sample.labels.iter().find(|(key, _)| key == "le").map_or("+Inf", |(_, bound)| bound);
            let below: u64 = sample.value.parse().unwrap_or_default();
            counts.push((below - before).to_string());
            bounds.extend(bound.parse::<f64>().ok().filter(|bound| bound.is_finite()));
            before = below;
        }
        json!({
            "attributes": of("_count").map(|count| count.attributes()),
            "sum": of("_sum").map(|sum| sum.number()),
            "count": of("_count").map(|count| count.value),
            "explicitBounds": bounds,
            "bucketCounts": counts,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_of_the_text_becomes_a_metric() {
        let text = "# HELP a_tasks Tasks.\n# TYPE a_tasks counter\na_tasks_total{lane=\"x\\\"\\\\\\n}\"} 3\n\
                    # HELP a_limit Slots.\n# TYPE a_limit gauge\na_limit 1.5\n\
                    # HELP a_build Build.\n# TYPE a_build info\na_build_info{version=\"1\"} 1\n\
                    # HELP a_none Nothing.\n# TYPE a_none gauge\n\
                    # HELP a_wait_seconds Waits.\n# TYPE a_wait_seconds histogram\n\
                    a_wait_seconds_sum{lane=\"y\"} 2.5\na_wait_seconds_count{lane=\"y\"} 4\n\
                    a_wait_seconds_bucket{lane=\"y\",le=\"0.1\"} 1\n\
                    a_wait_seconds_bucket{lane=\"y\",le=\"1.0\"} 3 # {trace_id=\"7\"} 0.5\n\
                    a_wait_seconds_bucket{lane=\"y\",le=\"+Inf\"} 4\n# EOF\n";
        let found = metrics(text, (Timestamp(1), Timestamp(2)));
        let names: Vec<_> = found.iter().map(|metric| metric["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["a_tasks", "a_limit", "a_build", "a_wait_seconds"]);
        let point = &found[0]["sum"]["dataPoints"][0];
        assert_eq!((&point["asInt"], &point["startTimeUnixNano"]), (&json!("3"), &json!("1000000")));
        assert_eq!(point["attributes"][0]["value"]["stringValue"], "x\"\\\n}");
        assert_eq!(found[1]["gauge"]["dataPoints"][0]["asDouble"], 1.5);
        let point = &found[3]["histogram"]["dataPoints"][0];
        assert_eq!((&point["bucketCounts"], &point["count"]), (&json!(["1", "2", "1"]), &json!("4")));
        assert_eq!((&point["explicitBounds"], &point["sum"]), (&json!([0.1, 1.0]), &json!(2.5)));
        assert_eq!((&found[3]["unit"], point["attributes"].as_array().unwrap().len()), (&json!("s"), 1));
    }
}
