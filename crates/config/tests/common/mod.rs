//! Helpers of the error tests.
#![allow(clippy::panic)]

use laneway_config::{Profile, parse};

/// An environment without variables.
pub(crate) const NOTHING: [(&str, &str); 0] = [];

/// Checks that a file is refused with exactly the expected lines.
#[track_caller]
pub(crate) fn check_as(file: &str, text: &str, expected: &str) {
    let errors = match parse(file, text, Profile::SERVER, NOTHING) {
        Ok(_) => panic!("accepted: {text:.200}"),
        Err(errors) => errors.to_string(),
    };
    let lines = |text: &str| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>();
    assert_eq!(lines(&errors), lines(expected.trim()), "in: {text:.200}");
}

/// Checks an HCL file.
#[track_caller]
pub(crate) fn check(text: &str, expected: &str) {
    check_as("a.hcl", text, expected);
}
