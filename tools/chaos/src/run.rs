//! Starts replicas, does to them what happens to processes and networks, and looks at what is left.

use std::collections::HashSet;
use std::fmt;
use std::io::Write;
use std::process::ChildStdin;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use laneway_core::{End, Event, TaskId};
use laneway_seeded::Random;
use laneway_store::{Batch, Head, Log};
use laneway_test_services::{Process, Proxy, Signal};

use crate::LEASE_MS;
use crate::backend::{BackendKind, RunningBackend, open};
use crate::check::{Findings, check};

/// How long to wait between two faults.
const PAUSE: Duration = Duration::from_millis(700);
/// Everything has ended so long after the last fault.
const DRAINED_WITHIN: Duration = Duration::from_secs(60);
/// The longest that anything runs.
const RUN_MS_MAX: u64 = 60;
/// The longest that anything runs while the store freezes: some runs begin before a freeze and end after it.
const LONG_RUN_MS_MAX: u64 = LEASE_MS * 2;
/// How far a recorded time may be off.
const TIME_OFF_MS_MAX: u64 = 150;
/// How many sorts of faults there are.
const SORTS: u64 = 8;

/// What was done, and what the log shows.
#[derive(Debug)]
pub struct ChaosSummary {
    backend: BackendKind,
    replicas: usize,
    kills: u32,
    stops: u32,
    cuts: u64,
    lost_replies: u32,
    outages: u32,
    restarts: u32,
    failovers: u32,
    freezes: u32,
    away: usize,
    accepted: usize,
    batches: usize,
    drained: Duration,
    /// What the log shows.
    pub findings: Findings,
}

struct Member {
    number: u64,
    process: Process,
    lines: Receiver<String>,
    input: Option<ChildStdin>,
    proxy: Proxy,
    /// When it goes on, or is let through again.
    until: Option<Instant>,
}

struct Run<'a> {
    program: &'a str,
    server: RunningBackend,
    members: Vec<Member>,
    started: u64,
    said: Vec<String>,
    summary: ChaosSummary,
    /// For the choice of faults.
    random: Random,
    run_ms_max: u64,
}

/// Runs replicas for some time. `program` is the path of `laneway-chaos-replica`.
pub fn run(
    program: &str,
    backend: BackendKind,
    replicas: usize,
    length: Duration,
    seed: u64,
) -> ChaosSummary {
    let mut run = Run::start(program, backend, replicas, seed, RUN_MS_MAX);
    let end = Instant::now() + length;
    let mut sort = seed;
    while Instant::now() < end {
        std::thread::sleep(PAUSE);
        run.mend(false);
        run.fault(sort % SORTS);
        sort += 1;
    }
    run.mend(true);
    run.finish()
}

/// A number from the environment.
pub fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().map_or(default, |number| number.parse().unwrap())
}

/// Runs replicas for as long as the environment says, prints what happened, and panics at a violation.
pub fn survives(program: &str, backend: BackendKind) {
    let seconds = number("LANEWAY_CHAOS_SECONDS", 15);
    let (replicas, seed) = (number("LANEWAY_CHAOS_REPLICAS", 3), number("LANEWAY_CHAOS_SEED", 1));
    let summary = run(program, backend, replicas as usize, Duration::from_secs(seconds), seed);
    println!("{summary}");
    let findings = &summary.findings;
    assert!(findings.violations.is_empty(), "{summary}");
    // It was not idle, and the faults were felt.
    assert!(findings.completed as u64 > seconds && findings.lapsed > 0, "{summary}");
    let fails_over = matches!(backend, BackendKind::Cluster | BackendKind::Sentinel);
    assert!(!fails_over || summary.failovers > 0, "{summary}");
}

/// Lets Redis stand still `times` times, for longer than a lease, while three replicas run long turns. No lease may lapse, and all
/// recorded times must be right.
pub fn freeze(program: &str, times: u32) -> ChaosSummary {
    let mut run = Run::start(program, BackendKind::Redis, 3, 1, LONG_RUN_MS_MAX);
    for _ in 0..times {
        std::thread::sleep(PAUSE);
        run.server.signal(Signal::Stop);
        std::thread::sleep(Duration::from_millis(LEASE_MS * 2));
        run.server.signal(Signal::Continue);
        run.summary.freezes += 1;
    }
    run.finish()
}

