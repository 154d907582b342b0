//! The tool `chat_with_agent`: submits, sends progress, and waits as long as a call may take.

use std::time::Duration;

use laneway_core::TaskId;
use laneway_engine::Standing;
use laneway_protocol::{ChatAnswer, ChatRequest, ChatWithAgent, ClientEvent, Code, StillGoing};
use rmcp::RoleServer;
use rmcp::model::{CallToolResponse, JsonObject, ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use serde_json::Value;

use crate::events::stream::EventStream;
use crate::http::error::{ApiError, ApiResult};
use crate::mcp::handler::{CallRequest, Tools, read};
use crate::mcp::{reply, tasks};
use crate::service::ask_agent::{AgentCall, AgentRun, Form, ask_agent, execution};
use crate::service::request_options::{self, RequestOptions};

/// The name of a call's own key in the `_meta` of the request.
pub(crate) const KEY: &str = "laneway/idempotency-key";

/// How a wait for the agent ended.
enum Waited {
    Ended(ApiResult<ChatAnswer>),
    /// The client cancelled the call or disconnected.
    Left,
    /// The task takes longer than a call may.
    TooLong,
}

impl Tools {
    pub(super) async fn chat(
        &self,
        arguments: Option<JsonObject>,
        call_request: CallRequest,
        context: RequestContext<RoleServer>,
    ) -> ApiResult<CallToolResponse> {
        let asked: ChatWithAgent = read(arguments)?;
        let (name, parallel) = (asked.agent_name, asked.parallel);
        let options = options(&call_request, &context)?;
        let form = if parallel { Form::Task } else { Form::Chat };
        let request = ChatRequest {
            message: asked.message,
            session: asked.session,
            model: asked.model,
            system_prompt: asked.system_prompt,
            allowed_tools: asked.allowed_tools,
            timeout_seconds: asked.timeout_seconds,
            stream: asked.stream,
            ..ChatRequest::default()
        };
        let token = context.meta.get_progress_token();
        let call = AgentCall { agent: &name, form, request, options, watches: token.is_some() };
        let mut run = ask_agent(&self.app, &call_request.caller, call).await?;
        let id = run.id();
        let progress = token.zip(run.events().await?);
        let progress = progress.map(|(token, events)| Progress::new(token, events, &context));
        match self.wait(&mut run, progress, context.ct.cancelled()).await {
            Waited::Ended(answer) => Ok(reply::answered(&answer?).into()),
            // Dropping the run leaves the task; the client does not read this error.
            Waited::Left => {
                Err(ApiError::new(Code::Cancelled, "the client has cancelled the call").of_task(id))
            }
            Waited::TooLong => {
                run.into_task().detach();
                self.still_going(id, name, &context).await
            }
        }
    }

    async fn wait(
        &self,
        run: &mut AgentRun,
        progress: Option<Progress>,
        gone: impl Future<Output = ()>,
    ) -> Waited {
        let within = Duration::from_millis(self.app.config().server.mcp_answer_within.0);
        let notify = async {
            if let Some(progress) = progress {
                progress.run().await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            answer = run.answer() => Waited::Ended(answer),
            () = gone => Waited::Left,
            () = tokio::time::sleep(within) => Waited::TooLong,
            () = notify => Waited::Left,
        }
    }

    /// The answer while the task continues: a task of the protocol for clients that support it, else its id and what to do.
    async fn still_going(
        &self,
        id: TaskId,
        agent: String,
        context: &RequestContext<RoleServer>,
    ) -> ApiResult<CallToolResponse> {
        let knows_tasks = context.client_capabilities().is_some_and(|can| can.supports_tasks());
        if knows_tasks {
            return Ok(CallToolResponse::Task(tasks::created(&self.app, id).await?));
        }
        let standing = self.app.handle.read(move |lanes| Standing::of(lanes, id)).await?;
        let message = format!(
            "The task continues: call get_task with task_id {id} for the answer of agent '{agent}'. The same call again joins \
             it and starts nothing."
        );
        let going = StillGoing {
            status: "still_going".to_owned(),
            task_id: id.to_string(),
            agent,
            execution: execution(&self.app, id, &standing).await?,
            message,
        };
        Ok(reply::still_going(&going).into())
    }
}

/// The options of a call: the headers of its request, and its own key.
fn options(call_request: &CallRequest, context: &RequestContext<RoleServer>) -> ApiResult<RequestOptions> {
    let options = RequestOptions::of(&call_request.headers)?;
    let own_key = match context.meta.get(KEY) {
        None => None,
        Some(Value::String(key)) => Some(request_options::key(key)?),
        Some(_) => return Err(ApiError::invalid(format!("{KEY} in _meta must be a string"))),
    };
    let key = own_key.or(options.key);
    // A call always waits, and the protocol chooses the form of the answer.
    Ok(RequestOptions { key, joins_same: true, is_async: false, stream: false, ..options })
}

/// Sends the progress of a call to a client that asked for it.
struct Progress {
    token: ProgressToken,
    stream: EventStream,
    peer: Peer<RoleServer>,
}

impl Progress {
    fn new(token: ProgressToken, stream: EventStream, context: &RequestContext<RoleServer>) -> Progress {
        Progress { token, stream, peer: context.peer.clone() }
    }

    /// Runs until the task ends or the client disconnects.
    async fn run(mut self) {
        let mut steps = 0.0;
        while let Some(sent) = self.stream.next().await {
            let Some(message) = sentence(&sent.event) else { continue };
            steps += 1.0;
            let step = ProgressNotificationParam::new(self.token.clone(), steps).with_message(message);
            if self.peer.notify_progress(step).await.is_err() {
                return;
            }
        }
    }
}

/// The text of an event for people; `None` if it has no news for them.
fn sentence(event: &ClientEvent) -> Option<String> {
    match event {
        ClientEvent::Queued(place) | ClientEvent::Position(place) => {
            Some(place.position.map_or("waiting".to_owned(), |place| format!("position {place} in line")))
        }
        ClientEvent::Started(_) => Some("running".to_owned()),
        ClientEvent::Retrying(_) => Some("waiting for another attempt".to_owned()),
        ClientEvent::Progress(data) => {
            data.progress.as_ref()?.get("message").and_then(Value::as_str).map(str::to_owned)
        }
        _ => None,
    }
}
