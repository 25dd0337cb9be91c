//! Authentication by a bearer token or by the client certificate of the connection.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::AUTHORIZATION;

use bellwether::client::JobOptions;

use super::Peer;
use super::certificate::ClientCertificate;
use crate::access::{Accepted, Holder, JwtRefusal, Role, Scope, Tokens};
use crate::problem::{Fault, Problem};

/// How a caller has proved who it is. The text is for problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Credential {
    /// Not at all, because the gateway does not require it.
    None,
    Token,
    Certificate,
}

impl fmt::Display for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "caller",
            Self::Token => "token",
            Self::Certificate => "certificate",
        })
    }
}

/// The caller of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) credential: Credential,
    /// The name of the token or certificate, or `anonymous` if the gateway requires no credentials.
    pub(crate) name: Arc<str>,
    pub(crate) role: Role,
    pub(crate) scope: Arc<Scope>,
    pub(super) address: Option<IpAddr>,
}

impl Caller {
    /// Names the caller as the author of a change. The client keeps the end of a long name.
    pub(crate) fn author(&self) -> String {
        format!("{}, over HTTP", self.name)
    }

    /// Refuses a job that the role and scope do not permit. `reopens`: an ended job of this id is opened again.
    pub(crate) fn may_submit(&self, kind: &str, options: &JobOptions, reopens: bool) -> Result<(), Problem> {
        self.permitted(self.scope.refuses(self.role, kind, options, reopens))
    }

    /// Refuses a group whose kind the scope does not permit: its join is a job.
    pub(crate) fn may_create_group(&self, kind: &str) -> Result<(), Problem> {
        self.permitted(self.scope.refuses_kind(kind))
    }

    fn permitted(&self, refused: Option<String>) -> Result<(), Problem> {
        match refused {
            None => Ok(()),
            Some(reason) => Err(Fault::Forbidden
                .because(format!("the {} {} may not submit this: {reason}", self.credential, self.name))),
        }
    }
}

/// Returns the caller. A token in the request takes precedence over the certificate of the connection. A malformed header and
/// an unknown token are refused with the same detail, so that a caller cannot distinguish them.
pub(super) fn caller(accepted: &Accepted, request: &Request) -> Result<Caller, Problem> {
    let address = request.extensions().get::<Peer>().map(|peer| peer.0.ip());
    if accepted.is_anonymous() {
        let (name, scope) = (Arc::from("anonymous"), Arc::default());
        return Ok(Caller { credential: Credential::None, name, role: Role::Admin, scope, address });
    }
    let mut shown = request.headers().get_all(AUTHORIZATION).iter();
    let certificate = request.extensions().get::<ClientCertificate>();
    let (credential, holder) = match (shown.next(), shown.next(), certificate) {
        (Some(header), None, _) => (Credential::Token, by_token(accepted, header)?),
        (None, _, Some(certificate)) => {
            (Credential::Certificate, by_certificate(accepted.tokens.as_ref(), certificate)?)
        }
        (None, _, None) | (Some(_), Some(_), _) => {
            return Err(
                Fault::Unauthenticated.because("send exactly one header `Authorization: Bearer TOKEN`")
            );
        }
    };
    let Holder { name, role, scope } = holder;
    if scope.has_expired(SystemTime::now()) {
        return Err(
            Fault::Unauthenticated.because(format!("the {credential} {name} has expired: ask for a new one"))
        );
    }
    Ok(Caller { credential, name, role, scope, address })
}

fn by_token(accepted: &Accepted, header: &HeaderValue) -> Result<Holder, Problem> {
    let unknown = || Fault::Unauthenticated.because("this gateway does not know the token");
    let token = bearer(header.as_bytes()).ok_or_else(unknown)?;
    if let Some(holder) = accepted.tokens.as_ref().and_then(|tokens| tokens.find(token)) {
        return Ok(holder);
    }
    let Some(jwt) = &accepted.jwt else { return Err(unknown()) };
    jwt.find(token).map_err(|refusal| match refusal {
        JwtRefusal::Unknown => unknown(),
        JwtRefusal::Invalid(problem) => {
            Fault::Unauthenticated.because(format!("this gateway does not accept the token: {problem}"))
        }
        JwtRefusal::NoRole(problem) => {
            Fault::Forbidden.because(format!("this gateway gives the token no role: {problem}"))
        }
    })
}

fn by_certificate(tokens: Option<&Tokens>, certificate: &ClientCertificate) -> Result<Holder, Problem> {
    let names = certificate.names().ok_or_else(|| {
        Fault::Unauthenticated.because("the client certificate is no longer valid: connect with a new one")
    })?;
    tokens.and_then(|tokens| tokens.find_certificate(names)).ok_or_else(|| {
        Fault::Unauthenticated.because(
            "this gateway does not know the client certificate: its URI or DNS name must be in exactly one line of the token file",
        )
    })
}

fn bearer(header: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = header.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}
