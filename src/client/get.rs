//! Reading jobs with their places.

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::job::JobState;
use bellwether_core::name::{GroupId, JobId};
use bellwether_core::wire::WireError;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::Client;
use super::author::Changed;
use super::cluster::Cluster;
use super::error::Error;
use super::lanes::Turns;
use super::locate::{Found, Location, locate};
use super::packed;
use super::session::Deadline;
use super::sub_jobs::add_sub_jobs;
use super::view::{JobView, State, WaitReason};

impl Client {
    /// Reads a job; `None` if it does not exist. A job whose record cannot be read is returned as
    /// [`State::Quarantined`], with the reason.
    ///
    /// # Errors
    /// Fails if ZooKeeper does not answer within the client's deadline, or the result cannot be decoded.
    ///
    /// # Consistency
    /// The record is read before the place. Both are read again if the job moved in between. A job that is returned
    /// as ended stays ended (S15). Before a job is returned as absent, the client reads again after its server has caught
    /// up (S23). A job that is found may have the state of a server that lags. The first job of its lane is read last, and
    /// left out if that read does not succeed in time.
    ///
    /// # Codec
    /// The result is decoded; the payload is as stored. See [`Client::decode_payload`].
    pub fn get<'a>(&'a self, id: &'a JobId) -> BoxFuture<'a, Result<Option<JobView>, Error>> {
        async move {
            match self.get_by(id, self.by()).await? {
                Some(view) => self.with_result(view).await.map(Some),
                None => Ok(None),
            }
        }
        .boxed()
    }

    /// Reads many jobs in batches. The result is in the order of the ids.
    ///
    /// # Errors
    /// Like [`Client::get`]; the deadline applies to each batch of 100. A lane that cannot be read is an error here, and one
    /// result that cannot be decoded is the error of the call.
    ///
    /// # Consistency
    /// Like [`Client::get`]; the first job of a lane is read once for all jobs.
    pub fn get_many<'a>(&'a self, ids: &'a [JobId]) -> BoxFuture<'a, Result<Vec<Option<JobView>>, Error>> {
        async move {
            let mut views = Vec::with_capacity(ids.len());
            let cluster = self.cluster(self.by()).await?;
            let mut turns = Turns::default();
            for page in ids.chunks(MAX_READ_BATCH) {
                let found = self.locate(self.by(), page).await?;
                let page = page.iter().zip(found);
                let page = page.map(|(id, found)| Some(view(id.clone(), found?, Some(&cluster))));
                let mut page = page.collect::<Vec<_>>();
                turns.tell(&self.0.session, self.by(), page.iter_mut().flatten()).await?;
                add_sub_jobs(&self.0.session, self.by(), page.iter_mut().flatten()).await?;
                views.append(&mut self.with_results(page).await?);
            }
            Ok(views)
        }
        .boxed()
    }

    /// Returns whether each of these jobs is stored, readable or not. The result is in the order of the ids.
    ///
    /// # Errors
    /// Fails if ZooKeeper does not answer within the client's deadline, which applies to each batch of 100.
    ///
    /// # Consistency
    /// A job that was accepted before the call, and was not removed, exists (S23).
    pub fn exist<'a>(&'a self, ids: &'a [JobId]) -> BoxFuture<'a, Result<Vec<bool>, Error>> {
        async move {
            let mut exist = Vec::with_capacity(ids.len());
            for page in ids.chunks(MAX_READ_BATCH) {
                let look = |zk, ids: Vec<JobId>| async move { packed::exist(&zk, &ids).await };
                let is_absent = |exists: &bool| !exists;
                exist.append(&mut self.0.session.read_each(self.by(), page.to_vec(), is_absent, look).await?);
            }
            Ok(exist)
        }
        .boxed()
    }

    /// Reads a job, with the payload and the result as stored.
    pub(super) async fn get_by(&self, id: &JobId, by: Deadline) -> Result<Option<JobView>, Error> {
        let found = self.locate(by, std::slice::from_ref(id)).await?.pop().flatten();
        let Some(found) = found else { return Ok(None) };
        let over = matches!(&found, Ok(found) if found.record.is_terminal());
        let cluster = if over { None } else { Some(self.cluster(by).await?) };
        let mut view = view(id.clone(), found, cluster.as_ref());
        self.tell_turn(by, &mut view).await;
        Ok(Some(view))
    }

