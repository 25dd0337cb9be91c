//! Waiting until jobs have ended.
//!
//! A few jobs are watched, with a one-shot watch each, so that an end is reported immediately. Many jobs are polled
//! in batches: a read of 100 records costs about as much as a read of one. Watches on all of them would overflow the
//! request that restores watches on reconnection, which the ZooKeeper client sends in one piece: with more than 128
//! KiB of paths it never reconnects.
//!
//! That request covers all waits of a client, so the number of watches is limited for all of them together: each
//! takes a permit of the client. A wait without a permit polls its record until it gets one, or the job has ended.
//!
//! Members of a segment are waited for together ([`units`]): one watch on the children of the segment, or one list of them
//! per look, shows which of its members have ended, or have a record and are waited for like other jobs.

mod units;

use std::collections::VecDeque;
use std::pin::pin;
use std::time::Duration;

use bellwether_core::budget::MAX_READ_BATCH;
use bellwether_core::job::JobRecord;
use bellwether_core::name::JobId;
use bellwether_core::port::Glance;
use bellwether_core::wire::WireError;
use bellwether_zk::Node;
use futures::FutureExt as _;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::future::join_all;
use futures::stream::{self, FuturesUnordered};

use super::error::{Error, WaitError};
use super::session::Deadline;
use super::view::{JobView, State};
use super::{Client, JobHandle};
use units::{Progress, Unit};

/// Maximum number of jobs that a client watches at a time, over all its waits: 64 paths of 160 bytes are a tenth of
/// the limit of the restoring request.
pub const MAX_WATCHED: usize = 64;

/// Every generation is at least this one.
const ANY_GENERATION: u32 = 0;

/// Batched reads in flight while polling.
const PAGES_IN_FLIGHT: usize = 4;

/// The shortest pause: after pages whose jobs are mostly open, or between two reads of a job that is not watched.
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);

/// The longest pause, when no job has ended for a while.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// The time in which every open job is read about once, however many there are. It limits how late the end of a job
/// that overtakes others is seen. A million jobs are ten thousand reads in this time, which a server can handle.
const WHOLE_ROUND: Duration = Duration::from_secs(1);

/// After a timed-out wait: how long the read of the job's state may still take.
const LAST_LOOK: Duration = Duration::from_millis(500);

/// One look at what a wait is for.
enum Look<T> {
    Wished(T),
    /// With a watch for the next change, if one was asked for.
    NotYet(Option<Glance>),
}

impl Client {
    /// Waits until a job has ended (succeeded, cancelled or dead).
    ///
    /// Returns as soon as the end is committed, or up to 250 ms later if there are more than [`MAX_WATCHED`]
    /// concurrent waits. A job whose record is corrupt is returned as quarantined, because it will not end.
    ///
    /// # Errors
    /// [`WaitError::TimedOut`] with the last seen state; [`Error::NotFound`] if the job does not exist;
    /// [`Error::Unreadable`] if only a newer build can read its record; [`Error::Undecodable`] if its result cannot be decoded
    /// by the client's codec.
    ///
    /// # Cancellation
    /// Dropping the future changes nothing.
    ///
    /// # Connection loss
    /// The wait continues after a reconnection or under a new session, until `within` has passed.
    pub fn wait<'a>(&'a self, id: &'a JobId, within: Duration) -> BoxFuture<'a, Result<JobView, WaitError>> {
        self.wait_for(id, ANY_GENERATION, within)
    }

