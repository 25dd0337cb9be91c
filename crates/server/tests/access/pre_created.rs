//! A namespace, or a part of it, that another user created before the first node.

use bellwether::{Access, Client};
use bellwether_core::path::{self, Bucket};
use bellwether_testkit::{Program, ZooKeeperServer};
use bellwether_zk::{Closed, NamespaceError, closed, connect_as, open_namespace, repair};
use zookeeper_client::{Acl, Acls, AuthId, Client as ZooKeeper, CreateMode, Permission};

use crate::stage::{PASSWORD, SOON, USER, assert_closed, bare, login};

async fn open(to: &str) -> Result<(), NamespaceError> {
    let zk = connect_as(&to.parse().unwrap(), &login(), SOON).await.unwrap();
    open_namespace(&zk, true).await.map(drop)
}

/// Asserts that the namespace is refused because of this znode, and closed by a repair.
async fn refused_then_repaired(to: &str, path: &str) {
    let refused = open(to).await.unwrap_err();
    let NamespaceError::NotClosed { found, .. } = &refused else { panic!("{path}: {refused:?}") };
    assert!(found.split(", ").any(|found| found.starts_with(&format!("{path}: "))), "{path}: {found}");
    let said = Client::builder(to).access(login()).connect().await.unwrap_err().to_string();
    assert_eq!(said, refused.to_string());
    let zk = connect_as(&to.parse().unwrap(), &login(), SOON).await.unwrap();
    assert!(repair(&zk, true).await.unwrap().differed > 0, "{path}");
    assert_eq!(repair(&zk, false).await.unwrap().differed, 0, "{path}");
    assert_eq!(closed(&zk).await.unwrap(), Closed::Entirely, "{path}");
    open(to).await.unwrap();
}

/// What an attacker gives a znode: full access to itself, and to the victim in a way that passes every write.
fn traps() -> [Vec<Acl>; 3] {
    let all = |scheme: &str, id: &str| Acl::new(Permission::ALL, AuthId::new(scheme, id));
    let own = Acl::new(Permission::ALL, AuthId::new("auth", ""));
    [
        vec![all("world", "anyone")],
        vec![own.clone(), all("ip", "127.0.0.1")],
        // No entry for anyone, whose permissions the self-check of a node without a login reports.
        vec![own, all("ip", "0.0.0.0/0")],
    ]
}

async fn create(attacker: &ZooKeeper, path: &str, trap: &[Acl]) {
    let mode = CreateMode::Persistent.with_acls(Acls::new(trap));
    attacker.create(path, b"", &mode).await.unwrap();
}

#[tokio::test]
async fn a_znode_that_another_user_created_before_the_first_node_is_refused() {
    let server = ZooKeeperServer::builder().memory().start();
    let attacker = bare(&server.connect_string(), Some(("attacker", "knows-no-password"))).await;
    for (n, trap) in traps().iter().enumerate() {
        // The chroot alone.
        let chroot = format!("/chroot-{n}");
        create(&attacker, &chroot, trap).await;
        refused_then_repaired(&format!("{}{chroot}", server.connect_string()), &chroot).await;
        // A parent, in an own chroot; the chroot is refused with it.
        let chroot = format!("/parent-{n}");
        create(&attacker, &chroot, &traps()[0]).await;
        create(&attacker, &format!("{chroot}{}", path::JOBS), trap).await;
        let to = format!("{}{chroot}", server.connect_string());
        refused_then_repaired(&to, &format!("{chroot}{}", path::JOBS)).await;
    }
}

#[tokio::test]
async fn each_permanent_znode_that_others_may_change_is_refused_and_reading_is_not_closed() {
    let server = ZooKeeperServer::builder().program(Program::Keeper).memory().start();
    let to = server.connect_string() + "/closed";
    open(&to).await.unwrap();
    let insider = bare(&to, Some((USER, PASSWORD))).await;
    assert_closed(&insider, &[&bare(&to, None).await]).await;
    // Otherwise created when the strategy is set for the first time.
    create(&insider, path::PLACEMENT, &[Acl::new(Permission::ALL, AuthId::new("auth", ""))]).await;
    let bucket = Bucket::all().last().unwrap();
    let settings = [path::EPOCH, path::LAYOUT, path::RETENTION, path::PLACEMENT];
    let parent = bucket.sub_buckets().last().unwrap().path();
    for path in ["/", path::READY, &bucket.jobs(), &parent, &bucket.members()].into_iter().chain(settings) {
        let list = [
            Acl::new(Permission::ALL, AuthId::new("auth", "")),
            Acl::new(Permission::WRITE, AuthId::anyone()),
        ];
        insider.set_acl(path, &Acls::new(&list), None).await.unwrap();
        let absolute = if path == "/" { "/closed".to_owned() } else { format!("/closed{path}") };
        refused_then_repaired(&to, &absolute).await;
    }
    let list =
        [Acl::new(Permission::ALL, AuthId::new("auth", "")), Acl::new(Permission::READ, AuthId::anyone())];
    insider.set_acl(path::READY, &Acls::new(&list), None).await.unwrap();
    let zk = connect_as(&to.parse().unwrap(), &login(), SOON).await.unwrap();
    open_namespace(&zk, true).await.unwrap();
    assert!(matches!(closed(&zk).await.unwrap(), Closed::ReadableByOthers(at) if at.path == "/closed/ready"));
}

/// For example by an operator with `zkCli.sh`, whose znodes are open to everyone.
#[tokio::test]
async fn a_bucket_that_was_deleted_and_created_again_with_an_open_list_is_refused() {
    let server = ZooKeeperServer::builder().program(Program::Keeper).memory().start();
    let to = server.connect_string() + "/again";
    open(&to).await.unwrap();
    let insider = bare(&to, Some((USER, PASSWORD))).await;
    let bucket = Bucket::all().last().unwrap();
    let sub_bucket = bucket.sub_buckets().last().unwrap().path();
    for path in [&bucket.lanes(), &sub_bucket] {
        insider.delete(path, None).await.unwrap();
        create(&insider, path, &[Acl::new(Permission::ALL, AuthId::anyone())]).await;
        refused_then_repaired(&to, &format!("/again{path}")).await;
    }
}

#[tokio::test]
async fn a_namespace_without_a_login_is_used_as_before() {
    let server = ZooKeeperServer::builder().program(Program::Keeper).memory().start();
    let to = server.connect_string() + "/open";
    let zk = connect_as(&to.parse().unwrap(), &Access::default(), SOON).await.unwrap();
    open_namespace(&zk, true).await.unwrap();
    open_namespace(&zk, true).await.unwrap();
}
