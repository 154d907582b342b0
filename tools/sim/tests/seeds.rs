//! Seeds that must all be well, and the same each time.

use laneway_sim::{Plan, Wanted, run};

#[test]
fn a_hundred_seeds_hold_every_promise() {
    let mut batons = (0, 0);
    for seed in 0..100 {
        let outcome = run(&Plan::of_seed(seed), Wanted::default());
        assert_eq!(outcome.violations, Vec::<String>::new(), "seed {seed}");
        batons = (batons.0 + outcome.batons.0, batons.1 + outcome.batons.1);
    }
    assert!(batons.0 > 100 && batons.1 > 0, "replicas contend, and some die with the baton: {batons:?}");
}

#[test]
fn a_seed_is_one_history_to_the_byte() {
    for seed in 0..10 {
        let plan = Plan::of_seed(seed);
        let (first, second) = (run(&plan, Wanted::default()), run(&plan, Wanted::default()));
        assert_eq!((first.digest, first.batches), (second.digest, second.batches), "seed {seed}");
    }
}
