//! The samples in the guide to sessions have the outputs that it shows.
#![allow(clippy::unwrap_used, clippy::panic)]

use laneway_scenario::play;

#[test]
fn the_samples_of_the_guide_have_its_outputs() {
    let guide = include_str!("../../../docs/guide/sessions.md");
    let samples: Vec<&str> =
        guide.split("```scenario\n").skip(1).map(|rest| rest.split_once("\n```").unwrap().0).collect();
    assert!(samples.len() >= 4, "{} samples", samples.len());
    for sample in samples {
        let (script, expected) = sample.split_once("\n---\n").unwrap();
        let played = play(script).unwrap_or_else(|error| panic!("{error}"));
        let played: Vec<String> = played.iter().map(ToString::to_string).collect();
        assert_eq!(played.join("\n"), expected);
    }
}
