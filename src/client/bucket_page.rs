//! Stateless pages of groups and of lanes: of the znodes that have a parent in each bucket, in the order of buckets and names.

use std::collections::VecDeque;

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::name::{GroupId, Lane};
use bellwether_core::path::{self, Bucket};
use bellwether_zk::Node;

use super::Client;
use super::error::Error;
use super::list::PARENTS_AT_ONCE;
use super::page::{MAX_LOOKED_AT, MAX_PAGE, Page};

/// The name of a znode whose parent is in a bucket.
pub(super) trait Bucketed: Ord + Clone {
    /// Returns `None` for the name of another znode.
    fn parse(name: String) -> Option<Self>;
    fn bucket(&self) -> Bucket;
    fn parent(bucket: Bucket) -> String;
    fn path(&self) -> String;
}

impl Bucketed for GroupId {
    fn parse(name: String) -> Option<Self> {
        Self::new(name).ok()
    }

    fn bucket(&self) -> Bucket {
        Bucket::of_group(self)
    }

    fn parent(bucket: Bucket) -> String {
        bucket.groups()
    }

    fn path(&self) -> String {
        path::group(self)
    }
}

impl Bucketed for Lane {
    fn parse(name: String) -> Option<Self> {
        Self::new(name).ok()
    }

    fn bucket(&self) -> Bucket {
        Bucket::of_lane(self)
    }

    fn parent(bucket: Bucket) -> String {
        bucket.lanes()
    }

    fn path(&self) -> String {
        path::lane(self)
    }
}

impl Client {
    /// Returns what `view` makes of the znodes after one of them, at most `limit` (1 to [`MAX_PAGE`]). A znode that was removed
    /// since it was listed is left out.
    pub(super) async fn bucket_page<N: Bucketed, T>(
        &self,
        after: Option<&N>,
        limit: usize,
        view: impl Fn(&N, Node) -> Option<T>,
    ) -> Result<Page<T, N>, Error> {
        let limit = limit.clamp(1, MAX_PAGE);
        let first = after.map(|after| after.bucket().index()).unwrap_or_default();
        let mut buckets = Bucket::all().filter(|bucket| bucket.index() >= first).collect::<VecDeque<_>>();
        let (mut items, mut looked_at) = (Vec::new(), 0);
        while !buckets.is_empty() {
            let mut names = self.names_in_buckets(&mut buckets, after).await?;
            while !names.is_empty() {
                let few = names.drain(..names.len().min(MAX_READ_BATCH)).collect::<Vec<_>>();
                let paths = few.iter().map(N::path).collect::<Vec<_>>();
                let nodes = self.0.session.read(self.by(), |zk| zk.get_many(paths.clone())).await?;
                for (name, node) in few.into_iter().zip(nodes) {
                    looked_at += 1;
                    items.extend(node.and_then(|node| view(&name, node)));
                    if items.len() == limit || looked_at == MAX_LOOKED_AT {
                        return Ok(Page { items, next: Some(name) });
                    }
                }
            }
        }
        Ok(Page { items, next: None })
    }

    /// Returns the names in the next few buckets, in order, without those up to `after`.
    async fn names_in_buckets<N: Bucketed>(
        &self,
        buckets: &mut VecDeque<Bucket>,
        after: Option<&N>,
    ) -> Result<VecDeque<N>, Error> {
        let few = buckets.drain(..buckets.len().min(PARENTS_AT_ONCE)).collect::<Vec<_>>();
        let paths = few.iter().map(|bucket| N::parent(*bucket)).collect::<Vec<_>>();
        let lists = self.0.session.read(self.by(), |zk| zk.children_many(paths.clone())).await?;
        let mut all = VecDeque::new();
        for (bucket, names) in few.into_iter().zip(lists) {
            let mut names = names.unwrap_or_default().into_iter().filter_map(N::parse).collect::<Vec<_>>();
            if let Some(after) = after.filter(|after| after.bucket() == bucket) {
                names.retain(|name| name > after);
            }
            names.sort_unstable();
            all.extend(names);
        }
        Ok(all)
    }
}
