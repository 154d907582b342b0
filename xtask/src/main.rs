//! The chores of this repository: `cargo xtask <chore>`.

mod api;
mod chaos;
mod compare;
mod crash;
mod crash_serve;
mod dashboard;
mod fuzz;
mod mcp;
mod mutants;
mod power;
mod sdk;
mod served;
mod sim;
mod tidy;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};

const USAGE: &str = "\
cargo xtask <chore>

  test              every test, the samples in the documentation included; `test dashboard` and `test sdk`: only those
  check             format, lints, tests, documentation: what must pass before a change lands
  tidy [--update]   words, sentences, folders, links, dependencies, type names; --update lowers xtask/tidy-baseline.txt
  api               asks a running server everything that its OpenAPI document allows, and more
  mcp               the official MCP clients in Python and TypeScript against the real program
  bench core        speed and size of the scheduler, as ratios with their bounds
  bench replicas [PART ..] replicas on Redis and Postgres beside BullMQ and a SKIP LOCKED loop, with their bounds; parts:
                    saturated, idle, three, ten, postgres
  chaos --minutes N three and five replicas under load, killed, stopped and cut off, N minutes each
  bench server [memory|disk|looks|watchers]  what the server costs beside what it stands on, with bounds
  bench engine [WORD] the engine beside tokio, its peers and plain SQLite, with bounds; only rows whose name holds WORD
  bench sdk         a slot in both SDKs beside a plain request of the same HTTP client, with its bound
  bench sessions    size and speed of sessions with waiting messages, with their bounds
  compare [--rounds N] [--write]  the same work through Laneway and its peers; --write: into docs/benchmarks/comparison.md too
  bench dashboard   the dashboard's first look at 100 000 waiting tasks, with its bounds
  fuzz TARGET --seconds N  libFuzzer on one reader of input, or on `all` in turn (needs cargo-fuzz)
  crash --rounds N  kills a process that works on a store, N times, and looks at what is left
  crash serve --rounds N --points N [--seed S]  the same to a server under load: kills, and kills at a system call
  crash power --points N [--seed S]  power cuts: the files lose what was not flushed, and a server opens what is left
  sim --seeds N --seed S  histories of replicas, workers and clients under faults, on virtual time; S alone: that one, explained
  sim --planted     plants bugs in the protocol, one at a time, and shows which seed finds each
  screenshots       takes the pictures of the dashboard that the documentation shows
  mutants [WORD]    plants bugs in the core, one at a time, and shows which test catches each
";

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["test"] => test(),
        ["test", "dashboard"] => dashboard::test(),
        ["test", "sdk"] => sdk::test(),
        ["check"] => check(),
        ["tidy"] => tidy::tidy(&root(), false),
        ["tidy", "--update"] => tidy::tidy(&root(), true),
        ["api"] => api::fuzz(),
        ["mcp"] => mcp::test(),
        ["bench", "core"] => bench_core(),
        ["bench", "replicas", ref parts @ ..] => bench_replicas(parts),
        ["chaos", "--minutes", minutes] => chaos::minutes(minutes),
        ["bench", "server"] => bench_server(""),
        ["bench", "server", word] => bench_server(word),
        ["bench", "engine"] => bench_engine(""),
        ["bench", "engine", word] => bench_engine(word),
        ["compare", ref words @ ..] => compare::compare(words),
        ["bench", "sdk"] => sdk::bench(),
        ["bench", "sessions"] => bench_sessions(),
        ["bench", "dashboard"] => dashboard::bench(),
        ["fuzz", ref words @ ..] => fuzz::fuzz(words),
        ["crash", ref words @ ..] => crash::crash(words),
        ["sim", ref words @ ..] => sim::run_seeds(words),
        ["screenshots"] => dashboard::screenshots(),
        ["mutants"] => mutants::run(&root(), ""),
        ["mutants", word] => mutants::run(&root(), word),
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

/// The root of the repository.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Runs a command and fails with it.
fn run(program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Result<(), String> {
    println!("$ {program} {}", arguments.join(" "));
    let status = Command::new(program)
        .args(arguments)
        .envs(variables.iter().copied())
        .current_dir(root())
        .status()
        .map_err(|error| format!("{program} did not start: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{program} {} failed", arguments.join(" "))) }
}

