//! The password of a namespace is changed while it is in use, by the procedure of `docs/operations.md`.

use bellwether::{Access, Client, Job, Scheme, State};
use bellwether_testkit::{Program, ZooKeeperServer};
use tokio::sync::watch;

use crate::command::{command, password_file, ran};
use crate::stage::{PASSWORD, SOON, USER, bare, client, closed_to, login, node};

const NEW: &str = "staple-battery-horse";

fn new() -> Access {
    Access::login(Scheme::Digest, USER, NEW)
}

fn both() -> Access {
    new().former_password(PASSWORD)
}

async fn run(client: &Client, id: &str) {
    let job = client.submit(Job::new("double", &21).id(id)).await.unwrap();
    assert_eq!(job.wait(SOON).await.unwrap().state, State::Succeeded, "{id}");
}

async fn refused(to: &str, access: Access) -> String {
    Client::builder(to).access(access).connect().await.unwrap_err().to_string()
}

/// Submits jobs until `stop` is set, and returns how many ran.
async fn submit_all_the_time(client: Client, stop: watch::Receiver<bool>) -> usize {
    let mut n = 0;
    while !*stop.borrow() {
        run(&client, &format!("always-{n}")).await;
        n += 1;
    }
    n
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_changed_while_jobs_run_and_the_old_one_opens_nothing_afterwards() {
    let dir = tempfile::tempdir().unwrap();
    let server = ZooKeeperServer::builder().memory().start();
    let to = server.connect_string() + "/closed";
    let mut nodes = [node(&to, login()).await, node(&to, login()).await];
    let old_client = client(&to, login()).await;
    run(&old_client, "old").await;
    assert!(refused(&to, new()).await.contains("is closed to user"));

    // 1. Both passwords, node by node.
    let (stop, stopped) = watch::channel(false);
    let always = tokio::spawn(submit_all_the_time(client(&to, both()).await, stopped));
    for (n, place) in nodes.iter_mut().enumerate() {
        place.stop().await;
        run(&old_client, &format!("old-{n}")).await;
        *place = node(&to, both()).await;
        run(&old_client, &format!("mixed-{n}")).await;
    }
    // 2. The command with both passwords.
    let (old_file, new_file) = (password_file(dir.path()), dir.path().join("new"));
    std::fs::write(&new_file, NEW).unwrap();
    let access = |what: &str| {
        let mut command = command(&["access", what, "--zookeeper", &to, "--zookeeper-user", USER]);
        command.arg("--zookeeper-password-file").arg(&new_file);
        command
    };
    let repair = ran(access("repair").args(["--zookeeper-former-password-file", &old_file]));
    assert_eq!(repair.0, 0, "{repair:?}");
    assert!(refused(&to, login()).await.contains("is closed to user"));
    // 3. The new password, node by node.
    let new_client = client(&to, new()).await;
    for (n, place) in nodes.iter_mut().enumerate() {
        place.stop().await;
        run(&new_client, &format!("new-{n}")).await;
        *place = node(&to, new()).await;
        run(&new_client, &format!("done-{n}")).await;
    }
    stop.send_replace(true);
    assert!(always.await.unwrap() > 10, "jobs ran all the time");
    // 4. The command with the new password.
    let before = ran(&mut access("check"));
    assert_eq!(before.0, 1, "records were created for both passwords: {before:?}");
    for what in ["repair", "check"] {
        let done = ran(&mut access(what));
        assert_eq!(done.0, 0, "{done:?}");
    }
    let insider = bare(&to, Some((USER, NEW))).await;
    let outsiders = [bare(&to, Some((USER, PASSWORD))).await, bare(&to, None).await];
    let outsiders = outsiders.iter().collect::<Vec<_>>();
    closed_to(&insider, ("digest", &format!("{USER}:")), &outsiders).await;
    run(&new_client, "end").await;
    for place in nodes {
        place.stop().await;
    }
}

#[test]
fn a_former_password_needs_a_login_whose_identity_depends_on_it() {
    let said = "a former password needs a user with the scheme digest";
    let sasl = Access::login(Scheme::SaslDigestMd5, USER, NEW);
    for access in [sasl, Access::default()] {
        assert_eq!(access.former_password(PASSWORD).check_login().unwrap_err().to_string(), said);
    }
    let long = "x".repeat(1025);
    for password in ["", "a\n", &long] {
        let said = new().former_password(password).check_login().unwrap_err().to_string();
        assert!(said.contains("the ZooKeeper password") && !said.contains("xx"), "{said}");
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut bare = command(&["job", "list", "--zookeeper", "127.0.0.1:1/x"]);
    let (code, _, stderr) = ran(bare.arg("--zookeeper-former-password-file").arg(file.path()));
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("needs zookeeper_user"), "{stderr}");
    let texts = format!("{:?} {:#?} {}", both(), both(), both());
    assert!(!texts.contains(PASSWORD) && !texts.contains(NEW), "{texts}");
}

/// A session with a former password treats the znodes of that password as its own, but only those of its own user.
#[tokio::test]
async fn a_former_password_opens_no_namespace_of_another_user() {
    let server = ZooKeeperServer::builder().program(Program::Keeper).memory().start();
    let to = server.connect_string() + "/other";
    let other = Access::login(Scheme::Digest, "other", PASSWORD);
    // A client creates the namespace.
    let _client = client(&to, other).await;
    assert!(refused(&to, both()).await.contains("is closed to user"));
}
