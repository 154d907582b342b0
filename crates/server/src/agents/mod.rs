//! How agents and handlers do their work: programs and HTTP upstreams.

pub(crate) mod answer;
pub(crate) mod directory;
pub(crate) mod handlers;
pub(crate) mod program;
pub(crate) mod upstream;
