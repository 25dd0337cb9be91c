//! Lost replies, races and rules of groups.

mod members;
mod sub_jobs;

use std::sync::Arc;

use bellwether_core::group::{Parent, Stage, Stop};
use bellwether_core::job::{Ending, Membership, Payload, Role};
use bellwether_core::name::{JobId, Lane, WorkerId};
use bellwether_core::outcome::Reason;
use bellwether_core::remedy::ErrorClass;
use bellwether_core::txn::Op;

use super::known::{Entrant, Known};
use super::*;
use crate::client::in_memory::{Answer, Request, World, id, kind};
use crate::client::job::{Job, JobKind};
use crate::client::{Accepted, IfExists, Retried, State, SubmitError};

struct Sum;

impl JobKind for Sum {
    const NAME: &'static str = "sum";
    type Payload = Vec<i64>;
    type Result = i64;
}

struct Product;

impl JobKind for Product {
    const NAME: &'static str = "product";
    type Payload = Vec<i64>;
    type Result = i64;
}

fn g() -> GroupId {
    GroupId::new("g").unwrap()
}

fn job() -> Job {
    Job::new("sum", &1)
}

fn stage(group: Group) -> (Arc<World>, Client, GroupHandle) {
    let world = World::new();
    let client = world.client();
    let handle = world.run(client.group(group)).unwrap();
    world.requests();
    (world, client, handle)
}

fn open() -> (Arc<World>, Client, GroupHandle) {
    stage(Group::new("sum", "g"))
}

fn update(world: &World, change: impl FnOnce(GroupRecord) -> GroupRecord) {
    world.tree().update(&path::group(&g()), change);
}

fn writes(world: &World) -> usize {
    world.requests().iter().filter(|request| request.is_write()).count()
}

fn record(token: u128) -> GroupRecord {
    GroupRecord::new(kind("sum"), Uuid::from_u128(token), WallMillis(1))
}

fn node(record: &GroupRecord, version: i32) -> Node {
    Node {
        data: wire::encode(record),
        version,
        owner: 0,
        created: 1,
        written: 1,
        modified: WallMillis(1),
        children: 0,
        children_ever: bellwether_zk::WrappingCount::default(),
    }
}

#[test]
fn a_known_group_is_replaced_by_a_newer_version_or_by_another_group_of_its_name() {
    let sealed = |token, total| GroupRecord { total: Some(total), ..record(token) };
    let known = Known::new(g(), sealed(1, 5), 5);
    known.learn(Some(&node(&sealed(1, 4), 4))).unwrap();
    assert_eq!(known.look(), (sealed(1, 5), 5), "an older version");
    known.learn(Some(&node(&sealed(1, 6), 5))).unwrap();
    assert_eq!(known.look(), (sealed(1, 6), 5));
    known.learn(Some(&node(&sealed(1, 7), 6))).unwrap();
    assert_eq!(known.look(), (sealed(1, 7), 6));
    known.learn(Some(&node(&sealed(2, 8), 0))).unwrap();
    assert_eq!(known.look(), (sealed(2, 8), 0), "another group");
    assert_eq!(known.learn(None), Err(GroupError::NotFound { group: g() }.into()));
    known.learn(Some(&Node { data: b"?".to_vec(), ..node(&record(1), 9) })).unwrap_err();

    known.wrote(3, sealed(2, 9));
    assert_eq!(known.look(), (sealed(2, 8), 0), "another version was written");
    known.wrote(0, sealed(2, 9));
    assert_eq!(known.look(), (sealed(2, 9), 1));
    known.wrote(1, sealed(2, 10));
    assert_eq!(known.look(), (sealed(2, 10), 2));
}

#[test]
fn the_submission_of_a_member_checks_the_version_of_the_group() {
    let known = Arc::new(Known::new(g(), record(1), 7));
    let entrant = Entrant { known, number: 4_096 };
    let [check, place] = entrant.ops(None).unwrap();
    assert_eq!(check, Op::Check { path: path::group(&g()), version: 7 });
    assert!(matches!(place, Op::Create { .. }));
    assert_eq!(entrant.chunk(), 1);
    let sealed = Known::new(g(), GroupRecord { total: Some(4), ..record(1) }, 7);
    let entrant = Entrant { known: Arc::new(sealed), number: 4 };
    assert!(matches!(entrant.ops(None), Err(GroupError::NumberTooLarge { number: 4, total: 4, .. })));
}

#[test]
fn a_group_with_the_same_rules_is_the_same_group() {
    let (world, client, _) = open();
    let again = |group: Group| world.run(client.group::<Untyped>(group)).map(|handle| handle.id().clone());
    assert_eq!(again(Group::new("sum", "g")), Ok(g()));
    for (other, field) in [
        (Group::new("product", "g"), "kind"),
        (Group::new("sum", "g").fail_fast(true), "failing fast"),
        (Group::new("sum", "g").join(false), "a join"),
    ] {
        let error = again(other).unwrap_err();
        assert!(matches!(&error, Error::Group(GroupError::Conflict { field: said, .. }) if *said == field));
    }
    assert!(Group::new("sum", "a b").check().is_err() && Group::new("sum", "g").check().is_ok());
    let error = again(Group::new("sum", "a b")).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Invalid);
    let typed = |result: Result<GroupHandle<Product>, Error>| result.map(drop);
    let other = typed(world.run(client.existing_group::<Product>(&g()))).unwrap_err();
    assert!(matches!(other, Error::Group(GroupError::Kind { .. })));
    world.run(client.existing_group::<Sum>(&g())).unwrap();
    world.run(client.existing_group::<Untyped>(&g())).unwrap();
    let absent = GroupId::new("none").unwrap();
    let error = typed(world.run(client.existing_group(&absent))).unwrap_err();
    assert_eq!(error, GroupError::NotFound { group: absent }.into());
}

