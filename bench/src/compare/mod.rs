//! Runs the same work through Laneway and through other queues, and shows where each loses.
//!
//! | question | file |
//! |---|---|
//! | What does every queue do? | `workloads.rs`, and `peers/peers.mjs` for the Node queues |
//! | How does each queue get its work? | `queue.rs`, `node.rs`, and `child.rs` where a process must grow or die |
//! | Which queues run, and how often? | `contender.rs`, and [`run`] |
//! | What does the report show? | `report.rs`, `page.rs`, `plot.rs` |

mod child;
mod contender;
mod node;
mod page;
mod plot;
pub mod queue;
mod report;
pub mod workloads;

use std::path::Path;

pub use child::{CHILD, child};

use crate::Failed;
use crate::compare::contender::{ALL, Field};
use crate::compare::report::{Figures, Report};
use crate::disk::syncs_per_second;
use crate::lanes::runtime;
use crate::noise::Noise;

/// The argument that starts the comparison.
pub const COMPARE: &str = "compare";
/// The most rounds of the workloads that take long.
const LONG_ROUNDS: usize = 3;

/// Measures for `rounds` rounds and prints the table. With `docs`, also writes the page and its picture there.
pub fn run(rounds: &str, docs: Option<&Path>) -> Result<(), Failed> {
    let rounds = rounds.parse().ok().filter(|rounds| *rounds > 0);
    let rounds: usize = rounds.ok_or("--rounds is a whole number of at least 1")?;
    // Panics on purpose are not printed.
    std::panic::set_hook(Box::new(|panic| {
        if !panic.to_string().contains("on purpose") {
            eprintln!("{panic}");
        }
    }));
    let field = Field::open()?;
    let (noise, syncs_before) = (Noise::start(), syncs_per_second()?);
    let mut figures: Vec<Figures> = ALL.iter().map(|_| Figures::default()).collect();
    let mut reference = Vec::new();
    for round in 0..rounds {
        reference.push(runtime(1)?.block_on(workloads::reference(50_000))?);
        for (who, figures) in ALL.iter().zip(&mut figures) {
            eprintln!("round {} of {rounds}: {}", round + 1, field.name(*who));
            figures.no_ops.push(field.no_ops(*who)?);
            figures.fan_out.push(field.fan_out(*who)?);
            figures.idle.push(field.idle(*who)?);
            if round < LONG_ROUNDS {
                figures.sessions.push(field.sessions(*who)?);
                figures.memory.push(field.memory(*who)?);
            }
        }
    }
    for (who, figures) in ALL.iter().zip(&mut figures) {
        eprintln!("kills, panics and floods: {}", field.name(*who));
        figures.kept = field.kept(*who)?;
        figures.survived = field.survived(*who)?;
        figures.light = field.light(*who)?;
    }
    let report = Report {
        rows: ALL.iter().map(|who| field.name(*who)).zip(figures).collect(),
        reference,
        others: noise.cores(),
        syncs: (syncs_before, syncs_per_second()?),
    };
    report.print();
    if let Some(docs) = docs {
        std::fs::write(docs.join("benchmarks/comparison.md"), page::page(&report, &field))?;
        std::fs::write(docs.join("images/comparison.svg"), plot::plot(&report))?;
        println!("written: docs/benchmarks/comparison.md, docs/images/comparison.svg");
    }
    Ok(())
}
