//! What a session reports: its identity, its state, its watches, and the outcomes of its requests.

use std::time::Duration;

use bellwether_core::budget::{MAX_RECORD_BYTES, MAX_TXN_BYTES, MAX_TXN_OPS};
use bellwether_core::clock::{Clock, Reading};
use bellwether_core::name::ScheduleId;
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::path::{self, Place};
use bellwether_core::port::Session as _;
use bellwether_core::time::{Millis, WallMillis};
use bellwether_core::txn::{Lifetime, Op};
use bellwether_testkit::{Cut, Proxy, namespace};
use bellwether_zk::{
    Access, Change, ChangeKind, ConnectError, ReadError, Scheme, SessionState, Zk, connect, connect_as,
    exposed, open_namespace,
};
use futures::FutureExt;
use tokio::net::TcpListener;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(20);

async fn session(to: &str) -> Zk {
    connect(&to.parse().expect("a connect string"), Duration::from_secs(5)).await.expect("a session")
}

/// A session in a new namespace.
async fn opened(name: &str) -> Zk {
    let zk = session(&namespace(name)).await;
    open_namespace(&zk, true).await.expect("a namespace");
    zk
}

fn create(path: &str, lifetime: Lifetime) -> Op {
    Op::Create { path: path.to_owned(), data: Vec::new(), lifetime }
}

fn set(path: &str, data: &[u8]) -> Op {
    Op::Set { path: path.to_owned(), data: data.to_vec(), version: -1 }
}

fn delete(path: &str) -> Op {
    Op::Delete { path: path.to_owned(), version: None }
}

async fn commit(zk: &Zk, ops: Vec<Op>) {
    assert_eq!(zk.commit(ops).await, Outcome::Applied(()));
}

#[tokio::test]
async fn a_watch_reports_the_changes_below_its_path_in_order() {
    let zk = opened("watched").await;
    let mut watch = zk.watch(path::SCHEDULES).await.expect("a watch");
    let id = ScheduleId::new("nightly").expect("a name");
    let (schedule, other) = (path::schedule(&id), path::PAUSES.to_owned() + "/sum");
    commit(&zk, vec![create(&schedule, Lifetime::Persistent), create(&other, Lifetime::Persistent)]).await;
    commit(&zk, vec![set(&schedule, b"1")]).await;
    commit(&zk, vec![delete(&schedule)]).await;
    // Events arrive before the reply to a later read, so one call returns all of them.
    zk.get(schedule.clone()).await.expect("an answer");
    let changes = timeout(DEADLINE, watch.changes()).await.expect("changes");
    let expected = [ChangeKind::Created, ChangeKind::DataChanged, ChangeKind::Deleted];
    let expected = expected.map(|kind| Change { place: Place::Schedule(id.clone()), kind });
    assert_eq!(changes, Some(expected.to_vec()));
    assert_eq!(watch.changes().now_or_never(), None, "there are no more");
}

#[tokio::test]
async fn a_glance_reports_the_first_change() {
    let zk = opened("glanced").await;
    let read = zk.get_and_glance(path::EPOCH.to_owned()).await.expect("an answer");
    let (_, glance) = read.expect("the epoch exists");
    let mut changed = Box::pin(glance.changed());
    zk.get(path::EPOCH.to_owned()).await.expect("an answer");
    assert_eq!((&mut changed).now_or_never(), None);
    commit(&zk, vec![set(path::EPOCH, b"")]).await;
    timeout(DEADLINE, changed).await.expect("a change");
}

#[tokio::test]
async fn a_glance_at_children_reports_the_first_new_child() {
    let zk = opened("glanced-children").await;
    let read = zk.children_and_glance("/pauses".to_owned()).await.expect("an answer");
    let (children, glance) = read.expect("the parent exists");
    assert_eq!(children, [""; 0]);
    let mut changed = Box::pin(glance.changed());
    zk.get("/pauses".to_owned()).await.expect("an answer");
    assert_eq!((&mut changed).now_or_never(), None);
    commit(&zk, vec![create("/pauses/mail", Lifetime::Persistent)]).await;
    timeout(DEADLINE, changed).await.expect("a change");
    assert!(zk.children_and_glance("/absent".to_owned()).await.expect("an answer").is_none());
}

#[tokio::test]
async fn a_batch_of_lists_tells_empty_from_absent() {
    let zk = opened("lists").await;
    commit(&zk, vec![create("/pauses/mail", Lifetime::Persistent)]).await;
    let listed = zk.children_many(["/pauses", "/schedules", "/absent"].map(str::to_owned).to_vec()).await;
    assert_eq!(listed, Ok(vec![Some(vec!["mail".to_owned()]), Some(vec![]), None]));
}

