//! What a test can bring about from inside.

#![cfg(feature = "testing")]

mod wire;

use std::time::Duration;

use self::wire::*;

#[tokio::test]
async fn a_session_is_ended_at_once() {
    let keeper = keeper().await;
    let (mut victim, session) = Wire::session(keeper.address()).await;
    assert_eq!(victim.call(1, CREATE, &create("/e", b"", EPHEMERAL)).await.error, 0);
    assert!(keeper.expire(session.id).await);
    assert!(victim.closes().await);
    assert_eq!(Wire::attach(keeper.address(), &session).await.map(drop), None);
    assert_eq!(monitored(keeper.address(), "zk_ephemerals_count").await, 0);
    assert!(!keeper.expire(session.id).await, "it ended before");
}

#[tokio::test]
async fn time_that_is_skipped_ends_sessions() {
    let keeper = keeper().await;
    let (mut victim, session) = Wire::session(keeper.address()).await;
    keeper.skip(Duration::from_secs(3_600));
    assert!(victim.closes().await);
    assert_eq!(Wire::attach(keeper.address(), &session).await.map(drop), None);
}
