//! Writes `docs/benchmarks/comparison.md`: the figures, the method, and where other queues are better.

use std::process::Command;

use crate::compare::contender::Field;
use crate::compare::report::{COLUMNS, Report};

/// Advantages of the peers that no figure shows.
const ELSEWHERE: &str = "\
- p-queue is one small file without a server, a store or a runtime. For a limit inside one Node process, it is all you need.
- BullMQ runs on any number of machines with a Redis that you already have. It has schedulers, flows, a paid edition with groups,
  and years of use. Its workers are separate processes in Node, Python, Elixir or PHP.
- apalis has backends for Postgres, SQLite, MySQL, Redis, AMQP and more. Layers of tower extend it; one of them catches panics. This
  page measures only its memory backend.
- a3s-lane embeds without any file, and its job queues have a Redis backend.
- Laneway on disk accepts a task only when it is on disk. If you do not need that, Laneway in memory or a peer is faster.
";

const METHOD: &str = "\
All queues run on one machine in one run. They take turns, round by round: ROUNDS rounds here, seven by default (`--rounds N`).
Sessions and memory get at most three rounds. A figure is the median of the rounds, with the least and the most.

The Rust queues are built for release and share one process with one thread; a store on disk has a thread of its own. Each Node
queue has its own process, which times itself after its start. Its compiler is cold, which favours Rust. Redis is a real server on
this machine with `appendonly yes` and `appendfsync everysec`. The workloads are written once for Rust
(`bench/src/compare/workloads.rs`) and once for Node (`bench/peers/peers.mjs`), with the same numbers.

| column | what the bench does |
|---|---|
| no-ops | 256 callers submit tasks that do nothing to a lane of 50. Each caller submits its next task when the last one is accepted. The time ends when all tasks have run: 50 000, or 5 000 for BullMQ and for Laneway with a store. |
| naps | Submits 256 tasks of 20 ms at once to 256 slots. The time ends with the last task; 20 ms is perfect. |
| idle | Runs one task at a time on an otherwise idle queue. The time is from the call to the first line of the task, the median of 300. |
| sessions | 1 000 conversations with three turns of 2 ms each share four slots. The turns of a conversation must run one at a time and in order; any other turn is out of turn. The figure is the time compared with four bare loops with the same naps. p-queue and a3s-lane use a queue of one for each conversation in front of a queue of four; a3s-lane must know the conversations in advance. BullMQ and apalis have one limit and cannot nest (BullMQ has groups in its paid edition). |
| memory | The growth of a fresh process for each of 100 000 waiting tasks without a payload. For BullMQ: the growth of Redis for each of 20 000. For Laneway on Redis: both growths together. |
| kill -9 | Kills a process that accepted 1 000 tasks, and its Redis, and counts the tasks that a new process finds. A queue in memory loses all of them, so it is not tried. a3s-lane writes the storage of its lanes but never reads it, so the cell also shows its job queue. \"As installed\" is a Redis that saves a snapshot from time to time. |
| panics | 100 tasks go through two slots, and every tenth panics (throws). The figure is how many of the other 90 run. |
| flood | A heavy user submits 1 000 tasks, then a light user ten, through four slots, before any task has ended. The figure is the places in which the light user's tasks begin. Laneway gets the user as the fair key. p-queue and BullMQ have priorities, which say who is important and not whose turn it is. |
";

pub fn page(report: &Report, field: &Field) -> String {
    let method = METHOD.replace("ROUNDS", &report.reference.len().to_string());
    let mut page = String::from(
        "# Laneway compared with other queues\n\n\
         ```sh\ncargo xtask compare           # measures and prints the table (some minutes)\n\
         cargo xtask compare --write   # also writes this page and its picture\n```\n\n\
         The command installs what it needs: a3s-lane and apalis from crates.io, p-queue and BullMQ from npm, Redis from the system.\n\n",
    );
    page.push_str(&format!("| | {} |\n|---|{}\n", COLUMNS.join(" | "), "---|".repeat(COLUMNS.len())));
    for (name, figures) in &report.rows {
        page.push_str(&format!("| **{name}** | {} |\n", figures.cells().join(" | ")));
    }
    page.push_str("\n![The timed figures as bars](../images/comparison.svg)\n\n## Where we lose\n\n");
    page.push_str(
        "Figures that are more than 5 % better than Laneway's. The queues in memory are compared with Laneway in memory, BullMQ \
         with Laneway on disk and on Redis:\n\n",
    );
    match report.losses() {
        losses if losses.is_empty() => page.push_str("- None in this run.\n"),
        losses => losses.iter().for_each(|loss| page.push_str(&format!("- {loss}.\n"))),
    }
    page.push_str(&format!("\nNot measured:\n\n{ELSEWHERE}\n## Method\n\n{method}"));
    page.push_str("\n## The machine and its noise\n\n");
    page.push_str(&format!(
        "- {}, Redis {}, Node {}.\n",
        machine(),
        redis_version(),
        said("node", "--version")
    ));
    for line in report.noise() {
        page.push_str(&format!("- {}.\n", first_large(&line)));
    }
    let versions = ["p-queue", "bullmq"].map(|package| {
        format!("{package} {}", field.node.version(package).unwrap_or_else(|error| error.to_string()))
    });
    page.push_str(&format!("- {}, a3s-lane 0.5.1, apalis-core 1.0.0-rc.10.\n", versions.join(", ")));
    page
}

fn first_large(line: &str) -> String {
    let mut letters = line.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().collect::<String>() + letters.as_str())
        .unwrap_or_default()
}

fn said(program: &str, argument: &str) -> String {
    let output = Command::new(program).arg(argument).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}

fn redis_version() -> String {
    let all = said("redis-server", "--version");
    let version = all.split_whitespace().find_map(|word| word.strip_prefix("v="));
    version.unwrap_or("of unknown version").to_owned()
}

/// The number and model of the cores.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let sorts = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let sort = sorts.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    format!("{cores} cores ({})", sort.map_or("of unknown sort", |(_, sort)| sort))
}
