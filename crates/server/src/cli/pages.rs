//! Lists that the library reads page by page.

use bellwether::client::{Error, MAX_PAGE};

/// Returns the first `limit` items, and whether there are more; nothing for 0. `page` reads at most so many items after a cursor, and returns the
/// next cursor.
pub(super) async fn first<T, C>(
    limit: usize,
    page: impl AsyncFn(Option<C>, usize) -> Result<(Vec<T>, Option<C>), Error>,
) -> Result<(Vec<T>, bool), Error> {
    let (mut items, mut after) = (Vec::new(), None);
    if limit == 0 {
        return Ok((items, false));
    }
    // One more than is printed shows whether there are more.
    while items.len() <= limit {
        let size = (limit - items.len()).saturating_add(1).min(MAX_PAGE);
        let (further, next) = page(after, size).await?;
        items.extend(further);
        after = next;
        if after.is_none() {
            break;
        }
    }
    let more = items.len() > limit;
    items.truncate(limit);
    Ok((items, more))
}
