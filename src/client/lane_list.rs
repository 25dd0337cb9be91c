//! Listing lanes with open jobs in stateless pages, like jobs (`client/page.rs`).
//!
//! The number of jobs in a lane is the number of children of its znode. The first job is known only after all turns of the
//! lane are read, so a page reads the turns of small lanes only.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::name::{JobId, Lane};
use bellwether_core::path::{self, Bucket};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::Client;
use super::error::Error;
use super::lanes::firsts;
use super::list::PARENTS_AT_ONCE;
use super::page::{CursorError, MAX_PAGE};

/// Maximum number of lanes that one page looks at, even if all of them are empty: 50 batched reads.
const MAX_LOOKED_AT: usize = 5_000;

/// Maximum number of turns that one page reads to find the first jobs: 20 batched reads.
const MAX_TURNS: usize = 2_000;

/// A lane with open jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaneView {
    /// Its name.
    pub lane: Lane,
    /// Its jobs that have not ended, with the running one.
    pub jobs: usize,
    /// The job that runs, or runs next; `None` if the page did not look for it because its lanes have many jobs.
    pub first: Option<JobId>,
}

/// A page of lanes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LanePage {
    /// The lanes, in no particular order.
    pub lanes: Vec<LaneView>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<LaneCursor>,
}

/// The end of a page: this lane, in the order of buckets and names. Its text is opaque: pass it back unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneCursor(Lane);

impl fmt::Display for LaneCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl FromStr for LaneCursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        Lane::new(text).map(Self).map_err(|_| CursorError)
    }
}

impl Client {
    /// Returns one page of the lanes that have open jobs, at most `limit` (1 to [`MAX_PAGE`]). It continues after an earlier
    /// page. A lane that has open jobs all the time is returned exactly once over all pages.
    ///
    /// # Errors
    /// Fails if ZooKeeper does not answer within the client's deadline, which applies to each read.
    pub fn list_lanes<'a>(
        &'a self,
        from: Option<&'a LaneCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<LanePage, Error>> {
        async move {
            let limit = limit.clamp(1, MAX_PAGE);
            let first = from.map(|LaneCursor(lane)| Bucket::of_lane(lane).index()).unwrap_or_default();
            let mut buckets = Bucket::all().filter(|bucket| bucket.index() >= first).collect::<VecDeque<_>>();
            let (mut lanes, mut looked_at, mut next) = (Vec::new(), 0, None);
            'page: while !buckets.is_empty() {
                let mut names = self.lane_names(&mut buckets, from).await?;
                while !names.is_empty() {
                    let few = names.drain(..names.len().min(MAX_READ_BATCH)).collect::<Vec<_>>();
                    let paths = few.iter().map(path::lane).collect::<Vec<_>>();
                    let nodes = self.0.session.read(self.by(), |zk| zk.get_many(paths.clone())).await?;
                    for (lane, node) in few.into_iter().zip(nodes) {
                        looked_at += 1;
                        // Absent: ZooKeeper removed the empty lane since it was listed.
                        let jobs = node.map_or(0, |node| node.children);
                        if jobs > 0 {
                            lanes.push(LaneView { lane: lane.clone(), jobs, first: None });
                        }
                        if lanes.len() == limit || looked_at == MAX_LOOKED_AT {
                            next = Some(LaneCursor(lane));
                            break 'page;
                        }
                    }
                }
            }
            self.add_first_jobs(&mut lanes).await?;
            Ok(LanePage { lanes, next })
        }
        .boxed()
    }

    async fn add_first_jobs(&self, lanes: &mut [LaneView]) -> Result<(), Error> {
        let mut turns = 0;
        let small = lanes.iter().filter(|view| {
            let fits = turns + view.jobs <= MAX_TURNS;
            turns += if fits { view.jobs } else { 0 };
            fits
        });
        let small = small.map(|view| view.lane.clone()).collect::<Vec<_>>();
        let mut found = self.0.session.read(self.by(), |zk| firsts(zk.clone(), small.clone())).await?;
        for view in lanes {
            view.first = found.remove(&view.lane).map(|(_, job)| job);
        }
        Ok(())
    }

    /// Returns the names in the next few buckets, in order, without those up to the cursor.
    async fn lane_names(
        &self,
        buckets: &mut VecDeque<Bucket>,
        from: Option<&LaneCursor>,
    ) -> Result<VecDeque<Lane>, Error> {
        let few = buckets.drain(..buckets.len().min(PARENTS_AT_ONCE)).collect::<Vec<_>>();
        let paths = few.iter().map(|bucket| bucket.lanes()).collect::<Vec<_>>();
        let lists = self.0.session.read(self.by(), |zk| zk.children_many(paths.clone())).await?;
        let mut all = VecDeque::new();
        for (bucket, names) in few.into_iter().zip(lists) {
            // Other znodes are ignored: their names are not lanes.
            let names = names.unwrap_or_default().into_iter();
            let mut lanes = names.filter_map(|name| Lane::new(name).ok()).collect::<Vec<_>>();
            if let Some(LaneCursor(after)) = from
                && Bucket::of_lane(after) == bucket
            {
                lanes.retain(|lane| lane > after);
            }
            lanes.sort_unstable();
            all.extend(lanes);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests;
