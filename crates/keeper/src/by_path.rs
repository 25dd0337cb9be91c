//! Hash maps and sets keyed by path.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// A hash without a random seed, so that the same requests take the same steps in every run. No behaviour depends on
/// the iteration order of a map.
#[derive(Debug, Default)]
pub(crate) struct PathHasher(u64);

impl Hasher for PathHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxhash_rust::xxh3::xxh3_64_with_seed(bytes, self.0);
    }

    /// Ignored: `str` ends its hash with this byte, which only matters for tuples of strings.
    fn write_u8(&mut self, _end: u8) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

pub(crate) type ByPath<T> = HashMap<Arc<str>, T, BuildHasherDefault<PathHasher>>;

pub(crate) type Paths = HashSet<Arc<str>, BuildHasherDefault<PathHasher>>;
