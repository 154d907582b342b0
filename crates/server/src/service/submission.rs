//! From a request to what is asked of the queue.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, header};
use laneway_config::Agent;
use laneway_core::{
    Idempotency, LaneName, Millis, Name, Parent, Rejection, Retry, RetryStrategy, Source, TaskId, TaskSpec,
};
use laneway_engine::{Error, OnDrop, Submitted, TaskHandle};
use laneway_protocol::{ChatRequest, Code, PriorityRequest, RetryRequest, Scope, TaskRequest, source_from};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use crate::agents::handlers::agent_kind;
use crate::app::App;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{header_text, task_id, wants_events};
use crate::http::middleware::TRACEPARENT;
use crate::service::envelope::{Envelope, Turn};

const SOURCE_AGENT: HeaderName = HeaderName::from_static("x-source-agent");
const PARENT: HeaderName = HeaderName::from_static("x-laneway-parent");
pub(crate) const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const DETACH: HeaderName = HeaderName::from_static("x-detach");
const PREFER: HeaderName = HeaderName::from_static("prefer");

/// What the headers of a request say about the task that it asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestOptions {
    pub(crate) source_agent: Option<String>,
    pub(crate) parent: Option<TaskId>,
    pub(crate) key: Option<String>,
    /// Asking for the same again before it has ended is asking once, also without a key.
    pub(crate) joins_same: bool,
    pub(crate) traceparent: Option<String>,
    /// It goes on when the caller has gone.
    pub(crate) detach: bool,
    /// The caller does not wait.
    pub(crate) is_async: bool,
    /// The caller wants events.
    pub(crate) stream: bool,
    /// By a schedule, with this name.
    pub(crate) schedule: Option<String>,
}

/// One turn, or one stateless task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Chat,
    Task,
}

/// A task that is ready to be asked for.
pub(crate) struct Submission {
    pub(crate) spec: Box<TaskSpec>,
    pub(crate) envelope: Envelope,
    /// The run that asks, as its caller says.
    pub(crate) child_of: Option<(TaskId, Caller)>,
}

/// Read where they are: a copy of all headers costs more than to look at these.
impl FromRequestParts<Arc<App>> for RequestOptions {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> ApiResult<RequestOptions> {
        RequestOptions::of(&parts.headers)
    }
}

impl RequestOptions {
    pub(crate) fn of(headers: &HeaderMap) -> ApiResult<RequestOptions> {
        let source_agent = header_text(headers, &SOURCE_AGENT)?.map(str::to_owned);
        if let Some(name) = &source_agent {
            Name::new(name.as_str())
                .map_err(|error| ApiError::invalid(format!("X-Source-Agent: {error}")))?;
        }
        let parent = header_text(headers, &PARENT)?
            .map(task_id)
            .transpose()
            .map_err(|_| ApiError::invalid("X-Laneway-Parent must be the id of a running task"))?;
        let key = header_text(headers, &KEY)?.map(key).transpose()?;
        let detach = header_text(headers, &DETACH)?.is_some_and(|text| text.eq_ignore_ascii_case("true"));
        let prefer = header_text(headers, &PREFER)?.unwrap_or_default();
        let is_async = prefer.split([',', ';']).any(|word| word.trim().eq_ignore_ascii_case("respond-async"));
        let accept = header_text(headers, &header::ACCEPT)?.unwrap_or_default();
        Ok(RequestOptions {
            source_agent,
            parent,
            key,
            joins_same: false,
            traceparent: traceparent(headers)?,
            detach,
            is_async,
            stream: wants_events(accept),
            schedule: None,
        })
    }

    /// A token of an agent says by itself which agent asks, and that it is no other.
    fn spoken_by(mut self, caller: &Caller) -> ApiResult<RequestOptions> {
        let Some(own) = caller.agent() else { return Ok(self) };
        match self.source_agent.as_deref() {
            None => self.source_agent = Some(own.to_owned()),
            Some(named) if named == own || caller.speaks_for_others => {}
            Some(_) => {
                return Err(ApiError::forbidden(
                    "this token is an agent's, and X-Source-Agent names another",
                ));
            }
        }
        Ok(self)
    }

    fn source(&self) -> Source {
        match () {
            () if self.schedule.is_some() => Source::Schedule,
            () if self.source_agent.is_some() || self.parent.is_some() => Source::Agent,
            () => Source::User,
        }
    }
}

/// How long a caller's key may be; with what tells callers and routes apart it stays within the core's bound.
const KEY_BYTES_MAX: usize = 256;

/// Reads a caller's key.
pub(crate) fn key(text: &str) -> ApiResult<String> {
    match text.len() > KEY_BYTES_MAX {
        true => Err(ApiError::invalid(format!("an Idempotency-Key has at most {KEY_BYTES_MAX} bytes"))),
        false => Ok(text.to_owned()),
    }
}

