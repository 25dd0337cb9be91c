//! Pages of lists.
//!
//! A page returns where the next one begins, so a stateless caller, such as an HTTP request, can continue there with any
//! client of the namespace. A page looks at a bounded number of znodes, so that a filter that matches nothing does not
//! read a million records in one call. It may therefore have fewer items than requested, or none, and still have a next
//! page.

use bellwether_core::budget::MAX_READ_BATCH;

/// Maximum number of items in one page.
pub const MAX_PAGE: usize = 1_000;

/// Maximum number of znodes that one page looks at, even if the filter accepts none: a full bucket, about 50 batched
/// reads.
pub(super) const MAX_LOOKED_AT: usize = 5_000;

/// Bytes of records that one read of a page asks for, as far as the sizes of the records before them predict it.
pub(super) const READ_BYTES: usize = 1024 * 1024;

/// Records of the first read of a page, before their sizes are known: at most 3 MiB with payloads and results of 64 KiB.
pub(super) const FIRST_READ: usize = 25;

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page<T, C> {
    /// The items of the page. It may have fewer than requested, or none, and still have a next page.
    pub items: Vec<T>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<C>,
}

/// The number of records for the next read, from the bytes of the last one.
pub(super) fn next_read(records: usize, bytes: usize) -> usize {
    let each = bytes.div_ceil(records.max(1)).max(1);
    (READ_BYTES / each).clamp(1, MAX_READ_BATCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_large_records_than_small_ones_are_read_at_once() {
        assert_eq!(next_read(25, 25 * 1_000), MAX_READ_BATCH);
        assert_eq!(next_read(25, 25 * 128 * 1024), 8);
        assert_eq!([next_read(1, usize::MAX), next_read(0, 0)], [1, MAX_READ_BATCH]);
    }
}
