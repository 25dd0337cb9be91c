//! Submitting: as a round of `src/client/submit`, sent again until each of its jobs has an answer.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use bellwether_core::group::{GroupRecord, Stage};
use bellwether_core::job::identity::{self, Accepted, IfExists, Sight};
use bellwether_core::job::{JobRecord, JobState};
use bellwether_core::name::{GroupId, JobId};
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::path::{self, GroupPlace, Place};
use bellwether_core::txn::{self, Batch, Locus};
use bellwether_core::wire;
use uuid::Uuid;

use super::group::Known;
use super::{Deadline, Shell, TooLate};
use crate::history::{Answer, Call, Digest};
use crate::zk::{Znode, ask};

/// Where a submission makes the job's entry.
const ENTRY: usize = 1;

/// Where a submission makes the job's turn in its lane.
const TURN: usize = 2;

/// A job as a client wishes it.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) id: JobId,
    pub(crate) record: JobRecord,
    pub(crate) delay: Option<Duration>,
    pub(crate) expires_in: Option<Duration>,
    pub(crate) if_exists: IfExists,
}

struct Submission {
    call: u64,
    id: JobId,
    record: JobRecord,
    if_exists: IfExists,
    /// The group that it is a member of.
    group: Option<Rc<Known>>,
    /// The version of the record that is over and that ours replaces.
    reopens: Option<i32>,
    /// The group of the sub-jobs of that one.
    sub_jobs: Option<GroupId>,
    /// Whether an earlier copy of it may have been applied, or may yet be.
    maybe: bool,
}

impl Shell {
    /// Submits jobs in one multi, as far as they can be.
    pub(crate) async fn submit(self, jobs: Vec<Wish>) {
        self.submit_to(None, jobs).await;
    }

    /// The same, as members of a group if there is one. Whether all were accepted.
    pub(super) async fn submit_to(&self, group: Option<&Rc<Known>>, jobs: Vec<Wish>) -> bool {
        let mut by = Deadline(self.now_us());
        let (mut left, mut accepted) = (Vec::new(), 0);
        let wanted = jobs.len();
        for Wish { id, record, delay, expires_in, if_exists } in jobs {
            let (kind, payload) = (record.kind.clone(), Digest::of(record.payload.bytes()));
            let lane = record.placement.lane.clone();
            let (until, call) = self.invoke(Call::Submit { job: id.clone(), kind, payload, lane });
            by = until;
            let submitted_at = self.wall();
            let record = JobRecord {
                token: Uuid::from_u128(self.random()),
                submitted_at,
                expires_at: expires_in.map(|wait| submitted_at + wait),
                state: JobState::Open { not_before: delay.map(|delay| submitted_at + delay) },
                ..record
            };
            let group = group.cloned();
            let (reopens, sub_jobs, maybe) = (None, None, false);
            left.push(Submission { call, id, record, if_exists, group, reopens, sub_jobs, maybe });
        }
        while !left.is_empty() {
            if self.round(by, &mut left, &mut accepted).await.is_err() {
                break;
            }
        }
        for job in left {
            let why = "no answer in time".to_owned();
            let answer = if job.maybe { Answer::Unknown { why } } else { Answer::Failed { why } };
            self.answer(job.call, answer);
        }
        accepted == wanted
    }

    /// Sends what is left, and answers what is decided.
    async fn round(
        &self,
        by: Deadline,
        left: &mut Vec<Submission>,
        accepted: &mut usize,
    ) -> Result<(), TooLate> {
        self.not_parents(by, left, accepted).await?;
        self.look_up(by, left, accepted).await?;
        let zk = self.usable(by).await?;
        let mut batch = Batch::new(Vec::new());
        for (at, job) in left.iter().enumerate() {
            let index = u32::try_from(at).expect("a multi has few operations");
            // A second job of one id would make the multi reject itself.
            let again = left[..at].iter().any(|other| other.id == job.id);
            let mut ops = match job.reopens {
                Some(version) => txn::reopen(&job.id, version, &job.record, index),
                None => txn::submit(&job.id, &job.record, index),
            };
            if let Some(group) = &job.group {
                // Unwelcome since it was looked up: the next round tells.
                let Ok(joins) = group.admits(&job.record) else { continue };
                ops.extend(joins);
            }
            if !again && batch.push(at, ops).is_err() {
                break;
            }
        }
        if batch.is_empty() {
            return Ok(());
        }
        let sent: Vec<usize> = batch.keys().copied().collect();
        let Ok(answer) = self.until(by, self.ask(zk, ask::commit(batch.ops()))).await else {
            sent.iter().for_each(|at| left[*at].maybe = true);
            return Err(TooLate);
        };
        match ask::written(answer) {
            Outcome::Applied(()) => {
                *accepted += sent.len();
                for at in sent.into_iter().rev() {
                    self.answer(left.remove(at).call, Answer::Accepted);
                }
            }
            Outcome::Rejected(rejection) => self.rejected(by, left, accepted, &batch, rejection).await?,
            Outcome::Unknown => {
                sent.iter().for_each(|at| left[*at].maybe = true);
                self.look(by, left, accepted).await?;
            }
        }
        Ok(())
    }

