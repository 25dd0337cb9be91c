//! SASL DIGEST-MD5 on an Apache ZooKeeper that stores the passwords. The keeper does not support SASL.

use std::fs;
use std::time::Duration;

use bellwether::client::{ConnectError, Unavailable};
use bellwether::node::NodeError;
use bellwether::{Access, Client, Job, Scheme, State};
use bellwether_testkit::{Program, Proxy, ZooKeeperServer};
use bellwether_zk::NamespaceError;
use tokio::time::timeout;

use crate::stage::{PASSWORD, SOON, USER, bare, client, closed_to, node, sasl};

fn login(password: &str) -> Access {
    Access::login(Scheme::SaslDigestMd5, USER, password)
}

/// A server with one user.
fn server(dir: &tempfile::TempDir) -> ZooKeeperServer {
    let jaas = dir.path().join("jaas.conf");
    let module = "org.apache.zookeeper.server.auth.DigestLoginModule";
    fs::write(&jaas, format!("Server {{ {module} required user_{USER}=\"{PASSWORD}\"; }};\n")).unwrap();
    ZooKeeperServer::builder()
        .program(Program::Apache)
        .setting("authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider")
        .java_flag(format!("-Djava.security.auth.login.config={}", jaas.display()))
        .start()
}

#[tokio::test]
async fn a_sasl_login_closes_its_namespace_and_survives_a_cut_and_an_expiry() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir);
    let to = format!("{}/bellwether/prod", server.connect_string());
    let proxy = Proxy::to(&to);
    let node = node(&proxy.connect_string(), login(PASSWORD)).await;
    let client = client(&to, login(PASSWORD)).await;
    let run = async |id: &str| {
        let job = client.submit(Job::new("double", &21).id(id)).await.unwrap();
        assert_eq!(job.wait(SOON).await.unwrap().state, State::Succeeded);
    };
    run("first").await;
    proxy.cut(bellwether_testkit::Cut::Reset);
    run("after-a-cut").await;
    proxy.expire_session().await;
    run("after-an-expiry").await;

    let outsider = bare(&to, None).await;
    // The same user name in another scheme.
    let namesake = bare(&to, Some((USER, PASSWORD))).await;
    closed_to(&sasl(&to).await, ("sasl", USER), &[&outsider, &namesake]).await;
    node.stop().await;
}

#[tokio::test]
async fn a_wrong_password_is_refused_at_login_and_ends_a_node() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir);
    let to = format!("{}/bellwether", server.connect_string());
    let wrong = login("wrong-password");
    let builder = Client::builder(&to).access(wrong.clone()).deadline(Duration::from_secs(20));
    let refused = builder.connect().await.unwrap_err();
    assert!(matches!(refused, ConnectError::Unavailable(Unavailable::Refused(_))), "{refused:?}");
    let ended = timeout(SOON, node(&to, wrong).await.ended()).await.expect("the node must end").unwrap_err();
    assert!(matches!(ended, NodeError::Namespace(NamespaceError::LoginRefused { .. })), "{ended:?}");
    for said in [refused.to_string(), ended.to_string()] {
        assert!(said.contains("refused the login of user \"bellwether\" (SASL DIGEST-MD5)"), "{said}");
        assert!(said.contains("check the user, the password and the scheme"), "{said}");
        assert!(!said.contains("wrong-password"), "{said}");
    }
    let there = bare(&server.connect_string(), None).await.list_children("/").await.unwrap();
    assert_eq!(there, ["zookeeper"], "nothing was written");
}

#[tokio::test]
async fn a_server_without_sasl_gives_no_access_without_a_login() {
    let server = ZooKeeperServer::builder().program(Program::Apache).start();
    let to = format!("{}/bellwether", server.connect_string());
    drop(client(&to, Access::default()).await);
    let builder = Client::builder(&to).access(login(PASSWORD)).deadline(Duration::from_secs(20));
    let refused = builder.connect().await.unwrap_err().to_string();
    assert!(refused.contains("is closed to user \"bellwether\" (SASL DIGEST-MD5)"), "{refused}");
}
