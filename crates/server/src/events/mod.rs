//! Events of the engine's hub for clients: SSE, WebSocket, and the progress of MCP calls.

pub(crate) mod encode;
pub(crate) mod observer;
pub(crate) mod signal;
pub(crate) mod sse;
pub(crate) mod stream;
pub(crate) mod websocket;
