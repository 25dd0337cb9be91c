//! A namespace with a login, and access to it by the client library alone.

use std::time::Duration;

use bellwether::{Access, Client, Handlers, Job, Node, Scheme};
use bellwether_testkit::namespace;
use futures::stream::{self, StreamExt};
use zookeeper_client::{Acl, Acls, Client as ZooKeeper, CreateMode, Error, Permission, SaslOptions};

pub(crate) const SOON: Duration = Duration::from_secs(60);
pub(crate) const USER: &str = "bellwether";
pub(crate) const PASSWORD: &str = "correct-horse-battery";

pub(crate) fn login() -> Access {
    Access::login(Scheme::Digest, USER, PASSWORD)
}

/// A chroot that does not exist yet, below a znode that every user may write.
pub(crate) fn place(name: &str) -> String {
    format!("{}/closed", namespace(name))
}

pub(crate) async fn client(to: &str, access: Access) -> Client {
    Client::builder(to).access(access).connect().await.unwrap()
}

pub(crate) async fn node(to: &str, access: Access) -> Node {
    let builder = Node::builder(to)
        .access(access)
        .session_timeout(Duration::from_secs(2))
        .drain_grace(Duration::from_secs(1));
    builder.handlers(handlers()).slots(4).start().await.unwrap()
}

pub(crate) fn handlers() -> Handlers {
    Handlers::new()
        .job("double", async |_context, n: u64| Ok(2 * n))
        .job("sleep", async |context, (): ()| {
            context.cancelled().await;
            Ok(())
        })
        .job("flaky", async |context, (): ()| match context.attempt() {
            1 => Err(bellwether::HandlerError::new("the first attempt fails")),
            _ => Ok(()),
        })
        .job("parent", async |context, (): ()| {
            let group = context.sub_jobs_of("double").open().await?;
            group.submit(0, Job::new("double", &1)).await?;
            Ok(())
        })
        .join_job("double", async |_context, _members| Ok(()))
}

/// A session of the client library alone.
pub(crate) async fn bare(to: &str, digest: Option<(&str, &str)>) -> ZooKeeper {
    // The client fails a request after four tenths of it, which a busy machine must not reach.
    let connector = ZooKeeper::connector().with_session_timeout(Duration::from_secs(30));
    let connector = match digest {
        Some((user, password)) => connector.with_auth("digest", format!("{user}:{password}").as_bytes()),
        None => connector,
    };
    connector.connect(to).await.unwrap()
}

/// Returns the paths of all znodes of a namespace, its root first.
pub(crate) async fn tree(insider: &ZooKeeper) -> Vec<String> {
    let mut paths = vec!["/".to_owned()];
    let mut next = 0;
    while let Some(path) = paths.get(next).cloned() {
        next += 1;
        // Jobs move in the meantime.
        match insider.list_children(&path).await {
            Ok(children) => {
                paths.extend(children.iter().map(|name| format!("{}/{name}", path.trim_end_matches('/'))));
            }
            Err(Error::NoNode) => {}
            Err(error) => panic!("{path}: {error}"),
        }
    }
    paths
}

pub(crate) async fn list(insider: &ZooKeeper, path: &str) -> Option<Vec<Acl>> {
    match insider.get_acl(path).await {
        Ok((list, _)) => Some(list),
        Err(Error::NoNode) => None,
        Err(error) => panic!("{path}: {error}"),
    }
}

/// A session of the SASL user, of the client library alone.
pub(crate) async fn sasl(to: &str) -> ZooKeeper {
    let connector = ZooKeeper::connector().with_session_timeout(Duration::from_secs(10));
    connector.with_sasl(SaslOptions::digest_md5(USER, PASSWORD)).connect(to).await.unwrap()
}

/// As [`closed_to`], for the user of [`login`].
pub(crate) async fn assert_closed(insider: &ZooKeeper, outsiders: &[&ZooKeeper]) {
    closed_to(insider, ("digest", &format!("{USER}:")), outsiders).await;
}

/// Asserts for every znode of a namespace that only its user has access and that every operation of the outsiders
/// fails.
pub(crate) async fn closed_to(insider: &ZooKeeper, (scheme, id): (&str, &str), outsiders: &[&ZooKeeper]) {
    let checks = tree(insider).await.into_iter().map(|path| async move {
        let Some(list) = list(insider, &path).await else { return };
        let [entry] = &list[..] else { panic!("{path}: {list:?}") };
        assert_eq!((entry.permission(), entry.scheme()), (Permission::ALL, scheme), "{path}");
        assert!(entry.id().starts_with(id), "{path}: {list:?}");
        for outsider in outsiders {
            assert_eq!(let_in(outsider, &path).await, Vec::<&str>::new(), "{path}");
        }
    });
    stream::iter(checks).buffer_unordered(100).collect::<()>().await;
}

/// Returns the operations on a znode that succeeded for an outsider. None succeeds on a deleted znode.
pub(crate) async fn let_in(outsider: &ZooKeeper, path: &str) -> Vec<&'static str> {
    let below = format!("{}/intruder", path.trim_end_matches('/'));
    let anyone = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let tried = [
        ("read it", outsider.get_data(path).await.map(drop)),
        ("list it", outsider.list_children(path).await.map(drop)),
        ("set it", outsider.set_data(path, b"intruder", None).await.map(drop)),
        ("create below it", outsider.create(&below, b"", &anyone).await.map(drop)),
        ("read its access list", outsider.get_acl(path).await.map(drop)),
        ("set its access list", outsider.set_acl(path, &Acls::anyone_all(), None).await.map(drop)),
        // The root's parent is not part of the namespace. A missing permission is reported before existing children.
        ("delete it", if path == "/" { Err(Error::NoAuth) } else { outsider.delete(path, None).await }),
    ];
    let done = tried.into_iter().filter_map(|(what, result)| match result {
        Err(Error::NoAuth | Error::NoNode | Error::NoChildrenForEphemerals) => None,
        Ok(()) | Err(_) => Some(what),
    });
    done.collect()
}
