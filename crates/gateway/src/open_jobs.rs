//! The open jobs of tokens that may submit only a limited number: `max_open_jobs` of a [scope](super::access).
//!
//! A gateway remembers the ids that a token has submitted through it. When the limit is reached, it reads these jobs and
//! forgets those that have ended. So the limit holds for each gateway since its start, and costs nothing before it is reached.
//! A submission whose outcome is unknown is not counted.
//!
//! The names of an OpenID Connect provider are not known in advance. So the jobs of at most [`MAX_NAMES`] names are remembered: then a
//! new name replaces the one with the fewest remembered jobs, and of several the one that asked longest ago. It starts again without
//! open jobs.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bellwether::client::Client;
use bellwether::metrics::HttpRefusal;
use bellwether::{JobId, State};

use super::layers::Caller;
use super::problem::{Fault, Problem};
use crate::metrics::refused;

/// A token at its limit causes reads at most this often.
const COUNT_EVERY: Duration = Duration::from_secs(1);

/// Maximum number of names. Each has at most `max_open_jobs` ids.
const MAX_NAMES: usize = 1_000;

/// The open jobs by the name of their token. A handle, cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenJobs(Arc<Mutex<HashMap<Arc<str>, Arc<OfToken>>>>);

#[derive(Debug, Default)]
struct OfToken {
    jobs: Mutex<Jobs>,
    /// When the jobs were counted last. Held while they are counted.
    counted: tokio::sync::Mutex<Option<Instant>>,
}

#[derive(Debug, Default)]
struct Jobs {
    open: HashSet<JobId>,
    /// Jobs that are being submitted.
    reserved: usize,
    /// When room was last asked for.
    asked_at: Option<Instant>,
}

impl Jobs {
    /// Reserves room for more jobs, or returns how many are open.
    fn reserve(&mut self, wanted: usize, most: usize) -> Result<(), usize> {
        self.asked_at = Some(Instant::now());
        let open = self.open.len() + self.reserved;
        if open.saturating_add(wanted) > most {
            return Err(open);
        }
        self.reserved += wanted;
        Ok(())
    }
}

/// Room for jobs, returned when dropped.
#[derive(Debug)]
pub(super) struct Reserved {
    /// `None`: the token has no limit.
    of: Option<Arc<OfToken>>,
    jobs: usize,
}

impl OpenJobs {
    /// Reserves room for jobs of this caller.
    ///
    /// # Errors
    /// 429 if it has too many open jobs.
    pub(super) async fn reserve(
        &self,
        client: &Client,
        caller: &Caller,
        jobs: usize,
    ) -> Result<Reserved, Problem> {
        let Some(most) = caller.scope.max_open_jobs else { return Ok(Reserved { of: None, jobs }) };
        if jobs > most {
            return Err(Fault::Invalid.because(format!(
                "the {} {} may have {most} open jobs: submit at most that many",
                caller.credential, caller.name
            )));
        }
        let of = self.of(&caller.name);
        if lock(&of.jobs).reserve(jobs, most).is_err() {
            of.count(client).await?;
            let reserved = lock(&of.jobs).reserve(jobs, most);
            reserved.map_err(|open| {
                refused(HttpRefusal::OpenJobs);
                Fault::TooManyOpen.because(format!(
                    "the {} {} has {open} open jobs and may have {most}: wait until some have ended",
                    caller.credential, caller.name
                ))
            })?;
        }
        Ok(Reserved { of: Some(of), jobs })
    }
}

impl OpenJobs {
    /// Returns the jobs of a name.
    fn of(&self, name: &Arc<str>) -> Arc<OfToken> {
        let mut names = lock(&self.0);
        if !names.contains_key(name) && names.len() >= MAX_NAMES {
            // The map alone has it: a request clones it while the map is locked.
            let unused = names.iter().filter(|(_, of)| Arc::strong_count(of) == 1);
            let fewest = unused.min_by_key(|(_, of)| {
                let jobs = lock(&of.jobs);
                (jobs.open.len(), jobs.asked_at)
            });
            if let Some(fewest) = fewest.map(|(name, _)| Arc::clone(name)) {
                names.remove(&fewest);
            }
        }
        Arc::clone(names.entry(Arc::clone(name)).or_default())
    }
}

impl OfToken {
    /// Forgets the jobs that have ended.
    async fn count(&self, client: &Client) -> Result<(), Problem> {
        let mut counted = self.counted.lock().await;
        if counted.is_some_and(|at| at.elapsed() < COUNT_EVERY) {
            return Ok(());
        }
        let ids = lock(&self.jobs).open.iter().cloned().collect::<Vec<_>>();
        let views = client.get_many(&ids).await?;
        let is_open = |state| !matches!(state, State::Succeeded | State::Cancelled | State::Dead);
        let mut jobs = lock(&self.jobs);
        for (id, view) in ids.iter().zip(views) {
            if !view.is_some_and(|view| is_open(view.state)) {
                jobs.open.remove(id);
            }
        }
        *counted = Some(Instant::now());
        Ok(())
    }
}

impl Reserved {
    /// Counts the submitted jobs as open.
    pub(super) fn submitted<'a>(self, ids: impl IntoIterator<Item = &'a JobId>) {
        if let Some(of) = &self.of {
            lock(&of.jobs).open.extend(ids.into_iter().cloned());
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Some(of) = &self.of {
            lock(&of.jobs).reserved -= self.jobs;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_name_replaces_the_one_with_the_fewest_jobs_that_asked_longest_ago() {
        let open = OpenJobs::default();
        let name = |n: usize| Arc::<str>::from(format!("n{n}"));
        let ask = |n| {
            let of = open.of(&name(n));
            lock(&of.jobs).reserve(0, 1).unwrap();
            of
        };
        let busy = ask(0);
        for n in 1..MAX_NAMES {
            ask(n);
        }
        lock(&ask(1).jobs).open.insert(JobId::new("a").unwrap());
        ask(2);
        ask(MAX_NAMES);
        let left = lock(&open.0).keys().map(ToString::to_string).collect::<HashSet<_>>();
        assert_eq!(left.len(), MAX_NAMES);
        assert!(["n0", "n1", "n2"].iter().all(|name| left.contains(*name)));
        assert!(!left.contains("n3"), "n0 is in use, n1 has an open job, and n2 has asked again");
        drop(busy);
    }
}
