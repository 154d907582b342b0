//! Pages for browsers.

pub(crate) mod dashboard;
pub(crate) mod docs;
