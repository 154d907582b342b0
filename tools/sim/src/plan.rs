//! What will happen when: a list that a seed gives, and that can be made shorter.

use crate::kind::Kind;
use laneway_seeded::Random;

/// When the last step of a plan may be.
pub(crate) const HORIZON_MS: u64 = 10_000;

/// A history before it has happened.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What gives delays, ids and everything else that no step says.
    pub seed: u64,
    /// How many replicas there are.
    pub replicas: usize,
    /// Whether the store has a clock that all go by.
    pub has_clock: bool,
    /// What happens, in order.
    pub steps: Vec<PlanStep>,
}

/// Something that happens at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanStep {
    /// When, in milliseconds from the start.
    pub at: u64,
    /// What.
    pub kind: Kind,
    /// To whom, as far as that matters.
    pub who: u64,
    /// How much, as far as that matters.
    pub much: u64,
}

impl Plan {
    /// The plan of a seed. Each has its own few sorts of faults: with all of them everywhere, most would hide behind the
    /// loudest.
    pub fn of_seed(seed: u64) -> Plan {
        let mut random = Random::stream(seed, 1);
        let replicas = [3, 3, 3, 2, 4, 1][random.below(6) as usize];
        let has_clock = random.hits(3, 4);
        let share = [0, 2, 5][random.below(3) as usize];
        let faults: Vec<Kind> =
            Kind::faults().iter().copied().filter(|kind| random.hits(share * odds(*kind), 40)).collect();
        let share = random.between(3, 9);
        let mut asks: Vec<Kind> = Kind::asks().iter().copied().filter(|_| random.hits(share, 9)).collect();
        asks.push(Kind::SubmitTurn);
        let mut steps = Vec::new();
        for _ in 0..random.between(15, 70) {
            let kind = asks[random.below(asks.len() as u64) as usize];
            steps.push(step(kind, &mut random));
        }
        if !faults.is_empty() {
            for _ in 0..random.between(1, 14) {
                let kind = faults[random.below(faults.len() as u64) as usize];
                steps.push(step(kind, &mut random));
            }
        }
        steps.sort_by_key(|step| step.at);
        Plan { seed, replicas, has_clock, steps }
    }
}

/// How often a fault is among those of a seed: what upsets everything else is rarer, what seldom has a target more
/// frequent.
fn odds(kind: Kind) -> u64 {
    match kind {
        Kind::TailLost | Kind::OldProgram | Kind::LogTrimmed | Kind::SnapshotOlder => 1,
        Kind::Withdraw | Kind::Clear | Kind::Interrupt => 4,
        _ => 2,
    }
}

fn step(kind: Kind, random: &mut Random) -> PlanStep {
    PlanStep { at: random.between(200, HORIZON_MS), kind, who: random.number(), much: random.number() }
}
