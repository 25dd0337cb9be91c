//! Groups of a run. Each is drawn from its name, so that anybody can do its generation again: whoever began may be dead.

use bellwether::{Group, Job};
use bellwether_core::group::{GroupError, join_kind};
use bellwether_core::name::{GroupId, JobId, Kind};
use fastrand::Rng;

use crate::work::{PART, TREE, Task};

/// Attempts of a member; one that shall not succeed fails as often.
const ATTEMPTS: u32 = 3;

/// When it is said how many members there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sealed {
    /// With the group.
    First,
    /// With the last member.
    WithLast,
    /// When all are there.
    After,
}

/// A group and its members.
#[derive(Debug, Clone)]
pub(crate) struct Roster {
    pub(crate) id: GroupId,
    pub(crate) kind: &'static str,
    pub(crate) sealed: Sealed,
    /// What each member is asked to do.
    pub(crate) payloads: Vec<String>,
    fail_fast: bool,
    join: bool,
}

impl Roster {
    /// Another one of this client's.
    pub(crate) fn fresh(client: u32, rng: &mut Rng) -> Self {
        let id = GroupId::plain(format!("g{client}-{}", rng.u32(..))).expect("letters, digits and a dash");
        Self::of(&id).expect("a name of ours")
    }

    /// `None` if no client made it: the group of a job's sub-jobs.
    pub(crate) fn of(id: &GroupId) -> Option<Self> {
        let (_, seed) = id.as_str().strip_prefix('g')?.split_once('-')?;
        let mut rng = Rng::with_seed(seed.parse().ok()?);
        let fail_fast = rng.u32(0..4) == 0;
        let nested = rng.u32(0..4) == 0;
        let count = if nested { 1..4 } else { 1..9 };
        // Long enough to be meddled with.
        let longest = if rng.u32(0..4) == 0 { 3_000 } else { 200 };
        let payloads = (0..rng.u32(count)).map(|_| payload(nested, fail_fast, longest, &mut rng)).collect();
        Some(Self {
            id: id.clone(),
            kind: if nested { TREE } else { PART },
            sealed: *rng.choice(&[Sealed::First, Sealed::WithLast, Sealed::After]).expect("there are three"),
            payloads,
            fail_fast,
            join: rng.u32(0..8) > 0,
        })
    }

    pub(crate) fn total(&self) -> u32 {
        u32::try_from(self.payloads.len()).expect("a few")
    }

    pub(crate) fn group(&self) -> Result<Group, GroupError> {
        let group = Group::new(self.kind, self.id.as_str())?;
        let group = if self.sealed == Sealed::First { group.total(self.total()) } else { group };
        let group = if self.fail_fast { group.fail_fast() } else { group };
        Ok(if self.join { group } else { group.without_join() })
    }

    /// Its members, in the order of their numbers.
    pub(crate) fn members(&self) -> impl Iterator<Item = (u32, &String)> {
        (0..).zip(&self.payloads)
    }

    pub(crate) fn kind(&self) -> Kind {
        Kind::new(self.kind).expect("letters only")
    }

    pub(crate) fn member(&self, number: u32) -> JobId {
        JobId::member(&self.kind(), &self.id, number).expect("short names")
    }

    /// One of its jobs, mostly a member.
    pub(crate) fn some_job(&self, rng: &mut Rng) -> JobId {
        if rng.u32(0..6) > 0 {
            return self.member(rng.u32(0..self.total()));
        }
        let join = join_kind(&self.kind()).expect("a short kind");
        JobId::new(format!("{join}:@{}", self.id)).expect("as the leader names it")
    }
}

/// The job of a member.
pub(crate) fn member(kind: &str, payload: String) -> Job {
    let job = Job::json(kind, payload).expect("it was written as JSON");
    let backoff = std::time::Duration::from_millis(50);
    job.max_attempts(ATTEMPTS).max_losses(50).backoff(backoff, backoff * 4)
}

fn payload(nested: bool, fail_fast: bool, longest: u64, rng: &mut Rng) -> String {
    let hopeless = rng.u32(0..if fail_fast { 6 } else { 20 }) == 0;
    let fails = if hopeless { ATTEMPTS } else { rng.u32(0..8) / 7 };
    let subs = if nested { rng.u32(0..5) } else { 0 };
    serde_json::to_string(&Task { subs, ..Task::new(rng.u64(0..longest), fails) })
        .expect("plain fields are JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_drawn_from_its_name() {
        let mut rng = Rng::with_seed(7);
        for _ in 0..100 {
            let roster = Roster::fresh(3, &mut rng);
            let again = Roster::of(&roster.id).unwrap();
            assert_eq!((&again.payloads, again.kind), (&roster.payloads, roster.kind));
            roster.group().unwrap();
        }
        assert!(Roster::of(&GroupId::new("tree:g1-5:0@1.00000001").unwrap()).is_none());
    }
}
