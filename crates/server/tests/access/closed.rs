//! A namespace with a login and all kinds of znodes, which other users cannot access.

use std::time::Duration;

use bellwether::{Access, Group, Job, Kind, Schedule, Scheme, State};
use bellwether_core::path;
use bellwether_testkit::{Proxy, eventually};

use crate::stage::{PASSWORD, SOON, USER, assert_closed, bare, client, let_in, login, node, place, tree};

#[tokio::test]
async fn other_users_can_access_no_znode_of_a_namespace_with_all_features_in_use() {
    let to = place("everything");
    let one = node(&to, login()).await;
    let _two = node(&to, login()).await;
    let client = client(&to, login()).await;

    let beat = Schedule::every("beat", Duration::from_secs(1), Job::new("double", &1));
    client.schedules().add(&beat).await.unwrap();
    client.pause_kind(&Kind::new("paused").unwrap(), "an operator").await.unwrap();
    let group = client.group(Group::new("double", "summer").total(20)).await.unwrap();
    group.submit_all((0..20).map(|n| Job::new("double", &n))).await.unwrap();
    let jobs = (0..20).map(|n| Job::new("double", &n).id(format!("lane-{n}")).lane("account-7"));
    for submitted in client.submit_many(jobs, |_| {}).await {
        submitted.unwrap();
    }
    let flaky = Job::new("flaky", &()).backoff(Duration::from_secs(1), Duration::from_secs(1));
    let flaky = client.submit(flaky).await.unwrap();
    // One job waits in the queue, one for its start time, and one runs on a worker.
    client.submit(Job::new("paused", &())).await.unwrap();
    client.submit(Job::new("double", &1).delay(Duration::from_secs(3600))).await.unwrap();
    let sleep = client.submit(Job::new("sleep", &())).await.unwrap();

    group.wait(SOON).await.unwrap();
    let flaky = flaky.wait(SOON).await.unwrap();
    assert_eq!((flaky.state, flaky.attempt), (State::Succeeded, 2), "{flaky:?}");
    for n in 0..20 {
        let id = format!("lane-{n}").parse().unwrap();
        assert_eq!(client.wait(&id, SOON).await.unwrap().state, State::Succeeded);
    }
    eventually("a job sleeps", SOON, async || {
        client.get(sleep.id()).await.unwrap().unwrap().state == State::Running
    })
    .await;
    // A second leader also creates znodes.
    one.stop().await;
    let job = client.submit(Job::new("double", &1)).await.unwrap();
    assert_eq!(job.wait(SOON).await.unwrap().state, State::Succeeded);

    let insider = bare(&to, Some((USER, PASSWORD))).await;
    let paths = tree(&insider).await;
    for part in path::PARENTS {
        let below = paths.iter().filter(|path| path.starts_with(&format!("{part}/"))).count();
        // Normal operation puts nothing into quarantine, and the clocks are right.
        assert!(
            below > 0
                || [path::QUARANTINE, path::DELAYED, path::CLOCKS].contains(&part)
                || part == path::CONFIG,
            "{part}"
        );
    }
    assert!(paths.len() > 1_040, "{}", paths.len());
    let outsider = bare(&to, None).await;
    let another = bare(&to, Some((USER, "another-password"))).await;
    assert_closed(&insider, &[&outsider, &another]).await;
    for path in &paths {
        assert!(!path.contains(PASSWORD), "{path}");
    }
    for paths in paths.chunks(100) {
        for read in futures::future::join_all(paths.iter().map(|path| insider.get_data(path))).await {
            let Ok((data, _)) = read else { continue };
            assert!(!data.windows(PASSWORD.len()).any(|bytes| bytes == PASSWORD.as_bytes()));
        }
    }
}

#[tokio::test]
async fn a_new_connection_and_a_new_session_use_the_same_login() {
    let to = place("again");
    let proxy = Proxy::to(&to);
    let node = node(&proxy.connect_string(), login()).await;
    let client = client(&to, login()).await;
    let run = async |id: &str| {
        let job = client.submit(Job::new("double", &21).id(id)).await.unwrap();
        let end = job.wait(SOON).await.unwrap();
        assert_eq!(end.state, State::Succeeded, "{end:?}");
    };
    run("first").await;
    let before = proxy.handshakes();
    proxy.cut(bellwether_testkit::Cut::Reset);
    run("after-a-cut").await;
    assert!(proxy.handshakes() > before);
    let ended = proxy.expire_session().await;
    run("after-an-expiry").await;
    assert_ne!(proxy.session().unwrap().session_id, ended.session_id);

    // Znodes of the new session are closed to other users, too.
    let insider = bare(&to, Some((USER, PASSWORD))).await;
    let outsider = bare(&to, None).await;
    assert_closed(&insider, &[&outsider]).await;
    node.stop().await;
}

#[tokio::test]
async fn two_users_below_one_chroot_cannot_access_each_others_namespaces() {
    let shared = bellwether_testkit::namespace("neighbours");
    let other = Access::login(Scheme::Digest, "other", "other-password");
    let (mine, theirs) = (format!("{shared}/mine"), format!("{shared}/theirs"));
    let _nodes = (node(&mine, login()).await, node(&theirs, other.clone()).await);
    for (to, access) in [(&mine, login()), (&theirs, other)] {
        let client = client(to, access).await;
        let job = client.submit(Job::new("double", &1)).await.unwrap();
        assert_eq!(job.wait(SOON).await.unwrap().state, State::Succeeded);
    }
    let outsider = bare(&mine, Some(("other", "other-password"))).await;
    assert_eq!(let_in(&outsider, path::JOBS).await, Vec::<&str>::new());
}
