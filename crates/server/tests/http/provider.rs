//! An OpenID Connect provider: its keys, their JWK set, and tokens.

use std::path::PathBuf;

use bellwether_gateway::access::{Jwt, JwtSettings};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use rcgen::{KeyPair, PublicKeyData as _};
use serde_json::{Value, json};

pub(crate) const ISSUER: &str = "https://id.example/realms/a";
pub(crate) const AUDIENCE: &str = "bellwether";

/// Bytes of a PKCS #8 document before the PKCS #1 document of an RSA key with 2,048 bits.
const BEFORE_PKCS1: usize = 26;

/// A key of the provider.
pub(crate) struct Signer {
    pub(crate) id: &'static str,
    pub(crate) algorithm: Algorithm,
    pub(crate) key: EncodingKey,
    pub(crate) jwk: Value,
    /// What an attacker may use as a secret, because it is public.
    pub(crate) public: Vec<Vec<u8>>,
}

impl Signer {
    fn new(id: &'static str, algorithm: Algorithm, key: EncodingKey, mut public: Vec<Vec<u8>>) -> Self {
        let mut jwk = Jwk::from_encoding_key(&key, algorithm).unwrap();
        jwk.common.key_id = Some(id.to_owned());
        // With its algorithm, a key of the kind RSA would verify only this one.
        jwk.common.key_algorithm = None;
        let jwk = serde_json::to_value(jwk).unwrap();
        public.push(jwk.to_string().into_bytes());
        public.extend(
            ["n", "x", "y", "e"].iter().filter_map(|part| Some(jwk[*part].as_str()?.as_bytes().to_vec())),
        );
        Self { id, algorithm, key, jwk, public }
    }

    pub(crate) fn ecdsa(id: &'static str) -> Self {
        let pair = KeyPair::generate().unwrap();
        let public =
            vec![pair.der_bytes().to_vec(), pair.subject_public_key_info(), pair.public_key_pem().into()];
        Self::new(id, Algorithm::ES256, EncodingKey::from_ec_der(&pair.serialize_der()), public)
    }

    pub(crate) fn ed25519(id: &'static str) -> Self {
        use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
        let document = Ed25519KeyPair::generate_pkcs8v1(&aws_lc_rs::rand::SystemRandom::new()).unwrap();
        let public = Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap().public_key().as_ref().to_vec();
        Self::new(id, Algorithm::EdDSA, EncodingKey::from_ed_der(document.as_ref()), vec![public])
    }

    pub(crate) fn rsa(id: &'static str) -> Self {
        use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
        let pair = aws_lc_rs::rsa::KeyPair::generate(aws_lc_rs::rsa::KeySize::Rsa2048).unwrap();
        let document: Pkcs8V1Der<'_> = pair.as_der().unwrap();
        let key = EncodingKey::from_rsa_der(&document.as_ref()[BEFORE_PKCS1..]);
        Self::new(id, Algorithm::RS256, key, Vec::new())
    }

    pub(crate) fn header(&self) -> Header {
        Header { kid: Some(self.id.to_owned()), ..Header::new(self.algorithm) }
    }

    pub(crate) fn sign(&self, claims: &Value) -> String {
        encode(&self.header(), claims, &self.key).unwrap()
    }
}

/// Valid claims, changed by those of an object; `null` removes one.
pub(crate) fn claims(changes: Value) -> Value {
    let exp = get_current_timestamp() + 300;
    let mut claims =
        json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": exp, "bellwether_role": "submit" });
    let all = claims.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        all.remove(name);
        if !value.is_null() {
            all.insert(name.clone(), value.clone());
        }
    }
    claims
}

/// A JWK set in a file.
pub(crate) struct File(tempfile::TempDir);

impl File {
    pub(crate) fn new(signers: &[&Signer]) -> Self {
        let file = Self(tempfile::tempdir().unwrap());
        file.write(signers);
        file
    }

    pub(crate) fn write(&self, signers: &[&Signer]) {
        let keys = signers.iter().map(|signer| signer.jwk.clone()).collect::<Vec<_>>();
        self.write_text(&json!({ "keys": keys }).to_string());
    }

    pub(crate) fn write_text(&self, text: &str) {
        std::fs::write(self.path(), text).unwrap();
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("jwks.json")
    }

    pub(crate) fn jwt(&self) -> Jwt {
        Jwt::read(JwtSettings::new(ISSUER, AUDIENCE), &self.path()).unwrap()
    }
}
