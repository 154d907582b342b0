//! Each bug that is planted is found, and without one nothing is.

use laneway_sim::Bug;

#[test]
fn every_planted_bug_is_found_within_a_thousand_seeds() {
    for bug in Bug::ALL {
        let found = bug.found(1000);
        println!("{bug:?}: {found:?}");
        assert!(found.is_ok(), "{bug:?}: {found:?}");
    }
}
