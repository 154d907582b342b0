//! A page about the API that needs nothing from elsewhere, and what logs may know of a request.

use axum::extract::{MatchedPath, Request};
use axum::response::Html;

const PAGE: &str = include_str!("docs.html");

/// A page about the API.
pub(crate) async fn page() -> Html<&'static str> {
    Html(PAGE)
}

/// The route of a request; never the names in it, nor its query.
pub(crate) fn path_for_logs(request: &Request) -> String {
    let matched = request.extensions().get::<MatchedPath>();
    matched.map_or_else(|| "unknown".to_owned(), |path| path.as_str().to_owned())
}
