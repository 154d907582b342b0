//! A store that stands still for longer than a lease; `cargo xtask chaos --freezes N` for more often.

use laneway_chaos::{freeze, number};

const PROGRAM: &str = env!("CARGO_BIN_EXE_laneway-chaos-replica");

#[test]
fn no_lease_lapses_while_the_store_stands_still() {
    let summary = freeze(PROGRAM, number("LANEWAY_CHAOS_FREEZES", 1) as u32);
    println!("{summary}");
    let findings = &summary.findings;
    assert!(findings.violations.is_empty() && findings.lapsed == 0, "{summary}");
    assert!(findings.completed > 0, "{summary}");
}
