//! The namespace of a login, and znodes in it that others may read or change.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bellwether_core::path::{self, Bucket};
use bellwether_testkit::{Proxy, ZooKeeperServer, namespace, op};
use bellwether_zk::{
    Access, Closed, ConnectString, NamespaceError, Repaired, Scheme, Zk, closed, connect_as, open_namespace,
    repair,
};
use zookeeper_client::{Acl, Acls, AuthId, Client, CreateMode, Permission};

use crate::session;

const USER: &str = "bellwether";
const PASSWORD: &str = "secret";

async fn owner(to: &str) -> Zk {
    let to: ConnectString = to.parse().expect("a connect string");
    let access = Access::login(Scheme::Digest, USER, PASSWORD);
    connect_as(&to, &access, Duration::from_secs(5)).await.expect("a session")
}

/// A session of the client library alone, with the login.
async fn bare(to: &str) -> Client {
    let login = format!("{USER}:{PASSWORD}");
    Client::connector().with_auth("digest", login.as_bytes()).connect(to).await.expect("a session")
}

/// Returns the number of znodes of a namespace.
async fn count(zk: &Zk) -> usize {
    let mut waiting = vec!["/".to_owned()];
    let mut znodes = 0;
    while let Some(path) = waiting.pop() {
        znodes += 1;
        let children = zk.children(path.clone()).await.expect("an answer").expect("a znode");
        let below = path.trim_end_matches('/');
        waiting.extend(
            children.into_iter().map(|name| format!("{below}/{name}")).filter(|path| path != "/zookeeper"),
        );
    }
    znodes
}

async fn open_to_all(bare: &Client, path: &str) {
    bare.set_acl(path, &Acls::anyone_all(), None).await.expect("a changed list");
}

#[tokio::test]
async fn a_namespace_that_others_may_change_is_refused_with_the_first_znodes() {
    let to = namespace("changeable") + "/inner";
    let (_, chroot) = to.split_once('/').expect("a chroot");
    let (zk, bare) = (owner(&to).await, bare(&to).await);
    open_namespace(&zk, true).await.expect("a namespace");
    assert_eq!(closed(&zk).await, Ok(Closed::Entirely));
    let parents = [path::PAUSES, path::SCHEDULES, path::WORKERS, path::DELAYED];
    for (open, more) in [(1, None), (3, None), (4, Some(" and 1 more"))] {
        for parent in &parents[..open] {
            open_to_all(&bare, parent).await;
        }
        let refused = open_namespace(&zk, true).await.expect_err("it is not closed");
        let NamespaceError::NotClosed { found, .. } = &refused else { panic!("{refused}") };
        assert!(found.contains(&format!("/{chroot}/")) && found.contains("world:anyone may ALL"), "{found}");
        assert_eq!(found.contains("more"), more.is_some(), "{found}");
        assert!(more.is_none_or(|more| found.ends_with(more)), "{found}");
    }
}

/// The lists of all 5,120 buckets are not read: the number of changes of a list, and when a znode was created, show which may differ.
#[tokio::test]
async fn a_bucket_is_found_whose_list_was_changed_or_that_was_created_again() {
    let to = namespace("open-buckets") + "/inner";
    let (_, chroot) = to.split_once('/').expect("a chroot");
    let proxy = Proxy::to(&to);
    let lists = Arc::new(AtomicUsize::new(0));
    let read = Arc::clone(&lists);
    proxy.witness(move |_, request| {
        if request.op == op::GET_ACL {
            read.fetch_add(1, Ordering::Relaxed);
        }
    });
    let (zk, bare) = (owner(&proxy.connect_string()).await, bare(&to).await);
    open_namespace(&zk, true).await.expect("a namespace");
    lists.store(0, Ordering::Relaxed);
    let [parent, changed, again, below] = [path::PAUSES, "/jobs/01", "/lanes/02", "/jobs/03/4"];
    let open = CreateMode::Persistent.with_acls(Acls::anyone_all());
    for changed in [parent, changed, below] {
        open_to_all(&bare, changed).await;
    }
    bare.delete(again, None).await.expect("an empty bucket");
    bare.create(again, b"", &open).await.expect("a bucket");
    assert_eq!(not_closed(&zk, chroot).await, [parent, changed, again, below]);
    // Those of the parents, of one bucket of each sort, and of the sub-buckets of the changed one.
    assert!((30..60).contains(&lists.load(Ordering::Relaxed)), "{lists:?} lists were read");
}

