//! A job as the key of a map of very many.

use xxhash_rust::xxh3::xxh3_64;

use crate::name::JobId;

/// Sorts by a hash, and by the id only where two hashes are equal.
///
/// Ids of one client differ late: `order-2026-11-22-000017`. To sort a hundred thousand of them, every step down a tree
/// reads an id that lies elsewhere in memory, and half of its bytes. The hash lies in the tree. Ids that were made to have
/// one hash cost what they would cost without it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ByHash {
    hash: u64,
    job: JobId,
}

impl ByHash {
    pub(super) fn of(job: &JobId) -> Self {
        Self { hash: xxh3_64(job.as_str().as_bytes()), job: job.clone() }
    }

    /// Sorts before every other.
    pub(super) fn first() -> Self {
        Self { hash: 0, job: JobId::first() }
    }

    pub(super) fn job(&self) -> &JobId {
        &self.job
    }
}
