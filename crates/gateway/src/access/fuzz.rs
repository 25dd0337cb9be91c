//! The fuzz target of credentials. See `src/fuzz.rs` for how it runs, and for the other targets.

use std::path::Path;
use std::sync::LazyLock;

use rustls::pki_types::CertificateDer;

use super::certificate::SubjectName;
use super::jwk::Keys;
use super::jwt::{Jwt, JwtSettings};
use super::token::Tokens;

/// A provider whose key has signed nothing: the example of RFC 7517, whose private part this program does not have.
static PROVIDER: LazyLock<Jwt> = LazyLock::new(|| {
    let key = r#"{"keys": [{"kty": "EC", "crv": "P-256", "kid": "1",
        "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}"#;
    let keys = Keys::parse(key.to_owned()).expect("one key");
    Jwt::of(JwtSettings::new("i", "a").role_claim("r"), Path::new("none"), keys)
});

/// A client certificate, a token file, a JWK set and a token of a provider: each is read, or refused with a reason. The token is
/// always refused, and no key of a set verifies signatures with a secret.
pub fn credentials(bytes: &[u8]) {
    let names = SubjectName::all(&CertificateDer::from(bytes));
    assert!(PROVIDER.find(bytes).is_err());
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Tokens::parse(text, Path::new("fuzzed")) {
        Ok(tokens) => drop(tokens.find_certificate(&names)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match Keys::parse(text.to_owned()) {
        Ok(keys) => assert!(keys.are_public()),
        Err(problem) => assert!(!problem.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use bellwether_testkit::fuzz::{Corpus, MUTANTS};

    #[test]
    fn credentials_of_any_content_are_read_or_refused_with_a_reason() {
        let words: [&[u8]; 9] =
            [b".", b"=", b"#", b"\n", b"uri:", b"dns:", b"sha256:", b"eyJhbGciOiJub25lIn0", b"\"keys\":["];
        let corpus =
            Corpus::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../server/fuzz/corpus"), "credentials");
        corpus.exercise(MUTANTS, &words, super::credentials);
    }
}
