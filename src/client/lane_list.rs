//! Listing lanes with open jobs in [pages](super::page).
//!
//! The number of jobs in a lane is the number of children of its znode. The first job is known only after all turns of the
//! lane are read, so a page reads the turns of small lanes only.

use bellwether_core::name::{JobId, Lane};
use bellwether_zk::Node;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::Client;
use super::error::Error;
use super::lanes::firsts;
use super::page::Page;

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

impl Client {
    /// Returns one page of the lanes that have open jobs, at most `limit` (1 to [`MAX_PAGE`](super::page::MAX_PAGE)). It continues after
    /// the `next` of an earlier page, in no particular order. A lane that has open jobs all the time is returned exactly once over all pages.
    ///
    /// # Errors
    /// Fails if ZooKeeper does not answer within the client's deadline, which applies to each read.
    pub fn list_lanes<'a>(
        &'a self,
        after: Option<&'a Lane>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page<LaneView, Lane>, Error>> {
        async move {
            let view = |lane: &Lane, node: Node| {
                (node.children > 0).then(|| LaneView { lane: lane.clone(), jobs: node.children, first: None })
            };
            let mut page = self.bucket_page(after, limit, view).await?;
            self.add_first_jobs(&mut page.items).await?;
            Ok(page)
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
}

#[cfg(test)]
mod tests;
