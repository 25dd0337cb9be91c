//! The jobs on a worker, in [pages](super::page).

use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::path;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::Client;
use super::error::Error;
use super::get::view;
use super::locate::locate;
use super::page::{MAX_PAGE, Page};
use super::segments::{expand, job_or_segment};
use super::sub_jobs::add_sub_jobs;
use super::view::{JobView, State};

/// Records of one read: at most 3 MiB with payloads and results of 64 KiB.
const READ_AT_ONCE: usize = 25;

impl Client {
    /// Returns one page of the jobs that are assigned to a worker, at most `limit` (1 to [`MAX_PAGE`]), in the order of their ids,
    /// without payloads and results. It continues after the `next` of an earlier page. Returns `None` if there is no such worker: it has left, and the leader has taken back its jobs.
    ///
    /// # Errors
    /// Fails if ZooKeeper does not answer within the client's deadline, which applies to each read.
    ///
    /// # Consistency
    /// A job that ends or leaves the worker before its record is read is left out, so a page may have fewer jobs.
    pub fn list_worker_jobs<'a>(
        &'a self,
        worker: WorkerId,
        after: Option<&'a JobId>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Option<Page<JobView, JobId>>, Error>> {
        async move {
            let Some(names) = self.inbox(worker).await? else { return Ok(None) };
            // Other znodes are ignored: their names are not job ids.
            let ids = names.iter().filter_map(|name| job_or_segment(name)).collect::<Vec<_>>();
            // An inbox has few segments: their members are as many as a few times the slots of the worker.
            let running = Some(State::Running);
            let ids = self.0.session.read(self.by(), |zk| expand(zk.clone(), ids.clone(), running)).await?;
            let mut ids =
                ids.into_iter().filter(|id| after.is_none_or(|after| id > after)).collect::<Vec<_>>();
            ids.sort_unstable();
            let limit = limit.clamp(1, MAX_PAGE);
            let next = if ids.len() > limit { ids.get(limit - 1).cloned() } else { None };
            ids.truncate(limit);
            let cluster = self.cluster(self.by()).await?;
            let mut jobs = Vec::with_capacity(ids.len());
            for ids in ids.chunks(READ_AT_ONCE) {
                let found = locate(&self.0.session, self.by(), ids).await?;
                let views = ids.iter().zip(found);
                let views = views.filter_map(|(id, found)| Some(view(id.clone(), found?, Some(&cluster))));
                let is_here = |view: &JobView| view.state == State::Running && view.worker == Some(worker);
                let mut views = views.filter(is_here).collect::<Vec<_>>();
                for view in &mut views {
                    (view.payload, view.result) = (None, None);
                }
                add_sub_jobs(&self.0.session, self.by(), &mut views).await?;
                jobs.append(&mut views);
            }
            Ok(Some(Page { items: jobs, next }))
        }
        .boxed()
    }

    /// Returns the names in a worker's inbox. An absent inbox is looked for again after the server has caught up.
    async fn inbox(&self, worker: WorkerId) -> Result<Option<Vec<String>>, Error> {
        let read = || self.0.session.read(self.by(), |zk| zk.children(path::inbox(worker)));
        if let Some(names) = read().await? {
            return Ok(Some(names));
        }
        self.caught_up().await?;
        read().await
    }
}

#[cfg(test)]
mod tests;
