//! The command with a login: its options, the log of its nodes, and where the password must not appear.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bellwether::{Access, Client, Job, State};
use bellwether_testkit::{Proxy, binary_or, eventually};
use serde_json::Value;

use crate::stage::{PASSWORD, SOON, USER, bare, client, login, place, tree};
use zookeeper_client::Acls;

pub(crate) fn command(words: &[&str]) -> Command {
    let mut command = Command::new(binary_or(env!("CARGO_BIN_EXE_bellwether")));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("BELLWETHER_ZOOKEEPER")) {
        command.env_remove(name);
    }
    command.args(words).env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

/// Exit code, stdout and stderr.
pub(crate) fn ran(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// A running node; killed when dropped.
struct Node(Child, PathBuf);

impl Node {
    fn start(command: &mut Command, log: PathBuf) -> Self {
        let child = command.stdout(Stdio::null()).stderr(File::create(&log).unwrap()).spawn().unwrap();
        Self(child, log)
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.1).unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Both fail only for a process that has ended.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

pub(crate) fn password_file(dir: &Path) -> String {
    let file = dir.join("password");
    fs::write(&file, format!("{PASSWORD}\n")).unwrap();
    file.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_password_is_in_no_log_error_or_listing_of_options() {
    let dir = tempfile::tempdir().unwrap();
    let file = password_file(dir.path());
    let to = place("secret");
    let proxy = Proxy::to(&to);
    let through = proxy.connect_string();
    let config = dir.path().join("node.toml");
    let text = format!(
        "[node]\nzookeeper = {through:?}\nzookeeper_user = {USER:?}\nzookeeper_password_file = {file:?}\n\
         roles = [\"candidate\", \"worker\", \"gateway\"]\nhttp_addr = \"127.0.0.1:0\"\n"
    );
    fs::write(&config, text).unwrap();
    let config = config.to_str().unwrap();
    let mut words = command(&["node", "--config", config]);
    let node = Node::start(words.env("RUST_LOG", "trace"), dir.path().join("log"));
    let client = client(&to, login()).await;
    let run = async |id: &str| {
        let job = client.submit(Job::new("sum", &[1, 2]).unwrap().id(id)).await.unwrap();
        assert_eq!(job.wait(SOON).await.unwrap().state, State::Succeeded);
    };
    run("first").await;
    proxy.expire_session().await;
    proxy.cut(bellwether_testkit::Cut::Reset);
    run("again").await;
    let mut said = vec![node.said()];
    assert!(said[0].contains("zookeeper_client::session"), "the log includes the client library");
    assert!(said[0].contains("the namespace is closed to others"), "the self-check found no open znode");

    // The password from the environment, once right and once wrong.
    for (password, code) in [(PASSWORD, 0), ("not-that-password", 3)] {
        for words in [&["job", "list"][..], &["config", "show"], &["config", "show", "--output", "json"]] {
            let mut command = command(words);
            command.env("BELLWETHER_ZOOKEEPER_PASSWORD", password).env("BELLWETHER_ZOOKEEPER", &to);
            let (exit, out, err) =
                ran(command.env("BELLWETHER_ZOOKEEPER_USER", USER).env("RUST_LOG", "trace"));
            assert_eq!(exit, if words[0] == "job" { code } else { 0 }, "{err}");
            said.extend([out, err]);
        }
    }
    let shown = ran(&mut command(&["config", "show", "--output", "json", "--config", config])).1;
    let keys: Vec<Value> = serde_json::from_str(&shown).unwrap();
    let of = |key: &str| keys.iter().find(|is| is["key"] == key).unwrap()["value"].clone();
    assert_eq!((of("zookeeper_user"), of("zookeeper_password_file")), (USER.into(), file.as_str().into()));
    said.push(shown);
    for secret in [PASSWORD, "not-that-password"] {
        let told = said.iter().flat_map(|text| text.lines()).find(|line| line.contains(secret));
        assert_eq!(told, None);
    }
    let insider = bare(&to, Some((USER, PASSWORD))).await;
    assert!(tree(&insider).await.len() > 1_300);
}

#[tokio::test]
async fn a_node_in_an_open_namespace_warns_of_the_risk_and_names_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let to = place("open");
    let node = Node::start(&mut command(&["node", "--zookeeper", &to]), dir.path().join("open"));
    eventually("the node warns of the namespace and of the root", SOON, async || {
        node.said().matches("docs/operations.md").count() == 2
    })
    .await;
    let said = node.said();
    for part in [
        "WARN",
        "THE NAMESPACE IS OPEN: anyone who reaches ZooKeeper may change it",
        "run jobs on its workers, cancel and delete jobs",
        "zookeeper_user",
        "THE ROOT OF ZOOKEEPER IS OPEN",
        "(ALL)",
    ] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
}

#[tokio::test]
async fn a_node_with_a_login_warns_of_an_open_namespace_until_an_operator_closes_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = password_file(dir.path());
    let to = place("was-open");
    let before = client(&to, Access::default()).await;
    let job = before.submit(Job::new("sum", &[1, 2]).unwrap()).await.unwrap();
    before.close().await;

    let start = |log: &str| {
        let words =
            ["node", "--zookeeper", &to, "--zookeeper-user", USER, "--zookeeper-password-file", &file];
        Node::start(&mut command(&words), dir.path().join(log))
    };
    let node = start("first");
    eventually("the node warns of the open namespace", SOON, async || {
        node.said().contains("THE NAMESPACE IS OPEN")
    })
    .await;
    let now = client(&to, login()).await;
    assert_eq!(now.wait(job.id(), SOON).await.unwrap().state, State::Succeeded, "the existing job is run");
    drop(node);
    let insider = bare(&to, Some((USER, PASSWORD))).await;
    for path in tree(&insider).await {
        // As `setAcl -R` does. Znodes that were deleted since the listing need no access list.
        drop(insider.set_acl(&path, &Acls::creator_all(), None).await);
    }
    let node = start("second");
    eventually("the node has checked the access lists", SOON, async || {
        node.said().contains("THE ROOT OF ZOOKEEPER IS OPEN")
    })
    .await;
    assert!(!node.said().contains("THE NAMESPACE IS OPEN"), "{}", node.said());
    let job = now.submit(Job::new("sum", &[1, 2]).unwrap()).await.unwrap();
    assert_eq!(job.wait(SOON).await.unwrap().state, State::Succeeded);
    Client::connect(&to).await.unwrap_err();
}

#[test]
fn an_incomplete_login_is_rejected_before_a_connection_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let file = password_file(dir.path());
    let nowhere = ["--zookeeper", "127.0.0.1:1/nowhere"];
    let both = ["--zookeeper-user", USER, "--zookeeper-password-file", &file];
    for (words, password, says) in [
        (
            &["--zookeeper-user", USER][..],
            None,
            "zookeeper_user needs a password: give zookeeper_password_file",
        ),
        (&both[2..], None, "zookeeper_password_file needs zookeeper_user"),
        (
            &both,
            Some("other-password"),
            "give zookeeper_password_file or BELLWETHER_ZOOKEEPER_PASSWORD, not both",
        ),
        (&["--zookeeper-user", "a:b"], Some("other-password"), "must be 1 to 128 bytes without ':'"),
        (&["--zookeeper-user", USER], Some(""), "must be 1 to 1024 bytes"),
        (
            &["--zookeeper-user", USER, "--zookeeper-password-file", "/no/such/file"],
            None,
            "cannot read zookeeper_password_file /no/such/file: No such file",
        ),
    ] {
        for of in [&["job", "list"][..], &["node"]] {
            let mut command = command(&[of, &nowhere, words].concat());
            if let Some(password) = password {
                command.env("BELLWETHER_ZOOKEEPER_PASSWORD", password);
            }
            let (code, out, err) = ran(&mut command);
            assert_eq!((code, out.as_str()), (2, ""), "{err}");
            assert!(err.contains(says) && !err.contains("other-password"), "{says:?} is not in {err}");
        }
    }
    // Commands that start their own nodes without a login.
    for of in [&["bench"][..], &["demo"]] {
        let (code, _, err) = ran(&mut command(&[of, &nowhere, &both].concat()));
        assert!(code == 2 && err.contains("does not support a login"), "{err}");
    }
}
