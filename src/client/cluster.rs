//! Workers and the leader.

use std::collections::BTreeMap;
use std::time::SystemTime;

use bellwether_core::budget::{MAX_READ_BATCH, MAX_STAT_BATCH};
use bellwether_core::change::{ChangeKind, Noted};
use bellwether_core::machine::assigner::SHUNNED;
use bellwether_core::name::{Kind, NodeId, Tag, WorkerId};
use bellwether_core::remedy::ErrorClass;
use bellwether_core::time::WallMillis;
use bellwether_core::wire::{self, WireError};
use bellwether_core::worker::{EpochRecord, WorkerInfo as Registration};
pub use bellwether_core::worker::{WorkerSettings, WorkerSettingsError};
use bellwether_core::{path, txn};
use bellwether_zk::{Node, ReadResult, WrappingCount};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::future::try_join_all;

use super::Client;
use super::error::{Error, Subject};
use super::explain::Shunned;
use super::kinds::{Paused, pauses};
use super::runtime::Zk;
use super::segments::jobs_of_name;
use super::session::{Deadline, Written};
use super::setting::Setting;
use super::view::WaitReason;
use super::worker_change::WorkerChange;
use crate::election::candidates::{self, Candidates};
use bellwether_core::job::{Isolation, JobRecord};

/// A live worker.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerView {
    /// This incarnation of its node's worker role.
    pub id: WorkerId,
    /// Its registration, or why that cannot be read.
    pub info: Result<WorkerInfo, WireError>,
    /// Jobs in its inbox. A segment counts all of its members until it leaves the inbox, although some may have ended.
    pub assigned: usize,
    /// Jobs and segments that left its inbox since it registered: attempts that were closed or handed back.
    pub ended: WrappingCount,
    /// The end of the time in which it gets no jobs because an attempt with an expired lease was taken from it, by
    /// ZooKeeper's clock. The time ends earlier if the worker registers again or the leader changes. It may last
    /// longer, by up to one sweep of the leader (15 s).
    pub shunned_until: Option<SystemTime>,
}

/// The registration of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerInfo {
    /// The node that it belongs to.
    pub node: NodeId,
    /// The host that it runs on; only for display.
    pub host: String,
    /// The kinds that it has handlers for, sorted.
    pub kinds: Vec<Kind>,
    /// How many jobs it runs at a time: as configured, or as an operator has set.
    pub slots: u32,
    /// The tags that it offers, sorted: as configured, or as an operator has set.
    pub tags: Vec<Tag>,
    /// When it registered, by its clock.
    pub started_at: SystemTime,
    /// Whether it drains: it gets no further jobs.
    pub draining: bool,
    /// What an operator has set since its process started.
    pub settings: Setting<WorkerSettings>,
}

impl WorkerInfo {
    fn new(info: Registration) -> Self {
        let (slots, tags) = (info.open_slots(), info.offered_tags().to_vec());
        Self {
            node: info.node,
            host: info.host,
            kinds: info.kinds,
            slots: u32::try_from(slots).unwrap_or(u32::MAX),
            tags,
            started_at: info.started_at.into(),
            draining: info.draining,
            settings: Setting::of(info.settings),
        }
    }
}

/// A live worker with its stored registration.
#[derive(Debug)]
pub(super) struct Registered {
    pub(super) id: WorkerId,
    pub(super) info: Result<Registration, WireError>,
    /// The jobs and segments in its inbox; the jobs once [`count_assigned`] has counted them.
    pub(super) assigned: usize,
    ended: WrappingCount,
    shunned_until: Option<WallMillis>,
}

impl WorkerView {
    pub(super) fn new(worker: Registered) -> Self {
        let Registered { id, info, assigned, ended, shunned_until } = worker;
        let (info, shunned_until) = (info.map(WorkerInfo::new), shunned_until.map(SystemTime::from));
        Self { id, info, assigned, ended, shunned_until }
    }
}

/// The outcome of a drain request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainedWorker {
    /// The worker is marked as draining and gets no further jobs.
    Marked,
    /// The worker was already draining, or is stopping.
    Already,
    /// There is no such worker: it has left.
    NotFound,
}

