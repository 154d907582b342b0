//! Each bug that is planted in the protocol is found, and without one nothing is.

use laneway_sim::planted::Planted;

#[test]
fn every_planted_bug_is_found_within_a_thousand_seeds() {
    let all = Planted::all();
    assert!(all.len() >= 10);
    for planted in all {
        let found = planted.found(1000);
        println!("{}: {found:?}", planted.name());
        assert!(found.is_ok(), "{}: {found:?}", planted.name());
    }
}
