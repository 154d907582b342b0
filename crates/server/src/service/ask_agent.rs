//! Asks an agent, the same way for HTTP, WebSocket, MCP and schedules: check, submit, wait, answer.

use std::sync::Arc;

use laneway_config::AgentConfig;
use laneway_core::{End, LaneName, Millis, Parent, Source, TaskId, TaskSpec, TaskStatus};
use laneway_engine::{Ending, Expectation, Reach, Since, Standing, TaskHandle};
use laneway_protocol::{
    AcceptedExecution, AcceptedTurn, ChatAnswer, ChatRequest, ExecutionSummary, TurnPayloadView, UserRef,
    end_word, status_word,
};

use crate::agents::handlers::{agent_kind, core_agent};
use crate::app::App;
use crate::events::stream::{EventStream, TaskSnapshot};
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::service::parse::{checked, kind, level, millis, session_lane};
use crate::service::request_options::RequestOptions;
use crate::service::submission::{Submission, idempotency, submit, submit_connected};

/// A turn of a session, or a stateless task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Chat,
    Task,
}

/// A request to an agent.
pub(crate) struct AgentCall<'a> {
    pub(crate) agent: &'a str,
    pub(crate) form: Form,
    pub(crate) request: ChatRequest,
    pub(crate) options: RequestOptions,
    /// The caller will watch the events of the task.
    pub(crate) watches: bool,
}

/// A task of an agent that was accepted.
pub(crate) struct AgentRun {
    app: Arc<App>,
    agent: String,
    task: TaskHandle,
    /// Registered with the hub before the submission, so that no event is missed.
    expectation: Option<Expectation>,
    reach: Reach,
}

/// The agent of this name in the current configuration.
pub(crate) async fn agent_named(app: &App, name: &str) -> ApiResult<AgentConfig> {
    if let Some(agent) = app.config().agent(name) {
        return Ok(agent.clone());
    }
    // Another replica may have created it. A read follows all events before it.
    app.handle.read(|_| ()).await?;
    app.config().agent(name).cloned().ok_or_else(|| ApiError::not_found("agent"))
}

/// Checks and submits a request to an agent.
pub(crate) async fn ask_agent(app: &Arc<App>, caller: &Caller, call: AgentCall<'_>) -> ApiResult<AgentRun> {
    let AgentCall { agent: name, form, request, options, watches } = call;
    let agent = agent_named(app, name).await?;
    let is_connected = options.is_connected();
    let submission = turn(app, caller, &agent, form, request, options).await?;
    let expectation = watches.then(|| app.handle.hub().expect());
    let task =
        if is_connected { submit_connected(app, submission).await } else { submit(app, submission).await };
    let task = task.map_err(|error| error.of_agent(name))?;
    let reach = if is_connected { Reach::Here } else { Reach::Everywhere };
    Ok(AgentRun { app: Arc::clone(app), agent: name.to_owned(), task, expectation, reach })
}

impl AgentRun {
    pub(crate) fn id(&self) -> TaskId {
        self.task.id()
    }

    /// Whether an earlier request under the same key submitted the task.
    pub(crate) fn is_replay(&self) -> bool {
        self.task.joined()
    }

    /// The handle of the task, which may cancel it on drop.
    pub(crate) fn into_task(self) -> TaskHandle {
        self.task
    }

    /// Detaches the task and returns how it was accepted.
    pub(crate) async fn into_accepted(self) -> ApiResult<AcceptedTurn> {
        let (id, standing) = (self.task.id(), self.task.standing());
        self.task.detach();
        let execution = execution(&self.app, id, &standing).await?;
        Ok(AcceptedTurn { execution, durability: self.app.handle.durability().as_str().to_owned() })
    }

    /// The events of the task, for a call with `watches`. A replay begins with the events so far.
    pub(crate) async fn events(&mut self) -> ApiResult<Option<EventStream>> {
        let Some(expectation) = self.expectation.take() else { return Ok(None) };
        let id = self.task.id();
        if self.task.joined() {
            drop(expectation);
            return replay(&self.app, id).await.map(Some);
        }
        let subscription = expectation.of(id, self.reach);
        Ok(Some(EventStream::new(Arc::clone(&self.app), subscription).of_task(id, Vec::new())))
    }

    /// Waits for the end and returns the agent's answer. The task continues if the future is dropped.
    pub(crate) async fn answer(&mut self) -> ApiResult<ChatAnswer> {
        let (id, standing) = (self.task.id(), self.task.standing());
        let ending = self.task.ended().await;
        let ending = ending.map_err(|error| self.app.unfinished(id, error).of_agent(&self.agent))?;
        answer(id, standing, ending, &self.agent)
    }
}