/// The settings of a worker were not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeWorkerError {
    /// A value is out of bounds. Nothing was sent.
    #[error(transparent)]
    Invalid(#[from] WorkerSettingsError),
    /// The settings could not be written, or the outcome is unknown. Setting them again is safe.
    #[error(transparent)]
    Client(#[from] Error),
}

impl ChangeWorkerError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Invalid(_) => ErrorClass::Invalid,
            Self::Client(error) => error.class(),
        }
    }
}

bellwether_core::impl_remedy!(ChangeWorkerError);

/// Limit of attempts to set the mark or the settings when other writes win: a registration is also written when the worker's slots
/// change.
const TRIES: u32 = 20;

/// The claimant of the current epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaderView {
    /// The node.
    pub node: NodeId,
    /// The epoch: the fencing token of all of the leader's writes.
    pub epoch: i32,
    /// The ZooKeeper session that holds the epoch.
    pub session: i64,
    /// When it was claimed, by the leader's clock.
    pub since: SystemTime,
    /// Whether that session is still a candidate. If not, there is no leader now.
    pub standing: bool,
    /// When a leader last renewed its leadership, by ZooKeeper's clock; `None` if none has.
    pub beat_at: Option<SystemTime>,
}

impl Client {
    /// Lists the live workers by id: oldest first.
    ///
    /// # Errors
    /// Fails if ZooKeeper does not answer within the client's deadline.
    pub fn workers(&self) -> BoxFuture<'_, Result<Vec<WorkerView>, Error>> {
        async move {
            let workers =
                async |zk: Zk| count_assigned(&zk, workers(zk.clone(), self.0.session.wall()).await?).await;
            let workers = self.0.session.read(self.by(), |zk| workers(zk.clone())).await?;
            Ok(workers.into_iter().map(WorkerView::new).collect())
        }
        .boxed()
    }

    /// Asks a worker to drain. It gets no further jobs from the moment this returns, finishes running jobs within its
    /// node's grace, hands back the rest, and leaves. Its node continues without it; restart the node to run a worker
    /// again.
    ///
    /// The mark is stored in the registration. If the worker's session expires before the worker has seen the mark,
    /// the worker registers again under another id, without the mark. Wait until the worker has left
    /// ([`Client::workers`]) before you rely on the drain.
    ///
    /// # Errors
    /// [`Error::WorkerUnreadable`] if the registration cannot be read. If there is no answer within the client's
    /// deadline, the worker may or may not be marked; repeating the call is safe.
    pub fn drain_worker(&self, worker: WorkerId) -> BoxFuture<'_, Result<DrainedWorker, Error>> {
        async move {
            let by = self.by();
            let mut unknown = false;
            for _ in 0..TRIES {
                let there = self.0.session.read(by, |zk| zk.get(path::worker(worker))).await?;
                let Some(node) = there else {
                    return Ok(if unknown { DrainedWorker::Marked } else { DrainedWorker::NotFound });
                };
                let info = wire::decode::<Registration>(&node.data)
                    .map_err(|reason| Error::WorkerUnreadable { worker, reason })?;
                if info.draining {
                    return Ok(if unknown { DrainedWorker::Marked } else { DrainedWorker::Already });
                }
                match self.0.session.commit(by, txn::mark_draining(worker, &info, node.version)).await? {
                    Written::Applied => return Ok(DrainedWorker::Marked),
                    Written::Rejected => {}
                    Written::Unknown => unknown = true,
                }
            }
            Err(Error::Contended { subject: Subject::Worker(worker), tries: TRIES })
        }
        .boxed()
    }

    /// Changes what an operator has set on a worker. Returns the new settings; `None` if there is no such worker, because it has left.
    ///
    /// From the moment this returns, the leader assigns by the new settings: no job of a kind that is paused on the
    /// worker, none for a tag that it no longer offers, and none beyond fewer slots. The worker follows within moments: it
    /// hands back the jobs of a paused kind that it has not started, and uses more slots after it has published them.
    /// Running jobs continue. With 0 slots the worker takes no jobs and stays registered.
    ///
    /// The process keeps the settings for its later registrations. They end with the process: a restarted node begins with
    /// its configuration. If the worker's session expires before the worker has seen the change, the change is lost:
    /// see [`Client::workers`].
    ///
    /// A lost reply is resolved by reading and applying the change again.
    ///
    /// # Errors
    /// [`ChangeWorkerError::Invalid`] if the settings are out of bounds. [`Error::WorkerUnreadable`] if the registration
    /// cannot be read. If there is no answer within the client's deadline, the settings may or may not be changed;
    /// repeating the call is safe.
    pub async fn change_worker(
        &self,
        worker: WorkerId,
        change: &WorkerChange,
    ) -> Result<Option<Setting<WorkerSettings>>, ChangeWorkerError> {
        let by = self.by();
        // The settings of a write whose reply was lost.
        let mut sent = None;
        for _ in 0..TRIES {
            let there = self.0.session.read(by, |zk| zk.get(path::worker(worker))).await?;
            let Some(node) = there else { return Ok(sent) };
            let info = wire::decode::<Registration>(&node.data)
                .map_err(|reason| Error::WorkerUnreadable { worker, reason })?;
            let value = change.of(info.settings.value.clone()).check(&info.kinds)?;
            if value == info.settings.value {
                return Ok(Some(Setting::of(info.settings)));
            }
            let wanted = Noted { value, changed: self.change(ChangeKind::Set) };
            let ops = txn::set_worker(worker, &info, wanted.clone(), node.version);
            match self.0.session.commit(by, ops).await? {
                Written::Applied => return Ok(Some(Setting::of(wanted))),
                Written::Rejected => {}
                Written::Unknown => sent = Some(Setting::of(wanted)),
            }
        }
        Err(Error::Contended { subject: Subject::Worker(worker), tries: TRIES }.into())
    }

    /// Returns the leader; `None` if there never was one. A leader that is no longer [standing](LeaderView::standing)
    /// has ended and is not replaced yet.
    ///
    /// # Errors
    /// Fails if ZooKeeper does not answer within the client's deadline.
    pub fn leader(&self) -> BoxFuture<'_, Result<Option<LeaderView>, Error>> {
        async move { self.0.session.read(self.by(), |zk| leader(zk.clone())).await }.boxed()
    }

    /// Lists the candidates for the leadership in their order. With the strategy `single` only the owner of the one znode
    /// is known.
    ///
    /// # Errors
    /// Fails if ZooKeeper does not answer within the client's deadline. Unreadable znodes do not fail the call: they are
    /// counted, or listed without a name.
    pub fn candidates(&self) -> BoxFuture<'_, Result<Candidates, Error>> {
        async move { self.0.session.read(self.by(), |zk| read_candidates(zk.clone())).await }.boxed()
    }

    /// Like [`Client::catch_up`], with the deadline of a call.
    pub(crate) async fn caught_up(&self) -> Result<(), Error> {
        self.catch_up(self.by()).await
    }

    /// Lets this session's server catch up with the state that another session has seen, for example the session of a
    /// handler's worker.
    pub(super) async fn catch_up(&self, by: Deadline) -> Result<(), Error> {
        self.0.session.catch_up(by).await
    }

    pub(super) fn by(&self) -> Deadline {
        self.0.session.by(self.0.deadline)
    }
}

