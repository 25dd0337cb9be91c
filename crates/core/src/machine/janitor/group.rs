//! One scan of a bucket of groups: decides which groups to remove, with the records of their jobs.
//!
//! A group keeps the records of its jobs together: its join reads all of them, and a resubmitted member is the same
//! job only while its record exists. So they are removed together, when three conditions hold: the group is done,
//! no member is open, and the longest retention of its jobs' verdicts has passed.
//!
//! ```text
//!  read the groups ─▶ for each done group: chunks ─▶ survey them ─▶ for each chunk: marks, with their records
//!                                             │                       ─▶ the rest, and the group's record last
//!                                             └─ a member is open, or too recent: not yet
//! ```
//!
//! The record of a parent of sub-jobs is removed with the first group of these sub-jobs, and a further group after the first
//! one. While the record exists its id
//! cannot be reused, so the sub-jobs of a new job with that id are never mixed up with this group.
//!
//! A job that was retried after its group had advanced is independent: its record is kept for its own retention. If it
//! has sub-jobs, it is removed with their group.
//!
//! The group's record is removed last, so that an interrupted removal is found again. A member that was retried
//! after the join and is open stays, with its mark and the rest of the group.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use crate::group::{End, GroupRecord, Mark, Parent, Stage};
use crate::name::{GroupId, JobId};
use crate::path::{self, Bucket};
use crate::retention::{Retention, ended};
use crate::time::WallMillis;
use crate::txn::{Op, remove_chunk, remove_group, remove_member};

use super::{Found, FoundGroup, READ};

/// See the [module](self).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Groups {
    bucket: Bucket,
    /// Number of groups in the list.
    listed: usize,
    unread: VecDeque<GroupId>,
    done: VecDeque<Tree>,
    tree: Option<Tree>,
    due: Option<WallMillis>,
}

/// A group whose stage is done.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Tree {
    id: GroupId,
    record: GroupRecord,
    version: i32,
    ended: WallMillis,
    chunks: Vec<u32>,
    /// Marks of jobs other than members.
    marks: Vec<(Mark, End)>,
    kept: Duration,
    step: Step,
    /// Set when a part of the group must stay.
    stays: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Step {
    /// Lists the chunks.
    Chunks,
    /// Lists the places and marks of this chunk.
    Survey(usize),
    /// Lists the marks of this chunk.
    Marks(usize),
    /// Reads the records of this chunk's members.
    Members(usize, VecDeque<(u32, End)>, Vec<(u32, End)>),
    /// Reads the records of the group's other jobs.
    Rest,
    /// Sends the last removal.
    Last,
}

/// The next request of a scan.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Read these groups.
    Groups(Vec<GroupId>),
    /// List the children of these znodes.
    Names(Vec<String>),
    /// Read these records.
    Read(Vec<JobId>),
    /// The scan is finished.
    Done { bucket: Bucket, listed: usize, due: Option<WallMillis> },
}

/// Removals, each with its label.
pub(super) type Removals = Vec<(String, Vec<Op>)>;

impl Groups {
    pub(super) fn new(bucket: Bucket, names: &[String]) -> Self {
        let unread = names.iter().filter_map(|name| GroupId::new(name).ok()).collect();
        Self { bucket, listed: names.len(), unread, done: VecDeque::new(), tree: None, due: None }
    }

    pub(super) fn next(&mut self) -> Next {
        if !self.unread.is_empty() {
            let few = self.unread.len().min(READ);
            return Next::Groups(self.unread.drain(..few).collect());
        }
        if self.tree.is_none() {
            self.tree = self.done.pop_front();
        }
        let Some(tree) = &mut self.tree else {
            return Next::Done { bucket: self.bucket, listed: self.listed, due: self.due };
        };
        let id = &tree.id;
        match &mut tree.step {
            Step::Chunks => {
                let first = tree.record.parent.as_ref().and_then(|parent| parent.first.as_ref());
                let first = first.map(|first| path::group(&first.group));
                Next::Names([path::group(id), path::members(id)].into_iter().chain(first).collect())
            }
            Step::Survey(at) | Step::Marks(at) => {
                let chunk = tree.chunks[*at];
                Next::Names(vec![path::mark_chunk(id, chunk), path::place_chunk(id, chunk)])
            }
            Step::Members(_, left, page) => {
                let few = left.len().min(READ);
                *page = left.drain(..few).collect();
                let kind = &tree.record.kind;
                Next::Read(page.iter().filter_map(|(n, _)| JobId::member(kind, id, *n).ok()).collect())
            }
            Step::Rest | Step::Last => Next::Read(tree.others()),
        }
    }

