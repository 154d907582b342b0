//! The API page, which loads nothing from other servers.

use axum::response::Html;

const PAGE: &str = include_str!("docs.html");

pub(crate) async fn page() -> Html<&'static str> {
    Html(PAGE)
}