impl<'a> Run<'a> {
    fn start(program: &'a str, backend: BackendKind, replicas: usize, seed: u64, run_ms_max: u64) -> Run<'a> {
        let server = RunningBackend::start(backend);
        let summary = ChaosSummary {
            backend,
            replicas,
            kills: 0,
            stops: 0,
            cuts: 0,
            lost_replies: 0,
            outages: 0,
            restarts: 0,
            failovers: 0,
            freezes: 0,
            away: 0,
            accepted: 0,
            batches: 0,
            drained: Duration::ZERO,
            findings: Findings::default(),
        };
        let (members, said) = (Vec::new(), Vec::new());
        let mut run = Run {
            program,
            server,
            members,
            started: 0,
            said,
            summary,
            random: Random::new(seed),
            run_ms_max,
        };
        for _ in 0..replicas {
            let proxy = Proxy::to(run.server.port());
            let member = run.member(proxy);
            run.members.push(member);
        }
        run
    }

    fn member(&mut self, proxy: Proxy) -> Member {
        self.started += 1;
        let (url, number) = (self.server.url_at(proxy.port()), self.started);
        let (process, lines, input) =
            Process::talk(self.program, &[&url, &number.to_string(), &self.run_ms_max.to_string()]).unwrap();
        Member { number, process, lines, input, proxy, until: None }
    }

    fn fault(&mut self, sort: u64) {
        let one = self.random.index(self.members.len());
        match sort {
            0 => self.replace(one),
            1 => {
                self.members[one].process.signal(Signal::Stop);
                self.members[one].until = Some(Instant::now() + Duration::from_millis(LEASE_MS * 3 / 2));
                self.summary.stops += 1;
            }
            2 if self.server.fails_over() => self.server.cut(),
            3..=5 if self.server.fails_over() => {
                let is_done = match self.random.below(3) {
                    0 => self.server.fail_over(false),
                    1 => self.server.fail_over(true),
                    _ => self.server.restart(false),
                };
                self.summary.failovers += u32::from(is_done);
            }
            2 => self.members[one].proxy.cut(),
            3 => {
                self.members[one].proxy.lose_replies(1);
                self.summary.lost_replies += 1;
            }
            4 => {
                self.members[one].proxy.refuse();
                let away = 200 + self.random.below(LEASE_MS * 2);
                self.members[one].until = Some(Instant::now() + Duration::from_millis(away));
                self.summary.outages += 1;
            }
            5 => {
                let is_pooler = self.random.below(2) == 0;
                self.summary.restarts += u32::from(self.server.restart(is_pooler));
            }
            6 => self.server.forget(),
            _ => {
                let delay = self.random.below(20);
                self.members[one].proxy.delay(Duration::from_millis(delay));
            }
        }
    }

    /// Kills a replica and starts another in its place.
    fn replace(&mut self, one: usize) {
        let mut dead = self.members.remove(one);
        dead.process.kill();
        self.summary.kills += 1;
        self.said.extend(dead.lines.iter());
        dead.proxy.let_through();
        dead.proxy.delay(Duration::ZERO);
        let member = self.member(dead.proxy);
        self.members.push(member);
    }

    /// Lets those go on whose time has come, or everybody.
    fn mend(&mut self, is_everybody: bool) {
        self.server.mend(is_everybody);
        for member in &mut self.members {
            if is_everybody || member.until.is_some_and(|until| until <= Instant::now()) {
                member.until = None;
                member.process.signal(Signal::Continue);
                member.proxy.let_through();
                member.proxy.lose_replies(0);
                member.proxy.delay(Duration::ZERO);
            }
        }
    }

    /// Lets everything come to its end, and looks at what happened.
    fn finish(mut self) -> ChaosSummary {
        for member in &mut self.members {
            let asked = member.input.as_mut().map(|input| writeln!(input, "enough"));
            assert!(matches!(asked, Some(Ok(()))), "replica {} listens", member.number);
        }
        for member in &self.members {
            let idle = member.lines.iter().take_while(|line| line != "idle");
            self.said.extend(idle);
        }
        let began = Instant::now();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let url = self.server.url_at(self.server.port());
        let (log, wrong_times) = runtime.block_on(async {
            let log = drained(&url, began).await;
            let wrong_times =
                if self.summary.freezes > 0 { wrong_times(&url, &log).await } else { Vec::new() };
            (log, wrong_times)
        });
        self.summary.drained = began.elapsed();
        for mut member in self.members.drain(..) {
            // The end of its input is the end of it.
            drop(member.input.take());
            member.process.wait();
            self.said.extend(member.lines.iter());
            self.summary.cuts += member.proxy.cuts();
        }
        let accepted: Vec<TaskId> = self.said.iter().filter_map(|line| task_in(line, "accepted ")).collect();
        let done: HashSet<(TaskId, u64)> = self.said.iter().filter_map(|line| done_in(line)).collect();
        self.summary.away = self.said.iter().filter(|line| *line == "away").count();
        (self.summary.accepted, self.summary.batches) = (accepted.len(), log.len());
        self.summary.findings = check(&log, &accepted, &done);
        self.summary.findings.violations.extend(wrong_times);
        self.complain();
        self.summary
    }

    /// What the replicas said that they should not say.
    fn complain(&mut self) {
        let known = ["ready", "idle", "away"];
        let is_known = |line: &&String| {
            known.contains(&line.as_str()) || line.starts_with("accepted ") || line.starts_with("done ")
        };
        let strange = self.said.iter().filter(|line| !is_known(line)).take(20);
        let strange: Vec<String> = strange.map(|line| format!("a replica said: {line}")).collect();
        self.summary.findings.violations.extend(strange);
    }
}

/// The whole log, as soon as no task is live.
async fn drained(url: &str, began: Instant) -> Vec<Batch> {
    let log = Log::new(Arc::clone(&open(url).await.unwrap()));
    loop {
        let (head, scheduler) = log.restore(0).await.unwrap();
        let left = scheduler.live_tasks();
        if left == 0 {
            break;
        }
        assert!(began.elapsed() < DRAINED_WITHIN, "{left} tasks have not ended");
        // A backend that has just restarted may be away for a moment.
        drop(log.store().tail(head.version).await);
    }
    let (mut all, mut head) = (Vec::new(), Head::EMPTY);
    loop {
        let some = log.read(head).await.unwrap();
        let Some((last, _)) = some.last() else { return all };
        head = *last;
        all.extend(some.into_iter().map(|(_, batch)| batch));
    }
}

/// The turns whose recorded time is not the time that they took, which is their result.
async fn wrong_times(url: &str, batches: &[Batch]) -> Vec<String> {
    let log = Log::new(open(url).await.unwrap());
    let mut wrong = Vec::new();
    for event in batches.iter().flat_map(|batch| &batch.events) {
        let Event::Ended { task, end: End::Completed } = event else { continue };
        let Some((finished, Some(result))) = log.finished(*task).await.unwrap() else { continue };
        let took: u64 = std::str::from_utf8(&result).unwrap().parse().unwrap();
        let recorded = finished.ended.since(finished.started.unwrap()).0;
        if recorded.abs_diff(took) > took / 20 + TIME_OFF_MS_MAX {
            wrong.push(format!("{task} took {took} ms, and its record says {recorded} ms"));
        }
    }
    wrong
}

fn task_in(line: &str, word: &str) -> Option<TaskId> {
    line.strip_prefix(word)?.split(' ').next()?.parse().ok().map(TaskId)
}

fn done_in(line: &str) -> Option<(TaskId, u64)> {
    let task = task_in(line, "done ")?;
    Some((task, line.rsplit(' ').next()?.parse().ok()?))
}

impl fmt::Display for ChaosSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Findings { tasks, completed, lost, lapsed, stale, running_most, violations } = &self.findings;
        writeln!(f, "{} replicas on {:?}", self.replicas, self.backend)?;
        writeln!(
            f,
            "  tasks {tasks} (completed {completed}, lost {lost}), told accepted {}, batches {}",
            self.accepted, self.batches
        )?;
        writeln!(
            f,
            "  kills {}, pauses {}, cuts {}, lost replies {}, cut off {}, backend restarts {}, failovers {}, freezes {}",
            self.kills,
            self.stops,
            self.cuts,
            self.lost_replies,
            self.outages,
            self.restarts,
            self.failovers,
            self.freezes
        )?;
        writeln!(
            f,
            "  refused as away {}, leases lapsed {lapsed}, stale completions refused {stale}, most at once {running_most}, \
             drained in {:?}",
            self.away, self.drained
        )?;
        write!(f, "  violations: {}", violations.len())?;
        violations.iter().take(20).try_for_each(|violation| write!(f, "\n    {violation}"))
    }
}
