//! The leftovers in a namespace after all jobs have ended.

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::path::{self, Bucket};
use bellwether_core::ready::Shard;
use bellwether_zk::{ReadResult, Zk};

/// S1, S10, L6: lists the znodes that remain of finished jobs or removed workers. Empty if everything was cleaned up.
pub(crate) async fn leftovers(zk: &Zk, workers: usize) -> ReadResult<Vec<String>> {
    let mut left = Vec::new();
    let parents = vec![path::WORKERS.to_owned(), path::ASSIGNMENTS.to_owned(), path::DELAYED.to_owned()];
    let mut lists = zk.children_many(parents).await?.into_iter().map(Option::unwrap_or_default);
    let (alive, inboxes) = (lists.next().unwrap_or_default(), lists.next().unwrap_or_default());
    if alive.len() != workers || inboxes.len() != workers {
        left.push(format!("{} workers and {} inboxes for {workers} nodes", alive.len(), inboxes.len()));
    }
    let classes = below(zk, Shard::all().map(path::ready_shard).collect()).await?;
    let mut parents = below(zk, classes).await?;
    parents.extend(inboxes.iter().map(|id| format!("{}/{id}", path::ASSIGNMENTS)));
    parents.extend(lists.next().iter().flatten().map(|minute| format!("{}/{minute}", path::DELAYED)));
    parents.extend(below(zk, Bucket::all().map(Bucket::lanes).collect()).await?);
    // Groups are kept for a while, but without open members: the third level must be empty.
    let groups = below(zk, Bucket::all().map(Bucket::members).collect()).await?;
    parents.extend(below(zk, groups).await?);
    left.extend(below(zk, parents).await?);
    Ok(left)
}

async fn below(zk: &Zk, parents: Vec<String>) -> ReadResult<Vec<String>> {
    let mut paths = Vec::new();
    for parents in parents.chunks(MAX_READ_BATCH) {
        let lists = zk.children_many(parents.to_vec()).await?;
        let names = |(parent, names): (&String, Option<Vec<String>>)| {
            names.unwrap_or_default().into_iter().map(|name| format!("{parent}/{name}")).collect::<Vec<_>>()
        };
        paths.extend(parents.iter().zip(lists).flat_map(names));
    }
    Ok(paths)
}
