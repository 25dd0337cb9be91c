//! The transactions that processes send, each with the transactions of single jobs that it must equal.

use bellwether_core::job::{Assignment, Attempt, Ending, JobRecord, Payload, Placement, Priority};
use bellwether_core::name::JobId;
use bellwether_core::path::{self, Bucket, SubBucket};
use bellwether_core::ready::ReadyEntry;
use bellwether_core::segment::{
    ChunkEnd, Chunks, Head, Member, MemberId, Members, Results, Segment, SegmentId,
};
use bellwether_core::txn::segment::{self, AssignedSegment};
use bellwether_core::txn::{self, EntryLocation, Op};
use uuid::Uuid;

use crate::fixture::{self, MINUTE, WALL, kind, policy, worker};
use crate::zookeeper::ZooKeeper;

pub(super) const WORKERS: usize = 2;

/// No operation of the model has an owner.
pub(super) const SESSION: i64 = 1;

/// A transaction in flight.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Request {
    pub(super) ops: Vec<Op>,
    /// The transactions of single jobs that do the same to the members.
    pub(super) alone: Vec<Op>,
    pub(super) what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum What {
    Submit,
    Assign,
    Succeed,
    Extract,
    ExtractWaiting,
    Remove,
    /// A transaction of a single job.
    Job,
}

impl Request {
    fn of_job(ops: Vec<Op>) -> Option<Self> {
        Some(Self { alone: ops.clone(), ops, what: What::Job })
    }

    /// The epoch that it checks, if a leader sent it.
    pub(super) fn epoch(&self) -> Option<i32> {
        self.ops.first().filter(|op| op.path() == path::EPOCH).and_then(Op::version)
    }
}

/// The segment of the model.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) id: SegmentId,
    segment: Segment,
}

impl Stage {
    pub(super) fn new(members: u8) -> Self {
        let id = SegmentId::new(Uuid::from_u128(1), members, 100).expect("a valid name");
        let member = Member { payload: Payload::json(*b"1").expect("small"), trace: None };
        let head = Head {
            kind: kind(),
            policy: policy(2),
            placement: Placement::default(),
            priority: Priority::default(),
            submitted_at: WALL,
            part: 0,
            token: Uuid::from_u128(2),
        };
        Self { id, segment: Segment { head, members: vec![member; usize::from(members)] } }
    }

    /// A namespace with two workers.
    pub(super) fn zookeeper(&self) -> ZooKeeper {
        let mut paths = vec![path::EPOCH.to_owned(), path::delayed_minute(MINUTE)];
        paths.extend(path::PARENTS.map(str::to_owned));
        let jobs = self.id.members().iter().map(|number| self.job(number)).chain([self.id.job()]);
        paths.extend(jobs.flat_map(|job| [Bucket::of(&job).jobs(), SubBucket::of(&job).path()]));
        let mut zk = ZooKeeper::with(paths);
        for n in 0..WORKERS {
            zk = zk.after(SESSION, &txn::register(worker(n), &fixture::info(1))).expect("a free name");
        }
        zk
    }

    pub(super) fn job(&self, number: u8) -> JobId {
        MemberId { segment: self.id, number }.job()
    }

    pub(super) fn chunks(&self, zk: &ZooKeeper) -> Chunks {
        Chunks::of_names(zk.names(&path::segment(self.id)).map(|(name, _)| name))
    }

    fn members(&self) -> impl Iterator<Item = (JobId, JobRecord)> {
        self.id.members().iter().map(|n| (self.job(n), self.segment.record(n).expect("a member")))
    }

    /// What a worker, or a leader, reads in this worker's inbox.
    fn held(&self, zk: &ZooKeeper, n: usize) -> Option<AssignedSegment> {
        let (assignment, version) = zk.value(&path::assignment(worker(n), &self.id.job()))?;
        let open = self.chunks(zk).open(self.id);
        Some(AssignedSegment { id: self.id, worker: worker(n), assignment, version, open })
    }

