//! Authentication and authorization.
//!
//! A caller presents a bearer token. The gateway knows the token's name, its [`Role`] and its SHA-256, so a leaked
//! token file gives no access: tokens are 256 random bits, which cannot be guessed from a digest. A gateway without
//! tokens treats every caller as an admin, so by default it listens on the loopback interface only.
//!
//! A client certificate of the connection can take the place of a token: a line of the token file gives it a name, a role and a
//! scope.

mod certificate;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod jwk;
mod jwt;
mod role;
mod scope;
mod token;

pub(super) use certificate::SubjectName;
pub(super) use jwt::JwtRefusal;
pub use jwt::{Jwt, JwtError, JwtSettings, ROLE_CLAIM};
pub use role::{Role, RoleError};
pub(super) use scope::Scope;
pub(super) use token::Holder;
pub use token::{Issued, MAX_TOKENS, TokenError, Tokens};

/// What callers may present.
#[derive(Debug, Clone, Default)]
pub(super) struct Accepted {
    /// The tokens of the file, and its client certificates.
    pub(super) tokens: Option<Tokens>,
    /// The provider whose tokens are accepted.
    pub(super) jwt: Option<Jwt>,
}

impl Accepted {
    /// Whether callers need not present anything, and may do everything.
    pub(super) fn is_anonymous(&self) -> bool {
        self.tokens.is_none() && self.jwt.is_none()
    }
}
