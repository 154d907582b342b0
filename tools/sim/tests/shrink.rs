//! A history that fails is made short and told, and stays the same failure.

#![expect(clippy::expect_used, reason = "a test may fail")]

use laneway_sim::{Bug, Plan, Wanted, explain, gist, run, shrink};

/// The first seed that shows what is wrong with the store, and the first thing that it shows.
fn first_failure(wanted: Wanted) -> (u64, String) {
    let mut seeds = (0..1000).map(|seed| (seed, run(&Plan::of_seed(seed), wanted).violations));
    let found = seeds.find_map(|(seed, violations)| Some((seed, violations.into_iter().next()?)));
    found.expect("a bug of the store shows within a thousand seeds")
}

#[test]
fn a_history_that_fails_is_made_short_and_fails_in_the_same_way() {
    for bug in [Bug::AnswerBeforeAppend, Bug::VersionNotChecked] {
        let wanted = Wanted { has_timeline: false, bug: Some(bug) };
        let (seed, violation) = first_failure(wanted);
        let plan = Plan::of_seed(seed);
        let short = shrink(&plan, wanted);
        assert!(short.steps.len() < plan.steps.len(), "{bug:?}: {} steps", short.steps.len());
        assert!(short.steps.iter().all(|step| plan.steps.contains(step)), "{bug:?}: a step was made up");
        let again = run(&short, wanted).violations;
        assert_eq!(again.first().map(|text| gist(text)), Some(gist(&violation)), "{bug:?}");
    }
}

#[test]
fn a_history_that_holds_is_left_as_it_is() {
    let plan = Plan::of_seed(0);
    assert_eq!(shrink(&plan, Wanted::default()).steps, plan.steps);
}

#[test]
fn a_failure_is_told_with_its_seed_its_steps_its_timeline_and_what_is_wrong() {
    let wanted = Wanted { has_timeline: false, bug: Some(Bug::VersionNotChecked) };
    let (seed, violation) = first_failure(wanted);
    let text = explain(seed, wanted);
    let (steps, timeline) = text.split_once("timeline\n").expect("there is a timeline");
    let (first, listed) = steps.split_once('\n').expect("the first line is about the seed");
    let (plan, needed) = (Plan::of_seed(seed), listed.lines().count());
    assert!(
        first.starts_with(&format!("seed {seed}: {needed} of {} steps are needed", plan.steps.len())),
        "{first}"
    );
    assert!(needed > 0 && needed < plan.steps.len(), "{needed} steps");
    let told = timeline.lines().find_map(|line| line.strip_prefix("VIOLATION "));
    assert_eq!(told.map(gist), Some(gist(&violation)));
    assert!(timeline.contains(" appends ") && timeline.contains("granted "), "{timeline}");
}

#[test]
fn violations_are_the_same_if_they_differ_in_numbers_and_examples_alone() {
    let cases = [
        (
            "at 7 ms: 2 run in work, which has Some(1) slots",
            "at 99 ms: 3 run in work, which has Some(2) slots",
            true,
        ),
        ("at 7 ms: these have not ended: a1; b2", "at 9 ms: these have not ended: c3", true),
        ("at 7 ms: a1 was accepted twice", "at 7 ms: a1 was granted while it runs", false),
        (
            "at 7 ms: the state is not sound: x1 could run",
            "at 7 ms: the state is not sound: 3 timers, not 4",
            false,
        ),
    ];
    for (one, other, is_same) in cases {
        assert_eq!(gist(one) == gist(other), is_same, "{one} | {other}");
    }
}
