//! Which protection an address needs that other machines can reach.

use std::net::SocketAddr;

use super::access::Tokens;
use super::tls::Tls;

/// What protects a listener.
#[derive(Debug, Clone, Default)]
pub(crate) struct Protection {
    pub(crate) tokens: Option<Tokens>,
    pub(crate) tls: Option<Tls>,
    /// Allows other machines to reach the listener without tokens or TLS.
    pub(crate) insecure: bool,
}

impl Protection {
    /// Returns what is missing on this address.
    pub(super) fn lacks(&self, address: SocketAddr) -> Option<&'static str> {
        let lacks = match (&self.tls, &self.tokens) {
            (Some(_), Some(_)) => return None,
            (None, None) => "TLS and tokens",
            (None, Some(_)) => "TLS",
            (Some(_), None) => "tokens",
        };
        (!self.insecure && !address.ip().to_canonical().is_loopback()).then_some(lacks)
    }
}
