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
use crate::http::access::{Holder, Role, Scope, Tokens};
use crate::http::problem::{Fault, Problem};

/// How a caller has proved who it is. The text is for problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Credential {
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
pub(in crate::http) struct Caller {
    pub(in crate::http) credential: Credential,
    /// The name of the token or certificate, or `anonymous` if none is required.
    pub(in crate::http) name: Arc<str>,
    pub(in crate::http) role: Role,
    pub(in crate::http) scope: Arc<Scope>,
    pub(super) address: Option<IpAddr>,
}

impl Caller {
    /// Refuses a job that the role and scope do not permit. `reopens`: an ended job of this id is opened again.
    pub(in crate::http) fn may_submit(
        &self,
        kind: &str,
        options: &JobOptions,
        reopens: bool,
    ) -> Result<(), Problem> {
        match self.scope.refuses(self.role, kind, options, reopens) {
            None => Ok(()),
            Some(reason) => Err(Fault::Forbidden
                .because(format!("the {} {} may not submit this: {reason}", self.credential, self.name))),
        }
    }
}

/// Returns the caller. A token in the request takes precedence over the certificate of the connection. A malformed header and
/// an unknown token are refused with the same detail, so that a caller cannot distinguish them.
pub(super) fn caller(tokens: Option<&Tokens>, request: &Request) -> Result<Caller, Problem> {
    let address = request.extensions().get::<Peer>().map(|peer| peer.0.ip());
    let Some(tokens) = tokens else {
        let (name, scope) = (Arc::from("anonymous"), Arc::default());
        return Ok(Caller { credential: Credential::None, name, role: Role::Admin, scope, address });
    };
    let mut shown = request.headers().get_all(AUTHORIZATION).iter();
    let certificate = request.extensions().get::<ClientCertificate>();
    let (credential, holder) = match (shown.next(), shown.next(), certificate) {
        (Some(header), None, _) => (Credential::Token, by_token(tokens, header)?),
        (None, _, Some(certificate)) => (Credential::Certificate, by_certificate(tokens, certificate)?),
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

fn by_token(tokens: &Tokens, header: &HeaderValue) -> Result<Holder, Problem> {
    let found = bearer(header.as_bytes()).and_then(|token| tokens.find(token));
    found.ok_or_else(|| Fault::Unauthenticated.because("this gateway does not know the token"))
}

fn by_certificate(tokens: &Tokens, certificate: &ClientCertificate) -> Result<Holder, Problem> {
    let names = certificate.names().ok_or_else(|| {
        Fault::Unauthenticated.because("the client certificate is no longer valid: connect with a new one")
    })?;
    tokens.find_certificate(names).ok_or_else(|| {
        Fault::Unauthenticated.because(
            "this gateway does not know the client certificate: its URI or DNS name must be in exactly one line of the token file",
        )
    })
}

fn bearer(header: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = header.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}
