//! What a gateway is started with. Everything is checked before anything listens.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use metrics_exporter_prometheus::PrometheusHandle;

use super::access::Tokens;
use super::limits::{Limits, LimitsError};
use super::server::{self, Gateway};
use super::tls::Tls;
use bellwether::client::Client;

/// Where a gateway listens unless said otherwise: on this machine only.
pub const DEFAULT_ADDRESS: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8080));

/// Builds a [`Gateway`].
#[derive(Clone)]
#[must_use]
pub struct GatewayBuilder {
    pub(super) address: SocketAddr,
    pub(super) tokens: Option<Tokens>,
    pub(super) tls: Option<Tls>,
    pub(super) insecure: bool,
    pub(super) limits: Limits,
    pub(super) metrics: Option<PrometheusHandle>,
}

impl std::fmt::Debug for GatewayBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { address, tokens, tls, insecure, limits, metrics: _ } = self;
        f.debug_struct("GatewayBuilder")
            .field("address", address)
            .field("tokens", tokens)
            .field("tls", tls)
            .field("insecure", insecure)
            .field("limits", limits)
            .finish_non_exhaustive()
    }
}

/// Why a gateway does not serve.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// Others could reach it and read or do everything. Nothing listens.
    #[error(
        "the gateway does not listen on {address}, which other machines can reach, without {lacks}: \
         give them, listen on 127.0.0.1, or say --insecure if something else protects it"
    )]
    Exposed {
        /// Where it was to listen.
        address: SocketAddr,
        /// What is missing: TLS, tokens, or both.
        lacks: &'static str,
    },
    /// Something else listens there, or the address is not this machine's.
    #[error("the gateway cannot listen on {address}: choose another address, or port 0 for any free one")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A limit is out of its bounds.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// Its tasks kept dying.
    #[error("the gateway's tasks keep dying")]
    Died,
}

impl GatewayBuilder {
    pub(super) fn new() -> Self {
        Self {
            address: DEFAULT_ADDRESS,
            tokens: None,
            tls: None,
            insecure: false,
            limits: Limits::default(),
            metrics: None,
        }
    }

    /// Where to listen; [`DEFAULT_ADDRESS`] by default. Port 0 takes a free one, which [`Gateway::address`] tells.
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// Who may do what. Without tokens everybody who reaches the gateway may do everything.
    pub fn tokens(mut self, tokens: Tokens) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Serves HTTPS, and no HTTP.
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Lets it listen where other machines can reach it without TLS or tokens: for what a proxy or a network protects.
    pub fn insecure(mut self, insecure: bool) -> Self {
        self.insecure = insecure;
        self
    }

    /// How much it takes on.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// What `/metrics` tells: [`crate::metrics::record`] gives it. Without it the path is not there.
    pub fn metrics(mut self, metrics: PrometheusHandle) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// Whether it may be started as it is; nothing listens.
    ///
    /// # Errors
    /// [`GatewayError::Exposed`], [`GatewayError::Limits`].
    pub fn check(&self) -> Result<(), GatewayError> {
        self.limits.check()?;
        let lacks = match (&self.tls, &self.tokens) {
            (Some(_), Some(_)) => return Ok(()),
            (None, None) => "TLS and tokens",
            (None, Some(_)) => "TLS",
            (Some(_), None) => "tokens",
        };
        if self.insecure || self.address.ip().to_canonical().is_loopback() {
            return Ok(());
        }
        Err(GatewayError::Exposed { address: self.address, lacks })
    }

    /// Listens, and serves until [`Gateway::stop`]. The client is the gateway's from now on: it is closed with it.
    ///
    /// # Errors
    /// [`GatewayError`]. That ZooKeeper does not serve is none: requests are told so until it does.
    pub async fn start(self, client: Client) -> Result<Gateway, GatewayError> {
        self.check()?;
        self.started(client).await
    }

    /// Boxed, so that all of it is compiled here and not again in each program.
    fn started(self, client: Client) -> BoxFuture<'static, Result<Gateway, GatewayError>> {
        server::start(self, client).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::access::{Issued, Role};

    fn tokens() -> Tokens {
        let issued = Issued::new("ci", Role::Read).unwrap();
        Tokens::parse(&issued.line, std::path::Path::new("tokens")).unwrap()
    }

    #[test]
    fn nothing_open_is_offered_to_other_machines() {
        for open in ["0.0.0.0:80", "[::]:80", "10.0.0.7:80", "[::ffff:10.0.0.7]:80"] {
            let open = GatewayBuilder::new().listen(open.parse().unwrap());
            let said = open.check().unwrap_err().to_string();
            assert!(said.contains("without TLS and tokens: give them"), "{said}");
            let said = open.clone().tokens(tokens()).check().unwrap_err().to_string();
            assert!(said.contains("without TLS: "), "{said}");
            open.insecure(true).check().unwrap();
        }
        for local in ["127.0.0.1:80", "127.9.9.9:80", "[::1]:80", "[::ffff:127.0.0.1]:80"] {
            GatewayBuilder::new().listen(local.parse().unwrap()).check().unwrap();
        }
    }

    #[test]
    fn a_limit_that_nothing_could_be_served_with_is_named() {
        let limits = Limits { waits: 0, ..Limits::default() };
        let said = GatewayBuilder::new().limits(limits).check().unwrap_err().to_string();
        assert_eq!(said, "the gateway's limit `waits` must be 1 or more");
    }
}
