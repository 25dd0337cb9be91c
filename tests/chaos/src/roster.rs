//! The groups of a run. Each is derived from its name, so that any process can complete it, even if its first client is
//! dead.

use bellwether::{Group, Job};
use bellwether_core::group::{GroupError, join_kind};
use bellwether_core::name::{GroupId, JobId, Kind};
use fastrand::Rng;

use crate::work::{PART, TREE, Task};

/// Attempts of a member. A member that must not succeed fails this often.
const ATTEMPTS: u32 = 3;

/// When the total of the group is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sealed {
    /// At the creation of the group.
    First,
    /// With the last member.
    WithLast,
    /// After all members are submitted.
    After,
}

/// A group and its members.
#[derive(Debug, Clone)]
pub(crate) struct Roster {
    pub(crate) id: GroupId,
    pub(crate) kind: &'static str,
    pub(crate) sealed: Sealed,
    /// The payload of each member.
    pub(crate) payloads: Vec<String>,
    fail_fast: bool,
    join: bool,
}

impl Roster {
    /// Draws a new group of this client.
    pub(crate) fn fresh(client: u32, rng: &mut Rng) -> Self {
        let id = GroupId::plain(format!("g{client}-{}", rng.u32(..))).expect("letters, digits and a dash");
        Self::of(&id).expect("the name has the format of a group of clients")
    }

    /// Derives a group from its name. Returns `None` for a group that no client created: the group of a job's sub-jobs.
    pub(crate) fn of(id: &GroupId) -> Option<Self> {
        let (_, seed) = id.as_str().strip_prefix('g')?.split_once('-')?;
        let mut rng = Rng::with_seed(seed.parse().ok()?);
        let fail_fast = rng.u32(0..4) == 0;
        let nested = rng.u32(0..4) == 0;
        let count = if nested { 1..4 } else { 1..9 };
        // Long enough to be disturbed by a fault.
        let longest = if rng.u32(0..4) == 0 { 3_000 } else { 200 };
        let payloads = (0..rng.u32(count)).map(|_| payload(nested, fail_fast, longest, &mut rng)).collect();
        Some(Self {
            id: id.clone(),
            kind: if nested { TREE } else { PART },
            sealed: *rng
                .choice(&[Sealed::First, Sealed::WithLast, Sealed::After])
                .expect("the list is not empty"),
            payloads,
            fail_fast,
            join: rng.u32(0..8) > 0,
        })
    }

    pub(crate) fn total(&self) -> u32 {
        u32::try_from(self.payloads.len()).expect("there are few members")
    }

    pub(crate) fn group(&self) -> Result<Group, GroupError> {
        let group = Group::new(self.kind, self.id.as_str());
        let group = if self.sealed == Sealed::First { group.total(self.total()) } else { group };
        Ok(group.fail_fast(self.fail_fast).join(self.join))
    }

    /// Iterates over its members, in the order of their numbers.
    pub(crate) fn members(&self) -> impl Iterator<Item = (u32, &String)> {
        (0..).zip(&self.payloads)
    }

    pub(crate) fn kind(&self) -> Kind {
        Kind::new(self.kind).expect("letters only")
    }

    pub(crate) fn member(&self, number: u32) -> JobId {
        JobId::member(&self.kind(), &self.id, number).expect("short names")
    }

    /// Draws one of its jobs, usually a member.
    pub(crate) fn some_job(&self, rng: &mut Rng) -> JobId {
        if rng.u32(0..6) > 0 {
            return self.member(rng.u32(0..self.total()));
        }
        let join = join_kind(&self.kind()).expect("the kind is short enough for a join");
        JobId::new(format!("{join}:@{}", self.id)).expect("the name is a valid job id")
    }
}

/// Creates the job of a member.
pub(crate) fn member(kind: &str, payload: String) -> Job {
    let job = Job::json(kind, payload);
    let backoff = std::time::Duration::from_millis(50);
    job.max_attempts(ATTEMPTS).backoff(backoff, backoff * 4)
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
    fn a_group_is_derived_from_its_name() {
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
