//! What may be set for a lane: what was typed ([`LaneSettings`]) and what it means ([`Settings`]).

use serde::{Deserialize, Serialize};

use crate::api::name::{LaneName, Pattern};
use crate::api::retry::Retry;
use crate::api::time::{Millis, Timestamp};

/// The largest number of slots, places in line, retries and the like that can be asked for.
pub const COUNT_MAX: u32 = 1_000_000_000;
/// Priorities run from 0 to this; larger is more urgent.
pub const PRIORITY_MAX: u8 = 9;
/// The highest level that a priority and a deadline give together.
pub const LEVEL_MAX: u8 = PRIORITY_MAX + 8;
/// The largest weight of a fair key.
pub const WEIGHT_MAX: u32 = 1_000;
/// How long a stopping attempt of a replica may take before another gets its slot.
pub const STOP_GRACE: Millis = Millis::from_secs(5);

/// Something that can be switched off altogether.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Switch<T> {
    /// There is none.
    Off,
    /// There is one, this.
    On(T),
}

impl<T> Switch<T> {
    /// The value, unless it is off.
    pub fn on(self) -> Option<T> {
        match self {
            Switch::Off => None,
            Switch::On(value) => Some(value),
        }
    }
}

/// Who asked for a task. It gives the default priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Source {
    /// A person, waiting for the answer (2).
    #[default]
    User,
    /// A schedule (1).
    Schedule,
    /// Another task (0).
    Agent,
    /// Work whose result no caller waits for (0).
    Background,
}

/// The priority of work from each source, where nothing else gives one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Priorities {
    /// Default 2.
    pub user: u8,
    /// Default 1.
    pub schedule: u8,
    /// Default 0.
    pub agent: u8,
    /// Default 0.
    pub background: u8,
}

impl Default for Priorities {
    fn default() -> Priorities {
        Priorities { user: 2, schedule: 1, agent: 0, background: 0 }
    }
}

impl Priorities {
    /// The priority of work from a source.
    pub fn of(self, source: Source) -> u8 {
        match source {
            Source::User => self.user,
            Source::Schedule => self.schedule,
            Source::Agent => self.agent,
            Source::Background => self.background,
        }
    }
}

/// In which order tasks of equal priority leave a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// Fair keys take turns, by weight; within one key arrival decides.
    Fair,
    /// Arrival decides.
    Fifo,
}

/// Who executes the tasks whose home a lane is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Handler {
    /// They are granted as soon as they may run, and run here.
    Internal,
    /// They wait until a worker claims them, and never run here.
    External,
    /// They run here, and watchers see them as external tasks.
    Hybrid,
}

/// At most `max` grants in each `per`, all of them at once after a rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimit {
    /// The period.
    pub per: Period,
    /// How many grants it allows.
    pub max: u32,
}

/// The period of a rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Period {
    /// 1 s.
    Second,
    /// 60 s.
    Minute,
    /// 3600 s.
    Hour,
}

impl Period {
    /// Its length.
    pub fn millis(self) -> Millis {
        match self {
            Period::Second => Millis(1000),
            Period::Minute => Millis(60_000),
            Period::Hour => Millis(3_600_000),
        }
    }
}

/// Waiting raises a task's priority, so that urgent work cannot starve the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ageing {
    /// One level for each of these that a task has waited.
    pub after: Millis,
    /// Ageing raises no task above this level, 0 to 9, and never above the highest that waits. [`LEVEL_MAX`]: the
    /// latter alone holds.
    pub max: u8,
}

/// A deadline that comes closer raises a task's priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boost {
    /// How much and when.
    pub strategy: BoostStrategy,
    /// The deadline that boosts tasks without one of their own, counted from their acceptance. It only boosts.
    pub deadline: Option<Millis>,
}

/// How a deadline that comes closer raises a priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BoostStrategy {
    /// +1, +2, +3, +4 when 75, 50, 25, 10 % of the time is left.
    Standard,
    /// +2, +4, +6, +8 when 80, 60, 40, 20 % of the time is left.
    Aggressive,
}

