//! Listing groups in stateless pages, like jobs (`client/page.rs`).
//!
//! A page reads records, a hundred per request, and no members; the state of members is read for one group at a time.
//! A page looks at a bounded number of groups, so that a filter for a rare stage does not read all of them in one
//! call.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::name::{GroupId, JobId, Kind};
use bellwether_core::path::{self, Bucket};
use bellwether_zk::Node;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::super::Client;
use super::super::error::Error;
use super::super::list::PARENTS_AT_ONCE;
use super::super::page::{CursorError, MAX_PAGE};
use super::decode;
use super::view::{GroupStage, GroupView};

/// Maximum number of groups that one page looks at, even if the filter accepts none: 50 batched reads.
const MAX_LOOKED_AT: usize = 5_000;

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

/// A page of groups.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupPage {
    /// The groups, in no particular order.
    pub groups: Vec<GroupSummary>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<GroupCursor>,
}

/// The end of a page: this group, in the order of buckets and names. Its text is opaque: pass it back unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupCursor(GroupId);

impl fmt::Display for GroupCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl FromStr for GroupCursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        GroupId::new(text).map(Self).map_err(|_| CursorError)
    }
}

impl Client {
    /// Returns one page of the groups, at most `limit` (1 to [`MAX_PAGE`]), optionally only those in one stage. It
    /// continues after an earlier page with the same filter. A group that exists all the time is returned exactly
    /// once over all pages.
    ///
    /// # Errors
    /// Fails if ZooKeeper does not answer within the client's deadline, which applies to each read.
    pub fn list_groups<'a>(
        &'a self,
        stage: Option<GroupStage>,
        from: Option<&'a GroupCursor>,
        limit: usize,
    ) -> BoxFuture<'a, Result<GroupPage, Error>> {
        async move {
            let limit = limit.clamp(1, MAX_PAGE);
            let first = from.map(|GroupCursor(id)| Bucket::of_group(id).index()).unwrap_or_default();
            let mut buckets = Bucket::all().filter(|bucket| bucket.index() >= first).collect::<VecDeque<_>>();
            let (mut groups, mut looked_at) = (Vec::new(), 0);
            while !buckets.is_empty() {
                let mut ids = self.group_names(&mut buckets, from).await?;
                while !ids.is_empty() {
                    let few = ids.drain(..ids.len().min(MAX_READ_BATCH)).collect::<Vec<_>>();
                    let paths = few.iter().map(path::group).collect::<Vec<_>>();
                    let nodes = self.0.session.read(self.by(), |zk| zk.get_many(paths.clone())).await?;
                    for (id, node) in few.into_iter().zip(nodes) {
                        looked_at += 1;
                        // Absent: removed since it was listed.
                        let summary = node.map(|node| summary(&id, &node));
                        let wanted = |summary: &GroupSummary| {
                            stage.is_none_or(|stage| {
                                summary.record.as_ref().is_some_and(|record| record.stage == stage)
                            })
                        };
                        groups.extend(summary.filter(wanted));
                        if groups.len() == limit || looked_at == MAX_LOOKED_AT {
                            return Ok(GroupPage { groups, next: Some(GroupCursor(id)) });
                        }
                    }
                }
            }
            Ok(GroupPage { groups, next: None })
        }
        .boxed()
    }

    /// Returns the names in the next few buckets, in order, without those up to the cursor.
    async fn group_names(
        &self,
        buckets: &mut VecDeque<Bucket>,
        from: Option<&GroupCursor>,
    ) -> Result<VecDeque<GroupId>, Error> {
        let few = buckets.drain(..buckets.len().min(PARENTS_AT_ONCE)).collect::<Vec<_>>();
        let paths = few.iter().map(|bucket| bucket.groups()).collect::<Vec<_>>();
        let lists = self.0.session.read(self.by(), |zk| zk.children_many(paths.clone())).await?;
        let mut all = VecDeque::new();
        for (bucket, names) in few.into_iter().zip(lists) {
            // Other znodes are ignored: their names are not group ids.
            let names = names.unwrap_or_default().into_iter();
            let mut ids = names.filter_map(|name| GroupId::new(name).ok()).collect::<Vec<_>>();
            if let Some(GroupCursor(after)) = from
                && Bucket::of_group(after) == bucket
            {
                ids.retain(|id| id > after);
            }
            ids.sort_unstable();
            all.extend(ids);
        }
        Ok(all)
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
