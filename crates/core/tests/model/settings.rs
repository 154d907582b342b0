//! Random settings of lanes, generated one by one, so that a failing case shrinks to those that matter.

use laneway_core::{
    Ageing, Block, Boost, BoostStrategy, Handler, LaneSettings, Millis, Order, Pattern, Period, RateLimit,
    Retry, RetryStrategy, Switch,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// The lanes with blocks of settings: all that tasks name, and all sessions together.
const BLOCKS: [&str; 8] = ["a", "b", "c", "x", "session:s", "main", "global", "session:*"];

pub(crate) const RETRIES: [Retry; 4] = [
    Retry { strategy: RetryStrategy::Fixed, max_retries: 2, fixed_delay: Millis(100), ..Retry::STANDARD },
    Retry { strategy: RetryStrategy::Fixed, max_retries: 1, fixed_delay: Millis(0), ..Retry::STANDARD },
    Retry { max_retries: 3, max_delay: Millis(300), ..Retry::STANDARD },
    Retry { max_retries: 2, jitter: true, ..Retry::STANDARD },
];

/// One setting of a lane.
#[derive(Clone, Debug)]
pub(crate) enum Setting {
    Slots(u32),
    AnySlots,
    Queued(u32),
    Fifo,
    Weight(u32),
    Priority(u8),
    WaitTimeout(u64),
    Timeout(u64),
    Lease(u64),
    Redelivery(u32),
    Retry(u8),
    Rate(u32),
    Ageing(u64, u8),
    Boost(bool, bool),
    Depth(u32),
    DeadLetters(u32),
    Notice(u64),
    Handler(bool),
}

fn setting() -> impl Strategy<Value = Setting> {
    prop_oneof![
        8 => (1u32..4).prop_map(Setting::Slots),
        1 => Just(Setting::AnySlots),
        // Zero slots are invalid.
        1 => prop_oneof![8 => Just(1u32), 1 => Just(0)].prop_map(Setting::Slots),
        3 => (0u32..6).prop_map(Setting::Queued),
        1 => Just(Setting::Fifo),
        2 => (1u32..4).prop_map(Setting::Weight),
        1 => (0u8..6).prop_map(Setting::Priority),
        1 => prop_oneof![Just(100), Just(400)].prop_map(Setting::WaitTimeout),
        2 => prop_oneof![Just(50), Just(100)].prop_map(Setting::Timeout),
        2 => prop_oneof![Just(50), Just(100), Just(1_000)].prop_map(Setting::Lease),
        2 => (0u32..3).prop_map(Setting::Redelivery),
        2 => (0u8..4).prop_map(Setting::Retry),
        2 => (1u32..5).prop_map(Setting::Rate),
        3 => (prop_oneof![Just(50), Just(100)], prop_oneof![Just(3), Just(9)]).prop_map(|(a, m)| Setting::Ageing(a, m)),
        2 => any::<(bool, bool)>().prop_map(|(steep, own)| Setting::Boost(steep, own)),
        1 => (1u32..4).prop_map(Setting::Depth),
        2 => (0u32..3).prop_map(Setting::DeadLetters),
        1 => prop_oneof![Just(50), Just(100)].prop_map(Setting::Notice),
        1 => any::<bool>().prop_map(Setting::Handler),
    ]
}

fn lane_settings(lanes: &str, settings: &[Setting]) -> LaneSettings {
    let handler = (lanes == "x").then_some(Handler::External);
    let mut it = LaneSettings { handler, ..LaneSettings::default() };
    for setting in settings {
        match *setting {
            Setting::Slots(slots) => it.max_concurrency = Some(Switch::On(slots)),
            Setting::AnySlots => it.max_concurrency = Some(Switch::Off),
            Setting::Queued(most) => it.max_queued = Some(most),
            Setting::Fifo => it.order = Some(Order::Fifo),
            Setting::Weight(weight) => it.weight = Some(weight),
            Setting::Priority(priority) => it.priority = Some(Switch::On(priority)),
            Setting::WaitTimeout(millis) => it.wait_timeout = Some(Switch::On(Millis(millis))),
            Setting::Timeout(millis) => it.timeout = Some(Switch::On(Millis(millis))),
            Setting::Lease(millis) => it.lease = Some(Millis(millis)),
            Setting::Redelivery(times) => it.max_redelivery = Some(times),
            Setting::Retry(number) => it.retry = Some(RETRIES[number as usize]),
            Setting::Rate(max) => it.rate_limit = Some(Switch::On(RateLimit { per: Period::Second, max })),
            Setting::Ageing(after, max) => it.ageing = Some(Switch::On(Ageing { after: Millis(after), max })),
            Setting::Boost(is_steep, has_deadline) => {
                let strategy = if is_steep { BoostStrategy::Aggressive } else { BoostStrategy::Standard };
                let deadline = has_deadline.then_some(Millis(400));
                it.boost = Some(Switch::On(Boost { strategy, deadline }));
            }
            Setting::Depth(waiting) => {
                it.pressure_threshold = Some(waiting);
                it.alert_warning = Some(waiting);
                it.alert_critical = Some(waiting + 2);
            }
            Setting::DeadLetters(most) => it.dead_letters_max = Some(most),
            Setting::Notice(millis) => it.notice_after = Some(Switch::On(Millis(millis))),
            Setting::Handler(is_external) => {
                it.handler = Some(if is_external { Handler::External } else { Handler::Hybrid });
            }
        }
    }
    it
}

pub(crate) fn block() -> impl Strategy<Value = (u8, Option<Vec<Setting>>)> {
    (0u8..8, prop::option::weighted(0.9, vec(setting(), 0..6)))
}

pub(crate) fn block_of((number, settings): &(u8, Option<Vec<Setting>>)) -> Block {
    let lanes = BLOCKS[*number as usize];
    let settings = settings.as_ref().map(|settings| lane_settings(lanes, settings));
    Block { lanes: Pattern::new(lanes).unwrap(), settings }
}