impl Boost {
    /// When a task that has gained `levels` already reaches the next step, and the levels that it has then. The steps
    /// are shares of the time from `start` to `by`.
    pub(crate) fn next(self, start: Timestamp, by: Timestamp, levels: u8) -> Option<(Timestamp, u8)> {
        let (left, levels) = self.strategy.steps().into_iter().find(|(_, step)| *step > levels)?;
        let left = u128::from(by.since(start).0) * u128::from(left) / 100;
        Some((Timestamp(by.0.saturating_sub(left as u64)), levels))
    }
}

impl BoostStrategy {
    /// The steps: (per cent of the time left, levels added), from the first to the last.
    pub fn steps(self) -> [(u64, u8); 4] {
        match self {
            BoostStrategy::Standard => [(75, 1), (50, 2), (25, 3), (10, 4)],
            BoostStrategy::Aggressive => [(80, 2), (60, 4), (40, 6), (20, 8)],
        }
    }
}

/// What was asked for a lane or a pattern of lanes; what is left out keeps its default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneSettings {
    /// How many tasks may run at once, 1 or more; off: any number. Default 1; `main` 4, `subagent` 8,
    /// `cron` 1, `task:*` 10, `global` off.
    pub max_concurrency: Option<Switch<u32>>,
    /// How many tasks may wait; 0: none ever waits. Default ten times `max_concurrency`; `agent:*` 3,
    /// `task:*` 50, `session:*` 100, `global` 100 000.
    pub max_queued: Option<u32>,
    /// Default fair.
    pub order: Option<Order>,
    /// Of tasks whose home this lane is, 0 to 9. Default: by source.
    pub priority: Option<Switch<u8>>,
    /// The priorities by source. Default: those of the lane `global`, else the built-in ones.
    pub priorities: Option<Priorities>,
    /// Of this lane as a fair key, 1 to 1000. Default 1.
    pub weight: Option<u32>,
    /// How long a task may wait. Default off; `agent:*` 120 s; tool lanes with an external or hybrid handler: `timeout`.
    pub wait_timeout: Option<Switch<Millis>>,
    /// How long an attempt may take. Default off; `agent:*` 600 s, `task:*` 300 s, tool lanes 60 s.
    pub timeout: Option<Switch<Millis>>,
    /// How long an attempt may go unheard. Default 30 s.
    pub lease: Option<Millis>,
    /// How often an external task whose worker fell silent is offered again. Default 3.
    pub max_redelivery: Option<u32>,
    /// Default none.
    pub retry: Option<Retry>,
    /// Default off.
    pub rate_limit: Option<Switch<RateLimit>>,
    /// Default after 60 s.
    pub ageing: Option<Switch<Ageing>>,
    /// Default off.
    pub boost: Option<Switch<Boost>>,
    /// From how many waiting tasks on the lane is under pressure. Default 50.
    pub pressure_threshold: Option<u32>,
    /// From how many waiting tasks on a warning is given. Default 50.
    pub alert_warning: Option<u32>,
    /// From how many waiting tasks on a critical alert is given. Default 100.
    pub alert_critical: Option<u32>,
    /// How many dead letters are kept for this block's lanes together; 0: none. Default 1000.
    pub dead_letters_max: Option<u32>,
    /// How long a task waits before its callers learn how many tasks are ahead. Default 2 s.
    pub notice_after: Option<Switch<Millis>>,
    /// Default internal.
    pub handler: Option<Handler>,
}

/// The settings that lie over those of a more general block as one, by the first part of their keys.
macro_rules! groups {
    ($($name:literal => $($field:ident),+;)+) => {
        impl LaneSettings {
            /// Takes each group of settings that these leave open from more general settings. A group such as `retry` counts as
            /// one setting.
            pub fn fill_from(&mut self, general: &LaneSettings) {
                $(if $(self.$field.is_none())&&+ {
                    $(self.$field = general.$field;)+
                })+
            }

            /// Takes the group that a key belongs to from other settings.
            pub(crate) fn take_group(&mut self, key: &str, from: &LaneSettings) {
                let group = key.split('.').next().unwrap_or_default();
                $(if group == $name {
                    $(self.$field = from.$field;)+
                })+
            }
        }
    };
}

