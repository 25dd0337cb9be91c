//! The open members of a group, on a real server: waiting members, assigned members, and ended members.

use std::time::Duration;

use bellwether_core::group::GroupRecord;
use bellwether_core::job::{Assignment, JobRecord, Membership, Payload, Role};
use bellwether_core::machine::group_joiner::{Cursor, MemberLocation};
use bellwether_core::name::{GroupId, JobId, Kind, WorkerId};
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::time::WallMillis;
use bellwether_core::txn::{self, EntryLocation, Op};
use bellwether_host::group;
use bellwether_testkit::namespace;
use bellwether_zk::{Zk, connect, open_namespace};
use uuid::Uuid;

struct Bench {
    zk: Zk,
    id: GroupId,
    group: GroupRecord,
}

impl Bench {
    async fn new() -> Self {
        let zk = connect(&namespace("rest").parse().expect("a connect string"), Duration::from_secs(10))
            .await
            .expect("a session");
        open_namespace(&zk, true).await.expect("a namespace");
        let (id, kind) = (GroupId::new("g").expect("a name"), Kind::new("sum").expect("a name"));
        let bench = Self { zk, group: GroupRecord::new(kind, Uuid::nil(), WallMillis(1)), id };
        bench.apply(txn::make_group(&bench.id, &bench.group)).await;
        for op in txn::make_chunk(&bench.id, 0) {
            bench.apply(vec![op]).await;
        }
        bench
    }

    async fn apply(&self, ops: Vec<Op>) {
        assert_eq!(self.zk.commit(ops).await, Outcome::Applied(()));
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
            bench.apply(txn::assign(job, worker, &assignment, None)).await;
        }
        let (rest, next) = group::rest(&bench.zk, &bench.id, Cursor::default()).await.unwrap();
        assert_eq!(next, Some(Cursor { chunk: 0, from: 3 }));
        let stands = rest.iter().map(|rest| (rest.job.clone(), rest.location.clone())).collect::<Vec<_>>();
        let assigned = MemberLocation::Assigned(worker, assignment, 0);
        let expected = [
            (waiting, MemberLocation::Waits(EntryLocation::Queued)),
            (first, assigned.clone()),
            (second, assigned),
        ];
        assert_eq!(stands, expected, "{others} other workers");
    }
}