    /// A client submits, or submits again because it did not get a reply.
    pub(super) fn submit(&self, zk: &ZooKeeper) -> Option<Request> {
        let alone = self.members().flat_map(|(job, record)| txn::submit(&job, &record, 0)).collect();
        let absent = zk.get(&path::segment(self.id)).is_none();
        absent.then(|| Request { ops: segment::submit(self.id, &self.segment), alone, what: What::Submit })
    }

    pub(super) fn assign(&self, zk: &ZooKeeper, epoch: i32, n: usize) -> Option<Request> {
        let (_, version) = zk.get(&path::worker(worker(n)))?;
        let at = self.segment.waits_at(self.id);
        zk.get(&path::ready_entry(&at))?;
        let fences = [txn::fence(epoch), txn::check_worker(worker(n), version)];
        let assignment = Assignment::new(1, epoch, WALL);
        let with = |ops: Vec<Op>| fences.iter().cloned().chain(ops).collect();
        let alone = self.members().flat_map(|(job, record)| {
            let at = ReadyEntry::of_record(&job, &record);
            txn::assign(&at, worker(n), &assignment, None)
        });
        let ops = with(txn::assign(&at, worker(n), &assignment, None));
        Some(Request { ops, alone: with(alone.collect()), what: What::Assign })
    }

    pub(super) fn succeed(&self, zk: &ZooKeeper, n: usize, members: Members) -> Option<Request> {
        let held = self.held(zk, n).filter(|held| held.open.includes(members))?;
        let result = |number: u8| Payload::json(vec![b'0' + number]).expect("small");
        let results = members.iter().map(|number| (number, WALL, result(number))).collect();
        let results = Results { worker: worker(n), assigned_at: held.assignment.assigned_at, results };
        let alone = members.iter().flat_map(|number| {
            let record = self.segment.record(number).expect("a member").carry(&held.assignment);
            let attempt = Attempt { number: 1, worker: worker(n) };
            let (record, next) = record.close(attempt, Ending::Succeeded(result(number)), WALL, 0);
            txn::close(&self.job(number), worker(n), 0, None, &record, &next)
        });
        let alone = alone.collect();
        Some(Request { ops: segment::succeed(&held, &results), alone, what: What::Succeed })
    }

    /// The worker hands back members that have not begun. No single job can return without an attempt, so the transaction is
    /// compared with its parts.
    pub(super) fn hand_back(&self, zk: &ZooKeeper, n: usize, members: Members) -> Option<Request> {
        let held = self.held(zk, n).filter(|held| held.open.includes(members))?;
        let back = |number: u8| {
            let (job, record) = (self.job(number), self.segment.record(number).expect("a member"));
            let assigned = Op::Delete { path: path::assignment(worker(n), &job), version: None };
            [assigned].into_iter().chain(txn::submit(&job, &record, 0).into_iter().skip(1))
        };
        let alone = members.iter().flat_map(back).collect();
        let ops = segment::extract_assigned(&held, &self.segment, Members::NONE, members);
        Some(Request { ops, alone, what: What::Extract })
    }

    /// The worker extracts some members, or a leader extracts all.
    pub(super) fn extract(
        &self,
        zk: &ZooKeeper,
        n: usize,
        (epoch, members): (Option<i32>, Members),
    ) -> Option<Request> {
        let held = self.held(zk, n)?;
        let members = held.open.within(members);
        let ops = segment::extract_assigned(&held, &self.segment, members, Members::NONE);
        let ops = epoch.map(txn::fence).into_iter().chain(ops).collect();
        (!members.is_empty()).then_some(Request { ops, alone: vec![], what: What::Extract })
    }

    pub(super) fn extract_waiting(&self, zk: &ZooKeeper) -> Option<Request> {
        zk.get(&path::ready_entry(&self.segment.waits_at(self.id)))?;
        let ops = segment::extract_waiting(self.id, &self.segment);
        Some(Request { ops, alone: vec![], what: What::ExtractWaiting })
    }