    /// Locates jobs. Absent ones are looked for again after the server has caught up.
    pub(super) async fn locate(
        &self,
        by: Deadline,
        ids: &[JobId],
    ) -> Result<Vec<Option<Result<Found, WireError>>>, Error> {
        let mut found = locate(&self.0.session, by, ids).await?;
        let absent = (0..found.len()).filter(|at| found[*at].is_none()).collect::<Vec<_>>();
        if !absent.is_empty() {
            self.0.session.catch_up(by).await?;
            let again = absent.iter().map(|at| ids[*at].clone()).collect::<Vec<_>>();
            let again = locate(&self.0.session, by, &again).await?;
            absent.into_iter().zip(again).for_each(|(at, look)| found[at] = look);
        }
        Ok(found)
    }

    /// Adds the first job of the lane, and the further groups of its sub-jobs. If that fails, the rest of the view is still
    /// useful: reading a long lane may take too long.
    pub(super) async fn tell_turn(&self, by: Deadline, view: &mut JobView) {
        let id = view.id.clone();
        if let Err(error) = add_sub_jobs(&self.0.session, by, [&mut *view]).await {
            tracing::debug!(job = %id, %error, "the client could not read the groups of the job's sub-jobs");
        }
        if let Err(error) = Turns::default().tell(&self.0.session, by, [view]).await {
            tracing::debug!(job = %id, %error, "the client could not read the turns of the job's lane");
        }
    }

    pub(super) async fn cluster(&self, by: Deadline) -> Result<Cluster, Error> {
        self.0.session.read(by, |zk| Cluster::read(zk.clone(), self.0.session.wall())).await
    }
}

/// Builds the view of a job. Without a cluster it does not contain why the job waits.
pub(super) fn view(id: JobId, found: Result<Found, WireError>, cluster: Option<&Cluster>) -> JobView {
    let Found { record, place, .. } = match found {
        Ok(found) => found,
        Err(reason) => return JobView::unreadable(id, &reason),
    };
    let queued = cluster.map(|cluster| cluster.why_queued(&record));
    let backoff = match record.state {
        JobState::Open { not_before } => not_before,
        JobState::Terminal { .. } => None,
    };
    let untried = record.attempts == 0;
    let sub_jobs = GroupId::of_sub_jobs(&id, &record);
    let mut view = JobView::of(id, record);
    match place {
        Location::Terminal => {}
        Location::Queued(_) => view.waiting = queued,
        Location::Nowhere => view.waiting = Some(WaitReason::Nowhere),
        Location::Delayed(_) => {
            view.state = State::Delayed;
            view.not_before = backoff.map(Into::into);
            view.waiting = Some(if untried { WaitReason::NotBefore } else { WaitReason::Backoff });
        }
        Location::Assigned { worker, assignment, .. } => {
            view.state = State::Running;
            view.worker = Some(worker);
            match assignment {
                Ok(assignment) => {
                    view.attempt = assignment.attempt;
                    view.cancel_requested = assignment.cancel;
                    view.changed = assignment.cancelled.map(Changed::of).or(view.changed);
                    view.lease = Some(assignment.lease);
                    view.assigned_at = Some(assignment.assigned_at.into());
                    if view.sub_jobs.is_empty() && assignment.spawned {
                        view.sub_jobs.push(sub_jobs);
                    }
                    view.progress = assignment.progress.or(view.progress);
                }
                Err(reason) => view.error = Some(format!("its assignment cannot be read: {reason}")),
            }
            if let Some(cluster) = cluster {
                view.waiting = (!cluster.lives(worker)).then_some(WaitReason::WorkerLost);
            }
        }
        Location::Quarantined { note } => {
            view.state = State::Quarantined;
            view.error = Some(note);
        }
    }
    view.node = view.worker.and_then(|worker| cluster?.node(worker)).cloned();
    view
}