/// Others could write there before the namespace existed, so the times of creation prove nothing.
#[tokio::test]
async fn a_bucket_is_found_that_is_older_than_its_namespace_and_below_an_open_parent() {
    let to = namespace("older-buckets");
    let (server, chroot) = to.split_once('/').expect("a chroot");
    let open = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let whole = bare(server).await;
    for path in [path::JOBS, "/jobs/01"] {
        whole.create(&format!("/{chroot}{path}"), b"", &open).await.expect("a znode");
    }
    let zk = owner(&to).await;
    open_namespace(&zk, true).await.expect_err("others may change it");
    let found = not_closed(&zk, chroot).await;
    assert!(
        ["", path::JOBS, "/jobs/01"].iter().all(|path| found.iter().any(|found| found == path)),
        "{found:?}"
    );
}

/// The znodes that others may change, relative to the namespace.
async fn not_closed(zk: &Zk, chroot: &str) -> Vec<String> {
    let Ok(Closed::Not(found)) = closed(zk).await else { panic!("a closed namespace") };
    let found = found.into_iter().map(|exposed| exposed.path);
    found
        .map(|path| path.strip_prefix(&format!("/{chroot}")).expect("a znode of the namespace").to_owned())
        .collect()
}

#[tokio::test]
async fn a_repair_closes_every_znode_and_a_dry_run_only_finds_them() {
    let to = namespace("repairable") + "/inner";
    let (_, chroot) = to.split_once('/').expect("a chroot");
    let (zk, bare) = (owner(&to).await, bare(&to).await);
    open_namespace(&zk, true).await.expect("a namespace");
    open_to_all(&bare, "/").await;
    let open = CreateMode::Persistent.with_acls(Acls::anyone_all());
    for n in 0..11 {
        bare.create(&format!("{}/kind-{n}", path::PAUSES), b"", &open).await.expect("a znode");
    }
    let before = count(&zk).await;
    for change in [false, false, true] {
        let Repaired { znodes, differed, examples, .. } = repair(&zk, change).await.expect("an answer");
        assert_eq!((znodes, differed, examples.len()), (before, 12, 10), "change: {change}");
        assert_eq!(examples[0].path, format!("/{chroot}"));
        let below = format!("/{chroot}{}/kind-", path::PAUSES);
        assert!(examples[1..].iter().all(|example| example.path.starts_with(&below)), "{examples:?}");
    }
    let after = repair(&zk, false).await.expect("an answer");
    assert_eq!((after.znodes, after.differed, after.examples.len()), (before, 0, 0));
    assert_eq!(closed(&zk).await, Ok(Closed::Entirely));
}

#[tokio::test]
async fn a_repair_of_a_whole_ensemble_leaves_the_znodes_of_zookeeper_alone() {
    let server = ZooKeeperServer::builder().memory().start();
    let zk = owner(&server.connect_string()).await;
    let refused = open_namespace(&zk, true).await.expect_err("anyone may change the root");
    assert!(refused.to_string().contains("/: world:anyone may ALL"), "{refused}");
    let before = count(&zk).await;
    let repaired = repair(&zk, true).await.expect("an answer");
    assert_eq!((repaired.znodes, repaired.differed, &*repaired.examples[0].path), (before, 1, "/"));
    open_namespace(&zk, true).await.expect("a closed namespace");
    let list = bare(&server.connect_string()).await.get_acl("/zookeeper").await.expect("a list").0;
    assert!(list.iter().any(|entry| *entry.auth_id() == AuthId::anyone()), "{list:?}");
}

/// A node in it could do nothing.
#[tokio::test]
async fn a_namespace_that_a_session_may_read_but_not_write_is_refused_with_create() {
    let to = namespace("read-only") + "/inner";
    let (zk, bare) = (owner(&to).await, bare(&to).await);
    open_namespace(&zk, true).await.expect("a namespace");
    let read = Acl::new(Permission::READ, AuthId::anyone());
    let list = [Acl::new(Permission::ALL, AuthId::new("auth", "")), read];
    let parts = path::PARENTS.into_iter().chain([path::EPOCH, path::LEADING, path::LAYOUT, path::FAILOVER]);
    let buckets = Bucket::all().map(Bucket::jobs);
    for path in ["/"].into_iter().chain(parts).map(str::to_owned).chain(buckets) {
        bare.set_acl(&path, &Acls::new(&list), None).await.expect("a changed list");
    }
    let stranger = session(&to).await;
    open_namespace(&stranger, false).await.expect("a namespace to read");
    let refused = open_namespace(&stranger, true).await.expect_err("it may not write");
    assert!(
        matches!(&refused, NamespaceError::Forbidden { may_not, .. } if may_not.contains("may not write")),
        "{refused}"
    );
    assert!(matches!(closed(&zk).await, Ok(Closed::ReadableByOthers(_))));
    open_namespace(&zk, true).await.expect("readable by others, but closed");
}
