//! The identity of a session towards ZooKeeper, and the access lists of the znodes that it creates.
//!
//! A session without a login creates znodes that anyone may read and change: ZooKeeper's default. A session with a
//! login creates every znode, of every type and in every transaction, with access for its own identity only
//! (`auth:`, which the server replaces with the identities of the session). With [`Roles`] the path of a znode decides which
//! role may do what with it. The client library sends the login first on every connection, so a new or reconnected session has
//! the same identity.
//!
//! `Debug`, `Display` and errors contain no secret: they show the user name, never the password.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1_smol::Sha1;
use tokio::net::TcpStream;
use uuid::Uuid;
use zookeeper_client::{Acl, AuthId, Client, Connector, Error, Permission, SaslOptions};

use crate::connect_string::ConnectString;
use crate::roles::{OWNER, Role, Roles};
use crate::tls::Tls;

/// The longest user name in bytes. It is part of the access list of every znode, which ZooKeeper stores with each
/// znode.
const MAX_USER_BYTES: usize = 128;

/// The longest password in bytes. ZooKeeper hashes it, so this only detects a mistake such as a wrong file.
const MAX_PASSWORD_BYTES: usize = 1024;

/// The authentication scheme of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "describe", derive(clap::ValueEnum), value(rename_all = "kebab-case"))]
pub enum Scheme {
    /// ZooKeeper's built-in scheme: every server supports it and accepts any password.
    ///
    /// Without TLS the password crosses the network in clear text, so it is refused for servers on other machines unless
    /// [`Access::insecure`] allows it. A wrong password is simply another identity.
    #[default]
    Digest,
    /// SASL DIGEST-MD5, for an ensemble that stores the passwords and rejects wrong ones.
    ///
    /// The password does not cross the network; the ensemble stores it in clear text.
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

/// The identity and transport security of a session. The default has no login and no TLS.
#[derive(Clone, Default)]
pub struct Access {
    login: Option<Login>,
    tls: Option<Tls>,
    insecure: bool,
    by_role: Option<ByRole>,
    /// The first error of a setter.
    refused: Option<AccessError>,
}

/// The role of a login in a namespace with logins by role.
#[derive(Clone)]
struct ByRole {
    role: Role,
    roles: Roles,
    /// The password of the second identity, by which this process alone may change its own registrations.
    owner: String,
}

#[derive(Clone)]
struct Login {
    scheme: Scheme,
    user: String,
    password: String,
    /// The password before this one, while it is being changed.
    former: Option<String>,
}

impl Login {
    /// The id in access lists of the scheme `digest`.
    fn digest_id(&self, password: &str) -> String {
        digest_id(&self.user, password)
    }
}

fn digest_id(user: &str, password: &str) -> String {
    let hash = STANDARD.encode(Sha1::from(format!("{user}:{password}")).digest().bytes());
    format!("{user}:{hash}")
}

/// Why a login or TLS is invalid. The password is never part of the error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// The user name is invalid.
    #[error("the ZooKeeper user {given:?} {MUST_BE_A_USER}")]
    User {
        /// The given name.
        given: String,
    },
    /// The password is invalid.
    #[error("the ZooKeeper password {MUST_BE_A_PASSWORD}, and the one that was given {is}")]
    Password {
        /// How the given password violates the rule.
        is: &'static str,
    },
    /// The password would cross the network in clear text.
    #[error(
        "the password for ZooKeeper would be sent to {server} in clear text: use TLS or the scheme \
         sasl-digest-md5, or allow it explicitly if something else protects the network"
    )]
    ClearText {
        /// The first server on another machine.
        server: String,
    },
    /// A former password was given without a login, or with one whose identity does not depend on the password.
    #[error("a former password needs a user with the scheme digest")]
    Former,
    /// Roles were given without a login, or with the login of no role.
    #[error("{who} has no role: the file of the roles must have a line for it")]
    NoRole {
        /// The identity of the session.
        who: String,
    },
    /// Roles were given with a former password.
    #[error(
        "with roles, a former password is another line of the file of the roles, and not a former password of the login"
    )]
    FormerOfRole,
    /// The TLS files cannot be used.
    #[cfg(feature = "tls")]
    #[error(transparent)]
    Tls(#[from] crate::tls::TlsError),
}

/// The name must be one that the server accepts.
fn check_user(user: &str) -> Result<(), AccessError> {
    // The colon ends the name on the wire.
    let named =
        (1..=MAX_USER_BYTES).contains(&user.len()) && !user.chars().any(|c| c == ':' || c.is_control());
    if named { Ok(()) } else { Err(AccessError::User { given: user.to_owned() }) }
}

