//! Progress bars and spinners, only on a terminal.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often a spinner moves.
const TICK: Duration = Duration::from_millis(120);

/// A progress bar up to `count`.
pub(crate) fn bar(count: u64, is_json: bool) -> ProgressBar {
    if is_json || !std::io::stderr().is_terminal() {
        return ProgressBar::with_draw_target(Some(count), ProgressDrawTarget::hidden());
    }
    styled(ProgressBar::new(count), "{bar:40} {pos}/{len}  {eta}  {msg}")
}

/// A spinner with a message, or `None` if standard error is no terminal.
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