/// `now` is the wall clock's time.
pub(super) async fn workers(zk: Zk, now: WallMillis) -> ReadResult<Vec<Registered>> {
    let names = zk.children(path::WORKERS.to_owned()).await?.unwrap_or_default();
    let mut ids = names.iter().filter_map(|name| WorkerId::parse(name)).collect::<Vec<_>>();
    ids.sort();
    let infos = get_all(&zk, ids.iter().copied().map(path::worker));
    let inboxes = get_all(&zk, ids.iter().copied().map(path::inbox));
    let epoch = zk.get(path::EPOCH.to_owned());
    let (infos, inboxes, epoch) = futures::try_join!(infos, inboxes, epoch)?;
    let views = ids.into_iter().zip(infos).zip(inboxes).filter_map(|((id, info), inbox)| {
        // Absent: the worker has left since the names were listed.
        let registered = info?;
        let info = wire::decode(&registered.data);
        let (assigned, ended, shunned_until) = inbox.map_or((0, WrappingCount::default(), None), |inbox| {
            let ended = inbox.children_ever.less(WrappingCount::of(inbox.children));
            (inbox.children, ended, shunned_until(&registered, &inbox, epoch.as_ref(), now))
        });
        Some(Registered { id, info, assigned, ended, shunned_until })
    });
    Ok(views.collect())
}

