//! The reference of the configuration: every sample is valid, and every key is described.

use laneway_config::{Profile, VARIABLES, parse};
use laneway_core::SETTING_KEYS;

const PAGE: &str = include_str!("../../../docs/reference/configuration.md");

/// The samples of one language, in order.
fn samples(language: &str) -> Vec<&'static str> {
    let fence = format!("```{language}\n");
    PAGE.split(&*fence).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn every_sample_is_valid_without_a_warning() {
    let nothing: [(&str, &str); 0] = [];
    let mut read = 0;
    for language in ["hcl", "json5", "toml"] {
        for sample in samples(language) {
            let config = parse(&format!("a.{language}"), sample, Profile::SERVER, nothing);
            let warnings = config.map(|config| config.warnings);
            assert_eq!(warnings, Ok(Vec::new()), "{sample}");
            read += 1;
        }
    }
    assert!(read >= 9, "only {read} samples were found");
}

#[test]
fn the_reference_shows_the_actual_error() {
    let nothing: [(&str, &str); 0] = [];
    let text = format!("{}lane \"main\" {{ max_concurency = 3 }}", "\n".repeat(11));
    let errors = parse("laneway.hcl", &text, Profile::SERVER, nothing).unwrap_err();
    assert_eq!(samples("text"), [format!("{errors}\n")]);
}

#[test]
fn every_setting_and_every_variable_is_described() {
    let described = |name: &str| PAGE.contains(&format!("| `{name}` |"));
    let missing: Vec<&&str> = SETTING_KEYS.iter().chain(VARIABLES).filter(|name| !described(name)).collect();
    assert_eq!(missing, Vec::<&&str>::new());
}
