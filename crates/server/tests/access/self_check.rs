//! The self-check of access lists at the start of a node.

use bellwether_testkit::ZooKeeperServer;
use bellwether_zk::{Access, Exposed, NamespaceError, connect_as, exposed, open_namespace};
use zookeeper_client::Acls;

use crate::stage::{PASSWORD, SOON, USER, bare, login};

async fn look(to: &str, access: &Access) -> Vec<Exposed> {
    let zk = connect_as(&to.parse().unwrap(), access, SOON).await.unwrap();
    match open_namespace(&zk, true).await {
        Ok(_) | Err(NamespaceError::NotClosed { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    exposed(&zk).await.unwrap()
}

fn paths(exposed: &[Exposed]) -> Vec<&str> {
    exposed.iter().map(|exposed| exposed.path.as_str()).collect()
}

#[tokio::test]
async fn the_self_check_finds_each_open_znode_and_none_in_a_closed_ensemble() {
    let server = ZooKeeperServer::builder().memory().start();
    let (open, closed) = (server.connect_string() + "/open", server.connect_string() + "/closed");
    let seen = look(&open, &Access::default()).await;
    assert_eq!(paths(&seen)[..3], ["/", "/open", "/open/election"], "{seen:?}");
    assert_eq!(
        seen.len(),
        19,
        "the root, the chroot, its 14 parents, the epoch, the beats and the layout: {seen:?}"
    );
    assert!(seen.iter().all(|exposed| exposed.may == "ALL"), "{seen:?}");
    assert_eq!(paths(&look(&closed, &login()).await), ["/"], "only the root is open");

    let insider = bare(&server.connect_string(), Some((USER, PASSWORD))).await;
    insider.set_acl("/", &Acls::creator_all(), None).await.unwrap();
    assert_eq!(look(&closed, &login()).await, []);
    insider.set_acl("/closed/ready", &Acls::anyone_all(), None).await.unwrap();
    assert_eq!(paths(&look(&closed, &login()).await), ["/closed/ready"]);
    insider.set_acl("/closed/ready", &Acls::anyone_read(), None).await.unwrap();
    let zk = connect_as(&closed.parse().unwrap(), &login(), SOON).await.unwrap();
    assert_eq!(exposed(&zk).await.unwrap(), [], "read access is not reported");
}