/// Counts the jobs of each worker: a name in an inbox may be that of a segment.
pub(super) async fn count_assigned(zk: &Zk, mut workers: Vec<Registered>) -> ReadResult<Vec<Registered>> {
    let busy = workers.iter_mut().filter(|worker| worker.assigned > 0).collect::<Vec<_>>();
    let counts = jobs_in(zk, busy.iter().map(|worker| path::inbox(worker.id)).collect()).await?;
    busy.into_iter().zip(counts).for_each(|(worker, jobs)| worker.assigned = jobs);
    Ok(workers)
}

/// Counts the jobs in each of these places by the names of their children.
pub(super) async fn jobs_in(zk: &Zk, places: Vec<String>) -> ReadResult<Vec<usize>> {
    let lists = places.chunks(MAX_READ_BATCH).map(|places| zk.children_many(places.to_vec()));
    let lists = try_join_all(lists).await?.into_iter().flatten();
    let jobs = lists.map(|names| names.iter().flatten().map(|name| jobs_of_name(name)).sum());
    Ok(jobs.collect())
}

/// The leader's memory that it took an attempt from a worker, reconstructed from znodes: the leader sets the worker's
/// inbox then. It forgets this if the worker registers again, and a new leader does not know it.
fn shunned_until(
    registered: &Node,
    inbox: &Node,
    epoch: Option<&Node>,
    now: WallMillis,
) -> Option<WallMillis> {
    let forgotten = registered.written.max(epoch.map_or(0, |epoch| epoch.written));
    let until = inbox.modified + SHUNNED;
    (inbox.version > 0 && inbox.written > forgotten && until > now).then_some(until)
}

async fn read_candidates(zk: Zk) -> ReadResult<Candidates> {
    candidates::read(&*zk).await
}

pub(super) async fn leader(zk: Zk) -> ReadResult<Option<LeaderView>> {
    let nodes = zk.get_many([path::EPOCH, path::LEADER, path::LEADING].map(str::to_owned).to_vec()).await?;
    let [Some(epoch), single, leading] = &nodes[..] else { return Ok(None) };
    // Empty until the first claim.
    let Ok(record) = wire::decode::<EpochRecord>(&epoch.data) else { return Ok(None) };
    let owned = |node: &Node| node.owner == record.session;
    let mut standing = single.as_ref().is_some_and(owned);
    if !standing {
        let candidates = zk.children(path::ELECTION.to_owned()).await?.unwrap_or_default();
        let paths = candidates.iter().map(|name| path::candidate(name));
        standing = get_all(&zk, paths).await?.iter().flatten().any(owned);
    }
    let EpochRecord { node, session, since, .. } = record;
    let beat_at =
        leading.as_ref().filter(|leading| leading.version > 0).map(|leading| leading.modified.into());
    Ok(Some(LeaderView { node, epoch: epoch.version, session, since: since.into(), standing, beat_at }))
}

/// Reads the stats of any number of znodes without data.
pub(super) async fn stat_all(zk: &Zk, paths: impl Iterator<Item = String>) -> ReadResult<Vec<Option<Node>>> {
    let paths = paths.collect::<Vec<_>>();
    let reads = paths.chunks(MAX_STAT_BATCH).map(|paths| zk.get_many(paths.to_vec()));
    Ok(try_join_all(reads).await?.into_iter().flatten().collect())
}

pub(super) async fn get_all(zk: &Zk, paths: impl Iterator<Item = String>) -> ReadResult<Vec<Option<Node>>> {
    let paths = paths.collect::<Vec<_>>();
    let reads = paths.chunks(MAX_READ_BATCH).map(|paths| zk.get_many(paths.to_vec()));
    Ok(try_join_all(reads).await?.into_iter().flatten().collect())
}

/// Workers and leader at one moment, to explain why a job waits.
#[derive(Debug)]
pub(super) struct Cluster {
    workers: BTreeMap<WorkerId, Registered>,
    paused: BTreeMap<Kind, Paused>,
    led: bool,
}

