//! Cancelling, retrying, waiting: as `src/client/{control,wait}.rs`.

use bellwether_core::job::{JobRecord, JobState, Verdict};
use bellwether_core::name::JobId;
use bellwether_core::path;
use bellwether_core::txn::{self, Op, Waiting};

use super::locate::{Found, Place};
use super::{Deadline, Shell, TooLate, Written};
use crate::history::{Answer, Call, JobSight, Seen};

/// How often a job that changes under our hands is tried.
const TRIES: u32 = 16;

/// Between two looks at a job that is waited for.
const POLL_US: u64 = 1_000_000;

/// Between two looks at a job that is to be retried at once, and how many there are.
const LOOK_US: u64 = 60_000;
const LOOKS: u32 = 300;

impl Shell {
    pub(crate) async fn cancel(self, job: JobId) {
        let (by, call) = self.invoke(Call::Cancel { job: job.clone() });
        let answer = self.try_cancel(by, &job).await.unwrap_or_else(|_| too_late());
        self.answer(call, answer);
    }

    async fn try_cancel(&self, by: Deadline, job: &JobId) -> Result<Answer, TooLate> {
        let (mut generation, mut unknown) = (None, false);
        for _ in 0..TRIES {
            let Some(Found { record, version, place }) = self.locate(by, job).await? else {
                return Ok(absent());
            };
            if *generation.get_or_insert(record.generation) != record.generation {
                // It was over, by our lost write or another's, and somebody retried it: that wish is newer.
                break;
            }
            let (ops, done) = match place {
                Place::Terminal => {
                    let ours = unknown && seen(&record) == Seen::Cancelled;
                    return Ok(if ours { Answer::Cancelled } else { sight(&record) });
                }
                Place::Queued => {
                    (self.cancel_waiting(by, job, record, version, Waiting::Queued).await?, Answer::Cancelled)
                }
                Place::Delayed(minute) => {
                    let waiting = Waiting::Delayed(minute);
                    (self.cancel_waiting(by, job, record, version, waiting).await?, Answer::Cancelled)
                }
                Place::Assigned { assignment, .. } if assignment.cancel => {
                    return Ok(Answer::CancelRequested);
                }
                Place::Assigned { worker, assignment, version } => {
                    (vec![txn::flag_cancel(job, worker, version, &assignment)], Answer::CancelRequested)
                }
                Place::Quarantined => return Ok(Answer::Seen { job: JobSight::Quarantined }),
                Place::Nowhere => continue,
            };
            match self.commit(by, &ops).await? {
                Written::Applied => return Ok(done),
                Written::Lost => {}
                Written::Unknown => unknown = true,
            }
        }
        Ok(Answer::Unknown { why: "contended".to_owned() })
    }

    /// A turn or a place that is not there beside an open record, or a mark that is, was an operator's hand's, and need not
    /// be ended.
    async fn cancel_waiting(
        &self,
        by: Deadline,
        job: &JobId,
        record: JobRecord,
        version: i32,
        waiting: Waiting,
    ) -> Result<Vec<Op>, TooLate> {
        let ended = record.cancel(self.wall());
        let mut ops = txn::cancel(job, version, &ended, waiting);
        for part in ops.iter().filter(|op| op.is_part_of_end()).cloned().collect::<Vec<_>>() {
            let there = self.znode(by, part.path().to_owned()).await?.is_some();
            let done = match part {
                Op::Delete { .. } => !there,
                Op::Create { .. } => there,
                Op::Check { .. } | Op::Set { .. } => false,
            };
            if done {
                txn::without_part(&ended, part.path(), &mut ops);
            }
        }
        Ok(ops)
    }

    pub(crate) async fn retry(self, job: JobId) {
        let (by, call) = self.invoke(Call::Retry { job: job.clone() });
        let answer = self.try_retry(by, &job).await.unwrap_or_else(|_| too_late());
        self.answer(call, answer);
    }

    /// Looks until the job is over, for a while, and opens it again.
    pub(crate) async fn retry_at_end(self, job: JobId) {
        for _ in 0..LOOKS {
            let by = self.by();
            match self.record(by, &job).await {
                Ok(Some((record, _))) if record.is_terminal() => break,
                Ok(_) => self.sleep(LOOK_US).await,
                Err(_) => return,
            }
        }
        self.retry(job).await;
    }

    async fn try_retry(&self, by: Deadline, job: &JobId) -> Result<Answer, TooLate> {
        let mut wanted = None;
        for _ in 0..TRIES {
            let Some(Found { record, version, place }) = self.locate(by, job).await? else {
                return Ok(absent());
            };
            if let Place::Quarantined = place {
                return Ok(Answer::Seen { job: JobSight::Quarantined });
            }
            if wanted.is_some_and(|wanted| record.generation >= wanted) {
                // A lost reply of ours, or another's retry of the same generation: the same thing was done.
                return Ok(Answer::Reopened { generation: record.generation });
            }
            match seen(&record) {
                Seen::Dead | Seen::Cancelled => {}
                Seen::Succeeded | Seen::Open => return Ok(sight(&record)),
            }
            let mut record = record;
            let Some(rejoined) = self.rejoin(by, job, &mut record).await? else {
                return Ok(Answer::Failed { why: "its sub-jobs are not done".to_owned() });
            };
            let record = record.reopen();
            let generation = record.generation;
            if let Some(lane) = &record.placement.lane {
                // It may have gone since the job's last turn in it.
                self.make_container(by, path::lane(lane)).await?;
            }
            let mut ops = txn::reopen(job, version, &record, 0);
            ops.extend(rejoined);
            match self.commit(by, &ops).await? {
                Written::Applied => return Ok(Answer::Reopened { generation }),
                Written::Lost => {}
                Written::Unknown => wanted = Some(generation),
            }
        }
        Ok(Answer::Unknown { why: "contended".to_owned() })
    }

    /// Looks until the job is over, or the time for it is.
    pub(crate) async fn wait(self, job: JobId) {
        loop {
            let (by, call) = self.invoke(Call::Read { job: job.clone() });
            let answer = match self.record(by, &job).await {
                Ok(Some((record, _))) => sight(&record),
                Ok(None) => absent(),
                Err(_) => too_late(),
            };
            let over = !matches!(answer, Answer::Seen { job: JobSight::There { is: Seen::Open, .. } });
            self.answer(call, answer);
            if over {
                return;
            }
            self.sleep(POLL_US).await;
        }
    }
}

fn too_late() -> Answer {
    Answer::Unknown { why: "no answer in time".to_owned() }
}

fn absent() -> Answer {
    Answer::Seen { job: JobSight::Absent }
}

fn sight(record: &JobRecord) -> Answer {
    Answer::Seen { job: JobSight::There { generation: record.generation, is: seen(record) } }
}

fn seen(record: &JobRecord) -> Seen {
    match &record.state {
        JobState::Open { .. } => Seen::Open,
        JobState::Terminal { verdict: Verdict::Succeeded(_), .. } => Seen::Succeeded,
        JobState::Terminal { verdict: Verdict::Cancelled, .. } => Seen::Cancelled,
        JobState::Terminal { verdict: Verdict::Dead, .. } => Seen::Dead,
    }
}
