//! Random traces with random settings: everything ends, no limit is exceeded, nothing depends on chance.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at anything unexpected")]

use std::collections::BTreeMap;
use std::fmt::Write;

use laneway_config::{Profile, parse};
use laneway_seeded::Random as Dice;
use laneway_whatif::{Fate, Report, TaskOutcome, Timeline, Trace, read_trace, replay};

const TRACES: u64 = 60;

fn settings(dice: &mut Dice) -> String {
    let mut hcl = String::new();
    for lane in ["main", "tools", "gpu", "session:*"] {
        let (slots, queued) = (1 + dice.below(3), dice.below(20));
        writeln!(
            hcl,
            "lane \"{lane}\" {{\n max_concurrency = {slots}\n max_queued = {queued}\n lease = \"2s\""
        )
        .unwrap();
        let more = [
            "timeout = \"800ms\"",
            "wait_timeout = \"1s\"",
            "retry {}",
            "order = \"fifo\"",
            "rate_limit {\n per = \"second\"\n max = 3\n}",
            "handler = \"external\"",
        ];
        writeln!(hcl, "{}\n}}", dice.pick(&more)).unwrap();
    }
    hcl
}

fn trace(dice: &mut Dice) -> Trace {
    let arrivals = 20 + dice.below(60);
    let mut text = format!(
        "{{\"laneway_trace\":1,\"from\":\"2026-11-15T12:00:00.000Z\",\"to\":\"2026-11-15T18:00:00.000Z\",\"arrivals\":{arrivals}}}\n"
    );
    let mut at = 0;
    for id in 1..=arrivals {
        at += dice.below(300);
        let lanes = dice.pick(&[
            r#"["main","session:ann"]"#,
            r#"["main","session:ben"]"#,
            r#"["tools"]"#,
            r#"["gpu","tools"]"#,
            r#"["session:ann/query"]"#,
        ]);
        let (start, run) = (dice.below(500), dice.below(3000));
        let end = dice.pick(&["completed", "completed", "failed", "timed_out", "lost", "cut"]);
        let attempts = match dice.below(5) {
            0 => String::new(),
            _ => format!(r#"{{"start_ms":{start},"run_ms":{run},"end":"{end}"}}"#),
        };
        let outcome = match (attempts.is_empty(), dice.below(4)) {
            (true, 0) => r#""refused","reason":"AT_CAPACITY""#.to_owned(),
            (_, 1) => format!(r#""cancelled","reason":"caller","ended_ms":{}"#, start + run),
            _ => format!(r#""completed","ended_ms":{}"#, start + run),
        };
        let parent = if id > 1 && dice.below(3) == 0 {
            format!(r#","parent":{{"id":{},"detached":{}}}"#, 1 + dice.below(id - 1), dice.below(4) == 0)
        } else {
            String::new()
        };
        let source = dice.pick(&["user", "background", "agent"]);
        writeln!(
            text,
            r#"{{"id":{id},"at_ms":{at},"kind":"work","lanes":{lanes},"source":"{source}"{parent},"attempts":[{attempts}],"outcome":{outcome}}}"#
        )
        .unwrap();
    }
    read_trace(&text).unwrap()
}

/// The most runs at once in each lane whose limit is known, lent slots counted once.
fn most_at_once(trace: &Trace, played: &Timeline) -> BTreeMap<String, i64> {
    let mut changes: BTreeMap<String, Vec<(u64, i64)>> = BTreeMap::new();
    for (arrival, task) in trace.arrivals.iter().zip(&played.tasks) {
        for run in &task.runs {
            let own = |place: &usize| !run.borrowed.contains(&(*place as u8));
            for place in (0..arrival.lanes.len()).filter(own) {
                let lane = changes.entry(arrival.lanes[place].to_string()).or_default();
                lane.extend([(run.start, 1), (run.end, -1)]);
            }
        }
    }
    let most = |mut changes: Vec<(u64, i64)>| {
        changes.sort_unstable();
        let (mut now, mut most) = (0, 0);
        for (_, change) in changes {
            now += change;
            most = most.max(now);
        }
        most
    };
    changes.into_iter().map(|(lane, changes)| (lane, most(changes))).collect()
}

#[test]
fn everything_ends_no_limit_is_exceeded_and_nothing_depends_on_chance() {
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for seed in 0..TRACES {
        let mut dice = Dice::new(seed);
        let (hcl, trace) = (settings(&mut dice), trace(&mut dice));
        let none: [(&str, &str); 0] = [];
        let blocks = parse("new.hcl", &hcl, Profile::LIBRARY, none).unwrap().lane_blocks();
        let played = replay(&trace, blocks.clone()).unwrap();
        assert_eq!(played, replay(&trace, blocks).unwrap(), "seed {seed}");
        for (lane, most) in most_at_once(&trace, &played) {
            let limit = played.limits.iter().find(|(name, _)| name.as_str() == lane).map(|(_, limit)| *limit);
            assert!(limit.is_none_or(|limit| most <= i64::from(limit)), "seed {seed}: {most} in {lane}");
        }
        for task in &played.tasks {
            assert_ne!(task.fate, Fate::Accepted(TaskOutcome::Live), "seed {seed}\n{hcl}");
            *seen.entry(format!("{:?}", task.fate)).or_default() += 1;
        }
        let report = Report::new("new.hcl", &trace, &played);
        let told: u64 = report.outcomes.values().sum();
        let unasked = played.assumptions.unwrap().unasked;
        assert_eq!(told + unasked, trace.arrivals.len() as u64, "seed {seed}");
    }
    for fate in
        ["Completed", "Failed", "TimedOut", "Cancelled", "WaitTimeout", "Lost", "AT_CAPACITY", "Unasked"]
    {
        assert!(seen.keys().any(|key| key.contains(fate)), "{fate} never happened: {seen:?}");
    }
}
