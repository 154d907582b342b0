//! The files of the dashboard. A release build holds them; other builds read them from the checkout.
//!
//! All their addresses are relative, so that the page works under any path of a proxy that ends in a slash.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use rust_embed::RustEmbed;

use crate::admin::token_file::hex;
use crate::http::error::ApiError;
use crate::http::extract::Path;

#[derive(RustEmbed)]
#[folder = "../../dashboard/app"]
struct Files;

/// Allows scripts, styles and requests of this server alone. With trusted types, no text can become markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// Shorter files are sent as they are.
const COMPRESSED_FROM: usize = 256;

/// The compressed files by name, each with the hash of its source.
static COMPRESSED: Mutex<BTreeMap<String, ([u8; 32], Bytes)>> = Mutex::new(BTreeMap::new());

pub(crate) async fn page(headers: HeaderMap) -> Response {
    answer("index.html", &headers)
}

pub(crate) async fn file(Path(name): Path<String>, headers: HeaderMap) -> Response {
    answer(&name, &headers)
}

fn answer(name: &str, request_headers: &HeaderMap) -> Response {
    let (Some(file), Some(kind)) = (Files::get(name), kind_of(name)) else {
        return ApiError::not_found("file of the dashboard").into_response();
    };
    let hash = file.metadata.sha256_hash();
    let tag = format!("W/\"{}\"", &hex(&hash)[..32]);
    let has = |header: header::HeaderName, wanted: &str| {
        let values = request_headers.get_all(header).into_iter().filter_map(|value| value.to_str().ok());
        values
            .flat_map(|value| value.split(','))
            .any(|value| value.split(';').next().unwrap_or_default().trim() == wanted)
    };
    let is_known = has(header::IF_NONE_MATCH, &tag);
    let is_compressed = has(header::ACCEPT_ENCODING, "gzip") && file.data.len() >= COMPRESSED_FROM;
    let body = match (is_known, is_compressed) {
        (true, _) => Bytes::new(),
        (false, true) => compressed(name, hash, &file.data),
        (false, false) => Bytes::copy_from_slice(&file.data),
    };
    let mut response = if is_known { StatusCode::NOT_MODIFIED.into_response() } else { body.into_response() };
    let headers = response.headers_mut();
    let mut set =
        |name: header::HeaderName, value: &'static str| headers.insert(name, HeaderValue::from_static(value));
    set(header::CONTENT_TYPE, kind);
    // Browsers ask every time, so a new version of the server shows at once.
    set(header::CACHE_CONTROL, "no-cache");
    set(header::VARY, "accept-encoding");
    set(header::CONTENT_SECURITY_POLICY, POLICY);
    set(header::REFERRER_POLICY, "no-referrer");
    set(header::X_FRAME_OPTIONS, "DENY");
    if is_compressed && !is_known {
        set(header::CONTENT_ENCODING, "gzip");
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    response
}

fn compressed(name: &str, hash: [u8; 32], data: &[u8]) -> Bytes {
    let mut known = COMPRESSED.lock().unwrap_or_else(PoisonError::into_inner);
    match known.get(name) {
        Some((made_from, bytes)) if *made_from == hash => bytes.clone(),
        _ => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
            // A vector takes everything that is written to it.
            let bytes = match encoder.write_all(data).and_then(|()| encoder.finish()) {
                Ok(bytes) => Bytes::from(bytes),
                Err(error) => {
                    tracing::error!(%error, "a file of the dashboard cannot be compressed");
                    Bytes::new()
                }
            };
            known.insert(name.to_owned(), (hash, bytes.clone()));
            bytes
        }
    }
}

fn kind_of(name: &str) -> Option<&'static str> {
    let (_, ending) = name.rsplit_once('.')?;
    match ending {
        "html" => Some("text/html; charset=utf-8"),
        "js" => Some("text/javascript; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        "txt" => Some("text/plain; charset=utf-8"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    fn asking(pairs: &[(header::HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap())).collect()
    }

    async fn size(response: Response) -> usize {
        response.into_body().collect().await.unwrap().to_bytes().len()
    }

    #[tokio::test]
    async fn the_page_allows_no_inline_script_and_is_sent_once() {
        let first = answer("index.html", &HeaderMap::new());
        assert_eq!(first.status(), StatusCode::OK);
        assert_eq!(first.headers()[header::CONTENT_TYPE], "text/html; charset=utf-8");
        let policy = first.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        let tag = first.headers()[header::ETAG].to_str().unwrap().to_owned();
        let again = answer("index.html", &asking(&[(header::IF_NONE_MATCH, &format!("\"x\", {tag}"))]));
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(size(again).await, 0);
    }

    #[tokio::test]
    async fn all_files_together_are_small_over_the_wire_and_of_a_known_kind() {
        let mut total = 0;
        for name in Files::iter().filter(|name| !name.ends_with(".txt")) {
            let response = answer(&name, &asking(&[(header::ACCEPT_ENCODING, "br;q=0.5, gzip;q=1")]));
            assert_eq!(response.status(), StatusCode::OK, "{name}");
            total += size(response).await;
        }
        assert!((10_000..250_000).contains(&total), "{total} bytes");
    }

    #[tokio::test]
    async fn what_is_not_a_file_of_the_dashboard_is_not_found() {
        for name in ["", "nothing.js", "../tests/package.json", "../../Cargo.toml", "vendor", "/etc/passwd"] {
            assert_eq!(answer(name, &HeaderMap::new()).status(), StatusCode::NOT_FOUND, "{name}");
        }
    }
}
