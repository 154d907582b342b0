//! Seeds that must all be well, and the same each time.

use laneway_sim::{Plan, Wanted, run};

#[test]
fn a_hundred_seeds_hold_every_promise() {
    let mut append_turns = (0, 0);
    for seed in 0..100 {
        let outcome = run(&Plan::of_seed(seed), Wanted::default());
        assert_eq!(outcome.violations, Vec::<String>::new(), "seed {seed}");
        append_turns = (append_turns.0 + outcome.append_turns.0, append_turns.1 + outcome.append_turns.1);
    }
    assert!(
        append_turns.0 > 100 && append_turns.1 > 0,
        "replicas contend, and some die with the append turn: {append_turns:?}"
    );
}

#[test]
fn a_seed_is_one_history_to_the_byte() {
    for seed in 0..10 {
        let plan = Plan::of_seed(seed);
        let (first, second) = (run(&plan, Wanted::default()), run(&plan, Wanted::default()));
        assert_eq!((first.digest, first.batches), (second.digest, second.batches), "seed {seed}");
    }
}