/// The submission of one chat request.
async fn turn(
    app: &App,
    caller: &Caller,
    agent: &AgentConfig,
    form: Form,
    request: ChatRequest,
    options: RequestOptions,
) -> ApiResult<Submission> {
    if request.message.trim().is_empty() {
        return Err(ApiError::invalid("message must not be empty"));
    }
    if request.user.is_some() && !caller.speaks_for_others {
        return Err(ApiError::forbidden("this token may not speak for other people"));
    }
    if request.session.as_deref() == Some("") {
        return Err(ApiError::invalid("session must not be empty"));
    }
    let options = options.for_caller(caller)?;
    let name = agent.name.as_str();
    let source = options.source();
    let lanes = match form {
        Form::Task => vec![checked(LaneName::task(name))?],
        Form::Chat => turn_lanes(agent, request.session.as_deref(), source)?,
    };
    let mut spec = TaskSpec::new(kind(agent_kind(name))?, lanes);
    spec.source = source;
    spec.parent = options.parent.map(|task| Parent { task, detached: !options.is_connected() });
    spec.priority = level(app, request.priority.as_ref()).await?;
    (spec.wait_timeout, spec.timeout, spec.deadline) =
        (millis(request.wait_timeout_ms), timeout(&request)?, millis(request.deadline_ms));
    // A schedule has a key space of its own, which no caller can reach.
    let route = match &options.schedule {
        Some(schedule) => format!("schedule/{schedule}"),
        None => format!("{form:?}/{name}"),
    };
    spec.idempotency = idempotency(caller, &options, &route, &request);
    let own_user = || UserRef { id: caller.subject.to_string(), email: None };
    let user = request.user.or_else(|| caller.token.as_ref().map(|_| own_user()));
    let turn = TurnPayloadView {
        agent: name.to_owned(),
        text: request.message.clone(),
        message: request.message,
        session: request.session,
        stateless: form == Form::Task,
        model: request.model,
        system_prompt: request.system_prompt,
        allowed_tools: request.allowed_tools,
        timeout_seconds: request.timeout_seconds,
        stream: request.stream,
        metadata: request.metadata,
        source_agent: options.source_agent.clone(),
        user,
        schedule: options.schedule.clone(),
        ..TurnPayloadView::default()
    };
    Ok(Submission::new(app, caller, &options, spec, &turn))
}

/// How long an attempt may take: `timeout_ms`, else `timeout_seconds`.
fn timeout(request: &ChatRequest) -> ApiResult<Option<Millis>> {
    let Some(secs) = &request.timeout_seconds else { return Ok(millis(request.timeout_ms)) };
    let length = secs.as_f64().map(|secs| secs * 1000.0).filter(|length| *length >= 1.0);
    let length = length.filter(|length| *length <= Millis::MAX.0 as f64).map(|length| Millis(length as u64));
    let length =
        length.ok_or_else(|| ApiError::invalid("timeout_seconds must be from 0.001 to ten years"))?;
    Ok(Some(millis(request.timeout_ms).unwrap_or(length)))
}

/// The lanes of a turn. Without a session, only the lanes of the agent limit its turns.
fn turn_lanes(agent: &AgentConfig, session: Option<&str>, source: Source) -> ApiResult<Vec<LaneName>> {
    let agent = core_agent(agent)?;
    let session = session.map(session_lane).transpose()?;
    checked(agent.turn_lanes(session.as_ref(), source))
}

/// A stream that begins with the events of a task so far.
pub(crate) async fn replay(app: &Arc<App>, id: TaskId) -> ApiResult<EventStream> {
    let found = app.task_snapshot(id, Since::Now).await?;
    let TaskSnapshot { past, subscription, .. } = found.ok_or_else(|| ApiError::not_found("task"))?;
    Ok(EventStream::new(Arc::clone(app), subscription).of_task(id, past))
}

/// The state of a turn at its acceptance.
pub(crate) async fn execution(app: &App, id: TaskId, standing: &Standing) -> ApiResult<AcceptedExecution> {
    Ok(AcceptedExecution {
        id: id.to_string(),
        status: status_of(app, id, standing).await?.to_owned(),
        position: standing.position.map(|place| place as u64),
        eta_ms: standing.starts_in.map(|length| length.0),
    })
}

/// The status of an accepted task, or its end if it has ended.
pub(crate) async fn status_of(app: &App, id: TaskId, standing: &Standing) -> ApiResult<&'static str> {
    match standing.status {
        Some(TaskStatus::Retrying) => Ok("queued"),
        Some(status) => Ok(status_word(status)),
        None => {
            let finished = app.handle.finished(id).await?;
            Ok(finished.map_or("ended", |(finished, _)| end_word(&finished.end)))
        }
    }
}

/// The answer of a turn that has ended.
pub(crate) fn answer(id: TaskId, standing: Standing, ending: Ending, agent: &str) -> ApiResult<ChatAnswer> {
    if ending.end != End::Completed {
        return Err(ApiError::ended(id, &ending.end).of_agent(agent));
    }
    let response = ending.result.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    let was_queued = standing.status == Some(TaskStatus::Queued);
    let queue_status =
        if was_queued { format!("queued:{}", standing.position.unwrap_or(1)) } else { "running".to_owned() };
    let execution = ExecutionSummary {
        id: id.to_string(),
        queue_status,
        was_queued,
        wait_ms: ending.waited.0,
        run_ms: ending.ran.0,
        attempt: ending.attempts,
    };
    Ok(ChatAnswer::new(response, execution))
}
