//! Roles, TLS, and requests of other sites' pages.

use std::net::SocketAddr;
use std::sync::Arc;

use bellwether::Client;
use bellwether_gateway::Protection;
use bellwether_gateway::access::Role;
use bellwether_gateway::tls::Tls;
use bellwether_gateway::{Gateway, GatewayError};
use bellwether_testkit::{eventually, namespace};
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::ask::{Answer, Ask, exchange};
use crate::stage::{SOON, Secrets, Stage};

/// The key of no remote worker.
const KEY: &str = "00000000-0000-4000-8000-000000000000";

#[tokio::test(flavor = "multi_thread")]
async fn each_operation_requires_its_documented_role() {
    let secrets = Secrets::new();
    let stage = Stage::with("http-roles", |builder| {
        builder.protection(Protection::default().tokens(secrets.tokens.clone()))
    })
    .await;
    let document = bellwether_gateway::openapi();
    let mut seen = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let needs = operation["security"][0]
                .get("token")
                .map(|scopes| scopes[0].as_str().unwrap().parse::<Role>().unwrap());
            let ask = || {
                Ask::new(
                    &method.to_uppercase(),
                    &path.replace("{id}", "none").replace("{kind}", "none").replace("{key}", KEY),
                )
                .header("content-length: 0")
            };
            let Some(needs) = needs else {
                assert!(["/healthz", "/readyz"].contains(&path.as_str()), "{path}");
                ask().of(stage.address()).await.is(200);
                continue;
            };
            seen += 1;
            let bare = ask().of(stage.address()).await;
            let bare = bare.problem(401, "unauthenticated", "send exactly one header");
            assert_eq!(bare.header("www-authenticate"), Some("Bearer"));
            for role in Role::ALL {
                if path == "/v1/events" && role.permits(needs) {
                    continue;
                }
                let answer = ask().token(secrets.of(role)).of(stage.address()).await;
                if !role.permits(needs) {
                    answer.problem(
                        403,
                        "forbidden",
                        &format!("has the role {role}: this operation needs {needs}"),
                    );
                } else {
                    assert!(![401, 403].contains(&answer.status), "{method} {path} as {role}: {answer:?}");
                }
            }
        }
    }
    assert!(seen >= 9, "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_wrong_token_is_refused_with_the_same_detail() {
    let secrets = Secrets::new();
    let stage = Stage::with("http-token", |builder| {
        builder.protection(Protection::default().tokens(secrets.tokens.clone()))
    })
    .await;
    let good = secrets.of(Role::Read);
    for header in [
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        format!("Basic {good}"),
        // As long as the right scheme.
        format!("Digest {good}"),
        format!("Bearer {}", &good[..good.len() - 1]),
        format!("Bearer {good}x"),
        format!("Bearer {}", "x".repeat(4_096)),
    ] {
        let ask = Ask::get("/v1/jobs").header(&format!("authorization: {header}"));
        let answer = ask.of(stage.address()).await;
        let answer = answer.problem(401, "unauthenticated", "this gateway does not know the token");
        assert!(!answer.text().contains(&good[..20]));
    }
    let twice = Ask::get("/v1/jobs").token(good).token(good).of(stage.address()).await;
    twice.problem(401, "unauthenticated", "send exactly one header");
    Ask::get("/v1/jobs").header(&format!("authorization: bearer  {good}")).of(stage.address()).await.is(200);
    // Public content needs no token.
    for open in ["/openapi.json", "/docs/", "/healthz", "/readyz"] {
        Ask::get(open).of(stage.address()).await.is(200);
    }
    Ask::get("/v1/nothing").token(good).of(stage.address()).await.is(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_other_sites_are_refused_by_origin_and_host() {
    let stage = Stage::new("http-origin").await;
    let foreign = Ask::post("/v1/jobs", r#"{"kind": "sum"}"#).header("origin: http://evil.example");
    foreign.of(stage.address()).await.problem(403, "foreign-origin", "another site");
    let mut rebound = Ask::get("/v1/jobs");
    rebound = rebound.host("evil.example:8080");
    rebound.of(stage.address()).await.problem(403, "foreign-origin", "localhost");
    let listed = stage.get("/v1/jobs").await.is(200).json();
    assert_eq!(listed["jobs"].as_array().unwrap().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_without_protection_does_not_start_on_a_public_address() {
    let to = namespace("http-exposed");
    let secrets = Secrets::new();
    let client = Client::connect(&to).await.unwrap();
    let open = || Gateway::builder(client.clone()).listen("0.0.0.0:0".parse().unwrap());
    for open in [open(), open().protection(Protection::default().tokens(secrets.tokens.clone()))] {
        let refused = open.start().await.unwrap_err();
        assert!(matches!(refused, GatewayError::Exposed { .. }), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_may_be_framed_sniffed_or_run_foreign_scripts() {
    let stage = Stage::new("http-headers").await;
    for path in [
        "/v1/jobs",
        "/v1/jobs/unknown",
        "/nothing",
        "/healthz",
        "/openapi.json",
        "/docs/",
        "/",
        "/console/main.js",
    ] {
        let answer = stage.get(path).await;
        let header = |name: &str| answer.header(name).unwrap_or_else(|| panic!("{path} has no {name}"));
        let policy = header("content-security-policy");
        assert!(policy.contains("frame-ancestors 'none'"), "{path}: {policy}");
        assert!(policy.contains("default-src 'none'") || path == "/docs/", "{path}: {policy}");
        assert!(!policy.contains("script-src 'unsafe") && !policy.contains('*'), "{path}: {policy}");
        assert_eq!(header("x-frame-options"), "DENY", "{path}");
        assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(header("referrer-policy"), "no-referrer", "{path}");
        assert_eq!(answer.header("strict-transport-security"), None, "{path}: it is not HTTPS");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_with_tls_does_not_answer_plain_http() {
    let files = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, key) = (files.path().join("cert.pem"), files.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let tls = Tls::new(&certificate, &key);
    let stage = Stage::with("http-tls", |builder| builder.protection(Protection::default().tls(tls))).await;

    let answer = over_tls(stage.address(), &made.cert, Ask::get("/v1/jobs")).await.unwrap();
    let answer = answer.is(200);
    assert_eq!(answer.json()["next"], Value::Null);
    assert_eq!(answer.header("strict-transport-security"), Some("max-age=31536000"));

    let plain = TcpStream::connect(stage.address()).await.unwrap();
    assert!(exchange(plain, &Ask::get("/v1/jobs").text()).await.is_none(), "no answer to plain HTTP");

    // Key and certificate are exchanged: the error contains no part of the key.
    for (certificate, key) in [(&key, &key), (&certificate, &certificate)] {
        let said = Tls::new(certificate, key).check().unwrap_err().to_string();
        assert!(said.starts_with("cannot read a ") && said.ends_with("the file contains none"), "{said}");
    }
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(&key, other.signing_key.serialize_pem()).unwrap();
    let said = Tls::new(&certificate, &key).check().unwrap_err().to_string();
    assert_eq!(said, "the certificate and its key cannot be used");
}

/// Sends a request to a gateway that has this certificate; `None` if it has another one.
async fn over_tls(address: SocketAddr, trusted: &rcgen::Certificate, ask: Ask) -> Option<Answer> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let tcp = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, tcp).await.ok()?;
    Some(exchange(stream, &ask.text()).await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_certificate_is_used_without_a_restart() {
    let files = tempfile::tempdir().unwrap();
    let (certificate, key) = (files.path().join("cert.pem"), files.path().join("key.pem"));
    let issue = || {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        made.cert
    };
    let old = issue();
    let tls = Tls::new(&certificate, &key);
    let stage =
        Stage::with("http-tls-renewed", |builder| builder.protection(Protection::default().tls(tls))).await;
    over_tls(stage.address(), &old, Ask::get("/healthz")).await.unwrap().is(200);
    let new = issue();
    eventually("the new certificate is used", SOON, async || {
        over_tls(stage.address(), &new, Ask::get("/healthz")).await.is_some()
    })
    .await;
    assert!(over_tls(stage.address(), &old, Ask::get("/healthz")).await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_changes_are_listed_for_operators_only() {
    let secrets = Secrets::new();
    let tokens = secrets.tokens.clone();
    let stage =
        Stage::with("http-audit-list", |builder| builder.protection(Protection::default().tokens(tokens)))
            .await;
    let submit = Ask::post("/v1/jobs", r#"{"id": "a", "kind": "sum"}"#).token(secrets.of(Role::Submit));
    submit.of(stage.address()).await.is(201);
    let read = Ask::get("/v1/audit").token(secrets.of(Role::Submit));
    read.of(stage.address()).await.problem(403, "forbidden", "this operation needs operate");
    let listed = Ask::get("/v1/audit").token(secrets.of(Role::Operate)).of(stage.address()).await;
    let lines = listed.is(200).json()["lines"].as_array().unwrap().clone();
    assert_eq!(lines.len(), 1, "a request that only reads leaves no line: {lines:?}");
    let line = &lines[0];
    assert_eq!((&line["caller"], &line["role"]), (&"submit".into(), &"submit".into()));
    assert_eq!((&line["operation"], &line["status"]), (&"submit_job".into(), &201.into()));
}
