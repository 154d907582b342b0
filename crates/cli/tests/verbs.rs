//! Every verb as people and scripts see it: the command, standard output, standard error and the exit code.
//!
//! The pages are those in `verbs/` and the reference in `docs/reference/cli.md`. The first `hcl` block of a page
//! configures a real server. A real shell runs the commands of its `console` blocks one after another. Lines of standard
//! error begin with `2> `. An exit code other than 0 is the last line: `[exit 3]`. `UPDATE=1` writes the outputs; read
//! the difference.
//!
//! The comparison masks ids and times, and ignores durations and column widths.
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
    the_reference "../../docs/reference/cli.md"
    looking "tests/verbs/looking.md"
    tasks_and_cancelling "tests/verbs/tasks.md"
    agents "tests/verbs/agents.md"
    lanes "tests/verbs/lanes.md"
    conversations "tests/verbs/conversations.md"
    dead_letters "tests/verbs/dead-letters.md"
    schedules "tests/verbs/schedules.md"
    refusals "tests/verbs/refusals.md"
    tokens_and_audit "tests/verbs/tokens.md"
    configuration_doctor_and_manual "tests/verbs/server.md"
}

#[test]
fn every_page_is_checked() {
    for entry in std::fs::read_dir("tests/verbs").unwrap() {
        let path = entry.unwrap().path().display().to_string();
        assert!(FILES.contains(&path.as_str()), "add {path} to `pages!`");
    }
}
