//! Tokens, known by their digests, and client certificates, known by their names.
//!
//! ```text
//! # name  role    digest of the token, or name of the certificate
//! ci      submit  sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 kinds=mail expires=2027-01-01T00:00:00Z
//! backup  operate uri:spiffe://example.org/backup
//! ```
//!
//! A [`Scope`] may follow, and a comment after `#`. The gateway reads the file again while it runs: [`Tokens::reload`].
//!
//! The digest of a presented token is compared with all known digests, each in constant time, so that the duration
//! reveals nothing about a partial match. A fast digest is right here: a token is random, not a password, and the
//! gateway computes one digest per request.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use bellwether::{NameError, NodeId};
use bellwether_remedy::{ErrorClass, impl_remedy};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use super::certificate::SubjectName;
use super::role::Role;
use super::scope::Scope;

/// Maximum number of tokens and certificates of a gateway. Each request compares with all of them, in a few microseconds.
pub const MAX_TOKENS: usize = 1_000;

/// Maximum bytes of a presented token. A longer one is rejected without a digest.
const MAX_SHOWN: usize = 512;

/// Random bytes of a generated token.
const RANDOM_BYTES: usize = 32;

/// Prefix of a generated token, so that scanners for leaked secrets find it.
const PREFIX: &str = "bw_";

type Digest = [u8; 32];

/// A token or certificate known to the gateway.
#[derive(Clone, PartialEq, Eq)]
struct Known {
    holder: Holder,
    proof: Proof,
}

/// What a caller must present.
#[derive(Clone, PartialEq, Eq)]
enum Proof {
    /// The token with this digest.
    Token(Digest),
    /// A client certificate with this name.
    Certificate(SubjectName),
}

/// The holder of a token or certificate, with its permissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) name: Arc<str>,
    pub(crate) role: Role,
    pub(crate) scope: Arc<Scope>,
}

/// The tokens and client certificates that a gateway accepts. Clones share them, even after a reload.
#[derive(Clone)]
pub struct Tokens {
    known: Arc<RwLock<Arc<[Known]>>>,
    /// The file that they were read from.
    file: Option<Arc<Path>>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.known();
        f.debug_list().entries(known.iter().map(|known| (&known.holder.name, known.holder.role))).finish()
    }
}

/// Why tokens cannot be used. The text never contains a token or a digest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The file cannot be read.
    #[error("cannot read the file of tokens {path}", path = .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A line is malformed.
    #[error(
        "{path}, line {line}: {problem}; a line is `NAME ROLE sha256:HEX [KEY=VALUE…]`, as `bellwether token new` prints it, \
         or has `uri:…` or `dns:…` of a client certificate instead of the digest",
        path = .path.display()
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// The line number, from 1.
        line: usize,
        /// The problem with the line.
        problem: String,
    },
    /// The file contains no token, so that no request could be authorized.
    #[error("{path} contains no token: create one with `bellwether token new`", path = .path.display())]
    None {
        /// The file.
        path: PathBuf,
    },
    /// The file contains too many tokens.
    #[error("{path} contains {given} tokens: at most {MAX_TOKENS} are allowed", path = .path.display())]
    TooMany {
        /// The file.
        path: PathBuf,
        /// The number of tokens.
        given: usize,
    },
    /// The name of a token is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The scope is malformed.
    #[error("the scope is malformed: {0}")]
    Scope(String),
    /// The system returned no random bytes.
    #[error("the system returned no random bytes")]
    Random,
}

impl TokenError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Read { .. }
            | Self::Line { .. }
            | Self::None { .. }
            | Self::TooMany { .. }
            | Self::Name(_)
            | Self::Scope(_) => ErrorClass::Invalid,
            Self::Random => ErrorClass::Failed,
        }
    }
}

impl_remedy!(TokenError);

/// A new token: the secret, which is shown once, and its line for the file of tokens.
#[derive(Clone)]
#[non_exhaustive]
pub struct Issued {
    /// The token that the caller presents. It is not stored.
    pub secret: String,
    /// The line for the file of tokens.
    pub line: String,
}

impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issued").finish_non_exhaustive()
    }
}

impl Issued {
    /// Generates a token with this name and role from the system's random numbers.
    ///
    /// # Errors
    /// If the name is invalid, or the system returns no random bytes.
    pub fn new(name: &str, role: Role) -> Result<Self, TokenError> {
        let name = named(name)?;
        let mut random = [0; RANDOM_BYTES];
        SystemRandom::new().fill(&mut random).map_err(|_| TokenError::Random)?;
        let secret = format!("{PREFIX}{}", hex(&random));
        let line = format!("{name} {role} sha256:{}", hex(&sha256(secret.as_bytes())));
        Ok(Self { secret, line })
    }

    /// Limits what the token may submit, and until when it is valid, by words such as `kinds=mail` and
    /// `expires=2027-01-01T00:00:00Z`.
    ///
    /// # Errors
    /// [`TokenError::Scope`] names the key and its bounds.
    pub fn scope(mut self, words: &[impl AsRef<str>]) -> Result<Self, TokenError> {
        // A word with a space would become two words of the line, and a comment would hide the rest.
        let words = words.iter().flat_map(|word| word.as_ref().split_whitespace()).collect::<Vec<_>>();
        if words.iter().any(|word| word.contains('#')) {
            return Err(TokenError::Scope("it contains '#'".to_owned()));
        }
        Scope::parse(words.iter().copied()).map_err(TokenError::Scope)?;
        for word in words {
            self.line.extend([" ", word]);
        }
        Ok(self)
    }
}