groups! {
    "max_concurrency" => max_concurrency;
    "max_queued" => max_queued;
    "order" => order;
    "priority" => priority, priorities;
    "weight" => weight;
    "wait_timeout" => wait_timeout;
    "timeout" => timeout;
    "lease" => lease;
    "max_redelivery" => max_redelivery;
    "retry" => retry;
    "rate_limit" => rate_limit;
    "ageing" => ageing;
    "boost" => boost;
    "pressure_threshold" => pressure_threshold;
    "alerts" => alert_warning, alert_critical;
    "dead_letters_max" => dead_letters_max;
    "notice_after" => notice_after;
    "handler" => handler;
}

/// What holds for one lane, nothing left open. The fields are those of [`LaneSettings`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Settings {
    pub max_concurrency: Option<u32>,
    pub max_queued: u32,
    pub order: Order,
    pub priority: Option<u8>,
    pub priorities: Option<Priorities>,
    pub weight: u32,
    pub wait_timeout: Option<Millis>,
    pub timeout: Option<Millis>,
    pub lease: Millis,
    pub max_redelivery: u32,
    pub retry: Retry,
    pub rate_limit: Option<RateLimit>,
    pub ageing: Option<Ageing>,
    pub boost: Option<Boost>,
    pub pressure_threshold: u32,
    pub alert_warning: u32,
    pub alert_critical: u32,
    pub dead_letters_max: u32,
    pub notice_after: Option<Millis>,
    pub handler: Handler,
}

/// The families of lanes that have defaults of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Family {
    Global,
    Main,
    Subagent,
    Agent,
    Task,
    Session,
    ToolControl,
    ToolQuery,
    ToolExecute,
    ToolGenerate,
    /// Work that workers claim.
    External,
    /// The lanes of callers' tokens.
    Token,
    Other,
}

impl Family {
    pub(crate) fn of(name: &LaneName) -> Family {
        let text = name.as_str();
        match text {
            "global" => return Family::Global,
            "main" => return Family::Main,
            "subagent" => return Family::Subagent,
            "external" => return Family::External,
            _ => {}
        }
        if name.is_session_family() {
            return match text.split_once('/') {
                None => Family::Session,
                Some((_, "control")) => Family::ToolControl,
                Some((_, "query")) => Family::ToolQuery,
                Some((_, "execute")) => Family::ToolExecute,
                Some((_, "generate")) => Family::ToolGenerate,
                Some(_) => Family::Other,
            };
        }
        match text.split_once(':') {
            Some(("agent", rest)) if !rest.contains('/') => Family::Agent,
            Some(("task", rest)) if !rest.contains('/') => Family::Task,
            Some(("token", rest)) if !rest.contains('/') => Family::Token,
            _ => Family::Other,
        }
    }

