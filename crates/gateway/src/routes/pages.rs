//! The parameters `limit` and `after` of lists.

use std::str::FromStr;

use bellwether_documents::PageLimit;

use crate::problem::{Fault, Problem};

/// Returns the size of a page, and where it begins.
///
/// # Errors
/// 400 for an invalid size, and for a text that is not the `next` of a page.
pub(super) fn page<C: FromStr>(limit: PageLimit, after: Option<&str>) -> Result<(usize, Option<C>), Problem> {
    let wrong = "`after` is not the `next` of a page: pass it back unchanged";
    let after = after.map(|after| after.parse().map_err(|_| Fault::Invalid.because(wrong))).transpose()?;
    Ok((limit.checked()?, after))
}
