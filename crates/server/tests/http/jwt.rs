//! Tokens of an OpenID Connect provider, as their holders and attackers use them.

use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bellwether_gateway::Protection;
use bellwether_gateway::access::{Issued, Role, Tokens};
use bellwether_testkit::{binary_or, eventually};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use serde_json::{Value, json};

use crate::ask::{Answer, Ask};
use crate::provider::{AUDIENCE, File, ISSUER, Signer, claims};
use crate::stage::{SOON, Stage};

async fn serve(name: &str, file: &File) -> Stage {
    let jwt = file.jwt();
    Stage::with(name, |builder| builder.protection(Protection::default().jwt(jwt))).await
}

async fn caller(stage: &Stage, token: &str) -> Answer {
    Ask::get("/v1/caller").token(token).of(stage.address()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_the_provider_has_the_role_and_scope_of_its_claims() {
    let (ec, ed, rsa) = (Signer::ecdsa("ec"), Signer::ed25519("ed"), Signer::rsa("rsa"));
    let stage = serve("http-jwt", &File::new(&[&ec, &ed, &rsa])).await;
    let mut tokens = [&ec, &ed, &rsa].map(|signer| signer.sign(&claims(json!({})))).to_vec();
    for algorithm in [Algorithm::RS512, Algorithm::PS256] {
        let header = Header { alg: algorithm, ..rsa.header() };
        tokens.push(encode(&header, &claims(json!({})), &rsa.key).unwrap());
    }
    for token in tokens {
        let known = caller(&stage, &token).await.is(200).json();
        assert_eq!((&known["name"], &known["role"]), (&format!("{ISSUER}#alice").into(), &"submit".into()));
    }
    let now = get_current_timestamp();
    for changes in [
        json!({ "aud": ["other", AUDIENCE] }),
        json!({ "exp": now - 10 }),
        json!({ "nbf": now + 10 }),
        json!({ "nbf": 1.5 }),
        json!({ "bellwether_role": ["other", "submit", 7] }),
    ] {
        caller(&stage, &ec.sign(&claims(changes.clone()))).await.is(200);
    }
    let scoped = ec.sign(&claims(json!({ "bellwether_scope": "kinds=mail max_priority=5" })));
    let submit = async |job: &str| Ask::post("/v1/jobs", job).token(&scoped).of(stage.address()).await;
    submit(r#"{"kind": "mail"}"#).await.is(201);
    let refused = submit(r#"{"kind": "exec"}"#).await;
    let said =
        format!("the token {ISSUER}#alice may not submit this: it may submit only jobs of the kinds mail");
    refused.problem(403, "forbidden", &said);
    let operator = ec.sign(&claims(json!({ "sub": "bob", "bellwether_role": "operate" })));
    let lines = Ask::get("/v1/audit").token(&operator).of(stage.address()).await.is(200).json();
    assert_eq!(lines["lines"][0]["caller"], format!("{ISSUER}#alice"), "{lines}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_the_provider_that_is_not_valid_here_is_refused_with_the_reason() {
    let ec = Signer::ecdsa("ec");
    let stage = serve("http-jwt-invalid", &File::new(&[&ec])).await;
    let now = get_current_timestamp();
    for (changes, said) in [
        (json!({ "exp": now - 60 }), "it has expired"),
        (json!({ "exp": null }), "its claim exp is missing"),
        (json!({ "exp": "tomorrow" }), "its claim exp is missing or malformed"),
        (json!({ "nbf": now + 60 }), "it is not valid yet"),
        (json!({ "nbf": "yesterday" }), "its claim nbf is missing or malformed"),
        (json!({ "aud": "other" }), "it is for another audience"),
        (json!({ "aud": ["other", "bellwether2"] }), "it is for another audience"),
        (json!({ "aud": null }), "its claim aud is missing"),
        (json!({ "iss": "https://id.example/realms/b" }), "it is from another issuer"),
        (json!({ "iss": [ISSUER, "https://id.example/realms/b"] }), "its claim iss is malformed"),
        (json!({ "iss": null }), "its claim iss is missing"),
        (json!({ "sub": null }), "its claim sub is missing"),
        (json!({ "sub": "" }), "its subject must have 1 to 255 printable ASCII characters"),
        (json!({ "sub": "x".repeat(256) }), "its subject must have"),
        (json!({ "sub": "alice\n caller=admin" }), "its subject must have"),
        (json!({ "sub": "al\u{202e}ice" }), "its subject must have"),
        (json!({ "bellwether_scope": "kinds=" }), "its claim bellwether_scope: kinds must be names"),
        (json!({ "bellwether_scope": ["kinds=a"] }), "its claim bellwether_scope is not a text"),
    ] {
        let answer = caller(&stage, &ec.sign(&claims(changes))).await;
        answer.problem(401, "unauthenticated", &format!("does not accept the token: {said}"));
    }
    for (role, said) in [
        (Value::Null, "is missing"),
        (json!("root"), "is not a role"),
        (json!("Admin"), "is not a role"),
        (json!(["other"]), "contains no role"),
        (json!(["read", "admin"]), "contains more than one role"),
        (json!({ "admin": true }), "is neither a text nor a list"),
    ] {
        let answer = caller(&stage, &ec.sign(&claims(json!({ "bellwether_role": role })))).await;
        let said = format!("gives the token no role: its claim bellwether_role {said}");
        answer.problem(403, "forbidden", &said);
    }
    let long = ec.sign(&claims(json!({ "sub": "x".repeat(255), "bellwether_role": "operate" })));
    caller(&stage, &long).await.is(200);
    // A pause has its name as a note.
    Ask::post("/v1/kinds/mail/pause", "").token(&long).of(stage.address()).await.is(200);
}

fn part(part: &Value) -> String {
    URL_SAFE_NO_PAD.encode(part.to_string())
}

/// All are answered like an unknown token.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_the_provider_has_not_signed_is_unknown() {
    let (ec, ed, rsa) = (Signer::ecdsa("ec"), Signer::ed25519("ed"), Signer::rsa("rsa"));
    let attacker = Signer::ecdsa("ec");
    let stage = serve("http-jwt-forged", &File::new(&[&ec, &ed, &rsa])).await;
    let admin = claims(json!({ "bellwether_role": "admin" }));
    let good = ec.sign(&admin);
    caller(&stage, &good).await.is(200);
    let [header, payload, signature] = good.split('.').collect::<Vec<_>>()[..] else { panic!("{good}") };
    let mut forged = vec![
        ("another key with the id", attacker.sign(&admin)),
        ("an unknown id", Signer::ecdsa("other").sign(&admin)),
        ("no id, with several keys", encode(&Header::new(Algorithm::ES256), &admin, &ec.key).unwrap()),
        (
            "the id of a key of another kind",
            encode(&Header { kid: Some("ed".to_owned()), ..ec.header() }, &admin, &ec.key).unwrap(),
        ),
        ("other claims", format!("{header}.{}.{signature}", part(&claims(json!({ "sub": "root" }))))),
        (
            "another header",
            format!("{}.{payload}.{signature}", part(&json!({ "alg": "ES256", "kid": "ec", "typ": "x" }))),
        ),
        ("no signature", format!("{header}.{payload}.")),
        ("two parts", format!("{header}.{payload}")),
        ("four parts", format!("{good}.{signature}")),
        ("padding", format!("{good}==")),
        ("too long", ec.sign(&claims(json!({ "filler": "x".repeat(8 * 1024) })))),
        ("nothing", "..".to_owned()),
    ];
    for none in ["none", "None", "NONE", ""] {
        let header = part(&json!({ "alg": none, "kid": "ec", "typ": "JWT" }));
        forged.push(("no algorithm", format!("{header}.{payload}.")));
        forged.push(("no algorithm", format!("{header}.{payload}.{signature}")));
    }
    // The public key as the secret of an HMAC.
    for signer in [&ec, &ed, &rsa] {
        for (secret, algorithm) in
            signer.public.iter().flat_map(|secret| [(secret, Algorithm::HS256), (secret, Algorithm::HS512)])
        {
            let header = Header { alg: algorithm, ..signer.header() };
            forged.push(("HMAC", encode(&header, &admin, &EncodingKey::from_secret(secret)).unwrap()));
        }
    }
    // The attacker's key in the header.
    let own = Jwk::from_encoding_key(&attacker.key, Algorithm::ES256).unwrap();
    let embedded = Header { jwk: Some(own), ..ec.header() };
    forged.push(("its own key", encode(&embedded, &admin, &attacker.key).unwrap()));
    let elsewhere = Header { jku: Some("https://evil.example/jwks.json".to_owned()), ..ec.header() };
    forged.push(("a set elsewhere", encode(&elsewhere, &admin, &attacker.key).unwrap()));
    // The provider's own key, with an extension that must be understood.
    let critical = Header { crit: Some(vec!["exp".to_owned()]), ..ec.header() };
    forged.push(("an extension", encode(&critical, &admin, &ec.key).unwrap()));
    for (what, token) in forged {
        let answer = caller(&stage, &token).await;
        assert_eq!(answer.status, 401, "{what}: {}", answer.text());
        answer.problem(401, "unauthenticated", "this gateway does not know the token");
    }
    Ask::get("/v1/caller").of(stage.address()).await.problem(401, "unauthenticated", "exactly one header");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_with_an_algorithm_verifies_only_this_one_and_secrets_of_a_set_verify_nothing() {
    let mut rsa = Signer::rsa("rsa");
    rsa.jwk["alg"] = "RS256".into();
    let mut encryption = Signer::ecdsa("encryption");
    encryption.jwk["use"] = "enc".into();
    let file = File::new(&[]);
    let secret = json!({ "kty": "oct", "kid": "secret", "k": URL_SAFE_NO_PAD.encode("secret") });
    let strange = json!({ "kty": "strange", "kid": "strange" });
    file.write_text(&json!({ "keys": [secret, strange, encryption.jwk, rsa.jwk] }).to_string());
    let stage = serve("http-jwt-keys", &file).await;
    caller(&stage, &rsa.sign(&claims(json!({})))).await.is(200);
    // The only usable key needs no id.
    caller(&stage, &encode(&Header::new(Algorithm::RS256), &claims(json!({})), &rsa.key).unwrap())
        .await
        .is(200);
    let other = Header { alg: Algorithm::RS384, ..rsa.header() };
    let hmac = Header { kid: Some("secret".to_owned()), ..Header::new(Algorithm::HS256) };
    for token in [
        encode(&other, &claims(json!({})), &rsa.key).unwrap(),
        encode(&hmac, &claims(json!({})), &EncodingKey::from_secret(b"secret")).unwrap(),
        encryption.sign(&claims(json!({}))),
    ] {
        caller(&stage, &token).await.problem(401, "unauthenticated", "does not know the token");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_keys_are_used_without_a_restart_beside_the_tokens_of_the_file() {
    let (old, new) = (Signer::ecdsa("old"), Signer::ed25519("new"));
    let file = File::new(&[&old]);
    let issued = Issued::new("ci", Role::Read).unwrap();
    let tokens = Tokens::parse(&issued.line, std::path::Path::new("tokens")).unwrap();
    let jwt = file.jwt();
    let stage = Stage::with("http-jwt-reload", |builder| {
        builder.protection(Protection::default().jwt(jwt).tokens(tokens))
    })
    .await;
    let (by_old, by_new) = (old.sign(&claims(json!({}))), new.sign(&claims(json!({}))));
    caller(&stage, &by_old).await.is(200);
    caller(&stage, &by_new).await.is(401);
    file.write(&[&old, &new]);
    eventually("the new key is used", SOON, async || caller(&stage, &by_new).await.status == 200).await;
    caller(&stage, &by_old).await.is(200);
    file.write(&[&new]);
    eventually("the old key is not used", SOON, async || caller(&stage, &by_old).await.status == 401).await;
    caller(&stage, &by_new).await.is(200);
    assert_eq!(caller(&stage, &issued.secret).await.is(200).json()["name"], "ci");
    caller(&stage, "guessed").await.problem(401, "unauthenticated", "does not know the token");
}

#[test]
fn settings_that_accept_no_token_or_any_are_refused_at_the_start() {
    let (one, two) = (Signer::ecdsa("a"), Signer::ecdsa("a"));
    let file = File::new(&[&one]);
    let path = file.path().display().to_string();
    let refused = |options: &[&str]| {
        let mut command = Command::new(binary_or(env!("CARGO_BIN_EXE_bellwether")));
        command.args(["--zookeeper", "127.0.0.1:1/nowhere", "node", "--roles", "gateway"]);
        let refused = command.args(["--http-listen", "127.0.0.1:0"]).args(options).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{options:?}");
        String::from_utf8(refused.stderr).unwrap()
    };
    let [issuer, audience] =
        [format!("--http-jwt-issuer={ISSUER}"), format!("--http-jwt-audience={AUDIENCE}")];
    let keys = format!("--http-jwt-jwks={path}");
    for options in [&[&*issuer][..], &[&audience], &[&keys], &[&issuer, &keys], &[&issuer, &audience]] {
        let said = refused(options);
        assert!(said.contains("give http_jwt_issuer, http_jwt_audience and http_jwt_jwks"), "{said}");
    }
    let said = refused(&[&issuer, "--http-jwt-audience=", &keys]);
    assert!(
        said.contains("the audience of JSON Web Tokens must have 1 to 256 printable ASCII characters"),
        "{said}"
    );
    let all = [&*issuer, &audience, &keys];
    file.write(&[&one, &two]);
    assert!(refused(&all).contains("two keys have the same kid"));
    let secret = json!({ "keys": [{ "kty": "oct", "k": "c2VjcmV0" }] }).to_string();
    for (text, problem) in [
        ("", "it is not a JSON object with the member `keys`"),
        (r#"{"keys": []}"#, "it has no key for signatures"),
        (&secret, "it has no key for signatures"),
        (&" ".repeat(256 * 1024 + 1), "it has more than 262144 bytes"),
    ] {
        file.write_text(text);
        let said = refused(&all);
        assert!(said.contains(problem) && said.contains(&path), "{said}");
    }
    std::fs::remove_file(file.path()).unwrap();
    assert!(refused(&all).contains("cannot read the JWK set"));
}
