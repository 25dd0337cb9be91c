//! The command with a login: its options, the log of its nodes, and where the password must not appear.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bellwether::{Access, Client, Job, State};
use bellwether_testkit::{Proxy, binary_or, eventually};
use serde_json::Value;

use crate::stage::{PASSWORD, SOON, USER, assert_closed, bare, client, login, place, tree};

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
         roles = [\"candidate\", \"worker\", \"gateway\"]\nhttp_listen = \"127.0.0.1:0\"\n"
    );
    fs::write(&config, text).unwrap();
    let config = config.to_str().unwrap();
    let mut words = command(&["node", "--config", config]);
    let node = Node::start(words.env("RUST_LOG", "trace"), dir.path().join("log"));
    let client = client(&to, login()).await;
    let run = async |id: &str| {
        let job = client.submit(Job::new("sum", &[1, 2]).id(id)).await.unwrap();
        assert_eq!(job.wait(SOON).await.unwrap().state, State::Succeeded);
    };
    run("first").await;
    eventually("the self-check found no open znode", SOON, async || {
        node.said().contains("the namespace is closed: only this user has access")
    })
    .await;
    proxy.expire_session().await;
    proxy.cut(bellwether_testkit::Cut::Reset);
    run("again").await;
    let mut said = vec![node.said()];
    assert!(said[0].contains("zookeeper_client::session"), "the log includes the client library");

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
    assert!(tree(&insider).await.len() > 1_040);
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
        "one login",
        "THE ROOT OF ZOOKEEPER IS OPEN",
        "(ALL)",
    ] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
}

#[tokio::test]
async fn a_node_with_a_login_refuses_an_open_namespace_until_an_operator_closes_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = password_file(dir.path());
    let to = place("was-open");
    let before = client(&to, Access::default()).await;
    let job = before.submit(Job::new("sum", &[1, 2])).await.unwrap();
    before.close().await;

    let options = ["--zookeeper", &to, "--zookeeper-user", USER, "--zookeeper-password-file", &file];
    let run = |words: &[&str]| ran(command(&["--output", "json"]).args(words).args(options));
    let (code, _, said) = run(&["node"]);
    assert_ne!(code, 0, "{said}");
    for part in
        ["does not belong to user \"bellwether\" (digest) alone", "world:anyone may ALL", "and 5137 more"]
    {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
    assert!(said.contains("bellwether access repair") && !said.contains("is closed"), "{said}");
    let (code, said, _) = run(&["access", "check"]);
    let found: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, &found["znodes"]), (1, &found["differed"]), "{said}");
    assert_eq!(found["examples"][0]["may"], "world:anyone may ALL", "{said}");

    let (code, repaired, said) = run(&["access", "repair"]);
    assert_eq!((code, serde_json::from_str::<Value>(&repaired).unwrap()), (0, found), "{said}");
    let (code, said, _) = run(&["access", "repair"]);
    assert_eq!(
        (code, serde_json::from_str::<Value>(&said).unwrap()["differed"].as_u64()),
        (0, Some(0)),
        "{said}"
    );
    let (code, said, _) = run(&["access", "check"]);
    assert_eq!(code, 0, "{said}");
    let (insider, outsider) = (bare(&to, Some((USER, PASSWORD))).await, bare(&to, None).await);
    assert_closed(&insider, &[&outsider]).await;

    let node = Node::start(&mut command(&[&["node"], &options[..]].concat()), dir.path().join("second"));
    let now = client(&to, login()).await;
    assert_eq!(now.wait(job.id(), SOON).await.unwrap().state, State::Succeeded, "the existing job is run");
    eventually("the node says that its namespace is closed", SOON, async || {
        node.said().contains("the namespace is closed: only this user has access to its permanent znodes")
    })
    .await;
    Client::connect(&to).await.unwrap_err();
}

#[test]
fn access_lists_are_checked_only_for_the_user_of_a_login_and_at_a_reachable_server() {
    let dir = tempfile::tempdir().unwrap();
    let login = ["--zookeeper-user", USER, "--zookeeper-password-file", &password_file(dir.path())];
    for command_word in ["check", "repair"] {
        let words = ["access", command_word, "--zookeeper", "127.0.0.1:1/nowhere", "--deadline", "1s"];
        let (code, _, said) = ran(&mut command(&words));
        assert!(code == 2 && said.contains("give a user and its password"), "{code}: {said}");
        let (code, _, said) = ran(command(&words).args(login));
        assert_eq!(code, 3, "{said}");
    }
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
