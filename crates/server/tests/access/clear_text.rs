//! A password is not sent in clear text to another machine.

use std::time::Duration;

use bellwether::election::Election;
use bellwether::{Client, Node};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::command::{command, password_file, ran};
use crate::stage::{PASSWORD, SOON, USER, handlers, login};

/// A server that no rule knows as one of this machine: Linux connects the address to the loopback interface.
async fn eavesdropper() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = format!("0.0.0.0:{}/bellwether", listener.local_addr().unwrap().port());
    (listener, to)
}

#[tokio::test]
async fn a_password_is_not_sent_to_another_machine_without_tls() {
    let (listener, to) = eavesdropper().await;
    let why = "in clear text: use TLS";
    let said = Client::builder(&to).access(login()).open().await.unwrap_err().to_string();
    assert!(said.contains(why), "{said}");
    let said = Node::builder(&to).access(login()).handlers(handlers()).start().await.unwrap_err().to_string();
    assert!(said.contains(why), "{said}");
    let said = Election::builder(&to).node_id("a").access(login()).start().await.unwrap_err().to_string();
    assert!(said.contains(why), "{said}");
    let dir = tempfile::tempdir().unwrap();
    let file = password_file(dir.path());
    for words in [
        &["job", "list"][..],
        &["top", "--once"],
        &["access", "check"],
        &["node"],
        &["node", "--roles", "gateway", "--http-listen", "127.0.0.1:0"],
    ] {
        let mut command = command(words);
        command.args(["--zookeeper", &to, "--zookeeper-user", USER, "--zookeeper-password-file", &file]);
        let (code, _, said) = ran(&mut command);
        assert!(code == 2 && said.contains(why), "{words:?}: {code}: {said}");
        assert!(said.contains("--zookeeper-insecure"), "{words:?}: {said}");
    }
    timeout(Duration::ZERO, listener.accept()).await.expect_err("no connection was made");
}

#[tokio::test]
async fn a_password_is_sent_without_tls_if_it_is_allowed() {
    let (listener, to) = eavesdropper().await;
    let _client = Client::builder(&to).access(login().insecure(true)).open().await.unwrap();
    let (mut stream, _) = timeout(SOON, listener.accept()).await.expect("a connection in time").unwrap();
    let mut heard = Vec::new();
    let password = async {
        while !heard.windows(PASSWORD.len()).any(|bytes| bytes == PASSWORD.as_bytes()) {
            assert_ne!(stream.read_buf(&mut heard).await.unwrap(), 0, "{heard:?}");
        }
    };
    timeout(SOON, password).await.expect("the password in time");
    let dir = tempfile::tempdir().unwrap();
    let file = password_file(dir.path());
    let mut command = command(&["job", "list", "--deadline", "1s", "--zookeeper-insecure"]);
    command.args(["--zookeeper", &to, "--zookeeper-user", USER, "--zookeeper-password-file", &file]);
    let (code, _, said) = ran(&mut command);
    assert!(code == 3, "{code}: {said}");
}
