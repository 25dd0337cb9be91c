//! Users without access to a closed namespace get an error that names the remedy, and they leave no znode behind.

use std::time::Duration;

use bellwether::client::{ConnectError, Unavailable};
use bellwether::node::NodeError;
use bellwether::{Access, Client, Scheme};
use bellwether_core::path;
use bellwether_testkit::{eventually, namespace};
use bellwether_zk::NamespaceError;
use tokio::time::timeout;
use zookeeper_client::{Acl, Acls, AuthId, CreateMode, Permission};

use crate::stage::{PASSWORD, SOON, USER, bare, client, let_in, login, node, place, tree};

fn stranger() -> Access {
    Access::login(Scheme::Digest, USER, "wrong-password")
}

/// Waits until a node has ended and returns its error.
async fn end(to: &str, access: Access) -> NodeError {
    timeout(SOON, node(to, access).await.ended()).await.expect("the node must end").unwrap_err()
}

#[tokio::test]
async fn a_wrong_password_and_a_missing_login_are_refused_and_write_nothing() {
    let to = place("wrong");
    let _node = node(&to, login()).await;
    drop(client(&to, login()).await);
    let insider = bare(&to, Some((USER, PASSWORD))).await;
    eventually("the node stands for election", SOON, async || {
        !insider.list_children(path::ELECTION).await.unwrap().is_empty()
    })
    .await;
    let before = tree(&insider).await;
    for (access, who) in
        [(stranger(), "user \"bellwether\" (digest)"), (Access::default(), "a client without a login")]
    {
        let builder = Client::builder(&to).access(access.clone()).deadline(Duration::from_secs(10));
        let refused = builder.connect().await.unwrap_err();
        assert!(matches!(refused, ConnectError::Unavailable(Unavailable::Refused(_))), "{refused:?}");
        let ended = end(&to, access).await;
        assert!(matches!(ended, NodeError::Namespace(NamespaceError::Forbidden { .. })), "{ended:?}");
        for said in [refused.to_string(), ended.to_string()] {
            for part in [who, "is closed to", "may not read", "Log in as the user that created it", "/closed"]
            {
                assert!(said.contains(part), "{part:?} is not in {said:?}");
            }
            assert!(!said.contains("wrong-password"), "{said}");
        }
    }
    assert_eq!(tree(&insider).await, before);
}

#[tokio::test]
async fn a_read_only_namespace_accepts_readers_but_no_nodes() {
    let to = place("readable");
    drop(client(&to, login()).await);
    let insider = bare(&to, Some((USER, PASSWORD))).await;
    let lists =
        [Acl::new(Permission::ALL, AuthId::new("auth", "")), Acl::new(Permission::READ, AuthId::anyone())];
    let before = tree(&insider).await;
    for path in &before {
        insider.set_acl(path, &Acls::new(&lists), None).await.unwrap();
    }
    let reader = Client::builder(&to).create_namespace(false).connect().await.unwrap();
    assert!(reader.workers().await.unwrap().is_empty());
    let ended = end(&to, Access::default()).await.to_string();
    assert!(ended.contains("it may not write /election/may-this-be-written"), "{ended}");
    assert_eq!(tree(&insider).await, before);
    // A node with write access is accepted, and its write test leaves no znode.
    let node = node(&to, login()).await;
    eventually("the node stands for election", SOON, async || {
        !insider.list_children(path::ELECTION).await.unwrap().is_empty()
    })
    .await;
    node.stop().await;
    assert!(!tree(&insider).await.iter().any(|path| path.contains("may-this-be-written")));
    let version = async || insider.get_data(path::EPOCH).await.unwrap().1.version;
    let epoch = version().await;
    drop(client(&to, login()).await);
    assert_eq!(version().await, epoch, "no node became leader in between");
}

#[tokio::test]
async fn a_chroot_that_an_operator_created_below_a_closed_znode_is_used() {
    let parent = namespace("operators");
    let to = format!("{parent}/prod");
    let operator = bare(&parent, Some(("operator", "of-the-ensemble"))).await;
    let own = CreateMode::Persistent.with_acls(Acls::creator_all());
    operator.create("/prod", b"", &own).await.unwrap();
    operator.set_acl("/", &Acls::creator_all(), None).await.unwrap();
    let refused = Client::builder(&to).access(login()).connect().await.unwrap_err().to_string();
    assert!(refused.contains("/prod is closed to user \"bellwether\" (digest)"), "{refused}");
    let elsewhere = format!("{parent}/elsewhere");
    let refused = Client::builder(&elsewhere).access(login()).connect().await.unwrap_err().to_string();
    assert!(refused.contains("it may not create it"), "{refused}");

    // The operator grants access by the user's digest, which a client of that user can read.
    let other = bare(&namespace("digest"), Some((USER, PASSWORD))).await;
    other.create("/mine", b"", &own).await.unwrap();
    let (list, _) = other.get_acl("/mine").await.unwrap();
    operator.set_acl("/prod", &Acls::new(&list), None).await.unwrap();
    client(&to, login()).await;
    assert_eq!(let_in(&operator, "/prod/jobs").await, ["delete it"; 0]);
}