/// The password must be one that the server accepts.
fn check_password(password: &str) -> Result<(), AccessError> {
    let wrong = match password.len() {
        0 => Some("is empty"),
        1..=MAX_PASSWORD_BYTES if password.chars().any(char::is_control) => Some("has some"),
        1..=MAX_PASSWORD_BYTES => None,
        _ => Some("is longer"),
    };
    wrong.map_or(Ok(()), |is| Err(AccessError::Password { is }))
}

const MUST_BE_A_USER: &str = "must be 1 to 128 bytes without ':' and control characters";
const MUST_BE_A_PASSWORD: &str = "must be 1 to 1024 bytes without control characters";

impl Access {
    /// Creates the access of this user. [`check`](Access::check) refuses a name or a password that the server would refuse.
    #[must_use]
    pub fn login(scheme: Scheme, user: impl Into<String>, password: impl Into<String>) -> Self {
        let (user, password) = (user.into(), password.into());
        let refused = check_user(&user).and_then(|()| check_password(&password)).err();
        let login = Some(Login { scheme, user, password, former: None });
        Self { login, refused, ..Self::default() }
    }

    /// Also logs in with the user's former password, while the password of a namespace is changed. The session can then use the
    /// znodes of both passwords, and the znodes that it creates can be used with both.
    ///
    /// [`check`](Access::check) refuses it without a login of the scheme [`Scheme::Digest`], with roles, and if the server would
    /// refuse the password.
    #[must_use]
    pub fn former_password(mut self, password: impl Into<String>) -> Self {
        let password = password.into();
        let checked = check_password(&password);
        match &mut self.login {
            Some(login @ Login { scheme: Scheme::Digest, .. }) => login.former = Some(password),
            Some(Login { scheme: Scheme::SaslDigestMd5, .. }) | None => self.refuse(AccessError::Former),
        }
        if self.by_role.is_some() {
            self.refuse(AccessError::FormerOfRole);
        }
        self.refused = self.refused.or(checked.err());
        self
    }

    /// Gives the created znodes access lists by role. The login decides the role of this process, and every process of the
    /// namespace must have the same roles. [`check`](Access::check) refuses a login that has no role, or a former password.
    #[must_use]
    pub fn roles(mut self, roles: Roles) -> Self {
        let former = self.login.as_ref().is_some_and(|login| login.former.is_some());
        match roles.of(|id| self.is_own(id)) {
            _ if former => self.refuse(AccessError::FormerOfRole),
            Some(role) => {
                self.by_role = Some(ByRole { role, roles, owner: Uuid::new_v4().simple().to_string() });
            }
            None => self.refuse(AccessError::NoRole { who: self.to_string() }),
        }
        self
    }

    fn refuse(&mut self, error: AccessError) {
        self.refused.get_or_insert(error);
    }

    /// The role of the login, in a namespace with logins by role.
    #[must_use]
    pub fn role(&self) -> Option<Role> {
        self.by_role.as_ref().map(|by_role| by_role.role)
    }

    pub(crate) fn known_roles(&self) -> Option<&Roles> {
        self.by_role.as_ref().map(|by_role| &by_role.roles)
    }

    /// The identity of the login in access lists, as in a file of roles: `digest:NAME:HASH` or `sasl:NAME`. `None` without a
    /// login, and for an invalid one.
    #[must_use]
    pub fn identity(&self) -> Option<String> {
        self.login.as_ref().filter(|_| self.refused.is_none()).map(|login| match login.scheme {
            Scheme::Digest => format!("digest:{}", login.digest_id(&login.password)),
            Scheme::SaslDigestMd5 => format!("sasl:{}", login.user),
        })
    }

    /// Encrypts every connection with TLS; there is no fallback. A certificate is not a login. [`check`](Access::check) reads the
    /// files.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Allows a login of the scheme [`Scheme::Digest`] without TLS at servers on other machines, to which the password is sent
    /// in clear text. Use it only if something else protects the network. Default: `false`.
    #[must_use]
    pub fn insecure(mut self, insecure: bool) -> Self {
        self.insecure = insecure;
        self
    }

    /// Checks the login, without the servers.
    ///
    /// # Errors
    /// The first error of the setters.
    pub fn check_login(&self) -> Result<(), AccessError> {
        self.refused.clone().map_or(Ok(()), Err)
    }