    async fn rejected(
        &self,
        by: Deadline,
        left: &mut Vec<Submission>,
        accepted: &mut usize,
        batch: &Batch<usize>,
        rejection: Rejection,
    ) -> Result<(), TooLate> {
        let place = batch.ops().nth(rejection.at).map(|op| path::parse(op.path()));
        match (&rejection.reason, place) {
            (Reason::BadVersion | Reason::NoNode, Some(Place::Group(GroupPlace::Record(_)))) => {
                return self.read_groups_again(by, left).await;
            }
            (Reason::NoNode, Some(Place::Group(GroupPlace::Member(group, number)))) => {
                // Whatever the answer: the next round tells whether it is there, or the group is gone.
                self.commit(by, &txn::make_chunk(&group, path::chunk(number))).await?;
                return Ok(());
            }
            (_, _) => {}
        }
        match (rejection.reason, batch.locate(rejection.at)) {
            (Reason::NotSent, _) => self.sleep(20_000).await,
            (Reason::NodeExists | Reason::BadVersion, Some(Locus::Group { op: 0, .. })) => {
                self.look(by, left, accepted).await?;
            }
            // What it would have opened again is gone.
            (Reason::NoNode, Some(Locus::Group { op: 0, .. })) => self.look(by, left, accepted).await?,
            (Reason::NoNode, Some(Locus::Group { op: ENTRY | TURN, .. })) => {
                let lanes = left.iter().filter_map(|job| job.record.placement.lane.as_ref());
                let minutes = left.iter().filter_map(|job| job.record.minute());
                let parents = lanes.map(path::lane).chain(minutes.map(path::delayed_minute));
                for parent in parents.collect::<BTreeSet<_>>() {
                    self.make_container(by, parent).await?;
                }
            }
            (reason, _) => unreachable!("a submission was refused: {reason}"),
        }
        Ok(())
    }

    /// Looks for each, and decides those that are there.
    async fn look(
        &self,
        by: Deadline,
        left: &mut Vec<Submission>,
        accepted: &mut usize,
    ) -> Result<(), TooLate> {
        let paths: Vec<_> = left.iter().map(|job| path::record(&job.id)).collect();
        let znodes = self.read(by, || ask::get_many(paths.clone()), ask::got_many).await?;
        for (at, znode) in znodes.into_iter().enumerate().rev() {
            let job = left.remove(at);
            let again = match znode {
                Some(znode) => self.decide(job, &znode, accepted),
                None => Some(Submission { record: identity::anew(job.record), reopens: None, ..job }),
            };
            if let Some(job) = again {
                left.insert(at, job);
            }
        }
        Ok(())
    }

    /// The id is taken: by this submission, by an earlier one of the same job, or by another job. Gives the submission
    /// back when it is to open the job again.
    fn decide(&self, job: Submission, znode: &Znode, accepted: &mut usize) -> Option<Submission> {
        let answer = match wire::decode::<JobRecord>(&znode.data) {
            Ok(there) => match identity::look(&there, &job.record, job.if_exists) {
                Sight::Accepted(Accepted::Other) => Answer::Ignored,
                Sight::Accepted(Accepted::New | Accepted::Same | Accepted::Again(_)) => Answer::Accepted,
                Sight::Conflict => Answer::Conflict,
                Sight::Over => {
                    let sub_jobs = there.spawned.then(|| GroupId::of_sub_jobs(&job.id, &there));
                    let record = identity::again(job.record, there);
                    return Some(Submission { record, reopens: Some(znode.version), sub_jobs, ..job });
                }
            },
            Err(error) => Answer::Failed { why: error.to_string() },
        };
        *accepted += usize::from(answer == Answer::Accepted);
        self.answer(job.call, answer);
        None
    }

    /// A job whose sub-jobs go on is not over, and its submission is the same job.
    async fn not_parents(
        &self,
        by: Deadline,
        left: &mut Vec<Submission>,
        accepted: &mut usize,
    ) -> Result<(), TooLate> {
        for at in (0..left.len()).rev() {
            let Some(group) = left[at].sub_jobs.clone() else { continue };
            let znode = self.znode(by, path::group(&group)).await?;
            let goes_on = |znode: &Znode| {
                let record = wire::decode::<GroupRecord>(&znode.data);
                !record.is_ok_and(|record| matches!(record.stage, Stage::Done { .. }))
            };
            if znode.as_ref().is_some_and(goes_on) {
                *accepted += 1;
                self.answer(left.remove(at).call, Answer::Accepted);
            }
        }
        Ok(())
    }

    /// Of those whose group takes no new member of their number: one that is there is the same member all the same.
    async fn look_up(
        &self,
        by: Deadline,
        left: &mut Vec<Submission>,
        accepted: &mut usize,
    ) -> Result<(), TooLate> {
        for at in (0..left.len()).rev() {
            let Some(group) = &left[at].group else { continue };
            let Err(why) = group.admits(&left[at].record) else { continue };
            let znode = self.znode(by, path::record(&left[at].id)).await?;
            let job = left.remove(at);
            match znode {
                Some(znode) => left.extend(self.decide(job, &znode, accepted)),
                None => self.answer(job.call, Answer::Failed { why }),
            }
        }
        Ok(())
    }

    /// Those whose group is gone are told so.
    async fn read_groups_again(&self, by: Deadline, left: &mut Vec<Submission>) -> Result<(), TooLate> {
        for at in (0..left.len()).rev() {
            let Some(group) = left[at].group.clone() else { continue };
            let znode = self.znode(by, path::group(&group.id)).await?;
            if group.learn(znode.as_ref()) {
                continue;
            }
            let job = left.remove(at);
            let why = format!("there is no group {}", group.id);
            let answer = if job.maybe { Answer::Unknown { why } } else { Answer::Failed { why } };
            self.answer(job.call, answer);
        }
        Ok(())
    }
}
