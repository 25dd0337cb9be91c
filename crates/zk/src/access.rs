//! Who a session is to ZooKeeper, and so who may touch what it creates.
//!
//! A session without a login creates znodes that anyone may do anything with: ZooKeeper's default. One with a login
//! creates each znode, of every kind and in every transaction, for its own identity and nobody else (`auth:`, which
//! the server replaces with the identities of the session). The client library sends the login with every
//! connection, before anything else, so that a new session and a regained one are who the first was.
//!
//! No secret is in a `Debug`, a `Display` or an error: a user's name is told, a password never.

use std::fmt;

use tokio::net::TcpStream;
use zookeeper_client::{Acls, Client, Connector, Error, SaslOptions};

use crate::tls::Tls;

/// The longest user name: it is in the access list of every znode, and ZooKeeper writes that with each.
const MAX_USER_BYTES: usize = 128;

/// The longest password. ZooKeeper hashes it, so this bounds nothing but a mistake: a wrong file.
const MAX_PASSWORD_BYTES: usize = 1024;

/// How a session proves who it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scheme {
    /// ZooKeeper's own `digest`: needs nothing at the server. The password is in the clear on a connection without TLS,
    /// and nobody checks it at the login: a wrong one is somebody else.
    #[default]
    Digest,
    /// SASL with DIGEST-MD5, for an ensemble that keeps the passwords: it refuses a wrong one at the login. The password
    /// does not cross the network, and the ensemble knows it in the clear.
    SaslDigestMd5,
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Digest => "digest",
            Self::SaslDigestMd5 => "SASL DIGEST-MD5",
        })
    }
}

/// Who a session is to ZooKeeper. By default nobody in particular.
#[derive(Clone, Default)]
pub struct Access {
    login: Option<Login>,
    tls: Option<Tls>,
}

#[derive(Clone)]
struct Login {
    scheme: Scheme,
    user: String,
    password: String,
}

/// What is wrong with a login. The password is never part of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The user's name.
    #[error("the ZooKeeper user {given:?} {MUST_BE_A_USER}")]
    User {
        /// What was given.
        given: String,
    },
    /// The password.
    #[error("the ZooKeeper password {MUST_BE_A_PASSWORD}, and the one that was given {is}")]
    Password {
        /// What the given one is instead.
        is: &'static str,
    },
}

const MUST_BE_A_USER: &str = "must be 1 to 128 bytes without ':' and control characters";
const MUST_BE_A_PASSWORD: &str = "must be 1 to 1024 bytes without control characters";

impl Access {
    /// A session of this user.
    ///
    /// # Errors
    /// [`AccessError`]: a name or a password that no server takes.
    pub fn login(
        scheme: Scheme,
        user: impl Into<String>,
        password: impl Into<String>,
    ) -> Result<Self, AccessError> {
        let (user, password) = (user.into(), password.into());
        // The colon ends the name on the wire.
        let named =
            (1..=MAX_USER_BYTES).contains(&user.len()) && !user.chars().any(|c| c == ':' || c.is_control());
        if !named {
            return Err(AccessError::User { given: user });
        }
        let wrong = match password.len() {
            0 => Some("is empty"),
            1..=MAX_PASSWORD_BYTES if password.chars().any(char::is_control) => Some("has some"),
            1..=MAX_PASSWORD_BYTES => None,
            _ => Some("is longer"),
        };
        match wrong {
            Some(is) => Err(AccessError::Password { is }),
            None => Ok(Self { login: Some(Login { scheme, user, password }), ..Self::default() }),
        }
    }

    /// Has every connection made with TLS, or not at all. A certificate is no login.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Whether there is a login, so that znodes are created for it alone.
    #[must_use]
    pub fn is_login(&self) -> bool {
        self.login.is_some()
    }

    /// Has each connection say who it is, first of all.
    fn introduce(&self, connector: Connector) -> Connector {
        match &self.login {
            None => connector,
            Some(Login { scheme: Scheme::Digest, user, password }) => {
                connector.with_auth("digest", format!("{user}:{password}").as_bytes())
            }
            Some(Login { scheme: Scheme::SaslDigestMd5, user, password }) => {
                connector.with_sasl(SaslOptions::digest_md5(user.clone(), password.clone()))
            }
        }
    }

    /// Connects as this one.
    pub(crate) async fn connect(&self, connector: Connector, to: &str) -> Result<Client, Error> {
        let connector = self.introduce(connector);
        match &self.tls {
            Some(tls) => tls.connect(connector, to).await,
            None => connector.connect(to).await,
        }
    }

    /// Why this server cannot be connected to, whoever it is.
    pub(crate) fn unnameable(&self, server: &str) -> Option<String> {
        self.tls.as_ref()?.unnameable(server)
    }

    /// What is wrong with a server that took a connection, as far as that can be seen before there is a session.
    pub(crate) async fn complaint(&self, server: &str, stream: TcpStream) -> Option<String> {
        self.tls.as_ref()?.complaint(server, stream).await
    }

    /// Who may do anything with a znode that the session creates.
    pub(crate) fn acls(&self) -> Acls<'static> {
        if self.is_login() { Acls::creator_all() } else { Acls::anyone_all() }
    }
}

/// As errors and logs name it.
impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.login {
            Some(Login { scheme, user, .. }) => write!(f, "user {user:?} ({scheme})"),
            None => f.write_str("nobody in particular, as no zookeeper_user is given,"),
        }
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let login = self.login.as_ref();
        f.debug_struct("Access")
            .field("scheme", &login.map(|login| login.scheme))
            .field("user", &login.map(|login| &login.user))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_a_login_has_its_password() {
        let access = Access::login(Scheme::Digest, "bellwether", "hunter2").unwrap();
        let texts = [format!("{access:?}"), format!("{access:#?}"), access.to_string()];
        assert!(texts.iter().all(|text| text.contains("bellwether")), "{texts:?}");
        let refused = ["hunter2\n", &"hunter2".repeat(147)]
            .map(|password| Access::login(Scheme::Digest, "bellwether", password).unwrap_err());
        let refused = refused.iter().flat_map(|error| [error.to_string(), format!("{error:?}")]);
        for text in refused.chain(texts) {
            assert!(!text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn what_no_server_takes_is_refused_with_its_bound() {
        let long = "x".repeat(129);
        for user in ["", "a:b", "a\nb", &long] {
            let said = Access::login(Scheme::Digest, user, "secret").unwrap_err().to_string();
            assert!(said.contains(MUST_BE_A_USER), "{said}");
        }
        let long = "x".repeat(1025);
        for (password, is) in [("", "is empty"), ("a\n", "has some"), (&long, "is longer")] {
            let said = Access::login(Scheme::Digest, "bellwether", password).unwrap_err().to_string();
            assert!(said.contains(MUST_BE_A_PASSWORD) && said.ends_with(is), "{said}");
        }
        for (user, password) in [(&long[..128], &long[..1024]), ("ü", "a:b c")] {
            Access::login(Scheme::Digest, user, password).unwrap();
        }
    }
}