/// The trace that a request belongs to; one that is not shaped as it should be is nobody's.
pub(crate) fn traceparent(headers: &HeaderMap) -> ApiResult<Option<String>> {
    let text = headers.get(TRACEPARENT).and_then(|value| value.to_str().ok());
    let is_shaped = |text: &&str| {
        let parts: Vec<&str> = text.split('-').collect();
        let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
        lengths == [2, 32, 16, 2]
            && parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    Ok(text.filter(is_shaped).map(str::to_owned))
}

/// What a chat request asks of the queue.
pub(crate) fn turn(
    app: &App,
    caller: &Caller,
    agent: &Agent,
    form: Form,
    request: ChatRequest,
    options: &RequestOptions,
) -> ApiResult<Submission> {
    if request.message.trim().is_empty() {
        return Err(ApiError::invalid("message must not be empty"));
    }
    if request.user.is_some() && !caller.speaks_for_others {
        return Err(ApiError::forbidden("this token may not say for whom it asks"));
    }
    if request.session.as_deref() == Some("") {
        return Err(ApiError::invalid("session must not be empty"));
    }
    let options = &options.clone().spoken_by(caller)?;
    let name = agent.name.as_str();
    let source = options.source();
    let mut lanes = Vec::new();
    match form {
        Form::Task => lanes.push(lane(format!("task:{name}"))?),
        Form::Chat => {
            lanes.push(lane(format!("agent:{name}"))?);
            match &agent.lanes {
                Some(further) => lanes.extend(further.iter().cloned()),
                None => lanes.push(lane(usual_lane(source))?),
            }
            let own = format!("agent:{name}");
            let session = request.session.as_deref().unwrap_or(&own);
            let session = LaneName::session(session);
            lanes.push(session.map_err(|error| ApiError::invalid(format!("session: {error}")))?);
        }
    }
    let mut spec = TaskSpec::new(kind(agent_kind(name))?, lanes);
    spec.source = source;
    spec.parent = options.parent.map(|task| Parent { task, detached: options.is_async || options.detach });
    spec.priority = level(request.priority.as_ref())?;
    (spec.wait_timeout, spec.timeout, spec.deadline) =
        (millis(request.wait_timeout_ms), millis(request.timeout_ms), millis(request.deadline_ms));
    // A firing has a key space of its own, in which no caller can write.
    let route = match &options.schedule {
        Some(schedule) => format!("schedule/{schedule}"),
        None => format!("{form:?}/{name}"),
    };
    spec.idempotency = idempotency(caller, options, &route, &request);
    let user = request.user.clone().or_else(|| {
        caller
            .token
            .as_ref()
            .map(|_| laneway_protocol::UserRef { id: caller.subject.to_string(), email: None })
    });
    let turn = Turn {
        agent: name.to_owned(),
        message: request.message,
        session: request.session,
        model: request.model,
        metadata: request.metadata,
        source_agent: options.source_agent.clone(),
        user,
        schedule: options.schedule.clone(),
    };
    let payload = serde_json::to_value(turn).unwrap_or_default();
    Ok(finish(app, caller, options, spec, payload))
}

fn usual_lane(source: Source) -> &'static str {
    match source {
        Source::Schedule => "cron",
        Source::Agent => "subagent",
        Source::User | Source::Background => "main",
    }
}

/// What a task request asks of the queue.
pub(crate) async fn task(
    app: &App,
    caller: &Caller,
    request: TaskRequest,
    options: &RequestOptions,
) -> ApiResult<Submission> {
    let fingerprint = idempotency(caller, options, "tasks", &request);
    let mut lanes = Vec::with_capacity(request.lanes.len() + 1);
    for name in &request.lanes {
        lanes.push(lane_asked_for(name)?);
    }
    if let Some(agent) = app.runners.agent_of(&request.kind) {
        through_agent(&agent, &mut lanes)?;
    }
    if !app.runners.runs(&request.kind) && !is_external(app, lanes.first()).await? {
        lanes.insert(0, lane("external")?);
    }
    let mut spec = TaskSpec::new(kind(request.kind)?, lanes);
    spec.source = match request.source.as_deref() {
        None => options.source(),
        Some(word) => source_from(word)
            .ok_or_else(|| ApiError::invalid("source must be one of user, schedule, agent, background"))?,
    };
    let parent = request.parent.as_deref().map(task_id).transpose();
    let parent = parent.map_err(|_| ApiError::invalid("parent must be the id of a running task"))?;
    spec.parent = parent.or(options.parent).map(|task| Parent { task, detached: false });
    spec.priority = level(request.priority.as_ref())?;
    spec.fair_key = request.fair_key.map(lane_asked_for).transpose()?;
    spec.group = request.group.map(|group| name("group", group)).transpose()?;
    (spec.wait_timeout, spec.timeout) = (millis(request.wait_timeout_ms), millis(request.timeout_ms));
    (spec.deadline, spec.run_after) = (millis(request.deadline_ms), millis(request.run_after_ms));
    spec.retry = request.retry.map(retry).transpose()?;
    spec.idempotency = fingerprint;
    Ok(finish(app, caller, options, spec, request.payload))
}

