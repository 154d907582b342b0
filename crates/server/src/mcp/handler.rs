//! From a call of a tool to its answer.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::request::Parts;
use laneway_protocol::{OfAgent, OfAll, OfTask};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ErrorData, GetTaskParams,
    GetTaskResult, Implementation, JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities,
    ServerConfig, Tool, UpdateTaskParams,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::task_id;
use crate::mcp::tools::{self, Listed, Name};
use crate::mcp::{SessionOver, reply, tasks};
use crate::service::{agent_queue, tasks as service};

const INSTRUCTIONS: &str = "Agents behind lanes: each runs so many turns at once, the rest waits in line. Ask with \
    chat_with_agent; when it answers still_going, ask get_task later; when it answers agent_busy, try again after \
    retry_after_seconds.";

/// The tools, in front of the queue.
#[derive(Clone)]
pub(crate) struct Tools {
    pub(crate) app: Arc<App>,
    listed: Arc<[Listed]>,
}

/// Who calls, and how.
pub(crate) struct Asker {
    pub(crate) caller: Caller,
    pub(crate) headers: HeaderMap,
    /// The session that the call belongs to, if there is one, is over.
    pub(crate) over: CancellationToken,
}

impl Asker {
    /// Every request has passed the guard of all routes, which says who asks.
    fn of(context: &RequestContext<RoleServer>) -> Result<Asker, ErrorData> {
        let parts = context.extensions.get::<Parts>();
        let caller = parts.and_then(|parts| Some((parts.extensions.get::<Caller>()?.clone(), parts)));
        let (caller, parts) =
            caller.ok_or_else(|| ErrorData::internal_error("nobody knows who asks", None))?;
        let over = parts.extensions.get::<SessionOver>().cloned().unwrap_or_default();
        Ok(Asker { caller, headers: parts.headers.clone(), over: over.0 })
    }
}

impl Tools {
    pub(crate) fn new(app: Arc<App>) -> Tools {
        Tools { app, listed: tools::all().into() }
    }

    fn find(&self, name: &str) -> Option<&Listed> {
        self.listed.iter().find(|listed| listed.tool.name == name)
    }

    /// Counts an error, as every transport does.
    pub(crate) async fn counted<T>(&self, answer: ApiResult<T>) -> ApiResult<T> {
        if let Err(error) = &answer {
            self.app.count_rejection(error.labels()).await;
        }
        answer
    }

    async fn answer(
        &self,
        name: Name,
        arguments: Option<JsonObject>,
        asker: Asker,
    ) -> ApiResult<CallToolResult> {
        let (app, caller) = (&self.app, &asker.caller);
        Ok(match name {
            // It may become a task, and is asked for elsewhere.
            Name::ChatWithAgent => return Err(ApiError::not_found("tool")),
            Name::ListAgents => {
                let OfAll {} = read(arguments)?;
                reply::done(&agent_queue::list(app).await?)
            }
            Name::GetTask => {
                let OfTask { task_id } = read(arguments)?;
                reply::done(&service::view(app, self::task_id(&task_id)?).await?)
            }
            Name::ExplainTask => {
                let OfTask { task_id } = read(arguments)?;
                reply::done(&service::explain(app, self::task_id(&task_id)?).await?)
            }
            Name::CancelTask => {
                let OfTask { task_id } = read(arguments)?;
                reply::done(&service::cancel(app, caller, self::task_id(&task_id)?).await?)
            }
            Name::QueueStatus => {
                let OfAgent { agent_name } = read(arguments)?;
                reply::done(&agent_queue::queue(app, agent_name).await?)
            }
            Name::ClearQueue => {
                let OfAgent { agent_name } = read(arguments)?;
                reply::done(&agent_queue::clear(app, caller, agent_name).await?)
            }
            Name::ReleaseAgent => {
                let OfAgent { agent_name } = read(arguments)?;
                reply::done(&agent_queue::release(app, caller, agent_name).await?)
            }
        })
    }
}

/// Reads the arguments of a tool. Errors never echo the input.
pub(crate) fn read<T: DeserializeOwned>(arguments: Option<JsonObject>) -> ApiResult<T> {
    let arguments = arguments.unwrap_or_default();
    serde_json::from_value(Value::Object(arguments.clone())).map_err(|error| {
        let text = error.to_string();
        let expected = text.rsplit_once("expected ").map(|(_, expected)| expected);
        ApiError::invalid(match expected {
            _ if text.starts_with("missing field") => format!("the arguments do not fit: {text}"),
            Some(expected) if text.starts_with("unknown field") => {
                format!("an argument is none of this tool's; expected {expected}")
            }
            Some(expected) if !expected.contains('"') => {
                let name =
                    unfit::<T>(&arguments).map_or("an argument".to_owned(), |name| format!("`{name}`"));
                format!("{name} does not fit: expected {expected}")
            }
            _ => "this tool takes no arguments".to_owned(),
        })
    })
}

/// The first argument that is of another type than the tool takes: what comes before it fits, as far as it goes.
fn unfit<T: DeserializeOwned>(arguments: &JsonObject) -> Option<&str> {
    let mut so_far = JsonObject::new();
    let mut does_not_fit = |(name, value): &(&String, &Value)| {
        so_far.insert((*name).clone(), (*value).clone());
        let read = serde_json::from_value::<T>(Value::Object(so_far.clone()));
        read.is_err_and(|error| !error.to_string().starts_with("missing field"))
    };
    arguments.iter().find(|argument| does_not_fit(argument)).map(|(name, _)| name.as_str())
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        let can = ServerCapabilities::builder().enable_tools().enable_tasks().build();
        let mut info = ServerConfig::new(can).with_instructions(INSTRUCTIONS);
        info.server_info = Implementation::new("laneway", env!("CARGO_PKG_VERSION"));
        info
    }

    /// Those that the token may use, in the order of the list.
    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let Asker { caller, .. } = Asker::of(&context)?;
        let usable = self.listed.iter().filter(|listed| listed.is_for(&caller));
        Ok(ListToolsResult::with_all_items(usable.map(|listed| listed.tool.clone()).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.find(name).map(|listed| listed.tool.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let listed = self.find(&request.name).ok_or_else(|| {
            ErrorData::invalid_params("there is no such tool; tools/list names those there are", None)
        })?;
        let asker = Asker::of(&context)?;
        let answer = match listed.name {
            _ if !listed.is_for(&asker.caller) => {
                let needed = listed.scope.as_str();
                Err(ApiError::forbidden(format!("this needs a token with the scope {needed}")))
            }
            Name::ChatWithAgent => self.chat(request.arguments, asker, context).await,
            name => self.answer(name, request.arguments, asker).await.map(CallToolResponse::from),
        };
        let answer = self.counted(answer).await;
        Ok(answer.unwrap_or_else(|refusal| reply::refused(&refusal).into()))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let asker = Asker::of(&context)?;
        let found = tasks::get(&self.app, &asker.caller, &request.task_id).await;
        self.counted(found).await.map_err(|refusal| tasks::error(&refusal))
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let asker = Asker::of(&context)?;
        let cancelled = tasks::cancel(&self.app, &asker.caller, &request.task_id).await;
        self.counted(cancelled).await.map_err(|refusal| tasks::error(&refusal))
    }

    async fn update_task(&self, _: UpdateTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Err(ErrorData::invalid_params("no task of this server asks for input", None))
    }
}
