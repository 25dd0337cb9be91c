//! The janitor's path from a new round to a removal, a minute after the job's end.
//!
//! Every read is answered immediately, so the decision to remove is current. The removal itself is served later.

use std::time::Duration;

use bellwether_core::budget::MIN_RETENTION;
use bellwether_core::machine::janitor::{BucketKind, Effect, Event, Found, Janitor};
use bellwether_core::path::{self, Bucket};
use bellwether_core::retention::Retention;
use bellwether_core::time::Millis;
use bellwether_core::txn::Batch;

use super::stage::{EXPIRED, job};
use crate::zookeeper::ZooKeeper;

/// The shortest retention for all ends.
fn retention() -> Retention {
    Retention::default().succeeded(MIN_RETENTION).cancelled(MIN_RETENTION).dead(MIN_RETENTION)
}

/// Returns the removal that a janitor sends now, if there is one.
pub(super) fn removal(zk: &ZooKeeper, epoch: i32) -> Option<(Janitor, Batch<String>)> {
    // All jobs that have ended did so before this time.
    let wall = EXPIRED + MIN_RETENTION + Duration::from_secs(1);
    let (mut janitor, mut now) = (Janitor::new(epoch), Millis(0));
    let mut event = Event::Go;
    loop {
        let mut effects = Vec::new();
        janitor.handle(now, wall, event, &mut effects);
        let effect = effects.pop().expect("the janitor continues or rests");
        assert!(effects.is_empty(), "one request at a time");
        event = match effect {
            Effect::Rest(time) => {
                now = now + time;
                Event::Go
            }
            Effect::Settings => Event::Settings(Ok((Some(retention()), Some(wall)))),
            Effect::Count(kind, buckets) => {
                let counts = buckets.iter().map(|bucket| count(zk, kind, *bucket)).collect();
                Event::Counted(kind, buckets, Ok(counts))
            }
            Effect::List(kind, bucket) => {
                let version = zk.get(&kind.path(bucket)).map_or(0, |(_, version)| version);
                Event::Listed(kind, bucket, Ok((version, names(zk, kind, bucket))))
            }
            Effect::Read(jobs) => {
                let found = jobs.iter().map(|job| match zk.get(&path::record(job)) {
                    Some((data, version)) => Found::of(job, data, version, EXPIRED),
                    None => Found::Absent,
                });
                let found = found.collect();
                Event::Read(jobs, Ok(found))
            }
            Effect::Commit(batch) => return Some((janitor, batch)),
            Effect::Idle => return None,
            Effect::Names(paths) => {
                let names = |path: &String| {
                    let names = zk.children(path)?.into_iter().map(str::to_owned);
                    Some(names.collect())
                };
                Event::Names(Ok(paths.iter().map(names).collect()))
            }
            Effect::Stat(paths) => {
                let stat = |path: &String| zk.get(path).map(|_| (EXPIRED, zk.names(path).count()));
                Event::Stats(Ok(paths.iter().map(stat).collect()))
            }
            other @ (Effect::Segments(_) | Effect::Groups(_) | Effect::Removed(_) | Effect::FencedOut) => {
                unreachable!("unexpected effect without segments, groups and requests: {other:?}")
            }
        };
    }
}

fn count(zk: &ZooKeeper, kind: BucketKind, bucket: Bucket) -> usize {
    let own = match kind {
        BucketKind::Jobs => bucket == Bucket::of(&job()),
        BucketKind::Groups => false,
    };
    if own { names(zk, kind, bucket).len() } else { 0 }
}

fn names(zk: &ZooKeeper, kind: BucketKind, bucket: Bucket) -> Vec<String> {
    let parents = kind.parents(bucket);
    parents.iter().flat_map(|parent| zk.names(parent)).map(|(name, _)| name.to_owned()).collect()
}