    /// Handles groups that were read.
    pub(super) fn groups(
        &mut self,
        found: Vec<(GroupId, FoundGroup)>,
        retention: &Retention,
        wall: WallMillis,
    ) {
        for (id, group) in found {
            let Some((record, version, modified)) = group else { continue };
            let Stage::Done { at } = record.stage else { continue };
            let ended = ended(at, modified, wall);
            let (kept, step) = (retention.shortest(), Step::Chunks);
            let (chunks, marks) = (Vec::new(), Vec::new());
            let tree = Tree { id, record, version, ended, chunks, marks, kept, step, stays: false };
            if tree.is_due(wall) {
                self.done.push_back(tree);
            } else {
                self.later(ended + kept);
            }
        }
    }

    /// Handles lists of children, in the order of the request.
    pub(super) fn names(
        &mut self,
        names: Vec<Option<Vec<String>>>,
        retention: &Retention,
        wall: WallMillis,
    ) -> Removals {
        let Some(tree) = &mut self.tree else { return Removals::default() };
        let mut lists = names.into_iter();
        let mut list = || lists.next().flatten();
        let (marks, places, first) = (list().unwrap_or_default(), list().unwrap_or_default(), list());
        match tree.step {
            // The finished handler of the parent, which belongs to the first group, reads the members of all groups.
            Step::Chunks if first.is_some() => {
                let due = tree.ended + tree.kept;
                self.tree = None;
                self.later(due);
            }
            Step::Chunks => {
                let chunks = marks.iter().chain(&places).filter_map(|name| path::parse_chunk(name));
                tree.chunks = chunks.collect::<BTreeSet<_>>().into_iter().collect();
                tree.marks = marks.iter().filter_map(|name| path::parse_mark(name)).collect();
                for (_, end) in &tree.marks {
                    tree.kept = tree.kept.max(retention.of_end(*end));
                }
                tree.step = Step::Survey(0);
                tree.surveyed(0);
            }
            Step::Survey(at) => {
                for (_, end) in marks.iter().filter_map(|name| path::parse_member_mark(name)) {
                    tree.kept = tree.kept.max(retention.of_end(end));
                }
                if !places.is_empty() || !tree.is_due(wall) {
                    // With an open member the group is due after that member ends, at an unknown time.
                    let due = tree.ended + tree.kept;
                    self.tree = None;
                    self.later(due);
                    return Removals::default();
                }
                tree.surveyed(at + 1);
            }
            Step::Marks(at) => {
                let members: VecDeque<_> =
                    marks.iter().filter_map(|name| path::parse_member_mark(name)).collect();
                tree.step = Step::Members(at, members, Vec::new());
                return tree.members_removed();
            }
            // The answer to a request that was not sent.
            Step::Members(..) | Step::Rest | Step::Last => {}
        }
        Removals::default()
    }

    /// Handles records that were read, in the order of the request.
    pub(super) fn read(&mut self, found: Vec<Found>, retention: &Retention, wall: WallMillis) -> Removals {
        let Some(tree) = &mut self.tree else { return Removals::default() };
        let (id, kind) = (tree.id.clone(), tree.record.kind.clone());
        match &mut tree.step {
            Step::Members(_, _, page) => {
                let mut removals = Vec::new();
                for ((number, end), found) in std::mem::take(page).into_iter().zip(found) {
                    let Ok(job) = JobId::member(&kind, &id, number) else { continue };
                    let record = match found {
                        Found::Left => {
                            tree.stays = true;
                            continue;
                        }
                        Found::Absent | Found::Over { counted: false, sub_jobs: Some(_), .. } => None,
                        found if is_kept(&found, retention, wall) => {
                            tree.stays = true;
                            continue;
                        }
                        Found::Over { version, .. } => Some((&job, version)),
                    };
                    let ops = remove_member(&id, number, end, record);
                    removals.push((job.to_string(), ops));
                }
                if removals.is_empty() { tree.members_removed() } else { removals }
            }
            Step::Rest => {
                let mut records = Vec::new();
                for (job, found) in tree.others().into_iter().zip(found) {
                    match found {
                        found if !tree.is_parent(&job) && is_kept(&found, retention, wall) => {
                            tree.stays = true
                        }
                        Found::Over { version, sub_jobs, .. } if tree.takes(&job, sub_jobs.as_ref()) => {
                            records.push((job, version));
                        }
                        // A parent that was retried since then has other sub-jobs, or none.
                        Found::Absent | Found::Over { .. } => {}
                        Found::Left => tree.stays |= !tree.is_parent(&job),
                    }
                }
                if tree.stays {
                    self.tree = None;
                    self.later(WallMillis(0));
                    return Removals::default();
                }
                let ops = remove_group(&id, tree.version, &tree.marks, &records);
                tree.step = Step::Last;
                vec![(id.to_string(), ops)]
            }
            Step::Chunks | Step::Survey(_) | Step::Marks(_) | Step::Last => Removals::default(),
        }
    }

