//! Authentication by a bearer token.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;

use crate::http::access::{Role, Tokens};
use crate::http::problem::{Fault, Problem};

/// The caller of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::http) struct Caller {
    /// The token's name, or `anonymous` if no token is required.
    pub(in crate::http) name: Arc<str>,
    pub(in crate::http) role: Role,
    pub(super) address: Option<IpAddr>,
}

/// Returns the caller. A malformed header and an unknown token are refused with the same detail, so that a caller
/// cannot distinguish them.
pub(super) fn caller(
    tokens: Option<&Tokens>,
    headers: &HeaderMap,
    address: Option<IpAddr>,
) -> Result<Caller, Problem> {
    let Some(tokens) = tokens else {
        return Ok(Caller { name: Arc::from("anonymous"), role: Role::Admin, address });
    };
    let mut shown = headers.get_all(AUTHORIZATION).iter();
    let (Some(header), None) = (shown.next(), shown.next()) else {
        return Err(Fault::Unauthenticated.because("send exactly one header `Authorization: Bearer TOKEN`"));
    };
    let found = bearer(header.as_bytes()).and_then(|token| tokens.find(token));
    let (name, role) =
        found.ok_or_else(|| Fault::Unauthenticated.because("this gateway does not know the token"))?;
    Ok(Caller { name, role, address })
}

fn bearer(header: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = header.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}
