//! The figures of all queues, as a table.

use crate::compare::workloads::{HEAVY, LIGHT, SESSIONS, Sessions, THROWING, TURNS};
use crate::table::{median, sorted};

/// How many of the accepted tasks are there after a kill, and with which settings.
#[derive(Clone, Copy)]
pub struct Kept {
    pub how: &'static str,
    pub there: usize,
    pub accepted: usize,
}

#[derive(Default)]
pub struct Figures {
    pub no_ops: Vec<f64>,
    pub fan_out: Vec<f64>,
    pub idle: Vec<f64>,
    pub sessions: Vec<Sessions>,
    pub memory: Vec<f64>,
    pub kept: Vec<Kept>,
    pub survived: usize,
    pub light: Vec<usize>,
}

pub struct Report {
    pub rows: Vec<(String, Figures)>,
    /// Thousands of no-ops a second behind a bare semaphore, in each round.
    pub reference: Vec<f64>,
    /// How much of a core other programs used during the run.
    pub others: f64,
    /// How many flushes a second the disk did, before and after.
    pub syncs: (f64, f64),
}

/// The columns of the table, in order.
pub const COLUMNS: [&str; 8] = [
    "no-ops, lane of 50, k/s",
    "256 naps of 20 ms at once, ms",
    "idle: submit to start, us",
    "1 000 sessions through 4 slots",
    "a waiting task, bytes",
    "found after kill -9",
    "run despite panics",
    "light user behind a flood",
];

/// The median of some figures.
pub fn middle(figures: &[f64]) -> f64 {
    median(&sorted(figures.iter().copied()))
}

fn short(figure: f64) -> String {
    match figure {
        figure if figure < 10.0 => format!("{figure:.2}"),
        figure if figure < 100.0 => format!("{figure:.1}"),
        figure => format!("{figure:.0}"),
    }
}

/// The median, the least and the most.
fn spread(figures: &[f64]) -> String {
    let all = sorted(figures.iter().copied());
    format!("{} ({}..{})", short(median(&all)), short(all[0]), short(all[all.len() - 1]))
}

impl Figures {
    /// Turns that ran at the same time as another of their conversation, or before an earlier one.
    pub fn wrong_turns(&self) -> usize {
        self.sessions.iter().map(|sessions| sessions.wrong).max().unwrap_or_default()
    }

    pub fn times_bare(&self) -> Vec<f64> {
        self.sessions.iter().map(|sessions| sessions.times_bare).collect()
    }

    /// In the order of [`COLUMNS`].
    pub fn cells(&self) -> [String; 8] {
        let sessions = match self.wrong_turns() {
            0 => format!("{} x bare", spread(&self.times_bare())),
            wrong => format!("cannot: {wrong} of {} turns out of turn", SESSIONS * TURNS),
        };
        let kept = self
            .kept
            .iter()
            .map(|kept| format!("{} of {} {}", kept.there, kept.accepted, kept.how).trim_end().to_owned());
        let places = match (self.light.first(), self.light.last()) {
            (Some(first), Some(last)) => format!("{first} to {last} of {}", HEAVY + LIGHT),
            _ => "never".to_owned(),
        };
        [
            spread(&self.no_ops),
            spread(&self.fan_out),
            spread(&self.idle),
            sessions,
            short(middle(&self.memory)),
            kept.collect::<Vec<_>>().join(", "),
            format!("{} of {}", self.survived, THROWING - THROWING / 10),
            places,
        ]
    }
}

impl Report {
    pub fn print(&self) {
        for (column, what) in COLUMNS.iter().enumerate() {
            println!("{what}");
            for (name, figures) in &self.rows {
                println!("    {name:<22} {}", figures.cells()[column]);
            }
        }
        for line in self.noise() {
            println!("{line}");
        }
        for line in self.losses() {
            println!("we lose: {line}");
        }
    }

    /// Sentences about how quiet the machine was.
    pub fn noise(&self) -> Vec<String> {
        let reference = sorted(self.reference.iter().copied());
        let times = reference[reference.len() - 1] / reference[0];
        let mut lines = vec![
            format!(
                "the reference (no-ops behind a bare semaphore) did {} k/s; its fastest round was {times:.2} x its slowest",
                spread(&self.reference)
            ),
            format!("other programs used {:.2} of a core", self.others),
            format!(
                "the disk did {:.0} flushes a second before the run and {:.0} after it",
                self.syncs.0, self.syncs.1
            ),
        ];
        if times > 2.0 || self.others > 0.3 {
            lines.push("the machine was busy: trust only the ratios, and repeat on a quieter one".to_owned());
        }
        lines
    }

    /// Where a peer is more than 5 % better than the Laneway that would replace it.
    pub fn losses(&self) -> Vec<String> {
        type Figure = fn(&Figures) -> f64;
        let timed: [(&str, Figure, bool); 5] = [
            ("no-ops", |figures| middle(&figures.no_ops), true),
            ("naps at once", |figures| middle(&figures.fan_out), false),
            ("idle start", |figures| middle(&figures.idle), false),
            ("sessions", |figures| middle(&figures.times_bare()), false),
            ("memory of a waiting task", |figures| middle(&figures.memory), false),
        ];
        let mut losses = Vec::new();
        // Laneway in memory against the peers in memory; on disk and on Redis against BullMQ.
        for (ours, others) in [(0, &[3, 4, 5][..]), (1, &[6]), (2, &[6])] {
            for (what, figure, more_is_better) in timed {
                for other in others {
                    let ((name, mine), (peer, theirs)) = (&self.rows[ours], &self.rows[*other]);
                    let ratio = figure(theirs) / figure(mine);
                    let better = if more_is_better { ratio } else { 1.0 / ratio };
                    let is_the_same = what != "sessions" || theirs.wrong_turns() == 0;
                    if better > 1.05 && is_the_same {
                        losses.push(format!("{what}: {peer} is {better:.2} x as good as {name}"));
                    }
                }
            }
        }
        losses
    }
}
