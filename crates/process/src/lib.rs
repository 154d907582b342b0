//! Runs a program in a process group of its own, and really stops it.
//!
//! ```
//! use laneway_process::Program;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let program = Program::new(["tr", "a-z", "A-Z"])?;
//! let never = std::future::pending();
//! let done = program.run("hello", never, |_piece| {}).await?;
//! assert!(done.exit.is_success());
//! assert_eq!(done.stdout, "HELLO");
//! # Ok(())
//! # }
//! ```
//!
//! It promises:
//!
//! - No shell: the first word is the program, the others are its arguments as they are.
//! - The program gets the variables that were allowed and those that were given, and no others.
//! - To stop it is to ask the whole group (`SIGTERM`) and, when the grace is over, to end it (`SIGKILL`). It is over when
//!   nothing of the group is alive, grandchildren included. What a program leaves behind when it ends by itself is
//!   stopped in the same way.
//! - Dropping a [`RunningProgram`] stops it in the same way, in the background; without a runtime, by `SIGKILL` at
//!   once.
//! - The group's leader is not reaped before the group is gone, so that its number cannot belong to another process.
//!
//! A program that makes a session of its own (`setsid`) has left the group and is not reached.

mod group;
pub mod jsonl;
mod outcome;
mod program;
mod running;
mod text;

pub use outcome::{Exit, ProgramEnd};
pub use program::{ALLOWED, Program, StartError};
pub use running::{Input, ProgramEvent, RunningProgram};
pub use text::Text;