#[tokio::test]
async fn a_session_owns_its_ephemerals() {
    let zk = opened("owner").await;
    commit(&zk, vec![create("/workers/a", Lifetime::Ephemeral)]).await;
    let node = zk.get("/workers/a".to_owned()).await.expect("an answer").expect("a znode");
    assert_eq!(node.owner, zk.session_id());
    assert_ne!(zk.session_id(), 0);
    assert_eq!(format!("{zk:?}"), format!("{:#x}", zk.session_id()));
}

#[tokio::test]
async fn a_session_carries_the_clock_of_its_holders() {
    let zk = opened("clock").await;
    let (now, local) = (Millis(5), WallMillis(1_000));
    assert_eq!(zk.wall(now, local), local);
    let mut clock = Clock::default();
    clock.read(Reading { sent: now, server: WallMillis(86_400_000) }, now, local);
    zk.set_clock(clock);
    assert_eq!(zk.wall(now, local), clock.wall(now, local));
    assert_ne!(zk.wall(now, local), local);
}

/// Above its limit, ZooKeeper drops the connection with all requests behind.
#[tokio::test]
async fn a_transaction_over_a_budget_is_not_sent() {
    let zk = opened("budgets").await;
    let check = Op::Check { path: path::EPOCH.to_owned(), version: 0 };
    commit(&zk, vec![check.clone(); MAX_TXN_OPS]).await;
    let of = |bytes: usize| {
        let empty = Op::Create { path: "/x".to_owned(), data: Vec::new(), lifetime: Lifetime::Ephemeral };
        let data = vec![0; bytes - empty.bytes()];
        Op::Create { path: "/x".to_owned(), data, lifetime: Lifetime::Ephemeral }
    };
    commit(&zk, vec![of(MAX_TXN_BYTES + MAX_RECORD_BYTES)]).await;
    for (ops, said) in [
        (vec![check.clone(); MAX_TXN_OPS + 1], format!("{} operations and ", MAX_TXN_OPS + 1)),
        (vec![check; MAX_TXN_OPS + 2], format!("{} operations and ", MAX_TXN_OPS + 2)),
        (
            vec![of(MAX_TXN_BYTES + MAX_RECORD_BYTES + 1)],
            format!("1 operations and {} bytes", MAX_TXN_BYTES + MAX_RECORD_BYTES + 1),
        ),
        (
            vec![of(MAX_TXN_BYTES + MAX_RECORD_BYTES + 2)],
            format!("1 operations and {} bytes", MAX_TXN_BYTES + MAX_RECORD_BYTES + 2),
        ),
    ] {
        let Outcome::Rejected(rejection) = zk.commit(ops).await else { panic!("{said}") };
        let Reason::OverBudget(what) = rejection.reason else { panic!("{rejection}") };
        assert!(what.contains(&said), "{what}");
    }
    assert!(zk.is_connected());
}

/// The commit of a delayed entry creates its minute, whatever other sessions and the server did to the minute.
#[tokio::test]
async fn a_transaction_creates_the_containers_that_it_needs() {
    let to = namespace("containers");
    let (first, second) = (session(&to).await, session(&to).await);
    open_namespace(&first, true).await.expect("a namespace");
    let entry = |job: &str| create(&format!("/delayed/7/1.1-{job}"), Lifetime::Persistent);
    commit(&first, vec![entry("a")]).await;
    commit(&first, vec![entry("b")]).await;
    commit(&second, vec![entry("c"), create("/delayed/8/1.1-c", Lifetime::Persistent)]).await;
    let both = first.children(path::DELAYED.to_owned()).await.expect("an answer").expect("a parent");
    assert_eq!(both.len(), 2, "{both:?}");
    let exists = |at| Outcome::Rejected(Rejection { at, reason: Reason::NodeExists });
    assert_eq!(second.commit(vec![entry("d"), entry("a")]).await, exists(1));
    let absent = create("/delayed/9/1.1-c", Lifetime::Persistent);
    assert_eq!(second.commit(vec![absent, entry("a")]).await, exists(1), "not the position in the multi");
    // As ZooKeeper does with an empty container.
    commit(&second, vec![delete("/delayed/8/1.1-c"), delete("/delayed/8")]).await;
    commit(&second, vec![create("/delayed/8/1.1-e", Lifetime::Persistent)]).await;
    assert!(first.get("/delayed/9".to_owned()).await.expect("an answer").is_none());
}

