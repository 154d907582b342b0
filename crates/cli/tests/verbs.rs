//! Every verb as people and scripts see it: what was typed, all of standard output and standard error, the exit code.
//!
//! A page in `verbs/`, and the guide in `docs/reference/cli.md`, has a configuration in its first `hcl` block, with which a real
//! server is started, and commands in `console` blocks, which a real shell runs one after another. Lines of standard
//! error begin with `2> `, and an exit code other than 0 is the last line, `[exit 3]`. With `UPDATE=1` in the
//! environment the outputs are written anew; read the difference before you believe it.
//!
//! Ids and times are numbered and fixed before anything is compared; durations and the widths of columns are not
//! compared.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod pages;
mod served;

use pages::check;

macro_rules! pages {
    ($($name:ident $file:literal)*) => {
        $(#[test] fn $name() { check($file); })*

        const FILES: &[&str] = &[$($file),*];
    };
}

pages! {
    the_guide "../../docs/reference/cli.md"
    looking "tests/verbs/looking.md"
    tasks_and_cancelling "tests/verbs/tasks.md"
    lanes "tests/verbs/lanes.md"
    conversations "tests/verbs/conversations.md"
    dead_letters "tests/verbs/dead-letters.md"
    schedules "tests/verbs/schedules.md"
    refusals "tests/verbs/refusals.md"
    tokens_and_audit "tests/verbs/tokens.md"
    beside_a_server "tests/verbs/beside.md"
}

#[test]
fn every_page_is_checked() {
    for entry in std::fs::read_dir("tests/verbs").unwrap() {
        let path = entry.unwrap().path().display().to_string();
        assert!(FILES.contains(&path.as_str()), "{path} is in no list");
    }
}
