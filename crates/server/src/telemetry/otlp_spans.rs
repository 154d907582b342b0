//! The history of a task as spans of OpenTelemetry, in the JSON encoding of OTLP 1.

use laneway_core::{End, LaneName, TaskId, Timestamp};
use laneway_engine::TaskRecord;
use laneway_protocol::{end_word, source_word};
use laneway_store::Finished;
use serde_json::{Value, json};

/// The span of the caller, in another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parent {
    trace: u128,
    span: u64,
    is_sampled: bool,
}

impl Parent {
    /// Reads a `traceparent`: version, trace, span, flags.
    fn parse(text: &str) -> Option<Parent> {
        let mut parts = text.split('-');
        let (_version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let trace = u128::from_str_radix(trace, 16).ok().filter(|trace| *trace != 0)?;
        let span = u64::from_str_radix(span, 16).ok().filter(|span| *span != 0)?;
        Some(Parent { trace, span, is_sampled: u8::from_str_radix(flags, 16).ok()? & 1 == 1 })
    }
}

/// The id of a span, derived from the task's, so that a repeated export has the same spans.
fn span_id(task: TaskId, number: u64) -> String {
    // An odd factor gives each number another id.
    let id = (task.0 as u64) ^ (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    format!("{:016x}", id.max(1))
}

/// What the exporter knows of an ended task.
pub(super) struct Ended {
    pub(super) record: TaskRecord,
    /// The model that the caller asked for.
    pub(super) model: Option<String>,
    /// The lane for which the task waited when it was accepted.
    pub(super) waited_for: Option<LaneName>,
}

/// What the conventions for generative AI say of a turn or a tool call.
fn gen_ai(finished: &Finished, model: Option<&str>) -> Vec<Value> {
    let mut attributes = Vec::new();
    if let Some(agent) = finished.kind.as_str().strip_prefix("agent:") {
        attributes.push(text("gen_ai.operation.name", "invoke_agent"));
        attributes.push(text("gen_ai.agent.name", agent));
        let session = finished.lanes.iter().find(|lane| lane.is_session()).and_then(LaneName::session_key);
        attributes.extend(session.map(|session| text("gen_ai.conversation.id", &session)));
        attributes.extend(model.map(|model| text("gen_ai.request.model", model)));
    } else if finished.lanes.iter().any(|lane| LaneName::session_of_tool_lane(lane).is_some()) {
        attributes.push(text("gen_ai.operation.name", "execute_tool"));
        attributes.push(text("gen_ai.tool.name", finished.kind.as_str()));
    }
    attributes
}

/// The spans of an ended task: the task, each wait and each attempt. Empty if the caller's trace is not sampled.
pub(super) fn spans(ended: &Ended) -> Vec<Value> {
    let record = &ended.record;
    let Some(finished) = &record.finished else { return Vec::new() };
    let parent = finished.trace.as_deref().and_then(Parent::parse);
    if parent.is_some_and(|parent| !parent.is_sampled) {
        return Vec::new();
    }
    let trace = format!("{:032x}", parent.map_or(finished.task.0, |parent| parent.trace));
    let whole = span_id(finished.task, 0);
    let home = finished.lanes.first().cloned().unwrap_or_else(LaneName::main);
    let gen_ai = gen_ai(finished, ended.model.as_deref());
    let mut attributes = vec![
        text("laneway.task.id", &finished.task.to_string()),
        text("laneway.kind", finished.kind.as_str()),
        text("laneway.lane", home.as_str()),
        text("laneway.source", source_word(finished.source)),
        text("laneway.outcome", end_word(&finished.end)),
        number("laneway.attempts", finished.attempts.into()),
        text("messaging.system", "laneway"),
        text("messaging.operation.name", "process"),
        text("messaging.operation.type", "process"),
        text("messaging.destination.name", home.as_str()),
        text("messaging.message.id", &finished.task.to_string()),
    ];
    attributes.extend(gen_ai.iter().cloned());
    attributes.extend(problem(&finished.end).map(|end| text("error.type", end)));
    let mut spans = vec![span(&Span {
        trace: &trace,
        id: whole.clone(),
        parent: parent.map(|parent| format!("{:016x}", parent.span)),
        name: format!("task {}", finished.kind),
        times: (finished.submitted, finished.ended),
        problem: problem(&finished.end),
        kind: CONSUMER,
        attributes: json!(attributes),
    })];
    let mut add = |name: &str, times: (Timestamp, Timestamp), problem: Option<&'static str>, attributes| {
        let id = span_id(finished.task, spans.len() as u64);
        let (trace, parent, name) = (trace.as_str(), Some(whole.clone()), name.to_owned());
        let kind = INTERNAL;
        spans.push(span(&Span { trace, id, parent, name, times, problem, kind, attributes }));
    };
    let mut free = finished.submitted;
    let mut waited_for = ended.waited_for.as_ref().map(|lane| text("laneway.waited_for", lane.as_str()));
    let attempts = crate::service::attempt_view::of(record);
    for attempt in &attempts {
        let ended = attempt.ended_at.map_or(finished.ended, |at| at.0);
        let started = attempt.started_at.map_or(ended, |at| at.0);
        let waited_for: Vec<Value> = waited_for.take().into_iter().collect();
        add("waiting", (free, started), None, json!(waited_for));
        let worker = attempt.worker.as_deref().map(|worker| text("laneway.worker", worker));
        let which = number("laneway.attempt", attempt.number.into());
        let attributes = worker.into_iter().chain([which]).chain(gen_ai.iter().cloned());
        let attributes = json!(attributes.collect::<Vec<_>>());
        let problem = (attempt.outcome != "completed").then_some("it did not succeed");
        add("running", (started, ended), problem, attributes);
        free = ended;
    }
    if free < finished.ended || attempts.is_empty() {
        let waited_for: Vec<Value> = waited_for.take().into_iter().collect();
        add("waiting", (free, finished.ended), None, json!(waited_for));
    }
    spans
}

/// A refused request.
pub(super) struct Refused<'a> {
    pub(super) code: &'a str,
    pub(super) lane: Option<&'a str>,
    pub(super) request: (&'a str, &'a str),
    pub(super) status: u16,
    pub(super) traceparent: Option<&'a str>,
    pub(super) times: (Timestamp, Timestamp),
    /// The ids of the span, and of its trace if the caller named none.
    pub(super) ids: (u64, u128),
}

