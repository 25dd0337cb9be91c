//! JSON Web Tokens of an OpenID Connect provider, as an alternative to tokens of the file.
//!
//! The gateway has a copy of the provider's public keys (a JWK set), which it reads again when the file changes, and does not
//! contact the provider. A token counts only if one of these keys has signed it, and issuer, audience and times fit. Its role is in a claim:
//!
//! ```json
//! {"iss": "https://id.example.org", "aud": "bellwether", "sub": "alice", "exp": 1800000000, "bellwether_role": "submit"}
//! ```
//!
//! The key determines the algorithm, and only asymmetric ones are allowed: a token that calls a public key the secret of an HMAC,
//! or wants no signature, is refused whatever its header contains.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use jsonwebtoken::crypto::aws_lc;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Validation, decode, decode_header};
use serde_json::{Map, Value};

use super::jwk::{Key, Keys};
use super::role::Role;
use super::scope::Scope;
use super::token::Holder;

/// Maximum bytes of a token. All headers of a request have at most 16 KiB.
const MAX_BYTES: usize = 8 * 1024;

/// Maximum bytes of the issuer's URL. It is part of the caller's name in audit lines.
const MAX_ISSUER: usize = 256;

/// OpenID Connect limits the subject to so many ASCII characters.
const MAX_SUBJECT: usize = 255;

/// Seconds by which the clocks of the provider and the gateway may differ.
const LEEWAY: u64 = 30;

/// The default claim with the role of a caller.
pub const ROLE_CLAIM: &str = "bellwether_role";

/// The claim with a scope, in the words of the token file.
const SCOPE_CLAIM: &str = "bellwether_scope";

/// Which tokens of a provider are accepted. [`Jwt::read`] refuses a text that is empty, longer than 256 bytes, or not printable ASCII.
#[derive(Debug, Clone)]
#[must_use]
#[non_exhaustive]
pub struct JwtSettings {
    /// The claim `iss` of each token: the URL of the provider.
    pub issuer: String,
    /// The claim `aud` of each token must be or contain this name.
    pub audience: String,
    /// The claim with the role: a text, or a list of which one text is a role.
    pub role_claim: String,
}

impl JwtSettings {
    /// Accepts the tokens of this issuer, the URL of the provider, for this audience.
    pub fn new(issuer: impl Into<String>, audience: impl Into<String>) -> Self {
        let (issuer, audience) = (issuer.into(), audience.into());
        Self { issuer, audience, role_claim: ROLE_CLAIM.to_owned() }
    }

    /// Sets the claim with the role. Default [`ROLE_CLAIM`].
    pub fn role_claim(self, claim: impl Into<String>) -> Self {
        Self { role_claim: claim.into(), ..self }
    }
}

/// The provider whose tokens a gateway accepts. Clones share its keys, even after a reload.
#[derive(Clone)]
pub struct Jwt(Arc<Provider>);

struct Provider {
    settings: JwtSettings,
    file: PathBuf,
    keys: RwLock<Arc<Keys>>,
}

impl fmt::Debug for Jwt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jwt").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}

/// Why tokens of the provider cannot be accepted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JwtError {
    /// A setting is empty or too long.
    #[error("the {what} of JSON Web Tokens must have 1 to {most} printable ASCII characters")]
    Setting {
        /// The setting.
        what: &'static str,
        /// The maximum.
        most: usize,
    },
    /// The file with the keys cannot be read.
    #[error("cannot read the JWK set {path}", path = .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The file has no usable keys.
    #[error("{path} cannot be used as a JWK set: {problem}", path = .path.display())]
    Keys {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
}

bellwether_remedy::impl_remedy!(@invalid JwtError);

/// Why a token is refused. The texts contain nothing of a token that the provider has not signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JwtRefusal {
    /// It is no token of the provider.
    Unknown,
    /// The provider has signed it, and it is not valid here.
    Invalid(String),
    /// It is valid and has no role.
    NoRole(String),
}

type Claims = Map<String, Value>;

impl Jwt {
    /// Reads the provider's public keys from a JWK set.
    ///
    /// # Errors
    /// [`JwtError`] names the setting, or the file and its problem.
    pub fn read(settings: JwtSettings, file: &Path) -> Result<Self, JwtError> {
        for (what, text, most) in [
            ("issuer", &settings.issuer, MAX_ISSUER),
            ("audience", &settings.audience, MAX_ISSUER),
            ("role claim", &settings.role_claim, MAX_ISSUER),
        ] {
            if !is_printable(text, most) {
                return Err(JwtError::Setting { what, most });
            }
        }
        Ok(Self::of(settings, file, read(file)?))
    }

