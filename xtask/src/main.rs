//! The chores of this repository: `cargo xtask <chore>`.

mod api;
mod bench;
mod chaos;
mod check;
mod chore;
mod compare;
mod crash;
mod dashboard;
mod fuzz;
mod mcp;
mod mutants;
mod packaging;
mod sdk;
mod sim;
mod tidy;

use std::env;
use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask <chore>

Before a change lands
  check             tidy, format, lints, tests, documentation: everything that must pass
  test [dashboard|sdk|packaging]  every test, or only those of one part
  tidy              words, sentences, folders, links and names
  api               checks a running server against its OpenAPI document
  mcp               tests the server with the official MCP clients in Python and TypeScript

Finding bugs
  sim --seeds N [--seed S]  simulates N histories of replicas under faults; --seed S alone explains one
  sim --planted     plants bugs in the protocol and shows which seed finds each
  mutants [WORD]    plants bugs in the core, or those with WORD in their title, and shows which test catches each
  fuzz TARGET --seconds N  runs libFuzzer on one reader of input, or on `all` in turn (needs cargo-fuzz)
  chaos --minutes N runs three and five replicas under load and kills, stops and cuts them off, N minutes each
  chaos --failovers N  fails a Redis Cluster and a Redis behind Sentinels over, N times each: is a server ready in 2 s?
  crash --rounds N  kills a process that works on a store, N times, and checks the store
  crash serve --rounds N --points N [--seed S]  kills a server under load, at any moment and at system calls
  crash power --points N [--seed S]  cuts the power under a server: unflushed writes are lost

Measuring, with bounds
  bench core        speed and size of the scheduler
  bench sessions    speed and size of sessions with waiting messages
  bench engine [WORD]  the engine compared with tokio, other queues and plain SQLite; only rows with WORD
  bench server [memory|full|disk|chats|looks|watchers]  the server compared with a plain one
  bench latency                 how fast running turns hear of messages and interrupts
  bench replicas [saturated|idle|three|ten|postgres ..]  replicas compared with BullMQ and SKIP LOCKED
  bench sdk         a slot in both SDKs compared with a plain request
  bench dashboard   the first page with 100 000 waiting tasks
  compare [--rounds N] [--write]  the same work through Laneway and other queues; --write updates docs/benchmarks/comparison.md
  screenshots       takes the pictures of the dashboard for the documentation
";

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["check"] => check::check(),
        ["test"] => check::test(),
        ["test", "dashboard"] => dashboard::test(),
        ["test", "sdk"] => sdk::test(),
        ["test", "packaging"] => packaging::test(),
        ["tidy"] => tidy::tidy(&chore::root()),
        ["api"] => api::check(),
        ["mcp"] => mcp::test("0"),
        ["mcp", "--restarts", restarts] => mcp::test(restarts),
        ["sim", ref words @ ..] => sim::run_seeds(words),
        ["mutants"] => mutants::run(&chore::root(), ""),
        ["mutants", word] => mutants::run(&chore::root(), word),
        ["fuzz", ref words @ ..] => fuzz::fuzz(words),
        ["chaos", "--minutes", minutes] => chaos::minutes(minutes),
        ["chaos", "--failovers", rounds] => chaos::failovers(rounds),
        ["chaos", "--freezes", times] => chaos::freezes(times),
        ["crash", ref words @ ..] => crash::crash(words),
        ["bench", ref words @ ..] => bench::bench(words),
        ["compare", ref words @ ..] => compare::compare(words),
        ["screenshots"] => dashboard::screenshots(),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("xtask: {problem}");
            ExitCode::FAILURE
        }
    }
}
