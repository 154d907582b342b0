//! Administration: tokens, the audit log, small files, drift of the configuration.

pub(crate) mod audit;
pub(crate) mod config_drift;
pub(crate) mod files;
pub(crate) mod tokens;
