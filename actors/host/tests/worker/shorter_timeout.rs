//! S19: a server that grants a shorter session timeout than before, because it was restarted with another configuration.

use std::path::Path;
use std::time::Duration;

use bellwether_core::job::AttemptOutcome;
use bellwether_core::outcome::Outcome;
use bellwether_host::clock;
use bellwether_host::session::SessionStatus;
use bellwether_testkit::{ZooKeeperServer, eventually};
use bellwether_zk::{SessionState, Zk};

use crate::stage::{SOON, Stage};

fn server(data: &Path, longest: Duration, port: Option<u16>) -> ZooKeeperServer {
    let longest = u32::try_from(longest.as_millis()).unwrap();
    let server = ZooKeeperServer::builder().data_dir(data).max_session_ms(longest);
    port.into_iter().fold(server, |server, port| server.port(port)).start()
}

fn session(stage: &Stage) -> Option<Zk> {
    match &*stage.session.status().borrow() {
        SessionStatus::Connected(zk) => Some(zk.clone()),
        SessionStatus::Connecting { .. } | SessionStatus::Disconnected | SessionStatus::Refused(_) => None,
    }
}

#[tokio::test]
async fn a_timeout_that_a_restarted_server_shortens_ends_the_trust_and_the_runs_of_lanes_earlier() {
    // The client library gives up a session after 1.4 times its timeout. The trust ends after 0.9 times, and the rest is left for
    // the third start of the server.
    let (long, short) = (Duration::from_secs(20), Duration::from_secs(6));
    let data = tempfile::tempdir().unwrap();
    let first = server(data.path(), long, None);
    let port = Some(first.address().port());
    let stage = Stage::on(&format!("{}/shorter", first.connect_string()), long).await;
    let worker = stage.serving(None).await;
    let id = session(&stage).unwrap().session_id();
    let laned = stage.submit_laned("laned", "until-told").await;
    assert_eq!(stage.assign(&laned, worker).await, Outcome::Applied(()));
    stage.started(1).await;
    assert_eq!(session(&stage).unwrap().session_timeout(), long);

    drop(first);
    let second = server(data.path(), short, port);
    eventually("the session lives and is trusted for a shorter time", SOON, async || {
        session(&stage).is_some_and(|zk| zk.session_id() == id && zk.session_timeout() == short)
    })
    .await;
    let zk = session(&stage).unwrap();
    assert_eq!(
        zk.trusted_until().since(zk.last_contact()),
        short * 9 / 10,
        "nine tenths of the shorter timeout"
    );

    drop(second);
    eventually("the trust is over", SOON, async || clock::now() > zk.trusted_until()).await;
    let _third = server(data.path(), short, port);
    eventually("the server is back", SOON, async || stage.zk.state() == SessionState::Connected).await;
    assert_eq!(stage.closed(&laned).await.last.unwrap().how, AttemptOutcome::Released, "the run was stopped");
}
