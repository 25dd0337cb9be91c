//! The open members of a group, on a real server: waiting members, assigned members, and ended members.

use std::time::Duration;

use bellwether_core::group::GroupRecord;
use bellwether_core::job::{Assignment, JobRecord, Membership, Payload, Role};
use bellwether_core::machine::group_joiner::{Cursor, MemberLocation};
use bellwether_core::machine::worker_registry::recovery::Stored;
use bellwether_core::name::{GroupId, JobId, Kind, WorkerId};
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::ready::ReadyEntry;
use bellwether_core::time::WallMillis;
use bellwether_core::txn::{self, EntryLocation, Op};
use bellwether_core::wire;
use bellwether_host::group;
use bellwether_testkit::{RawClient, namespace};
use bellwether_zk::{Zk, connect, open_namespace};
use uuid::Uuid;

struct Bench {
    to: String,
    zk: Zk,
    id: GroupId,
    group: GroupRecord,
}

impl Bench {
    async fn new() -> Self {
        let to = namespace("rest");
        let zk = connect(&to.parse().expect("a connect string"), Duration::from_secs(10)).await;
        let zk = zk.expect("a session");
        open_namespace(&zk, true).await.expect("a namespace");
        let (id, kind) = (GroupId::new("g").expect("a name"), Kind::new("sum").expect("a name"));
        let bench = Self { to, zk, group: GroupRecord::new(kind, Uuid::nil(), WallMillis(1)), id };
        bench.apply(txn::make_group(&bench.id, &bench.group)).await;
        for op in txn::make_chunk(&bench.id, 0) {
            bench.apply(vec![op]).await;
        }
        bench
    }

    async fn apply(&self, ops: Vec<Op>) {
        assert_eq!(self.zk.commit(ops).await, Outcome::Applied(()));
    }

    async fn entry(&self, job: &JobId) -> ReadyEntry {
        let node = self.zk.get(path::record(job)).await.expect("an answer").expect("a record");
        ReadyEntry::of_record(job, &wire::decode(&node.data).expect("readable"))
    }

    async fn member(&self, number: u32) -> JobId {
        let job = JobId::member(&self.group.kind, &self.id, number).expect("a name");
        let membership = Membership { group: self.id.clone(), role: Role::Member(number), counted: true };
        let record = JobRecord::new(
            self.group.kind.clone(),
            Payload::json(*b"1").expect("small"),
            Uuid::nil(),
            WallMillis(1),
        );
        let record = JobRecord { membership: Some(membership), ..record };
        self.apply([txn::submit(&job, &record, 0), txn::join_group(&self.id, 0, number).into()].concat())
            .await;
        job
    }

    async fn inbox(&self) -> WorkerId {
        let worker = WorkerId::new(Uuid::now_v7());
        self.apply(vec![Op::Create {
            path: path::inbox(worker),
            data: Vec::new(),
            lifetime: txn::Lifetime::Persistent,
        }])
        .await;
        worker
    }
}

/// With few workers the assignments are read directly; with many the inboxes are listed. The result is the same.
#[tokio::test]
async fn open_members_are_located_with_any_number_of_workers() {
    for others in [1, 250] {
        let bench = Bench::new().await;
        let waiting = bench.member(0).await;
        let (first, second) = (bench.member(1).await, bench.member(2).await);
        let worker = bench.inbox().await;
        for _ in 0..others {
            bench.inbox().await;
        }
        let assignment = Assignment::new(1, 1, WallMillis(2));
        for job in [&first, &second] {
            bench.apply(txn::assign(&bench.entry(job).await, worker, &assignment, None)).await;
        }
        let (rest, next) = group::rest(&bench.zk, &bench.id, Cursor::default()).await.unwrap();
        assert_eq!(next, Some(Cursor { chunk: 0, from: 3 }));
        let stands = rest.iter().map(|rest| (rest.job.clone(), rest.location.clone())).collect::<Vec<_>>();
        let assigned = MemberLocation::Assigned(worker, assignment, 0);
        let expected = [
            (waiting.clone(), MemberLocation::Waits(EntryLocation::Ready(bench.entry(&waiting).await))),
            (first, assigned.clone()),
            (second, assigned),
        ];
        assert_eq!(stands, expected, "{others} other workers");
    }
}

/// An operator has changed the access to one inbox and to one record.
#[tokio::test]
async fn an_inbox_or_a_record_that_cannot_be_read_does_not_hide_other_members() {
    const ALL_BUT_READ: i32 = 30;
    for others in [1, 250] {
        let bench = Bench::new().await;
        let (hidden, open) = (bench.inbox().await, bench.inbox().await);
        for _ in 0..others {
            bench.inbox().await;
        }
        let jobs = [bench.member(0).await, bench.member(1).await, bench.member(2).await];
        let assignment = Assignment::new(1, 1, WallMillis(2));
        bench.apply(txn::assign(&bench.entry(&jobs[0]).await, hidden, &assignment, None)).await;
        bench.apply(txn::assign(&bench.entry(&jobs[1]).await, open, &assignment, None)).await;
        let (address, chroot) = bench.to.split_at(bench.to.find('/').expect("a namespace"));
        let mut operator = RawClient::connect(address.parse().expect("an address")).expect("a session");
        for denied in [path::inbox(hidden), path::record(&jobs[2])] {
            operator.set_permissions(&format!("{chroot}{denied}"), ALL_BUT_READ).expect("an answer");
        }
        let (rest, _) = group::rest(&bench.zk, &bench.id, Cursor::default()).await.unwrap();
        let locations = rest.iter().map(|rest| rest.location.clone()).collect::<Vec<_>>();
        let assigned = |worker| MemberLocation::Assigned(worker, assignment.clone(), 0);
        let expected = [assigned(hidden), assigned(open), MemberLocation::Nowhere];
        assert_eq!(locations, expected, "{others} other workers");
        assert_eq!(rest[2].record, Stored::Absent, "{others} other workers");
    }
}
