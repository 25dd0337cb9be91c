//! The buckets of one machine, in the order of a term.

use crate::budget::BUCKETS;
use crate::path::Bucket;
use crate::retention::Retention;
use crate::time::WallMillis;

use super::BucketKind;
use super::bucket::Facts;

/// Distance between the first buckets of two consecutive terms of one kind of bucket. It is odd, so that 512 terms begin
/// once with each bucket of both kinds.
pub(super) const STRIDE: usize = 97;

/// See the [module](self).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Buckets {
    /// The number of this machine, and the number of machines. Bucket `n` belongs to machine `n % machines`.
    part: usize,
    machines: usize,
    /// The kind of bucket, and the bucket, at which the term begins.
    begins: BucketKind,
    first: usize,
    jobs: Vec<Facts>,
    groups: Vec<Facts>,
}

impl Buckets {
    pub(super) fn new(term: u32, part: usize, machines: usize) -> Self {
        let stride = (term / 2) as usize % usize::from(BUCKETS) * STRIDE;
        let facts = || vec![Facts::default(); usize::from(BUCKETS)];
        Self {
            part,
            machines,
            begins: if term.is_multiple_of(2) { BucketKind::Jobs } else { BucketKind::Groups },
            first: stride % usize::from(BUCKETS),
            jobs: facts(),
            groups: facts(),
        }
    }

    pub(super) fn machines(&self) -> usize {
        self.machines
    }

    pub(super) fn begins(&self) -> BucketKind {
        self.begins
    }

    /// The buckets of this machine whose index is not below `index`.
    pub(super) fn from(&self, index: usize) -> impl Iterator<Item = Bucket> + use<> {
        Bucket::all().skip(self.part).step_by(self.machines).filter(move |bucket| bucket.index() >= index)
    }

    pub(super) fn facts(&mut self, kind: BucketKind, bucket: Bucket) -> &mut Facts {
        match kind {
            BucketKind::Jobs => &mut self.jobs[bucket.index()],
            BucketKind::Groups => &mut self.groups[bucket.index()],
        }
    }

    /// Forgets all scans.
    pub(super) fn forget(&mut self) {
        self.jobs.iter_mut().chain(&mut self.groups).for_each(Facts::forget);
    }

    /// Returns the position of a bucket in this term's order. A pass continues there: a bucket that was just scanned is not due.
    pub(super) fn position(&self, bucket: Bucket) -> usize {
        (bucket.index() + usize::from(BUCKETS) - self.first) % usize::from(BUCKETS)
    }

    /// Finds the first bucket that may be due, from this position on.
    pub(super) fn due(
        &self,
        kind: BucketKind,
        position: usize,
        retention: &Retention,
        wall: WallMillis,
    ) -> Option<Bucket> {
        let is_due = |bucket: &Bucket| match kind {
            BucketKind::Jobs => self.jobs[bucket.index()].may_be_due(retention, wall),
            BucketKind::Groups => self.groups[bucket.index()].has_aged(wall),
        };
        let left = self.from(0).filter(|bucket| self.position(*bucket) >= position);
        left.filter(is_due).min_by_key(|bucket| self.position(*bucket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bucket_at_which_a_term_begins_is_the_first_of_its_order() {
        let buckets = Buckets::new(4, 0, 1);
        let first = buckets.from(0).min_by_key(|bucket| buckets.position(*bucket)).unwrap();
        assert_eq!((first.index(), buckets.position(first)), (2 * STRIDE, 0));
    }
}
