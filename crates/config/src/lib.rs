//! The configuration of Laneway: one file in HCL, JSON5 or TOML, and a few variables of the environment.
//!
//! All three formats become one tree that knows the line of every value, and one reader checks that tree. A missing key
//! has its default. The reader reports all errors at once, each with its place and what to write instead.
//!
//! ```
//! use laneway_config::{Profile, parse};
//!
//! let text = r#"
//!     lane "main" { max_concurrency = 6 }
//!     agent "coder" {
//!         command = ["claude", "-p"]
//!         timeout = "20m"
//!     }
//! "#;
//! let environment = [("LANEWAY_MAX_CONCURRENT_TASKS", "30")];
//! let config = parse("laneway.hcl", text, Profile::SERVER, environment)?;
//! let lanes: Vec<String> = config.lanes.iter().map(|lane| lane.lanes.to_string()).collect();
//! assert_eq!(lanes, ["agent:coder", "global", "main", "task:coder"]);
//! assert_eq!(config.source("lane \"main\"", "max_concurrency").to_string(), "laneway.hcl:2");
//!
//! let wrong = parse("laneway.hcl", "lane \"main\" { max_concurency = 6 }", Profile::SERVER, environment);
//! assert_eq!(
//!     wrong.unwrap_err().to_string(),
//!     "laneway.hcl:1: lane \"main\": max_concurency is not a setting; did you mean max_concurrency?"
//! );
//! # Ok::<(), laneway_config::Errors>(())
//! ```

mod blocks;
mod bounds;
mod config;
mod effective;
mod environment;
mod error;
mod fields;
mod formats;
mod load;
mod report;
mod source;

pub use blocks::lanes::Lane;
pub use blocks::message_types::Messages;
pub use blocks::places::{Listen, StoreLocation};
pub use blocks::server::ServerConfig;
pub use blocks::template::{Template, TemplateError, TemplateField, TemplatePart};
pub use blocks::worker::{
    ProcessLimits, WorkerConfig, WorkerHandler, WorkerProgram, WorkerRunner, load_worker, parse_worker,
};
pub use config::{
    AgentConfig, AgentUrls, CatchUp, Config, KindHandler, Profile, ProgramConfig, Protocol, Runner, Schedule,
    ToolLaneConfig,
};
pub use effective::{Effective, EffectiveValue, setting_texts};
pub use environment::{VARIABLES, with_options};
pub use error::{ConfigProblem, Error, Errors};
pub use laneway_core::{DropRule, MessageQueue, Mode, QueueOverrides};
pub use load::{FILE_BYTES_MAX, load, parse, without_file};
pub use source::ValueSource;
