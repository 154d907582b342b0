//! Settings of lanes, one tweak at a time, so that a failing case shrinks to those that matter.

use laneway_core::{
    Ageing, Block, Boost, BoostStrategy, Handler, LaneSettings, Millis, Order, Pattern, Period, RateLimit,
    Retry, RetryStrategy, Switch,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// The lanes that have blocks of settings: all that tasks name, and all conversations together.
const BLOCKS: [&str; 8] = ["a", "b", "c", "x", "session:s", "main", "global", "session:*"];

pub(crate) const RETRIES: [Retry; 4] = [
    Retry { strategy: RetryStrategy::Fixed, max_retries: 2, fixed_delay: Millis(100), ..Retry::STANDARD },
    Retry { strategy: RetryStrategy::Fixed, max_retries: 1, fixed_delay: Millis(0), ..Retry::STANDARD },
    Retry { max_retries: 3, max_delay: Millis(300), ..Retry::STANDARD },
    Retry { max_retries: 2, jitter: true, ..Retry::STANDARD },
];

/// One setting of a lane.
#[derive(Clone, Debug)]
pub(crate) enum Tweak {
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
    Letters(u32),
    Notice(u64),
    Handler(bool),
}

fn tweak() -> impl Strategy<Value = Tweak> {
    prop_oneof![
        8 => (1u32..4).prop_map(Tweak::Slots),
        1 => Just(Tweak::AnySlots),
        // Zero slots are nonsense, and refused.
        1 => prop_oneof![8 => Just(1u32), 1 => Just(0)].prop_map(Tweak::Slots),
        3 => (0u32..6).prop_map(Tweak::Queued),
        1 => Just(Tweak::Fifo),
        2 => (1u32..4).prop_map(Tweak::Weight),
        1 => (0u8..6).prop_map(Tweak::Priority),
        1 => prop_oneof![Just(100), Just(400)].prop_map(Tweak::WaitTimeout),
        2 => prop_oneof![Just(50), Just(100)].prop_map(Tweak::Timeout),
        2 => prop_oneof![Just(50), Just(100), Just(1_000)].prop_map(Tweak::Lease),
        2 => (0u32..3).prop_map(Tweak::Redelivery),
        2 => (0u8..4).prop_map(Tweak::Retry),
        2 => (1u32..5).prop_map(Tweak::Rate),
        3 => (prop_oneof![Just(50), Just(100)], prop_oneof![Just(3), Just(9)]).prop_map(|(a, m)| Tweak::Ageing(a, m)),
        2 => any::<(bool, bool)>().prop_map(|(steep, own)| Tweak::Boost(steep, own)),
        1 => (1u32..4).prop_map(Tweak::Depth),
        2 => (0u32..3).prop_map(Tweak::Letters),
        1 => prop_oneof![Just(50), Just(100)].prop_map(Tweak::Notice),
        1 => any::<bool>().prop_map(Tweak::Handler),
    ]
}

fn settings(lanes: &str, tweaks: &[Tweak]) -> LaneSettings {
    let handler = (lanes == "x").then_some(Handler::External);
    let mut it = LaneSettings { handler, ..LaneSettings::default() };
    for tweak in tweaks {
        match *tweak {
            Tweak::Slots(slots) => it.max_concurrency = Some(Switch::On(slots)),
            Tweak::AnySlots => it.max_concurrency = Some(Switch::Off),
            Tweak::Queued(most) => it.max_queued = Some(most),
            Tweak::Fifo => it.order = Some(Order::Fifo),
            Tweak::Weight(weight) => it.weight = Some(weight),
            Tweak::Priority(priority) => it.priority = Some(Switch::On(priority)),
            Tweak::WaitTimeout(millis) => it.wait_timeout = Some(Switch::On(Millis(millis))),
            Tweak::Timeout(millis) => it.timeout = Some(Switch::On(Millis(millis))),
            Tweak::Lease(millis) => it.lease = Some(Millis(millis)),
            Tweak::Redelivery(times) => it.max_redelivery = Some(times),
            Tweak::Retry(number) => it.retry = Some(RETRIES[number as usize]),
            Tweak::Rate(max) => it.rate_limit = Some(Switch::On(RateLimit { per: Period::Second, max })),
            Tweak::Ageing(after, max) => it.ageing = Some(Switch::On(Ageing { after: Millis(after), max })),
            Tweak::Boost(is_steep, has_deadline) => {
                let strategy = if is_steep { BoostStrategy::Aggressive } else { BoostStrategy::Standard };
                let deadline = has_deadline.then_some(Millis(400));
                it.boost = Some(Switch::On(Boost { strategy, deadline }));
            }
            Tweak::Depth(waiting) => {
                it.pressure_threshold = Some(waiting);
                it.alert_warning = Some(waiting);
                it.alert_critical = Some(waiting + 2);
            }
            Tweak::Letters(most) => it.dead_letters_max = Some(most),
            Tweak::Notice(millis) => it.notice_after = Some(Switch::On(Millis(millis))),
            Tweak::Handler(is_external) => {
                it.handler = Some(if is_external { Handler::External } else { Handler::Hybrid });
            }
        }
    }
    it
}

pub(crate) fn block() -> impl Strategy<Value = (u8, Option<Vec<Tweak>>)> {
    (0u8..8, prop::option::weighted(0.9, vec(tweak(), 0..6)))
}

pub(crate) fn block_of((number, tweaks): &(u8, Option<Vec<Tweak>>)) -> Block {
    let lanes = BLOCKS[*number as usize];
    let settings = tweaks.as_ref().map(|tweaks| settings(lanes, tweaks));
    Block { lanes: Pattern::new(lanes).unwrap(), settings }
}
