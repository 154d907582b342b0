//! How many bytes of state a waiting task costs, counted by the allocator.

// A bench reads the clock, and what cannot fail in it ends it when it does.
#![allow(
    clippy::expect_used,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::disallowed_macros
)]

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;

use laneway_core::{
    Block, CancelReason, Command, LaneName, LaneSettings, Name, Outcome, Pattern, Scheduler, Selector,
    TaskId, TaskSpec, Timestamp,
};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const TASKS: u128 = 1_000_000;
const SESSIONS: u128 = 100_000;
const BYTES_MAX: usize = 320;
/// What the settings, the counters and the ids of the last runs may take.
const KEPT_MAX: usize = 256 * 1024;

/// Bytes in use now.
fn in_use() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

fn main() {
    let before = in_use();
    let mut lanes = Scheduler::new(7);
    let mut events = Vec::new();
    let blocks = ["main", "global", "session:*"].map(|name| {
        let mut settings = LaneSettings::default();
        settings.set("max_queued", "10000000").expect("a setting of this bench");
        Block { lanes: Pattern::new(name).expect("a name of this bench"), settings: Some(settings) }
    });
    lanes.step(Timestamp(0), Command::Configure(blocks.into()), &mut events).expect("a good configuration");
    for number in 0..TASKS {
        // Each task allocates its names, as when they come over a wire.
        let session = LaneName::session(&format!("user-{:06}", number % SESSIONS)).expect("a name");
        let spec = TaskSpec::new(Name::new("turn").expect("a name"), vec![session, LaneName::main()]);
        let submit = Command::Submit { task: TaskId(number << 64 | 7), spec: Box::new(spec) };
        lanes.step(Timestamp(0), submit, &mut events).expect("room in the line");
        events.clear();
    }
    drop(events);
    let bytes = (in_use() - before) / TASKS as usize;
    let verdict = if bytes <= BYTES_MAX { "holds" } else { "BROKEN" };
    println!("bytes of state per waiting task, {TASKS} waiting in {SESSIONS} conversations");
    println!("{:<66} {bytes:>6}   at most {BYTES_MAX}   {verdict}", "bytes per waiting task");
    let everything = Selector::default();
    let cancel = Command::CancelWaiting { which: everything, reason: CancelReason::Caller };
    lanes.step(Timestamp(1), cancel, &mut Vec::new()).expect("nothing to refuse");
    for task in lanes.tasks().collect::<Vec<_>>() {
        let fence = task.running.expect("what does not wait runs").fence;
        let finish = Command::Finish { task: task.id, fence, taken: vec![], outcome: Outcome::Success };
        lanes.step(Timestamp(1), finish, &mut Vec::new()).expect("nothing to refuse");
    }
    lanes.step(Timestamp(2), Command::Tick, &mut Vec::new()).expect("nothing to refuse");
    let kept = in_use() - before;
    let verdict = if kept <= KEPT_MAX { "holds" } else { "BROKEN" };
    println!("{:<66} {kept:>6}   at most {KEPT_MAX}   {verdict}", "bytes kept when all have ended");
    if bytes > BYTES_MAX || kept > KEPT_MAX {
        std::process::exit(1);
    }
}
