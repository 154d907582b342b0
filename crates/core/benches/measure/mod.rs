//! Times by the clock, and what a bench says of them.

use std::time::{Duration, Instant};

pub(crate) const CYCLES: usize = 51_200;
pub(crate) const BATCH: usize = 64;

/// Nanoseconds of one call.
pub(crate) fn time(mut cycle: impl FnMut()) -> f64 {
    let batches = (0..CYCLES / BATCH).map(|_| {
        let start = Instant::now();
        for _ in 0..BATCH {
            cycle();
        }
        start.elapsed()
    });
    nanoseconds(batches.collect())
}

/// Nanoseconds of one of the `BATCH` that each batch took, on average. The slowest tenth of the batches does not count: in
/// those others had the processor, and the longer a batch lasts the likelier that is.
pub(crate) fn nanoseconds(mut batches: Vec<Duration>) -> f64 {
    batches.sort_unstable();
    batches.truncate(batches.len() * 9 / 10);
    let sum: Duration = batches.iter().sum();
    sum.as_nanos() as f64 / (batches.len() * BATCH) as f64
}

pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// One line of the table: what, the ratio, its spread, its bound.
pub(crate) fn report(what: &str, mut ratios: Vec<f64>, bound: f64) -> bool {
    let middle = median(&mut ratios);
    let holds = middle <= bound;
    let verdict = if holds { "holds" } else { "BROKEN" };
    let (low, high) = (ratios[0], ratios[ratios.len() - 1]);
    println!("{what:<66} {middle:>6.2} ({low:.2} to {high:.2})   at most {bound:.1}   {verdict}");
    holds
}
