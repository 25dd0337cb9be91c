//! Tokens, known by their digests.
//!
//! ```text
//! # name  role    digest of the token
//! ci      submit  sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//! ```
//!
//! A token that is shown is digested, and its digest compared with each that is known, all of them and each in constant
//! time: how long it takes tells nothing about how near it was. A fast digest is right here and a slow one is not: a
//! token is random, not a password, and the gateway digests one per request.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bellwether::{NameError, NodeId};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use super::role::Role;

/// Most tokens of one gateway: each request compares with all of them, a few microseconds for so many.
pub const MAX_TOKENS: usize = 1_000;

/// Most bytes of a token that is shown: longer ones are not digested.
const MAX_SHOWN: usize = 512;

/// Random bytes of a token that is issued here.
const RANDOM_BYTES: usize = 32;

/// Begins a token that was issued here, so that scanners for leaked secrets find it.
const PREFIX: &str = "bw_";

type Digest = [u8; 32];

/// A token as the gateway knows it.
#[derive(Clone)]
struct Known {
    name: Arc<str>,
    role: Role,
    digest: Digest,
}

/// The tokens that a gateway accepts.
#[derive(Clone)]
pub struct Tokens(Arc<[Known]>);

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|known| (&known.name, known.role))).finish()
    }
}

/// Why tokens cannot be used. Neither a token nor a digest is ever in the text.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("cannot read the file of tokens {path}", path = .path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A line is malformed.
    #[error(
        "{path}, line {line}: {problem}; a line is `NAME ROLE sha256:HEX`, as `bellwether token new` prints it",
        path = .path.display()
    )]
    Line {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// There are none, and nobody could do anything.
    #[error("{path} holds no token: make one with `bellwether token new`", path = .path.display())]
    None {
        /// Which file.
        path: PathBuf,
    },
    /// There are too many.
    #[error("{path} holds {given} tokens: at most {MAX_TOKENS} are allowed", path = .path.display())]
    TooMany {
        /// Which file.
        path: PathBuf,
        /// How many.
        given: usize,
    },
    /// A token's name is none.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The system gave no random bytes.
    #[error("the system gave no random bytes")]
    Random,
}

/// A fresh token: the secret, which is shown once, and the line to keep.
#[derive(Clone)]
pub struct Issued {
    /// What the caller shows. It is nowhere else.
    pub secret: String,
    /// What goes into the file of tokens.
    pub line: String,
}

impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issued").finish_non_exhaustive()
    }
}

impl Issued {
    /// Makes a token of this name and role from the system's random numbers.
    ///
    /// # Errors
    /// When the name is none, or the system gives no random bytes.
    pub fn new(name: &str, role: Role) -> Result<Self, TokenError> {
        let name = named(name)?;
        let mut random = [0; RANDOM_BYTES];
        SystemRandom::new().fill(&mut random).map_err(|_| TokenError::Random)?;
        let secret = format!("{PREFIX}{}", hex(&random));
        let line = format!("{name} {role} sha256:{}", hex(&sha256(secret.as_bytes())));
        Ok(Self { secret, line })
    }
}

impl Tokens {
    /// Reads a file of tokens.
    ///
    /// # Errors
    /// [`TokenError`] names the file, the line and what is allowed.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| TokenError::Read { path: path.to_owned(), source })?;
        Self::parse(&text, path)
    }

    /// Reads the text of such a file; `path` is named in errors.
    ///
    /// # Errors
    /// As [`Tokens::read`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, TokenError> {
        let mut tokens: Vec<Known> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line_error =
                |problem: String| TokenError::Line { path: path.to_owned(), line: at + 1, problem };
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let known = known(line).map_err(line_error)?;
            if tokens.iter().any(|other| other.name == known.name) {
                return Err(line_error(format!("the name {} is there already", known.name)));
            }
            tokens.push(known);
        }
        match tokens.len() {
            0 => Err(TokenError::None { path: path.to_owned() }),
            given if given > MAX_TOKENS => Err(TokenError::TooMany { path: path.to_owned(), given }),
            _ => Ok(Self(tokens.into())),
        }
    }

    /// Whose token it is, and what it may do.
    pub(in crate::http) fn find(&self, shown: &[u8]) -> Option<(Arc<str>, Role)> {
        if shown.len() > MAX_SHOWN {
            return None;
        }
        let shown = sha256(shown);
        // One more than the position, and 0 for none; chosen without a branch on the comparison.
        let mut found = 0_u32;
        for (at, known) in (1_u32..).zip(self.0.iter()) {
            let equal: Choice = known.digest.ct_eq(&shown);
            found.conditional_assign(&at, equal);
        }
        let known = self.0.get(usize::try_from(found.checked_sub(1)?).ok()?)?;
        Some((Arc::clone(&known.name), known.role))
    }
}