    pub(super) fn of(settings: JwtSettings, file: &Path, keys: Keys) -> Self {
        // Without a choice the library panics in a program that enables both of its backends. An error means that the program
        // has chosen.
        if aws_lc::DEFAULT_PROVIDER.install_default().is_err() {
            tracing::trace!("the backend for JSON Web Tokens was already chosen");
        }
        Self(Arc::new(Provider { settings, file: file.to_owned(), keys: RwLock::new(Arc::new(keys)) }))
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> String {
        self.0.file.display().to_string()
    }

    /// Reads the file again and replaces all keys together. Returns whether they changed. After an error the old keys stay in
    /// use.
    pub(crate) fn reload(&self) -> Result<bool, JwtError> {
        let read = read(&self.0.file)?;
        let mut keys = self.0.keys.write().unwrap_or_else(PoisonError::into_inner);
        let changed = keys.text() != read.text();
        if changed {
            *keys = Arc::new(read);
        }
        Ok(changed)
    }

    /// Returns the holder of a token. The name is the issuer and the subject, which is unique only within the issuer.
    pub(crate) fn find(&self, shown: &[u8]) -> Result<Holder, JwtRefusal> {
        let claims = self.verified(shown)?;
        let JwtSettings { issuer, role_claim, .. } = &self.0.settings;
        let subject = claims.get("sub").and_then(Value::as_str).unwrap_or_default();
        if !is_printable(subject, MAX_SUBJECT) {
            return Err(JwtRefusal::Invalid(format!(
                "its subject must have 1 to {MAX_SUBJECT} printable ASCII characters"
            )));
        }
        let role = role(claims.get(role_claim))
            .map_err(|problem| JwtRefusal::NoRole(format!("its claim {role_claim} {problem}")))?;
        let scope = match claims.get(SCOPE_CLAIM) {
            None => Scope::default(),
            Some(Value::String(words)) => Scope::parse(words.split_whitespace())
                .map_err(|problem| JwtRefusal::Invalid(format!("its claim {SCOPE_CLAIM}: {problem}")))?,
            Some(_) => return Err(JwtRefusal::Invalid(format!("its claim {SCOPE_CLAIM} is not a text"))),
        };
        Ok(Holder { name: format!("{issuer}#{subject}").into(), role, scope: Arc::new(scope) })
    }

    /// Returns the claims of a token that the provider has signed and that is valid now.
    fn verified(&self, shown: &[u8]) -> Result<Claims, JwtRefusal> {
        if shown.len() > MAX_BYTES {
            return Err(JwtRefusal::Unknown);
        }
        let header = decode_header(shown).map_err(|_| JwtRefusal::Unknown)?;
        // Extensions that must be understood (RFC 7515). The gateway understands none.
        if header.crit.is_some() {
            return Err(JwtRefusal::Unknown);
        }
        let keys = Arc::clone(&self.0.keys.read().unwrap_or_else(PoisonError::into_inner));
        let Some(Key { key, algorithms, .. }) = keys.of(header.kid.as_deref()) else {
            return Err(JwtRefusal::Unknown);
        };
        if !algorithms.contains(&header.alg) {
            return Err(JwtRefusal::Unknown);
        }
        let mut validation = Validation::new(header.alg);
        validation.leeway = LEEWAY;
        validation.validate_nbf = true;
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.set_issuer(&[&self.0.settings.issuer]);
        validation.set_audience(&[&self.0.settings.audience]);
        match decode::<Claims>(shown, key, &validation) {
            // A list of issuers is not a valid claim, and the library accepts one that contains the issuer.
            Ok(token) if token.claims.get("iss").is_some_and(Value::is_string) => Ok(token.claims),
            Ok(_) => Err(JwtRefusal::Invalid("its claim iss is malformed".to_owned())),
            Err(error) => Err(refusal(error.kind())),
        }
    }
}

fn is_printable(text: &str, most: usize) -> bool {
    let is_printable = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    is_printable && (1..=most).contains(&text.len())
}

fn read(file: &Path) -> Result<Keys, JwtError> {
    let text = super::jwk::read(file).map_err(|source| JwtError::Read { path: file.to_owned(), source })?;
    Keys::parse(text).map_err(|problem| JwtError::Keys { path: file.to_owned(), problem })
}

/// A signature is verified before the claims, so all but the first outcome are of tokens that the provider has signed.
fn refusal(kind: &ErrorKind) -> JwtRefusal {
    let problem = match kind {
        ErrorKind::ExpiredSignature => "it has expired: ask for a new one".to_owned(),
        ErrorKind::ImmatureSignature => "it is not valid yet".to_owned(),
        ErrorKind::InvalidIssuer => "it is from another issuer".to_owned(),
        ErrorKind::InvalidAudience => "it is for another audience".to_owned(),
        ErrorKind::MissingRequiredClaim(claim) | ErrorKind::InvalidClaimFormat(claim) => {
            format!("its claim {claim} is missing or malformed")
        }
        // The library may get further kinds.
        _ => return JwtRefusal::Unknown,
    };
    JwtRefusal::Invalid(problem)
}

/// Returns the role in a claim. The list of a provider may also contain the roles of other programs.
fn role(claim: Option<&Value>) -> Result<Role, &'static str> {
    let listed = match claim {
        None | Some(Value::Null) => return Err("is missing"),
        Some(Value::String(role)) => return role.parse().map_err(|_| "is not a role"),
        Some(Value::Array(listed)) => listed,
        Some(_) => return Err("is neither a text nor a list"),
    };
    let mut roles = listed.iter().filter_map(|role| role.as_str()?.parse::<Role>().ok());
    match (roles.next(), roles.next()) {
        (Some(role), None) => Ok(role),
        (None, _) => Err("contains no role"),
        (Some(_), Some(_)) => Err("contains more than one role"),
    }
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::jwk::Jwk;
    use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
    use serde_json::json;