fn test() -> Result<(), String> {
    engines()?;
    run("cargo", &["test", "--workspace", "--all-features"], &[])?;
    PROGRAM_IS_BUILT.store(true, Ordering::Relaxed);
    crash::crash(&["serve", "--rounds", "5", "--points", "10"])?;
    crash::crash(&["power", "--points", "10"])?;
    dashboard::test()?;
    sdk::test()?;
    mcp::test()
}

fn check() -> Result<(), String> {
    tidy::tidy(&root(), false)?;
    run("cargo", &["fmt", "--all", "--check"], &[])?;
    let lints = ["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"];
    run("cargo", &lints, &[])?;
    test()?;
    api::fuzz()?;
    let docs = ["doc", "--workspace", "--no-deps", "--document-private-items"];
    run("cargo", &docs, &[("RUSTDOCFLAGS", "-D warnings")])
}

/// Whether the tests have just built the program: a build of its own would compile most of what it stands on a second time,
/// only because tests ask some crates for more features.
static PROGRAM_IS_BUILT: AtomicBool = AtomicBool::new(false);

/// Builds the program that a chore starts.
fn build_program() -> Result<(), String> {
    if PROGRAM_IS_BUILT.load(Ordering::Relaxed) {
        return Ok(());
    }
    run("cargo", &["build", "--package", "laneway-cli"], &[])
}

/// Installs a Debian package when the program that it brings is missing.
fn ensure(program: &str, package: &str) -> Result<(), String> {
    let is_there = || Command::new(program).arg("--version").output().is_ok();
    if is_there() {
        return Ok(());
    }
    let options = [("DEBIAN_FRONTEND", "noninteractive")];
    let installed = run("apt-get", &["update"], &[])
        .and_then(|()| run("apt-get", &["install", "--yes", "--no-install-recommends", package], &options));
    match installed {
        Ok(()) if is_there() => Ok(()),
        _ => Err(format!(
            "{program} is missing and could not be installed; as root: apt-get install {package}"
        )),
    }
}

/// The engines that stores are tested on.
fn engines() -> Result<(), String> {
    ensure("redis-server", "redis-server")?;
    ensure("/usr/lib/postgresql/15/bin/postgres", "postgresql-15")?;
    ensure("setpriv", "util-linux")?;
    // Reads the unit of the package.
    ensure("systemd-analyze", "systemd")?;
    ensure("strace", "strace")?;
    ensure("tmux", "tmux")
}

fn bench_sessions() -> Result<(), String> {
    run("cargo", &["bench", "--package", "laneway-core", "--bench", "sessions"], &[])
}

fn bench_core() -> Result<(), String> {
    ensure("valgrind", "valgrind")?;
    let cycle = run("cargo", &["bench", "--package", "laneway-core", "--bench", "cycle"], &[]);
    let memory = run("cargo", &["bench", "--package", "laneway-core", "--bench", "memory"], &[]);
    cycle.and(memory)
}

fn bench_replicas(parts: &[&str]) -> Result<(), String> {
    engines()?;
    let home = compare::install_peers()?;
    let home = home.to_string_lossy();
    let bench = ["bench", "--package", "laneway-chaos", "--bench", "replicas", "--"];
    run("cargo", &[&bench[..], parts].concat(), &[("LANEWAY_BULLMQ", &home)])
}

/// All rows, or those of one name.
fn bench_server(word: &str) -> Result<(), String> {
    let bench = ["bench", "--package", "laneway-server", "--bench", "server", "--", word];
    let bench = if word.is_empty() { &bench[..bench.len() - 2] } else { &bench[..] };
    run("cargo", bench, &[])
}

/// A crate of its own, because the peers that it measures are no part of the normal build.
fn bench_engine(word: &str) -> Result<(), String> {
    ensure("valgrind", "valgrind")?;
    let bench = ["run", "--release", "--manifest-path", "bench/Cargo.toml", "--", word];
    let bench = if word.is_empty() { &bench[..bench.len() - 1] } else { &bench[..] };
    run("cargo", bench, &[])
}