/// The span of a refused request; none if the caller's trace is not sampled.
pub(super) fn refusal(refused: &Refused<'_>) -> Option<Value> {
    let parent = refused.traceparent.and_then(Parent::parse);
    if parent.is_some_and(|parent| !parent.is_sampled) {
        return None;
    }
    let (method, route) = refused.request;
    let mut attributes = vec![
        text("error.type", refused.code),
        text("laneway.code", refused.code),
        text("http.request.method", method),
        text("http.route", route),
        number("http.response.status_code", refused.status.into()),
    ];
    attributes.extend(refused.lane.map(|lane| text("laneway.lane", lane)));
    Some(span(&Span {
        trace: &format!("{:032x}", parent.map_or(refused.ids.1.max(1), |parent| parent.trace)),
        id: format!("{:016x}", refused.ids.0.max(1)),
        parent: parent.map(|parent| format!("{:016x}", parent.span)),
        name: "refused".to_owned(),
        times: refused.times,
        problem: Some("the server refused the request"),
        kind: SERVER,
        attributes: json!(attributes),
    }))
}

/// The body of a request to the collector.
pub(super) fn request(spans: Vec<Value>, resource: &Value) -> Value {
    let scope = json!({ "name": "laneway", "version": env!("CARGO_PKG_VERSION") });
    json!({ "resourceSpans": [{
        "resource": resource,
        "scopeSpans": [{ "scope": scope, "spans": spans }],
    }] })
}

struct Span<'a> {
    trace: &'a str,
    id: String,
    parent: Option<String>,
    name: String,
    times: (Timestamp, Timestamp),
    problem: Option<&'static str>,
    kind: u32,
    attributes: Value,
}

/// The kinds of spans.
const INTERNAL: u32 = 1;
const SERVER: u32 = 2;
const CONSUMER: u32 = 5;

/// The status 1 is success, 2 is an error.
fn span(span: &Span<'_>) -> Value {
    let nanos = |at: Timestamp| (u128::from(at.0) * 1_000_000).to_string();
    let status = match span.problem {
        None => json!({ "code": 1 }),
        Some(problem) => json!({ "code": 2, "message": problem }),
    };
    let mut made = json!({
        "traceId": span.trace,
        "spanId": span.id,
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": nanos(span.times.0),
        "endTimeUnixNano": nanos(span.times.1.max(span.times.0)),
        "attributes": span.attributes,
        "status": status,
    });
    if let Some(parent) = &span.parent {
        made["parentSpanId"] = json!(parent);
    }
    made
}

fn problem(end: &End) -> Option<&'static str> {
    (*end != End::Completed).then(|| end_word(end))
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// Numbers of 64 bits are strings in this encoding.
fn number(key: &str, value: u64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_read_and_nonsense_is_not() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let parent = Parent::parse(text).unwrap();
        assert_eq!(format!("{:032x}-{:016x}", parent.trace, parent.span), text[3..52]);
        assert!(parent.is_sampled);
        assert!(!Parent::parse(&text.replace("-01", "-00")).unwrap().is_sampled);
        for wrong in ["", "00", "00-0-1-01", "00-1-0-01", "00-x-1-01", "00-1-1-zz"] {
            assert_eq!(Parent::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn spans_of_one_task_have_ids_of_their_own() {
        let ids: std::collections::BTreeSet<String> =
            (0..1000).map(|number| span_id(TaskId(7), number)).collect();
        assert_eq!(ids.len(), 1000);
    }
}
