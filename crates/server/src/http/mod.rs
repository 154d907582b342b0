//! The HTTP surface: router, middleware, authentication, errors.

pub(crate) mod auth;
pub(crate) mod error;
pub(crate) mod extract;
pub(crate) mod limits;
pub(crate) mod middleware;
pub(crate) mod paging;
pub(crate) mod router;
pub(crate) mod routes;