    /// Handles a committed removal. `whole` is false if an operation was taken out of it.
    pub(super) fn removed(&mut self, whole: bool) -> Removals {
        let Some(tree) = &mut self.tree else { return Removals::default() };
        tree.stays |= !whole;
        match &tree.step {
            Step::Members(..) => tree.members_removed(),
            Step::Last => {
                self.tree = None;
                Removals::default()
            }
            Step::Chunks | Step::Survey(_) | Step::Marks(_) | Step::Rest => Removals::default(),
        }
    }

    fn later(&mut self, due: WallMillis) {
        self.due = Some(self.due.map_or(due, |known| known.min(due)));
    }
}

impl Tree {
    fn is_due(&self, wall: WallMillis) -> bool {
        self.ended + self.kept <= wall
    }

    fn surveyed(&mut self, next: usize) {
        let all = next >= self.chunks.len();
        self.step = match (all, self.chunks.is_empty()) {
            (false, _) => Step::Survey(next),
            (true, false) => Step::Marks(0),
            (true, true) => Step::Rest,
        };
    }

    /// Decides the step after a page of members.
    fn members_removed(&mut self) -> Removals {
        let Step::Members(at, left, _) = &self.step else { return Removals::default() };
        if !left.is_empty() {
            return Removals::default();
        }
        let chunk = self.chunks[*at];
        let next = at + 1;
        self.step = if next < self.chunks.len() { Step::Marks(next) } else { Step::Rest };
        if self.stays {
            return Removals::default();
        }
        let parts = remove_chunk(&self.id, chunk);
        parts.map(|op| (op.path().to_owned(), vec![op])).into()
    }

    /// Returns the group's jobs that are not members: its join, its parent's finished job, and the parent unless an
    /// outer group counts it.
    fn others(&self) -> Vec<JobId> {
        let parent = self.record.parent.as_ref();
        let finish = parent.map(|parent| parent.finish_id(&self.id));
        let mut jobs: Vec<_> =
            [Some(self.record.join_id(&self.id)), finish].into_iter().flatten().flatten().collect();
        let alone = |parent: &&Parent| !parent.membership.as_ref().is_some_and(|outer| outer.counted);
        jobs.extend(parent.filter(alone).map(|parent| parent.job.clone()));
        jobs
    }

    fn is_parent(&self, job: &JobId) -> bool {
        self.record.parent.as_ref().is_some_and(|parent| parent.job == *job)
    }

    /// Whether a record is removed with this group. A parent is removed only if this is the group of its current
    /// sub-jobs.
    fn takes(&self, job: &JobId, sub_jobs: Option<&GroupId>) -> bool {
        !self.is_parent(job) || sub_jobs == Some(&self.id)
    }
}

/// Whether a job that its group does not count is still within its retention.
fn is_kept(found: &Found, retention: &Retention, wall: WallMillis) -> bool {
    match found {
        Found::Over { counted: false, verdict, at, modified, .. } => {
            ended(*at, *modified, wall) + retention.of(verdict) > wall
        }
        Found::Over { counted: true, .. } | Found::Absent | Found::Left => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Verdict;

    #[test]
    fn an_independent_job_is_kept_until_its_retention_has_passed() {
        let retention = Retention::default();
        let at = WallMillis(1_000);
        let found = |counted| {
            let verdict = Verdict::Dead;
            Found::Over {
                version: 1,
                verdict,
                at,
                modified: at,
                grouped: true,
                counted,
                sub_jobs: None,
                turn: None,
            }
        };
        let due = at + retention.dead;
        let before = WallMillis(due.0 - 1);
        assert!(is_kept(&found(false), &retention, before) && !is_kept(&found(false), &retention, due));
        assert!(!is_kept(&found(true), &retention, before), "its group counts it");
    }
}
