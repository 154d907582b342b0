//! What a run of replicas cost: a row that does not hold says why.

use std::ops::{AddAssign, Sub};

use laneway_engine::Handle;
use laneway_test_services::Redis;
use redis::cmd;

/// Appends of some replicas, commands of their Redis, and processor time of both, since some moment.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    kept: u64,
    lost: u64,
    waits: u64,
    overdue: u64,
    commands: u64,
    /// Processor time in microseconds: this process with its load, and Redis.
    own_us: f64,
    redis_us: f64,
}

impl Counts {
    /// As they are now.
    pub(crate) async fn of(replicas: &[Handle], redis: &Redis) -> Counts {
        let mut counts = Counts { own_us: own_us(), ..Counts::default() };
        for appends in replicas.iter().map(Handle::appends) {
            counts.kept += appends.kept;
            counts.lost += appends.lost;
            counts.waits += appends.waits;
            counts.overdue += appends.overdue;
        }
        let told = Told::by(redis).await;
        counts.commands = told.number("total_commands_processed") as u64;
        counts.redis_us = 1e6 * (told.number("used_cpu_user") + told.number("used_cpu_sys"));
        counts
    }

    pub(crate) fn print(self, tasks: usize) {
        let per_task = |number: f64| number / tasks as f64;
        println!(
            "    {} appends, {:.1} tasks each; {} races lost; {} waits for the append turn, {} in vain; \
             a task: {:.1} commands, {:.0} us of processor here, {:.0} us of Redis",
            self.kept,
            tasks as f64 / self.kept.max(1) as f64,
            self.lost,
            self.waits,
            self.overdue,
            per_task(self.commands as f64),
            per_task(self.own_us),
            per_task(self.redis_us),
        );
    }
}

impl Sub for Counts {
    type Output = Counts;

    fn sub(self, before: Counts) -> Counts {
        Counts {
            kept: self.kept - before.kept,
            lost: self.lost - before.lost,
            waits: self.waits - before.waits,
            overdue: self.overdue - before.overdue,
            commands: self.commands - before.commands,
            own_us: self.own_us - before.own_us,
            redis_us: self.redis_us - before.redis_us,
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Counts) {
        self.kept += more.kept;
        self.lost += more.lost;
        self.waits += more.waits;
        self.overdue += more.overdue;
        self.commands += more.commands;
        self.own_us += more.own_us;
        self.redis_us += more.redis_us;
    }
}

/// What Redis tells of itself.
struct Told(String);

impl Told {
    async fn by(redis: &Redis) -> Told {
        let client = redis::Client::open(redis.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        Told(cmd("INFO").arg("everything").query_async(&mut connection).await.unwrap())
    }

    fn number(&self, name: &str) -> f64 {
        let value = |line: &str| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse().ok();
        self.0.lines().find_map(value).unwrap_or_else(|| panic!("Redis does not tell {name}"))
    }
}

/// How many commands Redis has carried out.
pub(crate) async fn commands(redis: &Redis) -> u64 {
    Told::by(redis).await.number("total_commands_processed") as u64
}

/// Processor time of this process. The kernel counts in hundredths of a second.
fn own_us() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, after) = stat.rsplit_once(')').unwrap();
    let ticks: Vec<f64> =
        after.split_whitespace().skip(11).take(2).map(|word| word.parse().unwrap()).collect();
    ticks.iter().sum::<f64>() * 1e4
}
