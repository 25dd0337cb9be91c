//! The public keys of a provider of JSON Web Tokens: a JWK set (RFC 7517).
//!
//! Keys for other purposes, of other kinds, and symmetric ones are left out, as a provider's set may contain them.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
#[cfg(any(test, fuzzing))]
use jsonwebtoken::AlgorithmFamily;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

/// Maximum bytes of a file. Sets of providers have a few kilobytes.
const MAX_FILE: u64 = 256 * 1024;

/// Bytes of the smallest RSA modulus: 2,048 bits, as RFC 7518 requires.
const MIN_MODULUS: usize = 256;

/// A key, and the algorithms of signatures with it.
pub(super) struct Key {
    id: Option<String>,
    pub(super) key: DecodingKey,
    pub(super) algorithms: Vec<Algorithm>,
}

/// The keys of a set that can verify signatures: at least one, with different ids.
pub(super) struct Keys {
    keys: Vec<Key>,
    text: String,
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<Value>,
}

/// Reads a file up to its bound.
pub(super) fn read(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(file)?.take(MAX_FILE + 1).read_to_string(&mut text)?;
    Ok(text)
}

impl Keys {
    pub(super) fn parse(text: String) -> Result<Self, String> {
        if text.len() as u64 > MAX_FILE {
            return Err(format!("it has more than {MAX_FILE} bytes"));
        }
        let set = serde_json::from_str::<Set>(&text);
        let set = set.map_err(|_| "it is not a JSON object with the member `keys`")?;
        let keys = set.keys.into_iter().filter_map(Key::of).collect::<Vec<_>>();
        if keys.is_empty() {
            return Err(
                "it has no key for signatures by RSA of 2,048 bits or more, ECDSA P-256 or P-384, or Ed25519"
                    .to_owned(),
            );
        }
        for (n, key) in keys.iter().enumerate() {
            if let Some(id) = &key.id
                && keys[..n].iter().any(|other| other.id.as_ref() == Some(id))
            {
                return Err("two keys have the same kid".to_owned());
            }
        }
        Ok(Self { keys, text })
    }

    /// Returns the key with the id. A token may leave its id out only if there is one key.
    pub(super) fn of(&self, id: Option<&str>) -> Option<&Key> {
        match (id, &*self.keys) {
            (None, [key]) => Some(key),
            (None, _) => None,
            (Some(id), keys) => keys.iter().find(|key| key.id.as_deref() == Some(id)),
        }
    }

    /// Whether no key verifies signatures with a secret.
    #[cfg(any(test, fuzzing))]
    pub(super) fn are_public(&self) -> bool {
        let secret = AlgorithmFamily::Hmac;
        self.keys.iter().all(|key| key.algorithms.iter().all(|algorithm| algorithm.family() != secret))
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

impl Key {
    /// Returns `None` for a key that cannot verify signatures of the allowed algorithms.
    fn of(key: Value) -> Option<Self> {
        let jwk = serde_json::from_value::<Jwk>(key).ok()?;
        if jwk.common.public_key_use.as_ref().is_some_and(|used| *used != PublicKeyUse::Signature) {
            return None;
        }
        let mut algorithms = algorithms(&jwk.algorithm);
        if let Some(only) = jwk.common.key_algorithm {
            let only = Algorithm::try_from(only).ok();
            algorithms.retain(|algorithm| Some(*algorithm) == only);
        }
        let key = DecodingKey::from_jwk(&jwk).ok()?;
        (!algorithms.is_empty()).then_some(Self { id: jwk.common.key_id, key, algorithms })
    }
}

/// The allowed algorithms: asymmetric ones only.
fn algorithms(parameters: &AlgorithmParameters) -> Vec<Algorithm> {
    let length = |part: &str| URL_SAFE_NO_PAD.decode(part).map_or(0, |part| part.len());
    match parameters {
        AlgorithmParameters::RSA(rsa) if length(&rsa.n) >= MIN_MODULUS => vec![
            Algorithm::RS256,
            Algorithm::RS384,
            Algorithm::RS512,
            Algorithm::PS256,
            Algorithm::PS384,
            Algorithm::PS512,
        ],
        AlgorithmParameters::EllipticCurve(point) => {
            match (&point.curve, length(&point.x), length(&point.y)) {
                (EllipticCurve::P256, 32, 32) => vec![Algorithm::ES256],
                (EllipticCurve::P384, 48, 48) => vec![Algorithm::ES384],
                (_, _, _) => Vec::new(),
            }
        }
        AlgorithmParameters::OctetKeyPair(point) => match (&point.curve, length(&point.x)) {
            (EllipticCurve::Ed25519, 32) => vec![Algorithm::EdDSA],
            (_, _) => Vec::new(),
        },
        // Short keys, secrets, and kinds that the library may get.
        _ => Vec::new(),
    }
}