    pub(super) fn remove(&self, zk: &ZooKeeper, epoch: i32) -> Option<Request> {
        zk.get(&path::segment(self.id))?;
        let chunks = self.chunks(zk);
        let packed = self.id.members().without(chunks.members(ChunkEnd::Extracted));
        let alone = packed.iter().map(|number| txn::remove_record(&self.job(number), 0));
        let with = |ops: Vec<Op>| [txn::fence(epoch)].into_iter().chain(ops).collect();
        let all = chunks.open(self.id).is_empty();
        all.then(|| Request {
            ops: with(segment::remove(self.id, &chunks)),
            alone: with(alone.collect()),
            what: What::Remove,
        })
    }

    fn record(&self, zk: &ZooKeeper, number: u8) -> Option<(JobRecord, i32)> {
        zk.value(&path::record(&self.job(number)))
    }

    /// A worker closes the attempt of an extracted member.
    pub(super) fn close(&self, zk: &ZooKeeper, n: usize, number: u8, ending: Ending) -> Option<Request> {
        let job = self.job(number);
        let (record, version) = self.record(zk, number)?;
        let (assignment, _) = zk.value::<Assignment>(&path::assignment(worker(n), &job))?;
        let attempt = Attempt { number: record.attempts + 1, worker: worker(n) };
        let (record, next) = record.carry(&assignment).close(attempt, ending, WALL, 0);
        Request::of_job(txn::close(&job, worker(n), version, None, &record, &next))
    }

    /// A leader closes the attempt of an extracted member whose worker is dead.
    pub(super) fn reclaim(&self, zk: &ZooKeeper, epoch: i32, n: usize, number: u8) -> Option<Request> {
        let job = self.job(number);
        let held = zk.value::<Assignment>(&path::assignment(worker(n), &job))?;
        let dead = zk.get(&path::worker(worker(n))).is_none();
        let record = self.record(zk, number).filter(|_| dead)?;
        let (_, ops) = txn::reclaim(&job, worker(n), (&held.0, held.1), record, Ending::Lost, &[], WALL);
        Request::of_job([txn::fence(epoch)].into_iter().chain(ops).collect())
    }

    pub(super) fn assign_alone(
        &self,
        zk: &ZooKeeper,
        (epoch, n): (i32, usize),
        number: u8,
    ) -> Option<Request> {
        let at = fixture::ready(zk, &self.job(number))?;
        let (_, version) = zk.get(&path::worker(worker(n)))?;
        let (record, token) = self.record(zk, number)?;
        let generation = record.generation;
        let assignment = Assignment::new(record.attempts + 1, epoch, WALL);
        let assignment = Assignment { generation, fencing_token: token, ..assignment };
        let fences = [txn::fence(epoch), txn::check_worker(worker(n), version)];
        let ops = fences.into_iter().chain(txn::assign(&at, worker(n), &assignment, None));
        Request::of_job(ops.collect())
    }

    pub(super) fn cancel(&self, zk: &ZooKeeper, number: u8) -> Option<Request> {
        let job = self.job(number);
        let at = EntryLocation::Ready(fixture::ready(zk, &job)?);
        let (record, version) = self.record(zk, number)?;
        Request::of_job(txn::cancel(&job, version, &record.cancel(WALL), &at))
    }

    pub(super) fn reopen(&self, zk: &ZooKeeper, number: u8) -> Option<Request> {
        let (record, version) = self.record(zk, number).filter(|(record, _)| record.is_terminal())?;
        Request::of_job(txn::reopen(&self.job(number), version, &record.reopen(), 0))
    }

    pub(super) fn forget(&self, zk: &ZooKeeper, number: u8) -> Option<Request> {
        let (_, version) = self.record(zk, number).filter(|(record, _)| record.is_terminal())?;
        Request::of_job(vec![txn::remove_record(&self.job(number), version)])
    }
}
