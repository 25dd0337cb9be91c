//! Listing groups in [pages](super::super::page).
//!
//! A page reads records, a hundred per request, and no members; the state of members is read for one group at a time.
//! A page looks at a bounded number of groups, so that a filter for a rare stage does not read all of them in one
//! call.

use std::collections::BTreeSet;
use std::time::SystemTime;

use bellwether_core::name::{GroupId, JobId, Kind};
use bellwether_zk::Node;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::super::Client;
use super::super::error::Error;
use super::super::page::Page;
use super::decode;
use super::view::{GroupStage, GroupView};

/// A group without the counts of its members. [`Client::get_group`] counts them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupSummary {
    /// Its id.
    pub id: GroupId,
    /// The content of its record; `None` if it cannot be read.
    pub record: Option<GroupRecordView>,
}

/// The content of a group's record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupRecordView {
    /// The kind of its members.
    pub kind: Kind,
    /// Where it is in its life.
    pub stage: GroupStage,
    /// The total number of members, once it is set.
    pub total: Option<u32>,
    /// The job whose sub-jobs are the members.
    pub parent: Option<JobId>,
    /// When it was created, by the creator's clock.
    pub created_at: SystemTime,
    /// When it was done, by the leader's clock.
    pub done_at: Option<SystemTime>,
}

impl Client {
    /// Returns one page of the groups, at most `limit` (1 to [`MAX_PAGE`](super::super::page::MAX_PAGE)), optionally only those in one stage. It
    /// continues after an earlier page with the same filter. A group that exists all the time is returned exactly
    /// once over all pages.
    ///
    /// # Errors
    /// Fails if ZooKeeper does not answer within the client's deadline, which applies to each read.
    pub fn list_groups<'a>(
        &'a self,
        stage: Option<GroupStage>,
        after: Option<&'a GroupId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page<GroupSummary, GroupId>, Error>> {
        async move {
            let view = |id: &GroupId, node| {
                let summary = summary(id, &node);
                let is = |stage| summary.record.as_ref().is_some_and(|record| record.stage == stage);
                stage.is_none_or(is).then_some(summary)
            };
            self.bucket_page(after, limit, view).await
        }
        .boxed()
    }
}

fn summary(id: &GroupId, node: &Node) -> GroupSummary {
    let record = decode(id, node).ok().map(|record| {
        let GroupView { kind, stage, total, parent, created_at, done_at, .. } =
            GroupView::new(id, record, &BTreeSet::new());
        GroupRecordView { kind, stage, total, parent, created_at, done_at }
    });
    GroupSummary { id: id.clone(), record }
}

#[cfg(test)]
mod tests;