    /// Checks the login, reads the TLS files, and refuses a password in clear text to servers on other machines. Clients and
    /// nodes begin with this, before they connect.
    ///
    /// # Errors
    /// The errors of [`Access::check_login`], `AccessError::Tls`, and [`AccessError::ClearText`].
    pub fn check(&self, to: &ConnectString) -> Result<(), AccessError> {
        self.check_login()?;
        self.tls.as_ref().map_or(Ok(()), Tls::check)?;
        let in_clear = matches!(self.login, Some(Login { scheme: Scheme::Digest, .. })) && self.tls.is_none();
        match to.remote_server() {
            Some(server) if in_clear && !self.insecure => {
                Err(AccessError::ClearText { server: server.to_owned() })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Whether there is a login, so that only its identity can access the created znodes.
    #[must_use]
    pub fn is_login(&self) -> bool {
        self.login.is_some()
    }

    /// Whether an entry of an access list names the identity of this login.
    pub(crate) fn is_own(&self, id: &AuthId) -> bool {
        match &self.login {
            Some(login @ Login { scheme: Scheme::Digest, .. }) if id.scheme() == "digest" => {
                id.id() == login.digest_id(&login.password)
            }
            Some(Login { scheme: Scheme::SaslDigestMd5, user, .. }) if id.scheme() == "sasl" => {
                id.id() == user
            }
            Some(_) | None => false,
        }
    }

    /// Whether an entry names the identity that the login had with its former password.
    pub(crate) fn is_former(&self, id: &AuthId) -> bool {
        match &self.login {
            Some(login @ Login { former: Some(former), .. }) if id.scheme() == "digest" => {
                id.id() == login.digest_id(former)
            }
            Some(_) | None => false,
        }
    }

    /// Whether an entry names a client certificate, and this session has one, which the server adds to the list of every znode
    /// that it creates. Which name the server takes from the certificate depends on its configuration.
    pub(crate) fn may_be_certificate(&self, id: &AuthId) -> bool {
        id.scheme() == "x509" && self.tls.as_ref().is_some_and(Tls::has_identity)
    }

    /// Adds the login to the connector, which sends it first on each connection.
    fn introduce(&self, connector: Connector) -> Connector {
        let connector = match &self.by_role {
            Some(ByRole { owner, .. }) => {
                connector.with_auth("digest", format!("{OWNER}:{owner}").as_bytes())
            }
            None => connector,
        };
        match &self.login {
            None => connector,
            Some(Login { scheme: Scheme::Digest, user, password, former }) => {
                let connector = match former {
                    Some(former) => connector.with_auth("digest", format!("{user}:{former}").as_bytes()),
                    None => connector,
                };
                connector.with_auth("digest", format!("{user}:{password}").as_bytes())
            }
            Some(Login { scheme: Scheme::SaslDigestMd5, user, password, former: _ }) => {
                connector.with_sasl(SaslOptions::digest_md5(user.clone(), password.clone()))
            }
        }
    }

    /// Connects with this identity. An invalid login is not sent: without it the session would create znodes for anyone.
    pub(crate) async fn connect(&self, connector: Connector, to: &str) -> Result<Client, Error> {
        if self.refused.is_some() {
            return Err(Error::AuthFailed);
        }
        let connector = self.introduce(connector);
        match &self.tls {
            Some(tls) => tls.connect(connector, to).await,
            None => connector.connect(to).await,
        }
    }

    /// Why this server can never be connected to with TLS; independent of the login.
    pub(crate) fn unnameable(&self, server: &str) -> Option<String> {
        self.tls.as_ref()?.unnameable(server)
    }

    /// Why a server that accepted a connection gives no session, if that can be determined without a session.
    pub(crate) async fn complaint(&self, server: &str, stream: TcpStream) -> Option<String> {
        self.tls.as_ref()?.complaint(server, stream).await
    }

    /// The access list of a znode that the session creates. The path of a sequential znode may lack the number.
    pub(crate) fn list(&self, path: &str) -> Vec<Acl> {
        match &self.by_role {
            Some(ByRole { roles, owner, .. }) => {
                roles.list(path, Some(&AuthId::new("digest", &digest_id(OWNER, owner))))
            }
            None if self.is_login() => vec![Acl::new(Permission::ALL, AuthId::authed())],
            None => vec![Acl::new(Permission::ALL, AuthId::anyone())],
        }
    }

    /// The access list of a znode of a closed namespace: for this login alone, also without its former password, or for the
    /// roles.
    pub(crate) fn closed_list(&self, path: &str) -> Vec<Acl> {
        if let Some(ByRole { roles, .. }) = &self.by_role {
            return roles.list(path, None);
        }
        let id = match &self.login {
            Some(login @ Login { former: Some(_), .. }) => {
                AuthId::new("digest", &login.digest_id(&login.password))
            }
            // The server replaces it with the identities of the session.
            Some(_) | None => AuthId::authed(),
        };
        vec![Acl::new(Permission::ALL, id)]
    }
}

/// The form for errors and logs.
impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.login {
            Some(Login { scheme, user, .. }) => match self.role() {
                Some(role) => write!(f, "user {user:?} ({scheme}, role {role})"),
                None => write!(f, "user {user:?} ({scheme})"),
            },
            None => f.write_str("a client without a login"),
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
mod tests;