    use super::*;

    /// A provider with one key, and a valid token.
    fn provider() -> (Jwt, String) {
        let (jwt, token, _removed) = provider_and_file();
        (jwt, token)
    }

    fn provider_and_file() -> (Jwt, String, tempfile::NamedTempFile) {
        let pair = rcgen::KeyPair::generate().unwrap();
        let key = EncodingKey::from_ec_der(&pair.serialize_der());
        let jwk = Jwk::from_encoding_key(&key, Algorithm::ES256).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), json!({ "keys": [jwk] }).to_string()).unwrap();
        let jwt = Jwt::read(JwtSettings::new("i", "a").role_claim("r"), file.path()).unwrap();
        let exp = get_current_timestamp() + 300;
        let claims = json!({ "iss": "i", "aud": "a", "sub": "s", "exp": exp, "r": "read" });
        let token = encode(&Header::new(Algorithm::ES256), &claims, &key).unwrap();
        (jwt, token, file)
    }

    #[test]
    fn a_broken_or_missing_file_of_keys_leaves_the_old_ones_in_use() {
        let (jwt, token, file) = provider_and_file();
        assert!(!jwt.reload().unwrap(), "nothing has changed");
        for broken in ["", "{}", r#"{"keys": []}"#, "[1]"] {
            std::fs::write(file.path(), broken).unwrap();
            jwt.reload().expect_err(broken);
            jwt.find(token.as_bytes()).unwrap();
        }
        let (_, other_token, other_file) = provider_and_file();
        std::fs::copy(other_file.path(), file.path()).unwrap();
        assert!(jwt.reload().unwrap());
        jwt.find(other_token.as_bytes()).unwrap();
        assert!(jwt.find(token.as_bytes()).is_err(), "its key was removed");
        file.close().unwrap();
        jwt.reload().unwrap_err();
        jwt.find(other_token.as_bytes()).unwrap();
    }

    #[test]
    fn no_change_of_a_token_is_accepted_and_hostile_bytes_do_not_panic() {
        let (jwt, token) = provider();
        assert_eq!(&*jwt.find(token.as_bytes()).unwrap().name, "i#s");
        let mut random = fastrand::Rng::with_seed(19);
        for _ in 0..20_000 {
            let mut bytes = token.clone().into_bytes();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..bytes.len().max(1));
                match random.u8(..4) {
                    0 if !bytes.is_empty() => drop(bytes.remove(at)),
                    1 if !bytes.is_empty() => bytes[at] = random.u8(..),
                    2 => bytes.truncate(at),
                    _ => bytes.insert(at.min(bytes.len()), random.u8(..)),
                }
            }
            let is_changed = bytes != token.as_bytes();
            assert!(!is_changed || jwt.find(&bytes).is_err(), "{}", String::from_utf8_lossy(&bytes));
        }
        for _ in 0..2_000 {
            let length = random.usize(..300);
            let bytes = std::iter::repeat_with(|| random.u8(..)).take(length).collect::<Vec<_>>();
            assert!(jwt.find(&bytes).is_err());
        }
    }
}
