//! Answers calls of tools.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::request::Parts;
use laneway_protocol::{AgentArguments, NoArguments, TaskArguments};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ErrorData, GetTaskParams,
    GetTaskResult, Implementation, JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities,
    ServerConfig, Tool, UpdateTaskParams,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::app::App;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{task_id, unknown_field};
use crate::mcp::tools::{self, ListedTool, ToolName};
use crate::mcp::{reply, tasks};
use crate::service::{agent_queue, tasks as service};

const INSTRUCTIONS: &str = "Agents behind lanes: each agent runs a limited number of turns at once, and other turns wait. Ask with \
    chat_with_agent. When it answers still_going, call get_task later. When it answers agent_busy, try again after \
    retry_after_seconds.";

/// The MCP server: all tools and the queue.
#[derive(Clone)]
pub(super) struct Tools {
    pub(super) app: Arc<App>,
    listed: Arc<[ListedTool]>,
}

/// The request that a call belongs to.
pub(super) struct CallRequest {
    pub(super) caller: Caller,
    pub(super) headers: HeaderMap,
}

impl CallRequest {
    /// Reads the caller that the guard of all routes has added to the request.
    fn of(context: &RequestContext<RoleServer>) -> Result<CallRequest, ErrorData> {
        let parts = context.extensions.get::<Parts>();
        let caller = parts.and_then(|parts| Some((parts.extensions.get::<Caller>()?.clone(), parts)));
        let (caller, parts) =
            caller.ok_or_else(|| ErrorData::internal_error("the request has no caller", None))?;
        Ok(CallRequest { caller, headers: parts.headers.clone() })
    }
}

impl Tools {
    pub(super) fn new(app: Arc<App>) -> Tools {
        Tools { app, listed: tools::all().into() }
    }

    fn find(&self, name: &str) -> Option<&ListedTool> {
        self.listed.iter().find(|listed| listed.tool.name == name)
    }

    /// Counts an error, as every transport does.
    pub(super) fn counted<T>(&self, answer: ApiResult<T>) -> ApiResult<T> {
        if let Err(error) = &answer {
            self.app.count_rejection(error.labels());
        }
        answer
    }

    async fn answer(
        &self,
        name: ToolName,
        arguments: Option<JsonObject>,
        call: CallRequest,
    ) -> ApiResult<CallToolResult> {
        let (app, caller) = (&self.app, &call.caller);
        Ok(match name {
            // `call_tool` handles it, because it may become a task.
            ToolName::ChatWithAgent => return Err(ApiError::not_found("tool")),
            ToolName::ListAgents => {
                let NoArguments {} = read(arguments)?;
                reply::done(&agent_queue::list(app).await?)
            }
            ToolName::GetTask => {
                let TaskArguments { task_id } = read(arguments)?;
                reply::done(&service::view(app, self::task_id(&task_id)?).await?)
            }
            ToolName::ExplainTask => {
                let TaskArguments { task_id } = read(arguments)?;
                reply::done(&service::explain(app, self::task_id(&task_id)?).await?)
            }
            ToolName::CancelTask => {
                let TaskArguments { task_id } = read(arguments)?;
                reply::done(&service::cancel(app, caller, self::task_id(&task_id)?).await?)
            }
            ToolName::QueueStatus => {
                let AgentArguments { agent_name } = read(arguments)?;
                reply::done(&agent_queue::queue(app, agent_name).await?)
            }
            ToolName::ClearQueue => {
                let AgentArguments { agent_name } = read(arguments)?;
                reply::done(&agent_queue::clear(app, caller, agent_name).await?)
            }
            ToolName::ReleaseAgent => {
                let AgentArguments { agent_name } = read(arguments)?;
                reply::done(&agent_queue::release(app, caller, agent_name).await?)
            }
        })
    }
}

/// Reads the arguments of a tool. Errors never echo the input.
pub(super) fn read<T: DeserializeOwned>(arguments: Option<JsonObject>) -> ApiResult<T> {
    let arguments = arguments.unwrap_or_default();
    T::deserialize(&arguments).map_err(|error| {
        let text = error.to_string();
        let expected = text.rsplit_once("expected ").map(|(_, expected)| expected);
        ApiError::invalid(match expected {
            _ if text.starts_with("missing field") => format!("the arguments do not fit: {text}"),
            Some(expected) if text.starts_with("unknown field") => {
                let field = unknown_field(&text).unwrap_or("an argument");
                format!("{field} is none of this tool's; expected {expected}")
            }
            Some(expected) if !expected.contains('"') => {
                let name = wrong_argument::<T>(&arguments)
                    .map_or("an argument".to_owned(), |name| format!("`{name}`"));
                format!("{name} does not fit: expected {expected}")
            }
            _ => "this tool takes no arguments".to_owned(),
        })
    })
}

/// The first argument of a wrong type: the arguments before it fit.
fn wrong_argument<T: DeserializeOwned>(arguments: &JsonObject) -> Option<&str> {
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

    /// The tools that the token may use, in the order of the list.
    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let CallRequest { caller, .. } = CallRequest::of(&context)?;
        let usable = self.listed.iter().filter(|listed| caller.may(listed.scope));
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
            ErrorData::invalid_params("there is no such tool; tools/list names all tools", None)
        })?;
        let call = CallRequest::of(&context)?;
        let answer = match (call.caller.check(listed.scope), listed.name) {
            (Err(refusal), _) => Err(refusal),
            (Ok(()), ToolName::ChatWithAgent) => self.chat(request.arguments, call, context).await,
            (Ok(()), name) => self.answer(name, request.arguments, call).await.map(CallToolResponse::from),
        };
        let answer = self.counted(answer);
        Ok(answer.unwrap_or_else(|refusal| reply::refused(&refusal).into()))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let call = CallRequest::of(&context)?;
        let found = tasks::get(&self.app, &call.caller, &request.task_id).await;
        self.counted(found).map_err(|refusal| tasks::error(&refusal))
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let call = CallRequest::of(&context)?;
        let cancelled = tasks::cancel(&self.app, &call.caller, &request.task_id).await;
        self.counted(cancelled).map_err(|refusal| tasks::error(&refusal))
    }

    async fn update_task(&self, _: UpdateTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Err(ErrorData::invalid_params("no task of this server asks for input", None))
    }
}
