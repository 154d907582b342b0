//! Client events: from what the engine decided to what SSE and WebSocket clients see.

pub(crate) mod board;
pub(crate) mod client_event;
pub(crate) mod groups;
pub(crate) mod hub;
pub(crate) mod pump;
pub(crate) mod signal;
pub(crate) mod sse;
pub(crate) mod websocket;