#[tokio::test]
async fn a_disconnected_session_sends_nothing_and_then_ends() {
    let proxy = Proxy::to(&namespace("cut-off"));
    let to = proxy.connect_string().parse().expect("a connect string");
    let zk = connect(&to, Duration::from_secs(2)).await.expect("a session");
    open_namespace(&zk, true).await.expect("a namespace");
    let mut watch = zk.watch(path::SCHEDULES).await.expect("a watch");
    let (mut states, mut following) = (zk.states(), zk.states());
    assert_eq!((zk.state(), zk.is_connected(), zk.has_ended()), (SessionState::Connected, true, false));
    assert_eq!(states.ended().now_or_never(), None);
    proxy.refuse();
    proxy.cut(Cut::Fin);
    assert_eq!(timeout(DEADLINE, following.changed()).await, Ok(SessionState::Disconnected));
    assert_eq!((zk.is_connected(), zk.has_ended()), (false, false));
    let not_sent =
        |outcome: Outcome<()>| matches!(outcome, Outcome::Rejected(r) if r.reason == Reason::NotSent);
    assert!(not_sent(zk.commit(vec![create("/delayed/1/1.1-a", Lifetime::Persistent)]).await));
    assert!(not_sent(zk.commit(vec![delete("/x")]).await));
    assert_eq!(zk.get("/".to_owned()).await, Err(ReadError::Disconnected));
    assert_eq!(timeout(DEADLINE, watch.changes()).await.expect("the end of the watch"), None);
    timeout(DEADLINE, states.ended()).await.expect("the end of the session");
    assert_eq!((zk.is_connected(), zk.has_ended()), (false, true));
}

#[tokio::test]
async fn a_failed_connection_names_each_server_and_its_reason() {
    // The system accepts its connections; nothing answers them.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let silent = listener.local_addr().expect("an address").to_string();
    let to = format!("127.0.0.1:1,{silent}").parse().expect("a connect string");
    let error = connect(&to, Duration::from_millis(300)).await.expect_err("no session");
    let ConnectError::Unreachable { attempts } = error else { panic!("{error}") };
    assert_eq!(attempts.len(), 2);
    assert!(attempts[0].starts_with("127.0.0.1:1") && attempts[1].starts_with(&silent), "{attempts:?}");
    assert!(attempts[1].contains("accepts connections but gives no session"), "{attempts:?}");
}

/// Access lists are not inherited: a namespace is closed only if each of its znodes is.
#[tokio::test]
async fn a_namespace_of_a_login_is_closed_to_others_and_an_open_one_is_exposed() {
    let to = namespace("open-to-all");
    let (_, root) = to.split_once('/').expect("a chroot");
    let zk = session(&to).await;
    open_namespace(&zk, true).await.expect("a namespace");
    assert!(!zk.access().is_login());
    let open = exposed(&zk).await.expect("an answer");
    let paths = open.iter().map(|exposed| exposed.path.clone()).collect::<Vec<_>>();
    for part in ["", path::JOBS, path::EPOCH, path::LAYOUT] {
        assert!(paths.contains(&format!("/{root}{part}")), "{part} is not in {paths:?}");
    }
    assert!(open.iter().all(|exposed| exposed.may == "ALL"), "{open:?}");

    let to = namespace("closed") + "/inner";
    let (_, chroot) = to.split_once('/').expect("a chroot");
    let access = Access::login(Scheme::Digest, "bellwether", "secret");
    assert_eq!(access.to_string(), "user \"bellwether\" (digest)");
    let parsed = to.parse().expect("a connect string");
    let owner = connect_as(&parsed, &access, Duration::from_secs(5)).await.expect("a session");
    assert!(owner.access().is_login());
    open_namespace(&owner, true).await.expect("a namespace");
    let closed = exposed(&owner).await.expect("an answer");
    assert!(closed.iter().all(|exposed| !exposed.path.contains(chroot)), "{closed:?}");
    let refused = open_namespace(&session(&to).await, true).await.expect_err("no access").to_string();
    assert!(refused.contains(&format!("/{chroot}")), "{refused}");
}

#[tokio::test]
async fn an_invalid_login_gets_no_session_instead_of_one_without_a_login() {
    let to = namespace("invalid-login").parse().expect("a connect string");
    for access in
        [Access::default().former_password("secret"), Access::login(Scheme::Digest, "a:b", "secret")]
    {
        let refused = connect_as(&to, &access, Duration::from_secs(5)).await.expect_err("no session");
        assert!(matches!(refused, ConnectError::LoginRefused { .. }), "{refused}");
        assert_eq!(access.identity(), None);
    }
}

#[tokio::test]
async fn the_clock_is_read_by_a_write_and_a_sequential_znode_has_its_number() {
    let zk = opened("clock-and-sequence").await;
    let [Outcome::Applied(before), Outcome::Applied(after)] = [zk.read_clock().await, zk.read_clock().await]
    else {
        panic!("the session is connected")
    };
    assert!(before > WallMillis(0) && before <= after, "{before:?}, {after:?}");
    let prefix = format!("{}/x-", path::WORKERS);
    for number in 0..2 {
        let made = zk.create_sequential(prefix.clone(), Vec::new()).await;
        assert_eq!(made, Outcome::Applied(format!("{prefix}{number:010}")));
    }
}
