//! Metrics, traces and charts.

pub(crate) mod charts;
pub(crate) mod collector;
mod exposition;
pub(crate) mod metrics;
pub(crate) mod otlp;
pub(crate) mod otlp_metrics;
pub(crate) mod otlp_spans;
mod process;
