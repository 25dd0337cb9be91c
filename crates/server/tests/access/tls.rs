//! TLS, on an Apache ZooKeeper with a secure port.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use bellwether::{Access, Client, Job, State, Tls};
use bellwether_testkit::{Program, ZooKeeperServer, unused_address};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use crate::command::{command, password_file, ran};
use crate::stage::{PASSWORD, SOON, USER, assert_closed, bare, login, node};

/// All parts of Netty: ZooKeeper's manifest omits some, and they must share one class loader.
const NETTY: [&str; 8] = [
    "buffer",
    "codec",
    "common",
    "handler",
    "resolver",
    "transport",
    "transport-native-epoll",
    "transport-native-unix-common",
];

/// A directory with certificates.
struct CertificateFiles(tempfile::TempDir);

impl CertificateFiles {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// Creates an authority in `{name}.pem`.
    fn authority(&self, name: &str) -> CertifiedIssuer<'static, KeyPair> {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        self.write(&format!("{name}.pem"), &issuer.pem());
        issuer
    }

    /// Creates a certificate and its key in `{name}.pem` and `{name}.key`, and both in `{name}-both.pem`.
    fn certificate(&self, name: &str, host: &str, issuer: &CertifiedIssuer<'static, KeyPair>) {
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, issuer).unwrap();
        self.write(&format!("{name}.pem"), &certificate.pem());
        self.write(&format!("{name}.key"), &key.serialize_pem());
        self.write(&format!("{name}-both.pem"), &(key.serialize_pem() + &certificate.pem()));
    }

    /// Starts a server with a certificate for 127.0.0.1 and returns its secure address.
    fn server(&self, client_auth: &str) -> (ZooKeeperServer, String) {
        let secure = unused_address().unwrap();
        let netty = NETTY.map(|part| format!("/usr/share/java/netty-{part}.jar")).join(":");
        let file = |name| self.path(name).display().to_string();
        let server = ZooKeeperServer::builder()
            .program(Program::Apache)
            .java_flag(format!("-Xbootclasspath/a:{netty}"))
            .java_flag("-Dzookeeper.serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory")
            .setting(format!("secureClientPort={}\nsecureClientPortAddress=127.0.0.1", secure.port()))
            .setting(format!("ssl.keyStore.location={}", file("server-both.pem")))
            .setting(format!("ssl.trustStore.location={}", file("authority.pem")))
            .setting(format!("ssl.clientAuth={client_auth}"))
            .start();
        (server, format!("{secure}/bellwether"))
    }

    fn tls(&self, authority: &str, client: Option<&str>) -> Tls {
        let tls = Tls::ca(self.path(authority));
        match client {
            Some(name) => tls.identity(self.path(&format!("{name}.pem")), self.path(&format!("{name}.key"))),
            None => tls,
        }
    }
}

async fn refused(to: &str, access: Access) -> String {
    let builder = Client::builder(to).access(access).deadline(Duration::from_secs(4));
    builder.session_timeout(Duration::from_secs(2)).connect().await.unwrap_err().to_string()
}

#[tokio::test]
async fn only_a_server_of_a_trusted_authority_is_accepted_and_jobs_run_over_tls() {
    let files = CertificateFiles::new();
    let authority = files.authority("authority");
    files.authority("stranger");
    files.certificate("server", "127.0.0.1", &authority);
    let (server, to) = files.server("none");
    let access = login().tls(files.tls("authority.pem", None));
    let node = node(&to, access.clone()).await;
    let client = Client::builder(&to).access(access.clone()).connect().await.unwrap();
    let job = client.submit(Job::new("double", &21)).await.unwrap();
    assert_eq!(job.wait(SOON).await.unwrap().state, State::Succeeded);

    // The shipped command has TLS without further features.
    let (file, authority) = (password_file(files.0.path()), files.path("authority.pem"));
    let login_options = ["--zookeeper-user", USER, "--zookeeper-password-file", &file];
    let mut list = command(&["--zookeeper", &to, "job", "list"]);
    let (code, stdout, stderr) = ran(list.args(login_options).arg("--zookeeper-tls-ca").arg(authority));
    assert!(code == 0 && stdout.contains("succeeded"), "{code}: {stdout}{stderr}");

    let said = refused(&to, login().tls(files.tls("stranger.pem", None))).await;
    assert!(said.contains("no TLS: invalid peer certificate: UnknownIssuer"), "{said}");
    let elsewhere = to.replace("127.0.0.1", "localhost");
    let said = refused(&elsewhere, access.clone()).await;
    assert!(said.contains("no TLS: invalid peer certificate: certificate not valid for name"), "{said}");
    let said = refused(&to.replace("127.0.0.1", "no_such..name"), access.clone()).await;
    assert!(said.contains("no certificate can have this name"), "{said}");
    // Nothing, and so no password, is sent without TLS.
    let plain = format!("{}/bellwether", server.connect_string());
    let said = refused(&plain, access).await;
    assert!(said.contains(&server.connect_string()), "{said}");
    let said = refused(&to, login()).await;
    assert!(said.contains("gives no session"), "{said}");

    // The same namespace on the plain port.
    let insider = bare(&plain, Some((USER, PASSWORD))).await;
    assert_closed(&insider, &[&bare(&plain, None).await]).await;
    node.stop().await;
}

#[tokio::test]
async fn a_server_that_requires_a_client_certificate_gets_it_and_refuses_others() {
    let files = CertificateFiles::new();
    let authority = files.authority("authority");
    let stranger = files.authority("stranger");
    files.certificate("server", "127.0.0.1", &authority);
    files.certificate("client", "bellwether.example", &authority);
    files.certificate("other", "bellwether.example", &stranger);
    let (_server, to) = files.server("need");
    let access = login().tls(files.tls("authority.pem", Some("client")));
    let client = Client::builder(&to).access(access.clone()).connect().await.unwrap();
    let node = node(&to, access).await;
    let job = client.submit(Job::new("double", &21)).await.unwrap();
    assert_eq!(job.wait(SOON).await.unwrap().state, State::Succeeded);
    for identity in [None, Some("other")] {
        refused(&to, login().tls(files.tls("authority.pem", identity))).await;
    }
    node.stop().await;
}

#[test]
fn an_invalid_file_is_reported_by_name_without_its_content() {
    let files = CertificateFiles::new();
    let authority = files.authority("authority");
    files.certificate("one", "a.example", &authority);
    files.certificate("two", "a.example", &authority);
    let secret = files.write("secret.pem", "hunter2\n");
    let (one, key) = (files.path("one.pem"), files.path("two.key"));
    let ca = files.path("authority.pem");
    for (tls, said) in [
        (Tls::ca(&secret), "cannot read the certificates of authorities from"),
        (Tls::ca(files.path("absent")), "No such file"),
        (Tls::ca(&ca).identity(&secret, &key), "cannot read a client certificate from"),
        (Tls::ca(&ca).identity(&one, &secret), "cannot read a private key from"),
        (Tls::ca(&ca).identity(&one, &key), "cannot be used: "),
    ] {
        let error = tls.check().unwrap_err();
        let texts = [error.to_string(), format!("{error:?}")];
        assert!(texts[0].contains(said), "{texts:?}");
        assert!(!texts.iter().any(|text| text.contains("hunter2")), "{texts:?}");
    }
    let access = format!("{:?}", login().tls(files.tls("authority.pem", Some("one"))));
    assert!(!access.contains("PRIVATE") && !access.contains(PASSWORD), "{access}");
}
