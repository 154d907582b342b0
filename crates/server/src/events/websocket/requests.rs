//! Requests of a client on a WebSocket.

use laneway_protocol::{ChatRequest, Code, FrameAnswer, ProgressEvent, Scope};
use serde_json::{Map, Value};

use crate::events::websocket::{Client, Run};
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{decode, task_id};
use crate::http::routes::events::filter;
use crate::service::ask_agent::{AgentCall, Form, ask_agent, replay};
use crate::service::request_options::RequestOptions;
use crate::service::send_message::{send_message, steer_session};
use crate::service::tasks;

/// The most tasks that one socket runs at once.
const RUNS_MAX: usize = 256;
/// The most subscriptions of one socket.
const SUBSCRIPTIONS_MAX: usize = 64;

/// The event that answers a frame, if any.
pub(super) type Answer = Option<FrameAnswer>;

impl Client {
    /// Asks an agent, as `POST /api/agents/{agent}/chat` does.
    pub(super) async fn submit(&mut self, mut data: Value, reference: Option<String>) -> ApiResult<Answer> {
        self.caller.check(Scope::Submit)?;
        if self.runs.len() >= RUNS_MAX {
            let detail = format!("a socket has at most {RUNS_MAX} tasks at once");
            return Err(ApiError::new(Code::RateLimited, detail));
        }
        let object = object(&mut data)?;
        let name = take_text(object, "agent");
        let name = name.ok_or_else(|| ApiError::invalid("data.agent must be the name of an agent"))?;
        let detach = take_flag(object, "detach");
        let key = take_text(object, "idempotency_key");
        let form = if take_flag(object, "parallel") { Form::Task } else { Form::Chat };
        let request: ChatRequest = decode(data.to_string().as_bytes())?;
        let traceparent = self.traceparent.clone();
        let options = RequestOptions { key, detach, traceparent, ..RequestOptions::default() };
        let call = AgentCall { agent: &name, form, request, options, watches: false };
        let run = ask_agent(&self.app, &self.caller, call).await?;
        let (id, joined) = (run.id(), run.is_replay());
        let task = run.into_task();
        let hold = if detach {
            task.detach();
            None
        } else {
            Some(task)
        };
        self.runs.insert(id, Run { _hold: hold, reference, replayed: joined });
        if joined {
            let mut stream = replay(&self.app, id).await?;
            while let Some(event) = stream.next_past().await {
                if !self.pass_on(event).await {
                    break;
                }
            }
        }
        Ok(None)
    }

    /// Sends a message to a session.
    pub(super) async fn message(&mut self, mut data: Value) -> ApiResult<Answer> {
        self.caller.check(Scope::Submit)?;
        let key = take_text(object(&mut data)?, "session");
        let key = key.ok_or_else(|| ApiError::invalid("data.session must be the key of a session"))?;
        let request = decode(data.to_string().as_bytes())?;
        let sent = send_message(&self.app, &self.caller, &key, request).await?;
        Ok(Some(FrameAnswer::Message(sent)))
    }

    pub(super) async fn steer(&mut self, data: Value) -> ApiResult<Answer> {
        self.caller.check(Scope::Submit)?;
        let (Some(key), Some(text)) = (text(&data, "session"), text(&data, "text")) else {
            return Err(ApiError::invalid("data must hold session and text"));
        };
        let steered = steer_session(&self.app, &self.caller, key, text.to_owned()).await?;
        Ok(Some(FrameAnswer::Message(steered)))
    }

    pub(super) async fn cancel(&mut self, data: Value) -> ApiResult<Answer> {
        self.caller.check(Scope::Submit)?;
        let task = task_id(text(&data, "task_id").unwrap_or_default())?;
        if !self.runs.contains_key(&task) {
            tasks::check_owner(&self.app, &self.caller, task).await?;
        }
        let (task_id, cancel) = (task.to_string(), tasks::cancel_unchecked(&self.app, task).await?);
        let found =
            ProgressEvent { task_id: Some(task_id), cancel: Some(cancel), ..ProgressEvent::default() };
        Ok(Some(FrameAnswer::Progress(found)))
    }

    /// Adds a subscription. That of a lane begins with the lane's numbers.
    pub(super) async fn subscribe(&mut self, data: Value) -> ApiResult<Answer> {
        self.caller.check(Scope::Read)?;
        let filter = filter(text(&data, "lane"), text(&data, "session"), text(&data, "task"))?;
        if std::mem::take(&mut self.is_first) {
            self.subscriptions.clear();
        }
        if self.subscriptions.len() >= SUBSCRIPTIONS_MAX {
            return Err(ApiError::invalid(format!("a socket has at most {SUBSCRIPTIONS_MAX} subscriptions")));
        }
        let lane = filter.lane.clone().filter(|_| filter.task.is_none());
        self.subscriptions.push(filter);
        if let Some(lane) = lane {
            self.tell_numbers(lane).await;
        }
        Ok(None)
    }
}

fn object(data: &mut Value) -> ApiResult<&mut Map<String, Value>> {
    data.as_object_mut().ok_or_else(|| ApiError::invalid("data must be an object"))
}

fn text<'a>(data: &'a Value, key: &str) -> Option<&'a str> {
    data.get(key).and_then(Value::as_str)
}

fn take_text(object: &mut Map<String, Value>, key: &str) -> Option<String> {
    object.remove(key)?.as_str().map(str::to_owned)
}

fn take_flag(object: &mut Map<String, Value>, key: &str) -> bool {
    object.remove(key).and_then(|flag| flag.as_bool()).unwrap_or(false)
}
