//! Groups: places, marks and member records.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::group::{End, GroupRecord, Mark, Stage};
use bellwether_core::job::{JobRecord, Membership, Role};
use bellwether_core::name::{GroupId, JobId};
use bellwether_core::path::{self, GroupPlace, Place};

use super::{Change, Spot, Truth};

/// The znodes of a group other than its record.
#[derive(Debug, Default)]
pub struct Group {
    /// The numbers of the members that have a place.
    pub places: BTreeSet<u32>,
    /// The recorded marks.
    pub marks: BTreeSet<(Mark, End)>,
    /// The members that have a record.
    pub members: BTreeMap<u32, JobId>,
}

/// All groups.
#[derive(Debug, Default)]
pub struct Groups(BTreeMap<GroupId, Group>);

/// Returns the membership of a job, if its group counts it.
#[must_use]
pub fn part(record: &JobRecord) -> Option<&Membership> {
    record.membership.as_ref().filter(|part| part.counted)
}

impl Groups {
    /// Iterates over every group that has, or had, such a znode.
    pub fn all(&self) -> impl Iterator<Item = (&GroupId, &Group)> {
        self.0.iter()
    }

    /// Returns one group.
    #[must_use]
    pub fn get(&self, group: &GroupId) -> Option<&Group> {
        self.0.get(group)
    }

    pub(super) fn note(&mut self, change: &Change) {
        let there = change.after.is_some();
        match &change.spot {
            Spot::Place(Place::Group(GroupPlace::Record(group))) => {
                self.of(group);
            }
            Spot::Place(Place::Group(GroupPlace::Member(group, number))) => {
                let places = &mut self.of(group).places;
                if there {
                    places.insert(*number)
                } else {
                    places.remove(number)
                };
            }
            Spot::Place(Place::Group(GroupPlace::Mark(group, mark, end))) => {
                let marks = &mut self.of(group).marks;
                if there {
                    marks.insert((*mark, *end))
                } else {
                    marks.remove(&(*mark, *end))
                };
            }
            Spot::Record(job) => {
                let record =
                    change.after.as_ref().or(change.before.as_ref()).and_then(|znode| znode.record());
                let Some(part) = record.and_then(|record| record.membership.as_ref()) else { return };
                let Role::Member(number) = part.role else { return };
                let members = &mut self.of(&part.group).members;
                if there { drop(members.insert(number, job.clone())) } else { drop(members.remove(&number)) }
            }
            Spot::Quarantine(_) | Spot::Epoch | Spot::Candidate | Spot::Retention | Spot::Place(_) => {}
        }
    }

    fn of(&mut self, group: &GroupId) -> &mut Group {
        self.0.entry(group.clone()).or_default()
    }
}

impl Group {
    /// Returns the marks of a job: one for each recorded end.
    pub fn ends(&self, mark: Mark) -> impl Iterator<Item = End> {
        self.marks.iter().filter(move |(of, _)| *of == mark).map(|(_, end)| *end)
    }
}

impl Truth {
    /// A group's record.
    #[must_use]
    pub fn group(&self, group: &GroupId) -> Option<&GroupRecord> {
        self.get(&path::group(group)).and_then(|znode| znode.group())
    }

    /// Returns the record of a job, if it exists and is readable.
    #[must_use]
    pub fn job(&self, job: &JobId) -> Option<&JobRecord> {
        self.record(job).and_then(|znode| znode.record())
    }

    /// Returns how a job ended whose sub-jobs have also ended; `None` while the job or its group of sub-jobs is open.
    #[must_use]
    pub fn settled(&self, job: &JobId, record: &JobRecord) -> Option<End> {
        let nested = record.spawned.then(|| GroupId::of_sub_jobs(job, record));
        let nested = nested.and_then(|nested| self.group(&nested));
        let goes_on = nested.is_some_and(|nested| !matches!(nested.stage, Stage::Done { .. }));
        End::of(&record.state).filter(|_| !goes_on)
    }

    /// Iterates over the members that a group counts, by number, each with its end if it has ended.
    pub fn counted(&self, group: &GroupId) -> impl Iterator<Item = (u32, &JobId, Option<End>)> {
        let members = self.groups().get(group).into_iter().flat_map(|group| &group.members);
        members.filter_map(|(number, job)| {
            let record = self.job(job).filter(|record| part(record).is_some())?;
            Some((*number, job, self.settled(job, record)))
        })
    }

    /// Returns whether a group is done or waits for an event that the leader cannot cause: its total, the submission of
    /// members, or the end of an open job.
    #[must_use]
    pub fn rests(&self, id: &GroupId, group: &GroupRecord) -> bool {
        let is_open =
            |job: Option<JobId>| job.and_then(|job| self.job(&job)).is_some_and(|job| !job.is_terminal());
        let members_open = || self.counted(id).any(|(_, _, end)| end.is_none());
        let further_open = || {
            let mut further = group.further_groups(id).filter_map(|further| self.group(&further));
            further.any(|further| !further.is_done())
        };
        let parent_open =
            || is_open(group.parent.as_ref().map(|parent| parent.job.clone())) || further_open();
        match group.stage {
            Stage::Done { .. } => true,
            Stage::Joining if is_open(group.join_id(id).ok()) => true,
            Stage::Finishing if is_open(group.parent.as_ref().and_then(|it| it.finish_id(id).ok())) => true,
            Stage::Open if group.stopped.is_none() && group.parent.is_none() => {
                let there = self.groups().get(id).map_or(0, |group| group.members.len());
                members_open() || group.total.is_none_or(|total| there < total as usize)
            }
            Stage::Open | Stage::Joining | Stage::Finishing => members_open() || parent_open(),
        }
    }
}
