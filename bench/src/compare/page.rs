//! `docs/benchmarks/comparison.md`: what was measured, how, and where others are better.

use std::process::Command;

use crate::compare::contender::Field;
use crate::compare::report::{COLUMNS, Report};

/// What no measurement can say, because a peer has it and we do not.
const ELSEWHERE: &str = "\
- p-queue is one small file without a server, a store or a runtime of its own: for a limit inside one Node process it is all one needs.
- BullMQ runs on any number of machines against a Redis that is there already, has schedulers, flows, a paid edition with groups, and
  years of use behind it. Its workers are Node, Python, Elixir and PHP in their own processes.
- apalis has backends for Postgres, SQLite, MySQL, Redis, AMQP and more, and layers of tower for what one wants to add (one of them catches
  panics); only its memory is compared here.
- a3s-lane embeds without any file, and its job queues have a Redis backend of their own.
- Laneway on disk waits for the disk before it says yes. Whoever does not need that is better served by its memory, or by a peer.
";

const METHOD: &str = "\
Everything runs on one machine in one run, Laneway and its peers in turns, round by round (ROUNDS rounds here, seven unless `--rounds N` says otherwise, of
sessions and memory three at most); a figure is the median of the rounds, with the least and the most. The queues of Rust share one process with one thread (a store on disk has its own beside it), release
build; those of Node have a process each, which times itself once it is up: its compiler is cold, which is in favour of Rust. Redis is a real server on this machine with `appendonly yes` and
`appendfsync everysec`. The workloads are written once for Rust (`bench/src/compare/workloads.rs`) and once for Node
(`bench/peers/peers.mjs`), with the same numbers.

| column | what is done |
|---|---|
| no-ops | 256 callers submit tasks that do nothing to a lane of 50, each its next when the last is accepted; until all have run (50 000, or 5 000 where a store is behind it and with BullMQ) |
| naps | 256 tasks of 20 ms on 256 slots, submitted at once; until the last has ended: 20 is perfect |
| idle | one task at a time on a queue where nothing else happens: from the call to the first line of the task, median of 300 |
| sessions | 1 000 conversations with three turns of 2 ms each, four slots for all, the turns of a conversation one after another and in order; beside four bare loops that nap as often. A turn that ran beside or before another of its conversation is out of turn. p-queue and a3s-lane do it with a queue of one for each conversation in front of a queue of four, which for a3s-lane have to be known in advance; BullMQ and apalis have one limit and nothing to nest (groups are in BullMQ's paid edition) |
| memory | how much a fresh process grows by with 100 000 tasks waiting that carry nothing, for each; for BullMQ how much Redis grows by with 20 000; for Laneway on Redis both |
| kill -9 | a process that accepted 1 000 tasks is killed, and the Redis with it; how many a new one finds. What is in memory only is gone by nature, and is not tried. The storage of a3s-lane's lanes is written and never read again, so its job queue stands beside it. \"As installed\" is a Redis that saves a picture now and then |
| panics | 100 tasks through two slots, of which each tenth panics (throws): how many of the other 90 are run |
| flood | a heavy user submits 1 000 tasks, then a light one ten, before any has ended, through four slots: in which places the light one's begin. Laneway is told who asks; p-queue and BullMQ have priorities, which say who is important and not who is next |
";

pub fn page(report: &Report, field: &Field) -> String {
    let method = METHOD.replace("ROUNDS", &report.reference.len().to_string());
    let mut page = String::from(
        "# Laneway beside what one would take instead\n\n\
         ```sh\ncargo xtask compare           # measures, and prints the table (some minutes)\n\
         cargo xtask compare --write   # writes this page and its picture too\n```\n\n\
         It installs what it needs: a3s-lane and apalis from crates.io, p-queue and BullMQ from npm, Redis from the system.\n\n",
    );
    page.push_str(&format!("| | {} |\n|---|{}\n", COLUMNS.join(" | "), "---|".repeat(COLUMNS.len())));
    for (name, figures) in &report.rows {
        page.push_str(&format!("| **{name}** | {} |\n", figures.cells().join(" | ")));
    }
    page.push_str("\n![The timed figures as bars](../images/comparison.svg)\n\n## Where we lose\n\n");
    page.push_str(
        "By more than a twentieth, beside the Laneway that one would take in its place (in memory beside those in memory; on \
         disk and on Redis beside BullMQ):\n\n",
    );
    match report.losses() {
        losses if losses.is_empty() => page.push_str("- Nowhere among the timed figures of this run.\n"),
        losses => losses.iter().for_each(|loss| page.push_str(&format!("- {loss}.\n"))),
    }
    page.push_str(&format!(
        "\nAnd in what was not measured:\n\n{ELSEWHERE}\n## How it was measured\n\n{method}"
    ));
    page.push_str("\n## The machine, and its noise\n\n");
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

/// How many cores it has, of which sort.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let sorts = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let sort = sorts.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    format!("{cores} cores ({})", sort.map_or("of unknown sort", |(_, sort)| sort))
}
