//! Which protection an address needs that other machines can reach.

use std::net::SocketAddr;

use super::access::{Accepted, Jwt, Tokens};
use super::builder::GatewayError;
use super::tls::{LoadedTls, Tls, TlsError};

/// What protects a listener.
#[derive(Debug, Clone, Default)]
#[must_use]
#[non_exhaustive]
pub struct Protection {
    /// The tokens that callers may present.
    pub tokens: Option<Tokens>,
    /// The provider whose signed tokens callers may present.
    pub jwt: Option<Jwt>,
    /// The TLS files of the listener.
    pub tls: Option<Tls>,
    /// Allows other machines to reach the listener without tokens or TLS.
    pub insecure: bool,
}

impl Protection {
    /// Sets the tokens that callers may present. Default `None`.
    pub fn tokens(self, tokens: impl Into<Option<Tokens>>) -> Self {
        Self { tokens: tokens.into(), ..self }
    }

    /// Sets the provider whose signed tokens callers may present. Default `None`.
    pub fn jwt(self, jwt: impl Into<Option<Jwt>>) -> Self {
        Self { jwt: jwt.into(), ..self }
    }

    /// Sets the TLS files of the listener. Default `None`: HTTP instead of HTTPS.
    pub fn tls(self, tls: impl Into<Option<Tls>>) -> Self {
        Self { tls: tls.into(), ..self }
    }

    /// Allows other machines to reach the listener without tokens or TLS. Default `false`. Use it only behind a proxy or in a
    /// protected network.
    pub fn insecure(self, insecure: bool) -> Self {
        Self { insecure, ..self }
    }

    /// Checks that a gateway may listen on this address, and reads the TLS files. Does not listen.
    ///
    /// # Errors
    /// [`GatewayError::Tls`], [`GatewayError::Exposed`].
    pub fn check(&self, address: SocketAddr) -> Result<(), GatewayError> {
        self.checked(address).map(drop)
    }

    /// Like [`check`](Self::check); returns the content of the TLS files.
    pub(super) fn checked(&self, address: SocketAddr) -> Result<Option<LoadedTls>, GatewayError> {
        let tls = self.load_tls()?;
        match self.lacks(address) {
            Some(lacks) => Err(GatewayError::Exposed { address, lacks }),
            None => Ok(tls),
        }
    }

    /// Reads the TLS files.
    pub(super) fn load_tls(&self) -> Result<Option<LoadedTls>, TlsError> {
        self.tls.clone().map(Tls::load).transpose()
    }

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
