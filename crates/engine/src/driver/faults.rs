//! What a simulation may do to an engine, to see that the simulation notices.

use laneway_core::{Command, Scheduler, Timestamp};

/// Makes an engine wrong on purpose. The defaults change nothing.
pub trait Faults: Send + Sync + 'static {
    /// May change a command before it is decided on this state.
    fn command(&self, _state: &Scheduler, _command: &mut Command) {}

    /// May change when the engine looks at the clock next.
    fn wakeup(&self, at: Timestamp) -> Option<Timestamp> {
        Some(at)
    }
}
