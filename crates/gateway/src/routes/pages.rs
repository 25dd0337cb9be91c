//! The parameters `limit` and `after` of lists.

use std::str::FromStr;

use bellwether::client::MAX_PAGE;

use bellwether_documents::DEFAULT_LIMIT;

use crate::problem::{Fault, Problem};

/// Returns the size of a page, and where it begins.
///
/// # Errors
/// 400 for an invalid size, and for a text that is not the `next` of a page.
pub(super) fn page<C: FromStr>(
    limit: Option<usize>,
    after: Option<&str>,
) -> Result<(usize, Option<C>), Problem> {
    let wrong = "`after` is not the `next` of a page: pass it back unchanged";
    let after = after.map(|after| after.parse().map_err(|_| Fault::Invalid.because(wrong))).transpose()?;
    Ok((page_size(limit)?, after))
}

/// Returns the size of a page.
///
/// # Errors
/// 400 for a size that is not 1 to [`MAX_PAGE`].
pub(super) fn page_size(limit: Option<usize>) -> Result<usize, Problem> {
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if (1..=MAX_PAGE).contains(&limit) {
        return Ok(limit);
    }
    Err(Fault::Invalid.because(format!("limit must be 1 to {MAX_PAGE}, not {limit}")))
}