/// What an agent does goes through its lane, or that of its stateless tasks, however it is asked for.
fn through_agent(agent: &str, lanes: &mut Vec<LaneName>) -> ApiResult<()> {
    let own = [lane(format!("agent:{agent}"))?, lane(format!("task:{agent}"))?];
    if !lanes.iter().any(|lane| own.contains(lane)) {
        lanes.splice(..0, own.into_iter().take(1));
    }
    Ok(())
}

async fn is_external(app: &App, home: Option<&LaneName>) -> ApiResult<bool> {
    let Some(home) = home else { return Ok(false) };
    let settings = app.handle.settings(home.clone()).await?;
    Ok(settings.handler == laneway_core::Handler::External)
}

/// What lanes of tokens begin with: the server's own, which bound how many tasks of each token wait.
pub(crate) const TOKEN_LANE: &str = "token:";

/// The lane that bounds how much of a caller waits.
pub(crate) fn token_lane(app: &App, caller: &Caller) -> Option<LaneName> {
    let token = caller.token.as_deref().filter(|_| app.limits().token_waiting.is_some())?;
    LaneName::new(format!("{TOKEN_LANE}{token}")).ok()
}

/// A task in the name of a caller, bounded as that caller is.
pub(crate) fn finish(
    app: &App,
    caller: &Caller,
    options: &RequestOptions,
    mut spec: TaskSpec,
    payload: Value,
) -> Submission {
    spec.lanes.extend(token_lane(app, caller));
    let envelope = Envelope::new(payload, caller.token.clone(), options.traceparent.clone());
    let child_of = spec.parent.map(|parent| (parent.task, caller.clone()));
    Submission { spec: Box::new(spec), envelope, child_of }
}

impl Submission {
    /// For a caller who stays connected: the server that has it runs the turn, whichever of those that share a queue grants it.
    pub(crate) fn at_home(mut self, app: &App) -> Submission {
        self.spec.home = app.handle.here();
        self
    }
}

/// Asks for a task, unless the server is about to stop.
pub(crate) async fn submit(app: &App, asked: Submission) -> ApiResult<TaskHandle> {
    let Submission { spec, envelope, .. } = checked(app, asked).await?;
    let id = app.handle.new_id();
    let task = app.handle.submit_spec(id, spec, Some(envelope.seal())).await;
    let task = task.map_err(|error| refused(id, error))?;
    if !task.joined() {
        app.traces.accepted(task.id(), envelope.traceparent.as_deref());
    }
    Ok(task)
}

/// The same for a caller who stays connected. One who goes away while it is being accepted leaves nothing behind: it is
/// accepted all the same, and cancelled then.
pub(crate) async fn submit_held(app: &Arc<App>, asked: Submission) -> ApiResult<TaskHandle> {
    let (tell, told) = oneshot::channel();
    let here = Arc::clone(app);
    tokio::spawn(async move {
        let task = submit(&here, asked).await.map(|task| task.on_drop(OnDrop::Cancel));
        // What nobody takes goes with its handle.
        drop(tell.send(task));
    });
    told.await.unwrap_or_else(|_| Err(Error::Closed.into()))
}

/// The same for a caller who does not wait for the end.
pub(crate) async fn hand_in(app: &App, asked: Submission) -> ApiResult<Submitted> {
    let Submission { spec, envelope, .. } = checked(app, asked).await?;
    let id = app.handle.new_id();
    let submitted = app.handle.submit_detached(id, spec, Some(envelope.seal())).await;
    let submitted = submitted.map_err(|error| refused(id, error))?;
    if !submitted.joined {
        app.traces.accepted(submitted.task, envelope.traceparent.as_deref());
    }
    Ok(submitted)
}

/// A task that has found no room has an id all the same, for the logs of whoever asked.
fn refused(task: TaskId, error: Error) -> ApiError {
    let is_full = matches!(error, Error::Rejected(Rejection::LaneFull(_)));
    let refusal = ApiError::from(error);
    if is_full { refusal.of_task(task) } else { refusal }
}

async fn checked(app: &App, asked: Submission) -> ApiResult<Submission> {
    if app.draining.is_given() {
        return Err(ApiError::new(Code::Draining, "the server is shutting down and takes no new work"));
    }
    if let Some((parent, caller)) = &asked.child_of {
        check_parent(app, caller, *parent).await?;
    }
    Ok(asked)
}