    /// The pattern under which lanes of this family are counted when no block names them.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Family::Global => "global",
            Family::Main => "main",
            Family::Subagent => "subagent",
            Family::Agent => "agent:*",
            Family::Task => "task:*",
            Family::Session => "session:*",
            Family::ToolControl => "session:*/control",
            Family::ToolQuery => "session:*/query",
            Family::ToolExecute => "session:*/execute",
            Family::ToolGenerate => "session:*/generate",
            Family::External => "external",
            Family::Token => "token:*",
            Family::Other => "*",
        }
    }

    fn is_tool_lane(self) -> bool {
        matches!(self, Family::ToolControl | Family::ToolQuery | Family::ToolExecute | Family::ToolGenerate)
    }

    fn max_concurrency(self) -> Option<u32> {
        match self {
            Family::Global | Family::External | Family::Token => None,
            Family::Main | Family::ToolQuery => Some(4),
            Family::Subagent => Some(8),
            Family::Task => Some(10),
            Family::ToolControl | Family::ToolExecute => Some(2),
            Family::Agent | Family::Session | Family::ToolGenerate | Family::Other => Some(1),
        }
    }

    fn max_queued(self, max_concurrency: Option<u32>) -> u32 {
        match self {
            Family::Global | Family::External => 100_000,
            Family::Agent => 3,
            Family::Task => 50,
            Family::Session => 100,
            _ => max_concurrency.map_or(COUNT_MAX, |slots| slots.saturating_mul(10)),
        }
    }

    fn handler(self) -> Handler {
        if self == Family::External { Handler::External } else { Handler::Internal }
    }

    fn priority(self) -> Option<u8> {
        match self {
            Family::ToolControl => Some(5),
            Family::ToolQuery => Some(4),
            Family::ToolExecute => Some(3),
            Family::ToolGenerate => Some(2),
            _ => None,
        }
    }
}

impl Settings {
    /// Fills what `asked` leaves open with the defaults of `family`.
    pub(crate) fn resolve(asked: &LaneSettings, family: Family) -> Settings {
        let agent = family == Family::Agent;
        let max_concurrency = asked.max_concurrency.map_or(family.max_concurrency(), Switch::on);
        let handler = asked.handler.unwrap_or(family.handler());
        let timeout = asked.timeout.map_or_else(
            || match family {
                Family::Agent => Some(Millis::from_secs(600)),
                Family::Task => Some(Millis::from_secs(300)),
                _ if family.is_tool_lane() => Some(Millis::from_secs(60)),
                _ => None,
            },
            Switch::on,
        );
        let wait_timeout = match asked.wait_timeout {
            Some(asked) => asked.on(),
            // The caller of a tool counts its timeout from the call, also while no worker takes it.
            None if family.is_tool_lane() && handler != Handler::Internal => timeout,
            None => agent.then_some(Millis::from_secs(120)),
        };
        Settings {
            max_concurrency,
            max_queued: asked.max_queued.unwrap_or_else(|| family.max_queued(max_concurrency)),
            order: asked.order.unwrap_or(Order::Fair),
            priority: asked.priority.map_or(family.priority(), Switch::on),
            priorities: asked.priorities,
            weight: asked.weight.unwrap_or(1),
            wait_timeout,
            timeout,
            lease: asked.lease.unwrap_or(Millis::from_secs(10)),
            max_redelivery: asked.max_redelivery.unwrap_or(3),
            retry: asked.retry.unwrap_or(Retry::NONE),
            rate_limit: asked.rate_limit.and_then(Switch::on),
            ageing: asked
                .ageing
                .unwrap_or(Switch::On(Ageing { after: Millis::from_secs(60), max: LEVEL_MAX }))
                .on(),
            boost: asked.boost.and_then(Switch::on),
            pressure_threshold: asked.pressure_threshold.unwrap_or(50),
            alert_warning: asked.alert_warning.unwrap_or(50),
            alert_critical: asked.alert_critical.unwrap_or(100),
            dead_letters_max: asked.dead_letters_max.unwrap_or(1000),
            notice_after: asked.notice_after.unwrap_or(Switch::On(Millis::from_secs(2))).on(),
            handler,
        }
    }

    /// The priority that the lane gives its own tasks from a source, if it gives one.
    pub(crate) fn priority_of(&self, source: Source) -> Option<u8> {
        self.priority.or_else(|| Some(self.priorities?.of(source)))
    }

    /// What holds for the lane `name` when `asked` is the block that speaks for it.
    pub fn for_lane(asked: &LaneSettings, name: &LaneName) -> Settings {
        Settings::resolve(asked, Family::of(name))
    }
}

/// One change of the configuration: a whole block of settings for a lane or a pattern, or its removal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// The lane's name, or a pattern of names.
    pub lanes: Pattern,
    /// The new settings; `None` removes the block.
    pub settings: Option<LaneSettings>,
}
