//! Schedules, tokens, the audit log.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::time::At;

/// What a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Look at everything.
    Read,
    /// Ask agents, submit tasks, and end the token's own.
    Submit,
    /// Claim, heartbeat, complete; take slots.
    Worker,
    /// Everything.
    Admin,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Scope; 4] = [Scope::Read, Scope::Submit, Scope::Worker, Scope::Admin];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Submit => "submit",
            Scope::Worker => "worker",
            Scope::Admin => "admin",
        }
    }
}

/// A token to make.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Who uses it: stands in the audit log and in the tasks that it asks for.
    #[schema(min_length = 1, max_length = 128)]
    pub subject: String,
    /// What it may do.
    #[schema(min_items = 1)]
    pub scopes: Vec<Scope>,
    /// Whether it may say for whom it asks.
    #[serde(default)]
    pub speaks_for_others: bool,
}

/// A token, without its secret.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TokenView {
    /// The part before the dot.
    pub id: String,
    /// Who uses it.
    pub subject: String,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// Whether it may say for whom it asks.
    pub speaks_for_others: bool,
    /// When it was made.
    pub created_at: At,
}

/// Who asks, as the server sees it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Me {
    /// Who uses the token; `local` where there are no tokens.
    pub subject: String,
    /// What the caller may do, everything that a wider scope brings included.
    pub scopes: Vec<Scope>,
}

/// A token that was just made.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CreatedToken {
    /// The token: `id.secret`. It is told this once; only a hash of the secret is kept.
    pub token: String,
    /// All else about it.
    #[serde(flatten)]
    pub view: TokenView,
}

/// A schedule to make.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSchedule {
    /// Its name.
    #[schema(min_length = 1, max_length = 128)]
    pub name: String,
    /// When: five or six fields of cron, or `@daily` and the like.
    pub cron: String,
    /// In which time zone. Default `UTC`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Who is asked.
    pub agent: String,
    /// What is asked.
    #[schema(min_length = 1)]
    pub message: String,
    /// In which conversation. Default: the agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 100)]
    pub session: Option<String>,
    /// Whether it fires. Default true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// What happens about firings that were missed while the server was down: `skip` (the default) or `one`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<String>,
}

/// A change of a schedule; what is left out stays.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleChange {
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// In which time zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Who is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1)]
    pub message: Option<String>,
    /// In which conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 100)]
    pub session: Option<String>,
    /// Whether it fires.
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
    /// When, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// In which time zone.
    pub timezone: String,
    /// Who is asked.
    pub agent: String,
    /// What is asked.
    pub message: String,
    /// In which conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Whether it fires.
    pub enabled: bool,
    /// `skip` or `one`.
    pub catch_up: String,
    /// Whether it comes from the configuration file or from the API.
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
    /// For which moment.
    pub due_at: String,
    /// When it fired.
    pub fired_at: String,
    /// By the clock, to make up for missed ones, or because somebody asked: `clock`, `catch_up`, `manual`.
    pub trigger: String,
    /// `running`, how the task ended, or `failed` when it was refused.
    pub status: String,
    /// The task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// Why it was refused or did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// One line of the audit log.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Counted from one.
    pub id: u64,
    /// When.
    pub at: String,
    /// Who.
    pub actor: String,
    /// What sort of thing: `agent_queue`, `lane`, `token`, `schedule`, `task`, `dead_letter`, `config`, `server`.
    pub event_type: String,
    /// What was done: `clear_queue`, `force_release`, …
    pub action: String,
    /// `info`, `warning` or `critical`.
    pub severity: String,
    /// To what.
    pub target: String,
    /// More about it.
    pub details: Value,
    /// The hash of the line before.
    pub prev: String,
    /// The hash of this line.
    pub hash: String,
}
