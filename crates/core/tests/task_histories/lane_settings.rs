//! Random settings of lanes.

use laneway_core::{
    Ageing, Block, Boost, BoostStrategy, Handler, LaneSettings, Millis, Order, Pattern, Period, Priorities,
    RateLimit, Retry, RetryStrategy, Switch,
};

use laneway_seeded::Random;

const PATTERNS: [&str; 12] =
    ["a", "b", "c", "x", "global", "main", "session:*", "agent:*", "session:s", "session:s/*", "*", "f"];

/// A block of settings for a lane or a pattern of lanes, or its removal.
pub(crate) fn block(random: &mut Random) -> Block {
    let lanes = Pattern::new(random.pick(&PATTERNS)).unwrap();
    let settings = random.percent(85).then(|| settings(random, lanes.as_str()));
    Block { lanes, settings }
}

fn settings(random: &mut Random, lanes: &str) -> LaneSettings {
    let slots = [Switch::On(1), Switch::On(1), Switch::On(2), Switch::On(3), Switch::Off];
    let handler = if lanes == "x" { Handler::External } else { random.pick(&HANDLERS) };
    LaneSettings {
        max_concurrency: if lanes == "global" {
            random.maybe(60, &[Switch::On(4), Switch::On(8), Switch::On(20)])
        } else {
            random.maybe(70, &slots).map(|slots| if random.percent(1) { Switch::On(0) } else { slots })
        },
        max_queued: random.maybe(50, &[0, 1, 2, 5, 20]),
        order: random.maybe(30, &[Order::Fair, Order::Fifo]),
        priorities: random.maybe(10, &[Priorities { user: 3, schedule: 2, agent: 1, background: 0 }]),
        priority: random.maybe(15, &[Switch::On(0), Switch::On(4), Switch::Off]),
        weight: random.maybe(30, &[1, 2, 3]),
        wait_timeout: random.maybe(10, &[Switch::On(Millis(700)), Switch::Off]),
        timeout: random.maybe(20, &[Switch::On(Millis(200)), Switch::On(Millis(9_000)), Switch::Off]),
        lease: random.maybe(30, &[Millis(100), Millis(1_000), Millis(10_000)]),
        max_redelivery: random.maybe(40, &[0, 1, 2]),
        retry: random.maybe(30, &RETRIES),
        rate_limit: random.maybe(20, &RATES),
        ageing: random.maybe(50, &AGEINGS),
        boost: random.maybe(30, &BOOSTS),
        pressure_threshold: random.maybe(60, &[1, 2, 4]),
        alert_warning: random.maybe(60, &[1, 3]),
        alert_critical: random.maybe(60, &[2, 5]),
        dead_letters_max: random.maybe(40, &[0, 1, 3]),
        notice_after: random.maybe(30, &[Switch::On(Millis(100)), Switch::Off]),
        handler: Some(handler),
    }
}

const HANDLERS: [Handler; 6] = [
    Handler::Internal,
    Handler::Internal,
    Handler::Internal,
    Handler::Internal,
    Handler::Hybrid,
    Handler::External,
];

pub(crate) const RETRIES: [Retry; 4] = [
    Retry { max_retries: 2, ..Retry::STANDARD },
    Retry { max_retries: 3, jitter: true, ..Retry::STANDARD },
    Retry { strategy: RetryStrategy::Fixed, max_retries: 1, fixed_delay: Millis(0), ..Retry::STANDARD },
    Retry::NONE,
];

const RATES: [Switch<RateLimit>; 4] = [
    Switch::On(RateLimit { per: Period::Second, max: 1 }),
    Switch::On(RateLimit { per: Period::Second, max: 3 }),
    Switch::On(RateLimit { per: Period::Minute, max: 7 }),
    Switch::Off,
];

const AGEINGS: [Switch<Ageing>; 4] = [
    Switch::On(Ageing { after: Millis(100), max: 9 }),
    Switch::On(Ageing { after: Millis(400), max: 3 }),
    Switch::On(Ageing { after: Millis(1_000), max: 9 }),
    Switch::Off,
];

const BOOSTS: [Switch<Boost>; 3] = [
    Switch::On(Boost { strategy: BoostStrategy::Standard, deadline: Some(Millis(1_000)) }),
    Switch::On(Boost { strategy: BoostStrategy::Aggressive, deadline: None }),
    Switch::Off,
];
