//! Administration: tokens, the audit log, small files, drift of the configuration, warnings of the store.

pub(crate) mod audit;
pub(crate) mod config_drift;
pub(crate) mod files;
pub(crate) mod store_watch;
pub(crate) mod token_file;
pub(crate) mod tokens;
