//! Authentication by a bearer token.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;

use bellwether::client::JobOptions;

use crate::http::access::{Holder, Role, Scope, Tokens};
use crate::http::problem::{Fault, Problem};

/// The caller of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::http) struct Caller {
    /// The token's name, or `anonymous` if no token is required.
    pub(in crate::http) name: Arc<str>,
    pub(in crate::http) role: Role,
    pub(in crate::http) scope: Arc<Scope>,
    pub(super) address: Option<IpAddr>,
}

impl Caller {
    /// Refuses a job that the token's role and scope do not permit. `reopens`: an ended job of this id is opened again.
    pub(in crate::http) fn may_submit(
        &self,
        kind: &str,
        options: &JobOptions,
        reopens: bool,
    ) -> Result<(), Problem> {
        match self.scope.refuses(self.role, kind, options, reopens) {
            None => Ok(()),
            Some(reason) => {
                Err(Fault::Forbidden
                    .because(format!("the token {} may not submit this: {reason}", self.name)))
            }
        }
    }
}

/// Returns the caller. A malformed header and an unknown token are refused with the same detail, so that a caller
/// cannot distinguish them.
pub(super) fn caller(
    tokens: Option<&Tokens>,
    headers: &HeaderMap,
    address: Option<IpAddr>,
) -> Result<Caller, Problem> {
    let Some(tokens) = tokens else {
        let (name, scope) = (Arc::from("anonymous"), Arc::default());
        return Ok(Caller { name, role: Role::Admin, scope, address });
    };
    let mut shown = headers.get_all(AUTHORIZATION).iter();
    let (Some(header), None) = (shown.next(), shown.next()) else {
        return Err(Fault::Unauthenticated.because("send exactly one header `Authorization: Bearer TOKEN`"));
    };
    let found = bearer(header.as_bytes()).and_then(|token| tokens.find(token));
    let Holder { name, role, scope } =
        found.ok_or_else(|| Fault::Unauthenticated.because("this gateway does not know the token"))?;
    if scope.has_expired(SystemTime::now()) {
        return Err(
            Fault::Unauthenticated.because(format!("the token {name} has expired: ask for a new one"))
        );
    }
    Ok(Caller { name, role, scope, address })
}

fn bearer(header: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = header.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}