    /// Waits until this generation of a job, or a later one, has ended: see [`Client::wait`]. The end of an earlier
    /// generation, which a server that lags may still show, is no answer.
    ///
    /// # Errors
    /// The errors of [`Client::wait`].
    pub fn wait_for<'a>(
        &'a self,
        id: &'a JobId,
        generation: u32,
        within: Duration,
    ) -> BoxFuture<'a, Result<JobView, WaitError>> {
        async move {
            let by = self.0.session.by(within);
            match self.watch(id, generation, by).await {
                Err(error) => Err(self.timed_out(id, generation, by, error).await),
                Ok(view) => Ok(self.with_result(view).await?),
            }
        }
        .boxed()
    }

    /// Waits for many jobs. The results are in the order of the ids. `progress` is called with the number of ended
    /// jobs.
    ///
    /// Up to [`MAX_WATCHED`] jobs are watched; more are polled in batches of 100.
    pub async fn wait_many(
        &self,
        ids: &[JobId],
        within: Duration,
        progress: impl FnMut(usize),
    ) -> Vec<Result<JobView, WaitError>> {
        let jobs = ids.iter().map(|id| (id, ANY_GENERATION)).collect::<Vec<_>>();
        self.wait_each(&jobs, within, progress).await
    }

    /// Waits for the jobs of many handles, each for its [generation](super::JobHandle::generation) or a later one: see
    /// [`Client::wait_many`] and [`Client::wait_for`].
    pub async fn wait_for_many<K>(
        &self,
        jobs: &[JobHandle<K>],
        within: Duration,
        progress: impl FnMut(usize),
    ) -> Vec<Result<JobView, WaitError>> {
        let jobs = jobs.iter().map(|job| (job.id(), job.generation())).collect::<Vec<_>>();
        self.wait_each(&jobs, within, progress).await
    }

    async fn wait_each(
        &self,
        jobs: &[(&JobId, u32)],
        within: Duration,
        mut progress: impl FnMut(usize),
    ) -> Vec<Result<JobView, WaitError>> {
        let by = self.0.session.by(within);
        let mut answers = (0..jobs.len()).map(|_| None).collect::<Vec<Option<Result<JobView, Error>>>>();
        let mut over = 0;
        let mut note = |answers: &mut Vec<Option<Result<JobView, Error>>>, at: usize, answer| {
            answers[at] = Some(answer);
            over += 1;
            progress(over);
        };
        let (units, not_jobs) = units::of(jobs);
        for at in not_jobs {
            note(&mut answers, at, Err(Error::NotFound(jobs[at].0.clone())));
        }
        if jobs.len() <= MAX_WATCHED {
            let watched = units.into_iter().map(|unit| self.watch_unit(jobs, unit, by));
            let mut watched = watched.collect::<FuturesUnordered<_>>();
            while let Some(Progress { over, left }) = watched.next().await {
                watched.extend(left.into_iter().map(|unit| self.watch_unit(jobs, unit, by)));
                over.into_iter().for_each(|(at, answer)| note(&mut answers, at, answer));
            }
        } else {
            self.poll(jobs, units, by, |at, answer| note(&mut answers, at, answer)).await;
        }
        let unanswered = || Err(self.0.session.not_in_time(by).into());
        if jobs.len() > MAX_WATCHED && self.0.codec.is_none() {
            // Nothing needs to be awaited.
            let told = jobs.iter().zip(answers).map(|(&(id, _), answer)| {
                answer.unwrap_or_else(unanswered).map_err(|error| without_look(id, by, error))
            });
            return told.collect();
        }
        let told = jobs.iter().zip(answers).map(|(&(id, generation), answer)| async move {
            match answer.unwrap_or_else(unanswered) {
                Ok(view) => Ok(self.with_result(view).await?),
                Err(error) if jobs.len() <= MAX_WATCHED => {
                    Err(self.timed_out(id, generation, by, error).await)
                }
                // Reading each of thousands of jobs would take longer than the wait.
                Err(error) => Err(without_look(id, by, error)),
            }
        });
        stream::iter(told).buffered(MAX_WATCHED).collect().await
    }

    /// Watches a job until it has ended.
    async fn watch(&self, id: &JobId, generation: u32, by: Deadline) -> Result<JobView, Error> {
        let jobs = [(id, generation)];
        let (mut units, _) = units::of(&jobs);
        while let Some(unit) = units.pop() {
            let Progress { over, left } = self.watch_unit(&jobs, unit, by).await;
            if let Some((_, answer)) = over.into_iter().next() {
                return answer;
            }
            units = left;
        }
        Err(Error::NotFound(id.clone()))
    }

    /// Watches a znode until `wished` returns a value. Without a free watch of the client it polls. The znode is absent
    /// only if it is so after the server has caught up.
    pub(super) async fn until<T>(
        &self,
        path: &str,
        by: Deadline,
        absent: impl Fn() -> Error,
        wished: impl Fn(&Node) -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        let (absent, wished) = (&absent, &wished);
        self.until_seen(by, |watch| async move {
            let mut read = self.read_data(path, watch, by).await?;
            if read.is_none() {
                self.0.session.catch_up(by).await?;
                read = self.read_data(path, watch, by).await?;
            }
            let (node, glance) = read.ok_or_else(absent)?;
            Ok(wished(&node)?.map_or(Look::NotYet(glance), Look::Wished))
        })
        .await
    }

    async fn read_data(
        &self,
        path: &str,
        watch: bool,
        by: Deadline,
    ) -> Result<Option<(Node, Option<Glance>)>, Error> {
        let session = &self.0.session;
        Ok(match watch {
            true => {
                let read = session.read(by, |zk| zk.get_and_glance(path.to_owned())).await?;
                read.map(|(node, glance)| (node, Some(glance)))
            }
            false => session.read(by, |zk| zk.get(path.to_owned())).await?.map(|node| (node, None)),
        })
    }

    /// Looks until there is a value: at each change, or without a free watch of the client with pauses. `look` sets a watch if
    /// its argument is true.
    async fn until_seen<T, F>(&self, by: Deadline, look: impl Fn(bool) -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<Look<T>, Error>>,
    {
        // Kept over the polls, so that watches are granted in the order in which the waits began.
        let mut permit = pin!(self.0.watches.acquire());
        // The first attempt takes a free permit and does not wait.
        let mut pause = Duration::ZERO;
        let _permit = loop {
            let session = &self.0.session;
            match session.timeout_at(by.at, session.timeout(pause, &mut permit)).await {
                Ok(Ok(permit)) => break permit.expect("the semaphore is never closed"),
                Ok(Err(_)) => {}
                Err(_) => return Err(self.0.session.not_in_time(by).into()),
            }
            if let Look::Wished(wished) = look(false).await? {
                return Ok(wished);
            }
            pause = (pause * 2).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        };
        loop {
            let glance = match look(true).await? {
                Look::Wished(wished) => return Ok(wished),
                Look::NotYet(glance) => glance.expect("a look that was asked for a watch has one"),
            };
            if self.0.session.timeout_at(by.at, glance).await.is_err() {
                return Err(self.0.session.not_in_time(by).into());
            }
            // Most changes are the awaited one. A read that sets no watch leaves none to remove, which would be in the way of
            // the caller's next request.
            if let Look::Wished(wished) = look(false).await? {
                return Ok(wished);
            }
        }
    }

    /// Reads the jobs in turn, a few pages at a time; open ones go to the back of the queue. Jobs end roughly in the
    /// order of their submission. So while jobs at the front have ended, the next pages are read immediately;
    /// otherwise after a pause.
    async fn poll(
        &self,
        jobs: &[(&JobId, u32)],
        units: Vec<Unit>,
        by: Deadline,
        mut note: impl FnMut(usize, Result<JobView, Error>),
    ) {
        let mut open = VecDeque::from(units);
        let mut pause = SHORTEST_PAUSE;
        while !open.is_empty() {
            let looked = open.drain(..open.len().min(PAGES_IN_FLIGHT * MAX_READ_BATCH)).collect::<Vec<_>>();
            let count = |units: &[Unit]| units.iter().map(|unit| unit.jobs().len()).sum::<usize>();
            let (mut before, mut still) = (0, 0);
            let pages = looked.chunks(MAX_READ_BATCH).map(|page| self.look_at_units(jobs, page, by));
            for Progress { over, left } in join_all(pages).await {
                before += over.len() + count(&left);
                still += count(&left);
                open.extend(left);
                over.into_iter().for_each(|(at, answer)| note(at, answer));
            }
            if still * 2 <= before {
                pause = SHORTEST_PAUSE;
                continue;
            }
            let slept = self.0.session.sleep(pause.min(turn(looked.len(), open.len())));
            if self.0.session.timeout_at(by.at, slept).await.is_err() {
                return;
            }
            pause = if still == before { (pause * 2).min(LONGEST_PAUSE) } else { SHORTEST_PAUSE };
        }
    }

    /// Adds the job's state to the error of a timed-out wait. Other errors are unchanged.
    async fn timed_out(&self, id: &JobId, generation: u32, by: Deadline, error: Error) -> WaitError {
        match without_look(id, by, error) {
            WaitError::TimedOut { id, within, .. } => {
                let last = self.get_by(&id, self.0.session.by(LAST_LOOK)).await;
                let last = last.ok().flatten().filter(|view| is_of(view, generation));
                WaitError::TimedOut { id, within, last: last.map(Box::new) }
            }
            other @ WaitError::Client(_) => other,
        }
    }
}

