//! Bars and marks for what takes long: on a terminal, and nowhere else.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often the mark moves that shows that something goes on.
const TICK: Duration = Duration::from_millis(120);

/// A bar up to `count`.
pub(crate) fn bar(count: u64, is_json: bool) -> ProgressBar {
    if is_json || !std::io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(Some(count), ProgressDrawTarget::hidden());
    }
    styled(ProgressBar::new(count), "{bar:40} {pos}/{len}  {eta}  {msg}")
}

/// A line that says what goes on; `None` where it could not be seen.
pub(crate) fn spinner(is_json: bool) -> Option<ProgressBar> {
    if is_json || !std::io::stderr().is_terminal() {
        return None;
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let bar = styled(bar, "{spinner} {msg}  {elapsed}");
    bar.enable_steady_tick(TICK);
    Some(bar)
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