impl Tokens {
    /// Reads a file of tokens.
    ///
    /// # Errors
    /// [`TokenError`] names the file, the line and the expected format.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| TokenError::Read { path: path.to_owned(), source })?;
        Ok(Self { file: Some(path.into()), ..Self::parse(&text, path)? })
    }

    /// Returns the path of the file; empty if the tokens were not read from one.
    pub(crate) fn path(&self) -> String {
        self.file.as_ref().map_or_else(String::new, |file| file.display().to_string())
    }

    /// Reads the file again and replaces all tokens at once. Returns whether they changed. After an error the old tokens
    /// stay valid.
    pub(crate) fn reload(&self) -> Result<bool, TokenError> {
        let Some(file) = &self.file else { return Ok(false) };
        let read = Self::read(file)?.known();
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let changed = *known != read;
        *known = read;
        Ok(changed)
    }

    fn known(&self) -> Arc<[Known]> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Parses the text of a file of tokens; errors name `path`.
    ///
    /// # Errors
    /// As [`Tokens::read`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, TokenError> {
        let mut tokens: Vec<Known> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line_error =
                |problem: String| TokenError::Line { path: path.to_owned(), line: at + 1, problem };
            let (line, comment) =
                line.split_once('#').map_or((line, None), |(line, rest)| (line, Some(rest)));
            // Without its end, a URI would be another one.
            if comment.is_some() && line.ends_with(|end: char| !end.is_whitespace()) && line.contains(" uri:")
            {
                return Err(line_error("the URI of a certificate cannot contain '#'".to_owned()));
            }
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            let known = known(line).map_err(line_error)?;
            if tokens.iter().any(|other| other.holder.name == known.holder.name) {
                return Err(line_error(format!("the name {} is already in use", known.holder.name)));
            }
            if let Proof::Certificate(_) = known.proof
                && tokens.iter().any(|other| other.proof == known.proof)
            {
                return Err(line_error("another line has the same certificate".to_owned()));
            }
            tokens.push(known);
        }
        match tokens.len() {
            0 => Err(TokenError::None { path: path.to_owned() }),
            given if given > MAX_TOKENS => Err(TokenError::TooMany { path: path.to_owned(), given }),
            _ => Ok(Self { known: Arc::new(RwLock::new(tokens.into())), file: None }),
        }
    }

    /// Returns the holder of a presented token, even if the token has expired.
    pub(crate) fn find(&self, shown: &[u8]) -> Option<Holder> {
        if shown.len() > MAX_SHOWN {
            return None;
        }
        let shown = sha256(shown);
        // The position plus one, or 0 if not found; selected without a branch on the comparison.
        let mut found = 0_u32;
        let all = self.known();
        for (at, known) in (1_u32..).zip(all.iter()) {
            if let Proof::Token(digest) = &known.proof {
                let equal: Choice = digest.ct_eq(&shown);
                found.conditional_assign(&at, equal);
            }
        }
        let known = all.get(usize::try_from(found.checked_sub(1)?).ok()?)?;
        Some(known.holder.clone())
    }

    /// Returns the holder of a client certificate with these names, even if it has expired; `None` if no line has one of
    /// the names, or several lines do, because then the order of the lines would decide.
    pub(crate) fn find_certificate(&self, names: &[SubjectName]) -> Option<Holder> {
        let all = self.known();
        let mut found = all.iter().filter(|known| match &known.proof {
            Proof::Certificate(name) => names.contains(name),
            Proof::Token(_) => false,
        });
        match (found.next(), found.next()) {
            (Some(known), None) => Some(known.holder.clone()),
            (None | Some(_), _) => None,
        }
    }
}

fn known(line: &str) -> Result<Known, String> {
    let mut words = line.split_whitespace();
    let (Some(name), Some(role), Some(proof)) = (words.next(), words.next(), words.next()) else {
        return Err("it has fewer than three words".to_owned());
    };
    // The error contains at most one character of the name, which may be a misplaced token.
    let name = named(name).map_err(|error| error.to_string())?;
    let role = role.parse().map_err(|error: super::role::RoleError| error.to_string())?;
    let proof = match SubjectName::parse(proof) {
        Some(name) => Proof::Certificate(name?),
        None => {
            let digest = proof.strip_prefix("sha256:").and_then(unhex);
            Proof::Token(digest.ok_or("the digest is not `sha256:` and 64 hexadecimal digits")?)
        }
    };
    let scope = Arc::new(Scope::parse(words)?);
    Ok(Known { holder: Holder { name: Arc::from(name.as_str()), role, scope }, proof })
}

/// Names appear in audit lines, so they have the alphabet of all names.
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
    // `from_str_radix` accepts a sign.
    text.bytes().all(|digit| digit.is_ascii_hexdigit()).then_some(out)
}

#[cfg(test)]
mod tests;