/// Returns whether a view shows this generation or a later one. An unreadable record does not show its generation.
fn is_of(view: &JobView, generation: u32) -> bool {
    view.generation >= generation || view.state == State::Quarantined
}

/// Returns the share of [`WHOLE_ROUND`] for so many jobs of all open ones.
fn turn(looked: usize, open: usize) -> Duration {
    let per_page = WHOLE_ROUND / u32::try_from(open.div_ceil(looked.max(1)).max(1)).unwrap_or(u32::MAX);
    per_page.max(Duration::from_millis(1))
}

/// Returns the view of a job that has ended in this generation or a later one; `None` before.
fn over(id: &JobId, generation: u32, record: Result<JobRecord, WireError>) -> Result<Option<JobView>, Error> {
    match record {
        Ok(record) if record.is_terminal() => {
            Ok(Some(JobView::of(id.clone(), record)).filter(|view| is_of(view, generation)))
        }
        Ok(_) => Ok(None),
        Err(reason) if reason.is_newer() => Err(Error::Unreadable { id: id.clone(), reason }),
        Err(reason) => Ok(Some(JobView::unreadable(id.clone(), &reason))),
    }
}

/// If the session is connected, the wait has timed out. If not, ZooKeeper did not serve.
fn without_look(id: &JobId, by: Deadline, error: Error) -> WaitError {
    match error {
        Error::Unavailable(super::Unavailable::NotInTime { served: true, .. }) => {
            WaitError::TimedOut { id: id.clone(), within: by.within, last: None }
        }
        other => WaitError::Client(other),
    }
}

#[cfg(test)]
mod tests;
