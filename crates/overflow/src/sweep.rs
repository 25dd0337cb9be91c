//! Removing objects of jobs that no longer exist.
//!
//! **No object that a record refers to is removed.** An object is removed only if it is older than the given age and its job
//! has no record. Each encoding writes a new object, so an old one is never referred to again by a later submission. Between
//! the write of an object and the commit of its record passes at most the deadline of a submission, and the age is longer. The
//! objects of results are written while the record of their job exists.

use std::collections::BTreeMap;
use std::str::FromStr as _;
use std::time::{Duration, SystemTime};

use bellwether::client::Error;
use bellwether::{Client, ErrorClass, JobId};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStoreExt};
use uuid::Uuid;

use crate::OverflowCodec;

/// The least age of objects that a sweep removes: longer than the deadline of any submission, with a margin for different
/// clocks of the store and this process.
pub const MIN_AGE: Duration = Duration::from_secs(3_600);

/// How many jobs are looked up at a time: one batched read.
const JOBS: usize = 100;

/// How many objects are deleted concurrently.
const DELETIONS: usize = 8;

/// What a sweep found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Swept {
    /// Objects that it removed.
    pub removed: u64,
    /// Objects of jobs that have a record.
    pub in_use: u64,
    /// Objects that are younger than the age.
    pub too_recent: u64,
    /// Objects whose names the codec did not give. They are left alone.
    pub foreign: u64,
}

/// A sweep failed. Objects may have been removed; sweeping again is safe.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// The age is below its minimum. Nothing was removed.
    #[error("objects must be at least {MIN_AGE:?} old to be removed, not {0:?}")]
    Age(Duration),
    /// The store cannot be listed or changed.
    #[error("the object store cannot be listed or changed")]
    Store(#[from] object_store::Error),
    /// The jobs cannot be looked up.
    #[error("the jobs of the objects cannot be looked up")]
    Client(#[from] Error),
}

impl SweepError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Age(_) => ErrorClass::Invalid,
            Self::Store(_) => ErrorClass::Unavailable,
            Self::Client(error) => error.class(),
        }
    }
}

bellwether_remedy::impl_remedy!(SweepError);

impl OverflowCodec {
    /// Removes objects that were written more than `age` ago and whose jobs have no record: those that retention removed, and
    /// those whose submission failed. `age` is at least [`MIN_AGE`], and must be longer than the deadline of every client of the
    /// namespace.
    ///
    /// `client` must be a client of the namespace whose jobs use the codec's prefix.
    ///
    /// # Errors
    /// [`SweepError`].
    ///
    /// # Cancellation
    /// Dropping the future stops the sweep. Sweeping again is safe, also from several processes at the same time.
    pub async fn sweep(&self, client: &Client, age: Duration) -> Result<Swept, SweepError> {
        if age < MIN_AGE {
            return Err(SweepError::Age(age));
        }
        let before = SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
        let mut swept = Swept::default();
        let mut old = BTreeMap::<JobId, Vec<Path>>::new();
        let mut objects = self.store.list(Some(&self.prefix));
        while let Some(object) = objects.next().await {
            let ObjectMeta { location, last_modified, .. } = object?;
            let Some(job) = self.job_of(&location) else {
                swept.foreign += 1;
                continue;
            };
            if SystemTime::from(last_modified) > before {
                swept.too_recent += 1;
                continue;
            }
            old.entry(job).or_default().push(location);
            if old.len() >= JOBS {
                self.remove_unused(client, std::mem::take(&mut old), &mut swept).await?;
            }
        }
        self.remove_unused(client, old, &mut swept).await?;
        Ok(swept)
    }

    async fn remove_unused(
        &self,
        client: &Client,
        old: BTreeMap<JobId, Vec<Path>>,
        swept: &mut Swept,
    ) -> Result<(), SweepError> {
        let jobs = old.keys().cloned().collect::<Vec<_>>();
        let exist = client.exist(&jobs).await?;
        let mut unused = Vec::new();
        for (objects, exists) in old.into_values().zip(exist) {
            if exists {
                swept.in_use += u64::try_from(objects.len()).expect("a number of objects");
            } else {
                unused.extend(objects);
            }
        }
        let deleted = |path: Path| async move {
            match self.store.delete(&path).await {
                // Another sweep was first.
                Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(error),
            }
        };
        let mut deletions = stream::iter(unused).map(deleted).buffer_unordered(DELETIONS);
        while let Some(()) = deletions.try_next().await? {
            swept.removed += 1;
        }
        Ok(())
    }

    /// Returns the job of an object of this codec.
    fn job_of(&self, path: &Path) -> Option<JobId> {
        let mut parts = path.prefix_match(&self.prefix)?;
        let (job, object) = (parts.next()?, parts.next()?);
        if parts.next().is_some() || Uuid::from_str(object.as_ref()).is_err() {
            return None;
        }
        // The only ids that a path contains in another form.
        let job = match job.as_ref() {
            "%2E" => ".",
            "%2E%2E" => "..",
            job => job,
        };
        JobId::new(job).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;

    use super::*;

    #[test]
    fn the_job_of_each_path_is_found_again_and_other_paths_are_foreign() {
        let codec = OverflowCodec::new(Arc::new(InMemory::new()), "prod/jobs").unwrap();
        let object = Uuid::from_u128(7);
        for id in ["a", "sum:g:7", "daily@2026-11-21T02:00:00Z", "sum.join:@g", ".", "..", "%2E"] {
            let Ok(job) = JobId::new(id) else { continue };
            assert_eq!(codec.job_of(&codec.path(&job, object)), Some(job), "{id}");
        }
        for foreign in [
            "prod/jobs",
            "prod/jobs/a",
            "prod/jobs/a/b",
            "prod/jobs/a b/00000000-0000-0000-0000-000000000007",
            "prod/jobs/a/b/00000000-0000-0000-0000-000000000007",
            "prod/other/a/00000000-0000-0000-0000-000000000007",
        ] {
            assert_eq!(codec.job_of(&Path::parse(foreign).unwrap()), None, "{foreign}");
        }
    }

    #[test]
    fn a_prefix_needs_a_name() {
        for wrong in ["", "/", "a//b", "a/../b"] {
            let refused = OverflowCodec::new(Arc::new(InMemory::new()), wrong);
            assert!(refused.is_err(), "{wrong:?}");
        }
    }
}
