//! Tests run one at a time, each in a process of its own, with a change switched on or with none.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How much of a processor a test may take in any case, and how many times as much as without a change. By the clock it
/// may take far longer: what else the machine does must not make a test look endless.
const PATIENCE: Duration = Duration::from_secs(5);
const SLOWER: u32 = 3;
const BY_THE_CLOCK: u64 = 60;
/// The memory that one test may take, in KiB: a change may make it ask for ever more.
const MEMORY_KIB: u32 = 4 << 20;

/// A test, how long it takes and which changes it comes by.
pub(crate) struct Test {
    program: PathBuf,
    name: String,
    takes: Duration,
    reaches: BTreeSet<u32>,
}

/// What tests make of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// This test fails.
    Caught(String),
    /// This test does not come to an end.
    Endless(String),
    /// So many tests come by it, and all pass.
    Missed(usize),
}

enum Ran {
    Passed,
    Failed,
    Endless,
}

/// All tests of some programs, the quickest first, as they are without any change.
pub(crate) fn tests(programs: &[PathBuf], folder: &Path) -> Result<Vec<Test>, String> {
    let mut tests = Vec::new();
    for program in programs {
        let listed = Command::new(program).args(["--list", "--format=terse"]).current_dir(folder).output();
        let listed = listed.map_err(|error| format!("{}: {error}", program.display()))?;
        for name in
            String::from_utf8_lossy(&listed.stdout).lines().filter_map(|line| line.strip_suffix(": test"))
        {
            tests.push(measured(program, name, folder)?);
        }
    }
    tests.sort_by_key(|test| test.takes);
    Ok(tests)
}

fn measured(program: &Path, name: &str, folder: &Path) -> Result<Test, String> {
    let record = std::env::temp_dir().join(format!("switches-{}", std::process::id()));
    let mut test = Test {
        program: program.to_owned(),
        name: name.to_owned(),
        takes: Duration::ZERO,
        reaches: BTreeSet::new(),
    };
    // Once to see how long it takes, and once more to see where it comes by, which takes longer.
    for variable in [("SWITCH_ON", "0".as_ref()), ("SWITCHES_REACHED", record.as_os_str())] {
        let start = Instant::now();
        match test.run(folder, Duration::from_secs(600), variable)? {
            Ran::Passed => test.takes = if test.takes.is_zero() { start.elapsed() } else { test.takes },
            Ran::Failed | Ran::Endless => {
                return Err(format!("without any change, {} fails already", test.name));
            }
        }
    }
    let reached = fs::read_to_string(&record).unwrap_or_default();
    test.reaches = reached.lines().filter_map(|line| line.parse().ok()).collect();
    if !reached.is_empty() {
        fs::remove_file(&record).map_err(|error| format!("{}: {error}", record.display()))?;
    }
    Ok(test)
}

impl Test {
    fn run(&self, folder: &Path, limit: Duration, variable: (&str, &std::ffi::OsStr)) -> Result<Ran, String> {
        let seconds = limit.as_secs() + 1;
        let within =
            format!("ulimit -v {MEMORY_KIB}; ulimit -t {seconds}; exec timeout --signal=KILL \"$@\"");
        let status = Command::new("sh")
            .args(["-c", &within, "sh", &(seconds * BY_THE_CLOCK).to_string()])
            .arg(&self.program)
            .args(["--exact", &self.name])
            .env(variable.0, variable.1)
            .env("CARGO_MANIFEST_DIR", folder)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .map_err(|error| format!("sh did not start: {error}"))?;
        match status.code() {
            Some(0) => Ok(Ran::Passed),
            // The limit has ended it, or `timeout`, which kills itself with it. 152: SIGXCPU, as `timeout` tells of it.
            None | Some(137 | 152) => Ok(Ran::Endless),
            Some(125..=127) => Err(format!("{} did not start", self.program.display())),
            Some(_) => Ok(Ran::Failed),
        }
    }
}

/// Meets one change with the tests that come by it, until one notices.
pub(crate) fn verdict(tests: &[Test], folder: &Path, switch: u32) -> Result<Verdict, String> {
    let mut met = 0;
    for test in tests.iter().filter(|test| test.reaches.contains(&switch)) {
        met += 1;
        match test.run(folder, test.takes * SLOWER + PATIENCE, ("SWITCH_ON", switch.to_string().as_ref()))? {
            Ran::Passed => {}
            Ran::Failed => return Ok(Verdict::Caught(test.name.clone())),
            Ran::Endless => return Ok(Verdict::Endless(test.name.clone())),
        }
    }
    Ok(Verdict::Missed(met))
}
