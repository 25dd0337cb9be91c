//! Tests with TLS.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bellwether_keeper::server::{Keeper, Limits, StartError, Tls};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::wire::*;

fn file(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/certificates", name].iter().collect()
}

fn server() -> Tls {
    Tls::new(file("server.pem"), file("server.key"))
}

async fn connect(keeper: &Keeper, with_certificate: bool) -> std::io::Result<Wire<TlsStream<TcpStream>>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file("ca.pem")).expect("an authority")).expect("an authority");
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("protocols")
        .with_root_certificates(roots);
    let config = if with_certificate {
        let certificate = CertificateDer::from_pem_file(file("client.pem")).expect("a certificate");
        let key = PrivateKeyDer::from_pem_file(file("client.key")).expect("a key");
        builder.with_client_auth_cert(vec![certificate], key).expect("a certificate and its key")
    } else {
        builder.with_no_client_auth()
    };
    let socket = TcpStream::connect(keeper.address()).await?;
    let name = "localhost".try_into().expect("a name");
    Ok(Wire { stream: TlsConnector::from(Arc::new(config)).connect(name, socket).await? })
}

#[tokio::test]
async fn sessions_and_words_work_through_tls() {
    let keeper = Keeper::builder().tls(server()).start().await.expect("a keeper");
    let mut wire = connect(&keeper, false).await.expect("a connection");
    wire.hello(10_000, 0, &[0; 16]).await.expect("a session");
    let data = vec![7; 500_000];
    assert_eq!(wire.call(1, CREATE, &create("/a", &data, PERSISTENT)).await.error, 0);
    assert_eq!(wire.call(2, GET_DATA, &read("/a", false)).await.body[4..4 + data.len()], data);
    assert_eq!(wire.call(3, CLOSE_SESSION, &[]).await.error, 0);
    assert!(wire.closes().await);

    let mut wire = connect(&keeper, false).await.expect("a connection");
    wire.send_raw(b"ruok").await;
    let mut text = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut wire.stream, &mut text).await.expect("text");
    assert_eq!(text, "imok");
}

#[tokio::test]
async fn connections_without_tls_are_closed() {
    let limits = Limits::default().handshake_time(Duration::from_millis(300));
    let keeper = Keeper::builder().tls(server()).limits(limits).start().await.expect("a keeper");
    let mut plain = Wire::open(keeper.address()).await;
    plain.send_raw(b"ruok").await;
    assert!(plain.closes().await);
    let mut silent = Wire::open(keeper.address()).await;
    assert!(silent.closes().await, "an unfinished handshake");
    assert!(connect(&keeper, false).await.is_ok());
}

#[tokio::test]
async fn with_client_authorities_only_its_clients_get_a_session() {
    let tls = server().client_ca(file("ca.pem"));
    let keeper = Keeper::builder().tls(tls).start().await.expect("a keeper");
    let mut known = connect(&keeper, true).await.expect("a connection");
    assert!(known.hello(10_000, 0, &[0; 16]).await.is_some());
    // In TLS 1.3 a client learns about its rejection when it first reads.
    if let Ok(mut stranger) = connect(&keeper, false).await {
        assert!(stranger.closes().await);
    }
    assert_eq!(monitored_sessions(&mut connect(&keeper, true).await.expect("a connection")).await, 1);
}

async fn monitored_sessions(wire: &mut Wire<TlsStream<TcpStream>>) -> i64 {
    wire.send_raw(b"mntr").await;
    let mut text = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut wire.stream, &mut text).await.expect("text");
    let line = text.lines().find_map(|line| line.strip_prefix("zk_global_sessions\t"));
    line.expect("a line").parse().expect("a number")
}

#[tokio::test]
async fn invalid_certificate_files_are_errors() {
    let none = Keeper::builder().tls(Tls::new(file("nowhere.pem"), file("server.key"))).start().await;
    assert!(matches!(none, Err(StartError::Tls(_))), "{none:?}");
    let key = Keeper::builder().tls(Tls::new(file("server.key"), file("server.key"))).start().await;
    assert!(matches!(key, Err(StartError::Tls(_))), "{key:?}");
    let other = Keeper::builder().tls(Tls::new(file("server.pem"), file("client.key"))).start().await;
    assert!(matches!(other, Err(StartError::Tls(_))), "{other:?}");
}
