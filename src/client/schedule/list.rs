//! Listing schedules in pages.

use std::collections::VecDeque;

use bellwether_core::name::ScheduleId;
use bellwether_core::path;
use bellwether_zk::Node;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::{ScheduleError, ScheduleView, Schedules};
use crate::client::page::{FIRST_READ, MAX_PAGE, Page, READ_BYTES, next_read};

impl Schedules {
    /// Returns one page of the schedules, by id, at most `limit` (1 to [`MAX_PAGE`]). It continues after the `next` of
    /// an earlier page. It ends early if its schedules, with their payloads, have about 1 MiB. An unreadable schedule is
    /// returned with its error.
    ///
    /// # Errors
    /// Fails if ZooKeeper does not answer within the client's deadline, which applies to each read.
    pub fn list<'a>(
        &'a self,
        after: Option<&'a ScheduleId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Page<ScheduleView, ScheduleId>, ScheduleError>> {
        async move {
            let (limit, session) = (limit.clamp(1, MAX_PAGE), &self.0.0.session);
            let names = session.read(self.0.by(), |zk| zk.children(path::SCHEDULES.to_owned())).await?;
            let ids = names.unwrap_or_default().into_iter().filter_map(|name| ScheduleId::new(name).ok());
            let mut ids = ids.filter(|id| after.is_none_or(|after| id > after)).collect::<Vec<_>>();
            ids.sort_unstable();
            let mut ids = VecDeque::from(ids);
            let (mut items, mut bytes, mut at_once) = (Vec::new(), 0_usize, FIRST_READ);
            while !ids.is_empty() {
                let few = ids.drain(..ids.len().min(at_once).min(limit - items.len())).collect::<Vec<_>>();
                let paths = few.iter().map(path::schedule).collect::<Vec<_>>();
                let nodes = session.read(self.0.by(), |zk| zk.get_many(paths.clone())).await?;
                let (read, before, mut last) = (few.len(), bytes, None);
                for (id, node) in few.into_iter().zip(nodes) {
                    // Absent: removed since it was listed.
                    if let Some(Node { data, .. }) = node {
                        bytes += data.len();
                        items.push(ScheduleView::decode(id.clone(), &data));
                    }
                    last = Some(id);
                    if bytes >= READ_BYTES {
                        return Ok(Page { items, next: last });
                    }
                }
                if items.len() == limit && !ids.is_empty() {
                    return Ok(Page { items, next: last });
                }
                at_once = next_read(read, bytes - before);
            }
            Ok(Page { items, next: None })
        }
        .boxed()
    }
}
