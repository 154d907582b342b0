//! Pages of lists.

use serde::Deserialize;
use utoipa::IntoParams;

use crate::http::error::{ApiError, ApiResult};

/// How many items a page has by default.
const PAGE_DEFAULT: usize = 50;
/// How many items a page has at most.
pub(super) const PAGE_MAX: usize = 500;

/// Which page of a list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// The largest number of items on the page. Default 50, at most 500.
    #[param(minimum = 1, maximum = 500)]
    pub(super) limit: Option<usize>,
    /// The `next_cursor` of the previous page.
    pub(super) cursor: Option<String>,
    /// A browser sends its token here.
    #[param(ignore)]
    pub(super) access_token: Option<String>,
}

impl PageQuery {
    /// The page of a whole list, and the cursor of the next page.
    pub(super) fn cut<T>(&self, all: Vec<T>) -> ApiResult<(Vec<T>, Option<String>)> {
        let max = page_size(self.limit)?;
        let skip = self.cursor.as_deref().map(str::parse::<usize>).transpose().map_err(|_| bad_cursor())?;
        let (skip, count) = (skip.unwrap_or(0), all.len());
        let items: Vec<T> = all.into_iter().skip(skip).take(max).collect();
        let next = skip.saturating_add(items.len());
        Ok((items, (next < count).then(|| next.to_string())))
    }
}

pub(super) fn page_size(limit: Option<usize>) -> ApiResult<usize> {
    match limit {
        None => Ok(PAGE_DEFAULT),
        Some(limit) if (1..=PAGE_MAX).contains(&limit) => Ok(limit),
        Some(_) => Err(ApiError::invalid(format!("limit must be from 1 to {PAGE_MAX}"))),
    }
}

pub(super) fn bad_cursor() -> ApiError {
    ApiError::invalid("cursor must be the next_cursor of the previous page")
}
