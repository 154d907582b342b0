//! A page about the API that needs nothing from elsewhere.

use axum::response::Html;

const PAGE: &str = include_str!("docs.html");

/// A page about the API.
pub(crate) async fn page() -> Html<&'static str> {
    Html(PAGE)
}
