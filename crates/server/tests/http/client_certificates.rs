//! Client certificates, as clients with and without a valid one use them.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bellwether_gateway::Protection;
use bellwether_gateway::access::{Issued, Role, Tokens};
use bellwether_gateway::tls::ClientCertificates::{self, Optional, Required};
use bellwether_testkit::{Process, binary_or, eventually, eventually_some};
use rcgen::{ExtendedKeyUsagePurpose, SanType};
use rustls::HandshakeKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::ask::{Answer, Ask};
use crate::certificates::{Certificate, CertificateFiles, authority, connect};
use crate::stage::{SOON, Stage};

const LINES: &str = "\
web read uri:spiffe://example/web
mailer submit dns:mailer.example kinds=mail max_priority=5
ops admin uri:spiffe://example/ops
former admin uri:spiffe://example/former expires=2020-01-01T00:00:00Z
";

async fn serve(name: &str, files: &CertificateFiles, certificates: ClientCertificates) -> Stage {
    let tokens = Tokens::read(&files.path("tokens")).unwrap();
    let tls = files.tls(certificates);
    Stage::with(name, |builder| builder.protection(Protection::default().tls(tls).tokens(tokens))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_without_a_valid_certificate_of_the_authority_fails() {
    let (ours, foreign) = (authority("ours"), authority("ours"));
    let files = CertificateFiles::new(&ours, LINES);
    let stage = serve("http-mtls", &files, Required).await;
    let ask = async |certificate: Option<&Certificate>| {
        files.ask(stage.address(), certificate, Ask::get("/v1/jobs")).await
    };
    let ops = "spiffe://example/ops";
    ask(Some(&Certificate::new(&ours, ops))).await.unwrap().is(200);
    for (refused, certificate) in [
        ("none", None),
        ("of another authority with the same name", Some(Certificate::new(&foreign, ops))),
        (
            "expired",
            Some(Certificate::with(&ours, ops, |params| params.not_after = rcgen::date_time_ymd(2020, 1, 1))),
        ),
        (
            "not yet valid",
            Some(Certificate::with(&ours, ops, |params| {
                params.not_before = rcgen::date_time_ymd(2090, 1, 1)
            })),
        ),
        (
            "only for servers",
            Some(Certificate::with(&ours, ops, |params| {
                params.extended_key_usages.push(ExtendedKeyUsagePurpose::ServerAuth);
            })),
        ),
    ] {
        assert!(ask(certificate.as_ref()).await.is_none(), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_has_the_name_role_and_scope_of_its_line() {
    let ours = authority("ours");
    let files = CertificateFiles::new(&ours, LINES);
    let stage = serve("http-mtls-roles", &files, Required).await;
    let ask = async |certificate: &Certificate, ask: Ask| {
        files.ask(stage.address(), Some(certificate), ask).await.unwrap()
    };
    let submit = |job: &str| Ask::post("/v1/jobs", job);

    let web = Certificate::new(&ours, "spiffe://example/web");
    let caller = ask(&web, Ask::get("/v1/caller")).await.is(200).json();
    assert_eq!((&caller["name"], &caller["role"]), (&"web".into(), &"read".into()));
    let refused = ask(&web, submit(r#"{"kind": "mail"}"#)).await;
    refused.problem(403, "forbidden", "the certificate web has the role read: this operation needs submit");

    let mailer = Certificate::new(&ours, "Mailer.example");
    ask(&mailer, submit(r#"{"kind": "mail"}"#)).await.is(201);
    let refused = ask(&mailer, submit(r#"{"kind": "exec"}"#)).await;
    refused.problem(
        403,
        "forbidden",
        "the certificate mailer may not submit this: it may submit only jobs of",
    );

    let ops = Certificate::new(&ours, "spiffe://example/ops");
    let lines = ask(&ops, Ask::get("/v1/audit")).await.is(200).json()["lines"].clone();
    assert!(lines.as_array().unwrap().iter().any(|line| line["caller"] == "mailer" && line["status"] == 201));

    let former = ask(&Certificate::new(&ours, "spiffe://example/former"), Ask::get("/v1/jobs")).await;
    former.problem(401, "unauthenticated", "the certificate former has expired");
    // Names that no line has; the Common Name of all these certificates is `admin`.
    let both = Certificate::with(&ours, "mailer.example", |params| {
        params.subject_alt_names.push(SanType::URI("spiffe://example/ops".try_into().unwrap()));
    });
    let unknown = ["spiffe://example/ops/x", "spiffe://example/OPS", "admin", "a.mailer.example"];
    for certificate in unknown.map(|name| Certificate::new(&ours, name)).iter().chain([&both]) {
        let refused = ask(certificate, Ask::get("/v1/jobs")).await;
        refused.problem(401, "unauthenticated", "does not know the client certificate");
    }
    ask(&Certificate::new(&ours, "unknown"), Ask::get("/healthz")).await.is(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_takes_precedence_over_the_certificate_of_its_connection() {
    let ours = authority("ours");
    let issued = Issued::new("ci", Role::Read).unwrap();
    let files = CertificateFiles::new(&ours, &format!("{LINES}{}\n", issued.line));
    let stage = serve("http-mtls-token", &files, Optional).await;
    let ops = Certificate::new(&ours, "spiffe://example/ops");
    let ask = async |certificate: Option<&Certificate>, ask: Ask| {
        files.ask(stage.address(), certificate, ask).await
    };
    let ask = async |certificate, path| ask(certificate, path).await.unwrap();
    let caller = || Ask::get("/v1/caller");
    let name = |answer: Answer| answer.is(200).json()["name"].as_str().unwrap().to_owned();
    assert_eq!(name(ask(Some(&ops), caller()).await), "ops");
    assert_eq!(name(ask(Some(&ops), caller().token(&issued.secret)).await), "ci");
    ask(Some(&ops), caller().token("guessed")).await.problem(
        401,
        "unauthenticated",
        "does not know the token",
    );
    ask(Some(&ops), caller().token(&issued.secret).token(&issued.secret)).await.is(401);

    // Without a certificate a token is needed, and one of another authority fails.
    assert_eq!(name(ask(None, caller().token(&issued.secret)).await), "ci");
    ask(None, caller()).await.problem(401, "unauthenticated", "send exactly one header");
    let foreign = Certificate::new(&authority("ours"), "spiffe://example/ops");
    assert!(files.ask(stage.address(), Some(&foreign), caller().token(&issued.secret)).await.is_none());
}

/// A browser sends its certificate with the requests of all pages.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_site_cannot_use_the_certificate_of_a_browser() {
    let ours = authority("ours");
    let files = CertificateFiles::new(&ours, LINES);
    let stage = serve("http-mtls-page", &files, Required).await;
    let ops = Certificate::new(&ours, "spiffe://example/ops");
    let foreign = Ask::post("/v1/jobs", r#"{"kind": "mail"}"#).header("origin: https://evil.example");
    let answer = files.ask(stage.address(), Some(&ops), foreign).await.unwrap();
    answer.problem(403, "foreign-origin", "another site");
}

/// A connection that stays open.
struct Open(TlsStream<TcpStream>);

impl Open {
    async fn new(files: &CertificateFiles, to: SocketAddr, certificate: &Certificate) -> Self {
        Self(files.connect(to, Some(certificate)).await.unwrap())
    }

    async fn get(&mut self, path: &str) -> Answer {
        let ask = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        self.0.write_all(ask.as_bytes()).await.unwrap();
        let mut read = Vec::new();
        loop {
            read.push(self.0.read_u8().await.expect("the connection stays open"));
            let Some(answer) = Answer::parse(&read) else { continue };
            let length = answer.header("content-length").unwrap().parse::<usize>().unwrap();
            if answer.body.len() == length {
                return answer;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_line_or_authority_also_ends_the_access_of_open_connections() {
    let (old, new) = (authority("old"), authority("new"));
    let files = CertificateFiles::new(&old, LINES);
    let stage = serve("http-mtls-reload", &files, Required).await;
    let (ops, web) =
        (Certificate::new(&old, "spiffe://example/ops"), Certificate::new(&old, "spiffe://example/web"));
    let mut ops = Open::new(&files, stage.address(), &ops).await;
    let mut open = Open::new(&files, stage.address(), &web).await;
    ops.get("/v1/caller").await.is(200);
    files.write("tokens", &LINES.replace("ops admin", "web2 read uri:spiffe://example/web2\n# ops"));
    eventually("the removed line counts for nothing", SOON, async || {
        ops.get("/v1/caller").await.status == 401
    })
    .await;

    // A file without a certificate changes nothing.
    files.write("clients.pem", "");
    eventually("the line of another certificate has changed", SOON, async || {
        let renewed = Certificate::new(&old, "spiffe://example/web2");
        files.ask(stage.address(), Some(&renewed), Ask::get("/v1/caller")).await.unwrap().status == 200
    })
    .await;
    open.get("/v1/caller").await.is(200);
    files.write("clients.pem", &new.pem());
    eventually("the old authority counts for nothing", SOON, async || {
        open.get("/v1/caller").await.status == 401
    })
    .await;
    open.get("/v1/caller").await.problem(401, "unauthenticated", "the client certificate is no longer valid");
    assert!(files.ask(stage.address(), Some(&web), Ask::get("/v1/caller")).await.is_none());
    let web = Certificate::new(&new, "spiffe://example/web");
    files.ask(stage.address(), Some(&web), Ask::get("/v1/caller")).await.unwrap().is(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_expires_is_refused_also_on_its_open_connection() {
    let ours = authority("ours");
    let files = CertificateFiles::new(&ours, LINES);
    let stage = serve("http-mtls-expiry", &files, Required).await;
    let brief = Certificate::valid_for(&ours, "spiffe://example/web", Duration::from_secs(10));
    let mut open = Open::new(&files, stage.address(), &brief).await;
    open.get("/v1/caller").await.is(200);
    eventually("the certificate has expired", SOON, async || open.get("/v1/caller").await.status == 401)
        .await;
    assert!(files.ask(stage.address(), Some(&brief), Ask::get("/v1/caller")).await.is_none());
}

/// A resumed session would have the certificate of the former one, without a verification.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_with_a_client_certificate_is_not_resumed() {
    let ours = authority("ours");
    let files = CertificateFiles::new(&ours, LINES);
    let stage = serve("http-mtls-resumed", &files, Required).await;
    let config = files.config(Some(&Certificate::new(&ours, "spiffe://example/web")));
    for _ in 0..3 {
        let mut open = Open(connect(Arc::clone(&config), stage.address()).await.unwrap());
        // A ticket would follow the handshake, before the answer.
        open.get("/v1/caller").await.is(200);
        let kind = open.0.get_ref().1.handshake_kind();
        assert!(
            matches!(kind, Some(HandshakeKind::Full | HandshakeKind::FullWithHelloRetryRequest)),
            "{kind:?}"
        );
    }
}

fn node(files: &CertificateFiles, options: &[&str]) -> Command {
    let mut command = Command::new(binary_or(env!("CARGO_BIN_EXE_bellwether")));
    command.args(["--zookeeper", "127.0.0.1:1/nowhere", "node", "--metrics-listen", "127.0.0.1:0"]);
    command.args(["--http-listen", "127.0.0.1:0"]);
    for option in options {
        let (option, file) = option.split_once('=').unwrap_or((option, ""));
        command.arg(option);
        if !file.is_empty() {
            command.arg(files.path(file));
        }
    }
    command.env_remove("RUST_LOG");
    command
}

const CERT: &str = "--http-tls-cert=cert.pem";
const KEY: &str = "--http-tls-key=key.pem";
const CLIENTS: &str = "--http-tls-client-ca=clients.pem";
const TOKENS: &str = "--http-tokens=tokens";

#[tokio::test(flavor = "multi_thread")]
async fn metrics_need_a_certificate_with_a_role_that_may_read() {
    let ours = authority("ours");
    let files = CertificateFiles::new(&ours, &format!("{LINES}worker work dns:worker.example\n"));
    let mut node = node(&files, &[CERT, KEY, CLIENTS, TOKENS]);
    node.args(["--roles", "candidate"]);
    let process = Process::start("node", &mut node).unwrap();
    let address = eventually_some("the node serves metrics", SOON, async || {
        let said = process.said();
        let (_, rest) = said.split_once("the node serves metrics address=")?;
        rest.split_once('\n')?.0.trim().parse::<SocketAddr>().ok()
    })
    .await;
    let ask =
        async |certificate: Option<&Certificate>| files.ask(address, certificate, Ask::get("/metrics")).await;
    assert!(ask(None).await.is_none());
    ask(Some(&Certificate::new(&ours, "spiffe://example/web"))).await.unwrap().is(200);
    let worker = ask(Some(&Certificate::new(&ours, "worker.example"))).await.unwrap();
    worker.problem(403, "forbidden", "the certificate worker has the role work: metrics need read");
    ask(Some(&Certificate::new(&ours, "unknown"))).await.unwrap().is(401);
}

#[test]
fn certificates_that_would_permit_everything_or_nothing_are_refused_at_the_start() {
    let files = CertificateFiles::new(&authority("ours"), LINES);
    for (options, said) in [
        (&[CERT, KEY, CLIENTS][..], "http_tls_client_ca needs http_tokens"),
        (&[CLIENTS, TOKENS], "http_tls_client_ca needs http_tls_cert and http_tls_key"),
        (
            &[CERT, KEY, TOKENS, "--http-tls-client-cert-optional"],
            "http_tls_client_cert_optional needs http_tls_client_ca",
        ),
        (
            &[CERT, KEY, TOKENS, "--http-tls-client-ca=key.pem"],
            "cannot read a certificate of an authority from",
        ),
    ] {
        let refused = node(&files, options).output().unwrap();
        let stderr = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(said), "{stderr}");
    }
}
