//! How long 100 000 arrivals take, from the text of a trace to the text of the comparison.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::disallowed_macros
)]

use std::fmt::Write;
use std::time::Instant;

use laneway_config::{Profile, parse};
use laneway_seeded::Random;
use laneway_whatif::{Comparison, Report, Timeline, plot, read_trace, replay, table};

const ARRIVALS: u64 = 100_000;
const OLD: &str = r#"
lane "global" { max_concurrency = 40 }
lane "main" {
  max_concurrency = 12
  max_queued = 100000
}
lane "tools" {
  max_concurrency = 8
  max_queued = 100000
}
lane "provider:llm" {
  max_concurrency = 10
  max_queued = 100000
}
"#;

fn main() {
    let text = trace();
    let start = Instant::now();
    let trace = read_trace(&text).unwrap();
    let read = start.elapsed();
    let none: [(&str, &str); 0] = [];
    let settings = |hcl: &str| parse("bench.hcl", hcl, Profile::SERVER, none).unwrap().lane_blocks();
    let old = replay(&trace, settings(OLD)).unwrap();
    let replayed = start.elapsed() - read;
    let comparison = Comparison {
        arrivals: trace.arrivals.len(),
        from: trace.header.from,
        to: trace.header.to,
        missing: Vec::new(),
        before: Report::new("recorded", &trace, &Timeline::recorded(&trace)),
        after: Report::new("bench.hcl", &trace, &old),
    };
    let told = table(&comparison).len() + plot(&comparison).len();
    let waited = old.tasks.iter().filter(|task| task.waited().is_some_and(|waited| waited > 0)).count();
    println!("{ARRIVALS} arrivals, {waited} waited, {told} bytes told");
    println!("read {read:.2?}, replayed {replayed:.2?}, all {:.2?}", start.elapsed());
}

fn trace() -> String {
    let mut text = format!(
        "{{\"laneway_trace\":1,\"from\":\"2026-11-15T12:00:00.000Z\",\"to\":\"2026-11-15T18:00:00.000Z\",\"arrivals\":{ARRIVALS}}}\n"
    );
    let (mut random, mut at) = (Random::new(7), 0_u64);
    let mut dice = |sides: u64| random.below(sides);
    for id in 1..=ARRIVALS {
        at += dice(400);
        let (session, run_ms) = (dice(500), 100 + dice(5000));
        let lanes = match dice(3) {
            0 => r#"["tools"]"#.to_owned(),
            1 => format!(r#"["main","session:{session}"]"#),
            _ => format!(r#"["main","provider:llm","session:{session}"]"#),
        };
        writeln!(
            text,
            r#"{{"id":{id},"at_ms":{at},"kind":"work","lanes":{lanes},"session":"{session}","attempts":[{{"start_ms":0,"run_ms":{run_ms},"end":"completed"}}],"outcome":"completed","ended_ms":{run_ms}}}"#
        )
        .unwrap();
    }
    text
}