fn known(line: &str) -> Result<Known, String> {
    let mut words = line.split_whitespace();
    let (Some(name), Some(role), Some(digest), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err("it does not have three words".to_owned());
    };
    // The text of a name's error has one character of it at most.
    let name = named(name).map_err(|error| error.to_string())?;
    let role = role.parse().map_err(|error: super::role::RoleError| error.to_string())?;
    let digest = digest.strip_prefix("sha256:").and_then(unhex);
    let digest = digest.ok_or("the digest is not `sha256:` and 64 hexadecimal digits")?;
    Ok(Known { name: Arc::from(name.as_str()), role, digest })
}

/// Names stand in audit lines, so they are of the alphabet of all names.
fn named(name: &str) -> Result<NodeId, NameError> {
    NodeId::new(name)
}

fn sha256(bytes: &[u8]) -> Digest {
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, bytes).as_ref());
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<Digest> {
    let mut out = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, at) in out.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    // `from_str_radix` takes a sign.
    text.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Tokens, TokenError> {
        Tokens::parse(text, Path::new("tokens"))
    }

    #[test]
    fn a_token_is_found_by_its_secret_and_by_nothing_else() {
        let (ci, ops) = (Issued::new("ci", Role::Submit).unwrap(), Issued::new("ops", Role::Admin).unwrap());
        let tokens = parse(&format!("# who may\n\n{}\n  {}\n", ci.line, ops.line)).unwrap();
        assert_eq!(tokens.find(ci.secret.as_bytes()), Some(("ci".into(), Role::Submit)));
        assert_eq!(tokens.find(ops.secret.as_bytes()), Some(("ops".into(), Role::Admin)));
        let digest = ci.line.rsplit(' ').next().unwrap();
        for other in ["", "bw_", digest, &ci.secret[..ci.secret.len() - 1], &"x".repeat(MAX_SHOWN + 1)] {
            assert_eq!(tokens.find(other.as_bytes()), None, "{other}");
        }
        assert_ne!(ci.secret, Issued::new("ci", Role::Submit).unwrap().secret);
    }

    #[test]
    fn neither_secrets_nor_digests_are_shown() {
        let ci = Issued::new("ci", Role::Submit).unwrap();
        let tokens = parse(&ci.line).unwrap();
        assert_eq!(format!("{tokens:?} {ci:?}"), "[(\"ci\", Submit)] Issued { .. }");
        // A secret where something else belongs.
        for line in [&*ci.secret, &format!("ci {} x", ci.secret), &format!("ci read {}", ci.secret)] {
            let said = parse(line).unwrap_err().to_string();
            assert!(!said.contains(&ci.secret[3..]), "{said}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_file_line_and_what_is_allowed() {
        let digest = "ab".repeat(32);
        let good = format!("ci read sha256:{digest}");
        for (text, said) in [
            ("ci read".to_owned(), "tokens, line 1: it does not have three words"),
            (format!("{good}\nci read sha256:{digest}"), "tokens, line 2: the name ci is there already"),
            (
                format!("#\nci root sha256:{digest}"),
                "tokens, line 2: not a role: allowed are read, submit, operate, admin",
            ),
            (format!("c/i read sha256:{digest}"), "tokens, line 1: node id has '/' at byte 1"),
            (
                "ci read sha256:+b".to_owned(),
                "tokens, line 1: the digest is not `sha256:` and 64 hexadecimal digits",
            ),
            (format!("ci read sha256:{}", "+b".repeat(32)), "tokens, line 1: the digest is not"),
            (format!("ci read md5:{digest}"), "tokens, line 1: the digest is not"),
            ("# nobody\n".to_owned(), "tokens holds no token: make one"),
        ] {
            let error = parse(&text).unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
        let many = (0..=MAX_TOKENS).map(|n| format!("t{n} read sha256:{digest}\n")).collect::<String>();
        assert_eq!(
            parse(&many).unwrap_err().to_string(),
            "tokens holds 1001 tokens: at most 1000 are allowed"
        );
    }
}
