//! Tests of the `testing` feature.

use std::sync::mpsc;
use std::time::Duration;

use bellwether_keeper::model::Entry;
use bellwether_keeper::server::{Keeper, Logged, Storage};

use crate::wire::*;

#[tokio::test]
async fn a_session_can_be_expired_immediately() {
    let keeper = keeper().await;
    let (mut victim, session) = Wire::session(keeper.address()).await;
    assert_eq!(victim.call(1, CREATE, &create("/e", b"", EPHEMERAL)).await.error, 0);
    assert!(keeper.expire(session.id).await);
    assert!(victim.closes().await);
    assert_eq!(Wire::attach(keeper.address(), &session).await.map(drop), None);
    assert_eq!(monitored(keeper.address(), "zk_ephemerals_count").await, 0);
    assert!(!keeper.expire(session.id).await, "the session has already ended");
}

#[tokio::test]
async fn skipped_time_expires_sessions() {
    let keeper = keeper().await;
    let (mut victim, session) = Wire::session(keeper.address()).await;
    keeper.skip(Duration::from_secs(3_600));
    assert!(victim.closes().await);
    assert_eq!(Wire::attach(keeper.address(), &session).await.map(drop), None);
}

#[tokio::test]
async fn a_log_receives_every_transaction_before_its_reply() {
    let dir = tempfile::tempdir().unwrap();
    let start = async || {
        let (tell, told) = mpsc::channel();
        let log = move |logged| tell.send(logged).expect("the test outlives its server");
        let keeper = Keeper::builder().store(Storage::Directory(dir.path().into())).log(log);
        (keeper.start().await.unwrap(), told)
    };
    let transactions = |told: &mpsc::Receiver<Logged>| -> Vec<_> {
        let logged = told.try_iter().filter_map(|logged| match logged {
            Logged::Begins(_) => None,
            Logged::Transaction(transaction) => Some(transaction),
        });
        logged.collect()
    };

    let (keeper, told) = start().await;
    assert!(matches!(told.recv().unwrap(), Logged::Begins(_)));
    let (mut client, session) = Wire::session(keeper.address()).await;
    assert_eq!(client.call(1, CREATE, &create("/e", b"x", EPHEMERAL)).await.error, 0);
    let logged = transactions(&told);
    let [made] = logged.as_slice() else { panic!("{logged:?}") };
    assert_eq!((made.session, made.xid), (session.id, 1));
    assert!(matches!(&made.entry, Entry::Writes(done) if done.len() == 1), "{made:?}");
    assert_ne!(client.call(2, CREATE, &create("/e", b"y", 0)).await.error, 0);
    let logged = transactions(&told);
    assert!(matches!(&logged[..], [refused] if matches!(refused.entry, Entry::Refused(..))), "{logged:?}");
    assert!(keeper.expire(session.id).await);
    let Logged::Transaction(ended) = told.recv().unwrap() else { panic!("a second start was logged") };
    assert_eq!(ended.entry, Entry::SessionEnded(vec!["/e".to_owned()]));
    keeper.stop().await.unwrap();

    let (keeper, told) = start().await;
    assert!(matches!(told.recv().unwrap(), Logged::Begins(zxid) if zxid == ended.zxid));
    keeper.stop().await.unwrap();
}