/// Whoever says that a run asks can see to it that the run waits, and goes before others: that is for the run's agent and for
/// whoever asked for the run. What answers messages was asked for by everybody in its session.
async fn check_parent(app: &App, caller: &Caller, parent: TaskId) -> ApiResult<()> {
    if caller.may(Scope::Admin) {
        return Ok(());
    }
    // One that is gone is refused by the queue.
    let Some(run) = app.handle.task(parent).await? else { return Ok(()) };
    let is_its_agent = caller.agent().is_some_and(|agent| run.kind.as_str() == agent_kind(agent));
    let owner = crate::service::task_view::envelope_of(&app.handle, &run).await?.owner;
    match is_its_agent || owner.is_none() || caller.owns(owner.as_deref()) {
        true => Ok(()),
        false => Err(ApiError::forbidden(
            "the parent is another token's run; only its agent, its owner or the scope admin may ask in its name",
        )),
    }
}

fn idempotency(
    caller: &Caller,
    options: &RequestOptions,
    route: &str,
    body: &impl Serialize,
) -> Option<Idempotency> {
    if options.key.is_none() && !options.joins_same {
        return None;
    }
    let body = serde_json::to_vec(body).unwrap_or_default();
    let digest = Sha256::digest(&body);
    let mut fingerprint = [0; 8];
    fingerprint.copy_from_slice(&digest[..8]);
    let key = match &options.key {
        Some(key) => format!("{}\n{route}\n{key}", caller.key_space()),
        // Two agents, or two turns of one, are two callers, whatever token they share.
        None => {
            let agent = options.source_agent.as_deref().unwrap_or_default();
            let parent = options.parent.map(|parent| parent.to_string()).unwrap_or_default();
            let same = Sha256::new().chain_update(format!("{agent}\n{parent}\n")).chain_update(&body);
            format!("{}\nsame/{route}\n{:x}", caller.key_space(), same.finalize())
        }
    };
    let until_end = options.key.is_none();
    Some(Idempotency { key: key.into(), fingerprint: u64::from_le_bytes(fingerprint), until_end })
}

pub(crate) fn lane(name: impl AsRef<str>) -> ApiResult<LaneName> {
    LaneName::new(name).map_err(|error| ApiError::invalid(format!("lane: {error}")))
}

/// A lane that a caller wants a task to be in. To look at the server's own is no harm; to stand in them would be.
pub(crate) fn lane_asked_for(name: impl AsRef<str>) -> ApiResult<LaneName> {
    let lane = lane(name)?;
    match lane.as_str().starts_with(TOKEN_LANE) {
        true => Err(ApiError::invalid(format!(
            "lanes that begin with {TOKEN_LANE} are the server's own; name another lane"
        ))),
        false => Ok(lane),
    }
}

pub(crate) fn name(what: &str, text: String) -> ApiResult<Name> {
    Name::new(text).map_err(|error| ApiError::invalid(format!("{what}: {error}")))
}

fn kind(text: String) -> ApiResult<Name> {
    name("kind", text)
}

pub(crate) fn level(asked: Option<&PriorityRequest>) -> ApiResult<Option<u8>> {
    let Some(asked) = asked else { return Ok(None) };
    let level = asked.level().ok_or_else(|| {
        ApiError::invalid("priority must be 0 to 9, or one of user, schedule, agent, background")
    })?;
    Ok(Some(level))
}

fn millis(length: Option<u64>) -> Option<Millis> {
    length.map(Millis)
}

fn retry(asked: RetryRequest) -> ApiResult<Retry> {
    let usual = Retry::STANDARD;
    let strategy = match asked.strategy.as_deref() {
        None | Some("exponential") => RetryStrategy::Exponential,
        Some("fixed") => RetryStrategy::Fixed,
        Some("none") => return Ok(Retry::NONE),
        Some(_) => return Err(ApiError::invalid("retry.strategy must be one of none, fixed, exponential")),
    };
    let retry = Retry {
        strategy,
        max_retries: asked.max_retries.unwrap_or(usual.max_retries),
        initial_delay: millis(asked.initial_delay_ms).unwrap_or(usual.initial_delay),
        fixed_delay: millis(asked.fixed_delay_ms).unwrap_or(usual.fixed_delay),
        max_delay: millis(asked.max_delay_ms).unwrap_or(usual.max_delay),
        jitter: asked.jitter.unwrap_or(usual.jitter),
    };
    let settings = laneway_core::LaneSettings { retry: Some(retry), ..Default::default() };
    settings.check().map_err(|error| ApiError::invalid(error.to_string()))?;
    Ok(retry)
}