impl Cluster {
    pub(super) async fn read(zk: Zk, now: WallMillis) -> ReadResult<Self> {
        let (workers, leader, paused) =
            futures::try_join!(workers(zk.clone(), now), leader(zk.clone()), pauses(zk.clone()))?;
        let led = leader.is_some_and(|leader| leader.standing);
        let workers = workers.into_iter().map(|worker| (worker.id, worker)).collect();
        Ok(Self { workers, paused, led })
    }

    /// Returns a live worker's node; `None` if the worker has left.
    pub(super) fn node(&self, worker: WorkerId) -> Option<&NodeId> {
        self.workers.get(&worker).and_then(|view| view.info.as_ref().ok()).map(|info| &info.node)
    }

    pub(super) fn lives(&self, worker: WorkerId) -> bool {
        self.workers.contains_key(&worker)
    }

    /// Returns why a queued job does not run: the first reason that an operator has to act on.
    pub(super) fn why_queued(&self, job: &JobRecord) -> WaitReason {
        let workers = || self.workers.values().filter_map(|view| Some((view, view.info.as_ref().ok()?)));
        let of_kind = || workers().filter(|(_, info)| info.has_handler(&job.kind));
        let able = || workers().filter(|(_, info)| info.can_run(&job.kind, &job.placement));
        let taking = || able().filter(|(_, info)| !info.draining);
        // A list does not show which of its jobs have lost workers. A segment counts as one job: it is assigned only for a moment.
        let isolated = |view: &Registered| job.isolation() == Isolation::Shared || view.assigned == 0;
        let with_room = || taking().filter(|(view, info)| view.assigned < info.open_slots());
        if self.paused.contains_key(&job.kind) {
            WaitReason::Paused
        } else if of_kind().next().is_none() {
            WaitReason::UnknownKind
        } else if !of_kind().any(|(_, info)| info.serves(&job.kind)) {
            WaitReason::PausedOnWorkers
        } else if able().next().is_none() {
            WaitReason::Tags
        } else if taking().next().is_none() {
            WaitReason::Draining
        } else if !self.led {
            WaitReason::NoLeader
        } else if with_room().next().is_none() {
            WaitReason::Busy
        } else if with_room().all(|(view, _)| view.shunned_until.is_some()) {
            WaitReason::Shunned
        } else if !with_room().any(|(view, _)| isolated(view)) {
            WaitReason::Isolated
        } else {
            WaitReason::Assignment
        }
    }

    /// Returns the workers that could run a job and get no jobs for a while, each with its node and the end of that
    /// time.
    pub(super) fn shunned(&self, job: &JobRecord) -> Vec<Shunned> {
        let able = self.workers.values().filter_map(|view| {
            let info = view.info.as_ref().ok()?;
            let able = info.can_run(&job.kind, &job.placement) && !info.draining;
            let until = view.shunned_until.filter(|_| able)?.into();
            Some(Shunned { worker: view.id, node: info.node.clone(), until })
        });
        able.collect()
    }

    /// Returns the pause of a kind, if it is paused.
    pub(super) fn paused(&self, kind: &Kind) -> Option<&Paused> {
        self.paused.get(kind)
    }

    /// Returns how many live workers could run a job, and their slots.
    pub(super) fn room(&self, job: &JobRecord) -> (usize, usize) {
        let infos = self.workers.values().filter_map(|view| view.info.as_ref().ok());
        let able = infos.filter(|info| info.can_run(&job.kind, &job.placement));
        able.fold((0, 0), |(workers, slots), info| (workers + 1, slots + info.open_slots()))
    }

    /// Returns how many live workers have a handler for a kind.
    pub(super) fn handlers(&self, kind: &Kind) -> usize {
        let infos = self.workers.values().filter_map(|view| view.info.as_ref().ok());
        infos.filter(|info| info.has_handler(kind)).count()
    }

    /// Returns the tags that no live worker of the kind has.
    pub(super) fn missing_tags(&self, kind: &Kind, tags: &[Tag]) -> Vec<Tag> {
        let infos = || self.workers.values().filter_map(|view| view.info.as_ref().ok());
        let of_kind = || infos().filter(|info| info.serves(kind));
        let missing = |tag: &&Tag| !of_kind().any(|info| info.offers(std::slice::from_ref(*tag)));
        tags.iter().filter(missing).cloned().collect()
    }
}

#[cfg(test)]
mod tests;
