//! Configuration files. The first line of an input names the format of the rest.

use laneway_config::{Profile, parse, parse_worker};

use crate::FuzzOutcome;

const FORMATS: [&str; 3] = ["hcl", "json5", "toml"];
const ENVIRONMENT: [(&str, &str); 0] = [];

pub(super) fn read(input: &[u8]) -> FuzzOutcome {
    let text = String::from_utf8_lossy(input);
    let (first, text) = text.split_once('\n').unwrap_or((&text, ""));
    let format = FORMATS.into_iter().find(|format| *format == first.trim()).unwrap_or("hcl");
    let file = format!("a.{format}");
    if let Err(errors) = parse_worker(&file, text) {
        check_refusal(&file, errors.iter().count(), &errors.to_string());
    }
    match parse(&file, text, Profile::SERVER, ENVIRONMENT) {
        Ok(config) => {
            for block in config.lane_blocks() {
                let is_checked = block.settings.as_ref().is_some_and(|settings| settings.check().is_ok());
                assert!(is_checked, "accepted settings that the scheduler refuses");
            }
            assert!(!config.effective().to_string().is_empty(), "the effective configuration prints");
            FuzzOutcome::Understood
        }
        Err(errors) => {
            check_refusal(&file, errors.iter().count(), &errors.to_string());
            FuzzOutcome::Refused
        }
    }
}

/// Every line of a refusal names the file, and it can be printed.
fn check_refusal(file: &str, count: usize, errors: &str) {
    assert!(count > 0, "refused without an error");
    assert!(errors.lines().all(|line| line.starts_with(file)), "a refusal without a place: {errors:?}");
    let control = errors.chars().find(|char| char.is_control() && *char != '\n');
    assert_eq!(control, None, "a refusal that cannot be printed: {errors:?}");
}