#[test]
fn a_group_whose_creation_is_lost_is_created_once() {
    for (lost, copies) in [(Answer::LoseReply, 1), (Answer::LoseRequest, 2)] {
        let world = World::new();
        let client = world.client();
        world.once(Request::is_write, [lost]);
        let handle = world.run(client.group::<Untyped>(Group::new("sum", "g"))).unwrap();
        assert_eq!((handle.known.look().1, writes(&world)), (0, copies));
        let stored: GroupRecord = world.tree().decoded(&path::group(&g()));
        assert_eq!(stored.created_at, world.wall());
        assert_ne!(stored.token, Uuid::nil());
    }
    let world = World::new();
    let client = world.client();
    world.once(Request::is_write, vec![Answer::LoseRequest; 99]);
    let error = world.run(client.group::<Untyped>(Group::new("sum", "g"))).unwrap_err();
    assert_eq!(error, Error::Contended { subject: Subject::Group(g()), tries: TRIES });
}

#[test]
fn a_seal_is_written_once_and_must_cover_all_members() {
    let (world, _, handle) = open();
    for number in [0, 5_000] {
        world.run(handle.submit(number, job())).unwrap();
    }
    let below = world.run(handle.seal(5_000)).unwrap_err();
    assert_eq!(below, GroupError::TotalTooSmall { group: g(), number: 5_000, total: 5_000 }.into());
    world.requests();
    world.once(Request::is_write, [Answer::LoseReply]);
    world.run(handle.seal(5_001)).unwrap();
    world.run(handle.seal(5_001)).unwrap();
    assert_eq!((writes(&world), handle.known.look().1), (1, 1));
    assert_eq!(handle.known.look().0.total, Some(5_001));
    let error = world.run(handle.seal(5_002)).unwrap_err();
    assert!(matches!(error, Error::Group(GroupError::Sealed { sealed: 5_001, given: 5_002, .. })));
}

#[test]
fn ended_members_count_for_the_smallest_total() {
    let (world, client, handle) = open();
    let worker = world.worker(1, &World::registration(&["sum"], 4, &[]));
    for number in [0, 3] {
        world.run(handle.submit(number, job())).unwrap();
    }
    let member = JobId::member(&kind("sum"), &g(), 3).unwrap();
    world.assign(&member, worker);
    world.close(&member, worker, Ending::Succeeded(Payload::json(*b"1").unwrap()));
    let below = world.run(handle.seal(3)).unwrap_err();
    assert_eq!(below, GroupError::TotalTooSmall { group: g(), number: 3, total: 3 }.into());
    world.run(handle.seal(4)).unwrap();
    let mut members = client.group_members::<Sum>(&g());
    let first = world.run(members.next()).unwrap().unwrap();
    assert_eq!((first.number, first.end), (0, MemberEnd::Open));
    let last = world.run(members.next()).unwrap().unwrap();
    assert_eq!((last.number, last.into_result()), (3, Ok(1)));
    assert_eq!(world.run(members.next()), Ok(None));
}

#[test]
fn a_seal_after_another_change_of_the_group_reads_it_again() {
    let (world, _, handle) = open();
    update(&world, |record| record);
    world.run(handle.seal(4)).unwrap();
    assert_eq!((writes(&world), handle.known.look().1), (2, 2));
    let (world, _, handle) = open();
    world.script(|request, tree| {
        if request.is_write() {
            tree.update(&path::group(&g()), |record: GroupRecord| record);
        }
        Answer::Serve
    });
    let error = world.run(handle.seal(4)).unwrap_err();
    assert_eq!(error, Error::Contended { subject: Subject::Group(g()), tries: TRIES });
    assert_eq!(writes(&world), TRIES as usize);
}

#[test]
fn a_group_is_abandoned_once() {
    for lost in [Answer::Serve, Answer::LoseReply, Answer::LoseRequest] {
        let (world, client, _) = open();
        world.once(Request::is_write, [lost]);
        let view = world.run(client.abandon_group(&g())).unwrap();
        assert!(view.is_abandoned);
        assert_eq!(view.changed.unwrap().by, "tester");
        assert_eq!(world.tree().get(&path::group(&g())).unwrap().version, 1);
        assert!(world.run(client.abandon_group(&g())).unwrap().is_abandoned);
        assert_eq!(world.tree().get(&path::group(&g())).unwrap().version, 1);
    }
    let (world, client, _) = open();
    update(&world, |record| GroupRecord { stopped: Some(Stop::Member(1)), ..record });
    let error = world.run(client.abandon_group(&g())).unwrap_err();
    assert!(matches!(error, Error::Group(GroupError::Closed { .. })));
    update(&world, |record| GroupRecord { stopped: None, parent: Some(parent(&id("p"))), ..record });
    let error = world.run(client.abandon_group(&g())).unwrap_err();
    assert!(matches!(error, Error::Group(GroupError::SubJobs { .. })));
}

fn parent(job: &JobId) -> Parent {
    Parent {
        job: job.clone(),
        kind: kind("parent"),
        generation: 1,
        finish: false,
        first: None,
        membership: None,
        depth: 0,
        lane: None,
        outer_lanes: Vec::new(),
    }
}
