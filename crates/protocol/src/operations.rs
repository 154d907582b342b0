//! Schedules, tokens, the audit log.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::agents::UserRef;
use crate::time::At;

/// What a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Read everything.
    Read,
    /// Send requests to agents, submit tasks, and cancel the token's own tasks.
    Submit,
    /// Claim, renew and complete tasks, and take slots.
    Worker,
    /// Everything.
    Admin,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Scope; 4] = [Scope::Read, Scope::Submit, Scope::Worker, Scope::Admin];

    /// The text on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Submit => "submit",
            Scope::Worker => "worker",
            Scope::Admin => "admin",
        }
    }
}

/// A token to create.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// The user of the token. The audit log and the tasks of the token name it.
    #[schema(min_length = 1, max_length = 128)]
    pub subject: String,
    /// The scopes.
    #[schema(min_items = 1)]
    pub scopes: Vec<Scope>,
    /// Whether the token may send requests on behalf of other people.
    #[serde(default)]
    pub speaks_for_others: bool,
}

/// A token, without its secret.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TokenView {
    /// The part of the token before the dot.
    pub id: String,
    /// The user of the token.
    pub subject: String,
    /// The scopes.
    pub scopes: Vec<Scope>,
    /// Whether the token may send requests on behalf of other people.
    pub speaks_for_others: bool,
    /// When the token was created.
    pub created_at: At,
}

/// The caller, as the server sees it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Me {
    /// The user of the token; `local` if the server has no tokens.
    pub subject: String,
    /// The scopes of the caller, with those that a wider scope includes.
    pub scopes: Vec<Scope>,
}

/// A new token.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CreatedToken {
    /// The token: `id.secret`. Only this answer holds it; the server keeps a hash of the secret.
    pub token: String,
    /// The other fields.
    #[serde(flatten)]
    pub view: TokenView,
}

/// A schedule to create.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSchedule {
    /// Its name.
    #[schema(min_length = 1, max_length = 128)]
    pub name: String,
    /// Five or six fields of cron, or a word such as `@daily`.
    pub cron: String,
    /// The time zone. Default `UTC`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// The agent.
    pub agent: String,
    /// The message to the agent.
    #[schema(min_length = 1)]
    pub message: String,
    /// The session. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 100)]
    pub session: Option<String>,
    /// The person on whose behalf its turns run. Default: the subject of the token. Another person needs a token that may speak
    /// for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserRef>,
    /// Whether the schedule fires. Default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// What follows firings that were missed while the server was down: `skip` (the default) or `one`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<String>,
}

/// A change of a schedule. Fields that the body leaves out stay.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleChange {
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// The time zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// The agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The message to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1)]
    pub message: Option<String>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 100)]
    pub session: Option<String>,
    /// The person on whose behalf its turns run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserRef>,
    /// Whether the schedule fires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// `skip` or `one`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<String>,
}

/// A schedule.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScheduleView {
    /// Its name.
    pub name: String,
    /// When.
    pub cron: String,
    /// The times in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// The time zone.
    pub timezone: String,
    /// The agent.
    pub agent: String,
    /// The message to the agent.
    pub message: String,
    /// The session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The person on whose behalf its turns run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserRef>,
    /// Whether the schedule fires.
    pub enabled: bool,
    /// `skip` or `one`.
    pub catch_up: String,
    /// The origin: `file` or `api`.
    pub origin: String,
    /// The next firings.
    pub next_runs: Vec<At>,
    /// The last firing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_run: Option<ScheduleRun>,
}

/// One firing of a schedule.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScheduleRun {
    /// The moment of the firing.
    pub due_at: String,
    /// When it fired.
    pub fired_at: String,
    /// The cause: `clock`, `catch_up` for missed firings, or `manual`.
    pub trigger: String,
    /// `running`, the end of the task, or `failed` if it was refused.
    pub status: String,
    /// The task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// Why the task was refused or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// One line of the audit log.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// The number, counted from one.
    pub id: u64,
    /// When.
    pub at: String,
    /// The id of the person.
    pub actor: String,
    /// What was changed: `agent_queue`, `lane`, `token`, `schedule`, `task`, `dead_letter`, `config` or `server`.
    pub event_type: String,
    /// What was done, such as `clear_queue` or `force_release`.
    pub action: String,
    /// `info`, `warning` or `critical`.
    pub severity: String,
    /// The name of what was changed.
    pub target: String,
    /// Details.
    pub details: Value,
    /// The hash of the previous line.
    pub prev: String,
    /// The hash of this line.
    pub hash: String,
}
