//! Lists that the library reads page by page.

use bellwether::client::{MAX_PAGE, Page};

use super::Global;

/// Returns the first `limit` items, and whether there are more; nothing for 0. `page` reads at most so many items after an
/// earlier page.
pub(super) async fn first<T, C, E>(
    limit: usize,
    page: impl AsyncFn(Option<C>, usize) -> Result<Page<T, C>, E>,
) -> Result<(Vec<T>, bool), E> {
    let (mut items, mut after) = (Vec::new(), None);
    if limit == 0 {
        return Ok((items, false));
    }
    // One more than is printed shows whether there are more.
    while items.len() <= limit {
        let size = (limit - items.len()).saturating_add(1).min(MAX_PAGE);
        let Page { items: further, next, .. } = page(after, size).await?;
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

/// Says how to get the rest of a list.
pub(super) fn tell_more(global: &Global, items: &str, limit: usize) {
    if !global.quiet {
        eprintln!("bellwether: there are further {items}: --limit {} shows more", limit.saturating_mul(10));
    }
}
