//! How busy other programs kept the machine.

use std::time::Instant;

/// The processor time of all programs and of this process at the beginning, in ticks of 10 ms.
pub struct Noise {
    all: u64,
    own: u64,
    since: Instant,
}

impl Noise {
    pub fn start() -> Noise {
        Noise { all: all_busy(), own: own_busy(), since: Instant::now() }
    }

    /// How much of a core other programs have used since.
    pub fn cores(&self) -> f64 {
        let others = all_busy().saturating_sub(self.all).saturating_sub(own_busy() - self.own);
        others as f64 / 100.0 / self.since.elapsed().as_secs_f64()
    }

    pub fn report(self) {
        let cores = self.cores();
        println!("other programs used {cores:.2} of a core");
        if cores > 0.3 {
            println!("    that is more than 0.3: measure again on a quieter machine");
        }
    }
}

fn numbers(text: &str) -> Vec<u64> {
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// User, nice and system time of all processors.
fn all_busy() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    numbers(stat.lines().next().unwrap_or_default()).iter().take(3).sum()
}

/// User and system time of this process and its children.
fn own_busy() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    numbers(rest.trim_start().trim_start_matches(char::is_alphabetic)).iter().skip(10).take(4).sum()
}
