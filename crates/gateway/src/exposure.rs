//! Which protection an address needs that other machines can reach.

use std::net::SocketAddr;

use super::access::{Accepted, Jwt, Tokens};
use super::tls::Tls;

/// What protects a listener.
#[derive(Debug, Clone, Default)]
pub struct Protection {
    /// The tokens that callers may present.
    pub tokens: Option<Tokens>,
    /// The provider whose signed tokens callers may present.
    pub jwt: Option<Jwt>,
    /// The certificate of the listener.
    pub tls: Option<Tls>,
    /// Allows other machines to reach the listener without tokens or TLS.
    pub insecure: bool,
}

impl Protection {
    /// Returns what callers may present.
    pub(super) fn accepted(&self) -> Accepted {
        Accepted { tokens: self.tokens.clone(), jwt: self.jwt.clone() }
    }

    /// Returns what is missing on this address.
    pub(super) fn lacks(&self, address: SocketAddr) -> Option<&'static str> {
        let lacks = match (&self.tls, self.accepted().is_anonymous()) {
            (Some(_), false) => return None,
            (None, true) => "TLS and tokens",
            (None, false) => "TLS",
            (Some(_), true) => "tokens",
        };
        (!self.insecure && !address.ip().to_canonical().is_loopback()).then_some(lacks)
    }
}
