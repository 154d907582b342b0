//! Tokens and the audit log.

pub(crate) mod charts;
pub(crate) mod status;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use laneway_protocol::{AuditEntry, CreatedToken, Me, NewToken, Page, Scope, TokenView};
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;

use crate::admin::tokens::created_details;
use crate::app::Shared;
use crate::http::auth::Caller;
use crate::http::error::{ApiError, ApiJson, ApiResult};
use crate::http::extract::{Body, Query};
use crate::http::paging::{PageQuery, bad_cursor, page_size};

/// The caller and its scopes. A page shows only the buttons that the caller may use.
#[utoipa::path(get, path = "/api/me", tag = "operations", responses((status = 200, body = Me)))]
pub(crate) async fn me(caller: Caller) -> Json<Me> {
    let scopes = Scope::ALL.into_iter().filter(|scope| caller.may(*scope)).collect();
    Json(Me { subject: caller.subject.into_owned(), scopes })
}

/// All tokens, without their secrets.
#[utoipa::path(get, path = "/api/tokens", tag = "operations", responses((status = 200, body = Page<TokenView>)))]
pub(crate) async fn tokens(State(app): Shared) -> ApiJson<Page<TokenView>> {
    Ok(Json(Page { items: app.tokens.list(), next_cursor: None }))
}

/// Creates a token, which all replicas know within a second. Only this answer holds its secret.
#[utoipa::path(
    post, path = "/api/tokens", tag = "operations", request_body = NewToken,
    responses((status = 201, body = CreatedToken))
)]
pub(crate) async fn create_token(
    State(app): Shared,
    caller: Caller,
    Body(new): Body<NewToken>,
) -> ApiResult<(StatusCode, Json<CreatedToken>)> {
    let created = app.tokens.create(&app.handle, &new, app.now()).await?;
    let details = created_details(&created.view);
    app.record(&caller, ("token", "create_token"), &created.view.id, details).await?;
    Ok((StatusCode::CREATED, Json(created)))
}

/// Which token.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TokenQuery {
    /// The part of the token before the dot.
    id: String,
}

/// Removes a token, at all replicas within a second.
#[utoipa::path(
    delete, path = "/api/tokens", tag = "operations", params(TokenQuery),
    responses((status = 204, description = "The token is removed."))
)]
pub(crate) async fn remove_token(
    State(app): Shared,
    caller: Caller,
    Query(query): Query<TokenQuery>,
) -> ApiResult<StatusCode> {
    if app.tokens.holds_only(&query.id) && !app.config().listen.is_loopback() {
        return Err(ApiError::invalid(
            "the last token cannot be removed while other machines can reach the server",
        ));
    }
    if !app.tokens.remove(&app.handle, &query.id, app.now()).await? {
        return Err(ApiError::not_found("token"));
    }
    app.record(&caller, ("token", "remove_token"), &query.id, json!({})).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The audit log, the newest entry first.
#[utoipa::path(
    get, path = "/api/audit", tag = "operations", params(PageQuery),
    responses((status = 200, body = Page<AuditEntry>))
)]
pub(crate) async fn audit(State(app): Shared, Query(query): Query<PageQuery>) -> ApiJson<Page<AuditEntry>> {
    let max = page_size(query.limit)?;
    let before = query.cursor.as_deref().map(str::parse).transpose().map_err(|_| bad_cursor())?;
    let items = app.audit.list(before, max);
    let next_cursor =
        items.last().filter(|last| items.len() == max && last.id > 1).map(|last| last.id.to_string());
    Ok(Json(Page { items, next_cursor }))
}
