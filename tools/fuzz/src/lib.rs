//! Input that nobody would send, for everything that reads input.
//!
//! A [`Target`] reads one input and says in a few words what became of it. Whatever the input is, it is read or refused: a panic, an
//! answer of 500, a broken promise or a long silence is a find. [`Fuzzer`] makes inputs by changing those it has; one that
//! brings an outcome that was not seen before is kept to be changed further. Everything follows from a seed.
//!
//! | question | file |
//! |---|---|
//! | what is read, and what must hold? | `targets/` |
//! | how are inputs made? | `mutate.rs`, `chance.rs` |
//! | how is one tried, and what is a find? | `trial.rs`, and `watchdog.rs` for one that hangs |
//! | which are kept from day to day? | `corpus.rs`, and the files in `corpus/` |

mod chance;
mod corpus;
mod fuzzer;
mod mutate;
mod outcome;
pub mod targets;
mod trial;
mod watchdog;

pub use chance::Chance;
pub use corpus::{folder, inputs, keep};
pub use fuzzer::{Figures, Find, Fuzzer};
pub use mutate::INPUT_BYTES_MAX;
pub use outcome::shape;
pub use trial::try_input;
pub use watchdog::watch_for_hangs;

/// Something that reads input.
pub trait Target {
    /// What it is called on the command line, and its folder in the corpus.
    fn name(&self) -> &'static str;

    /// What its readers understand: put into inputs more often than chance would.
    fn words(&self) -> Vec<String>;

    /// Makes an input from nothing, where that reaches further than changes do.
    fn make(&self, chance: &mut Chance) -> Option<Vec<u8>> {
        let _ = chance;
        None
    }

    /// Reads one input and says in a few words what became of it; the error says which promise was broken.
    fn read(&mut self, input: &[u8]) -> Result<String, String>;
}
