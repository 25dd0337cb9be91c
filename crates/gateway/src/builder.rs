//! The builder of a gateway. The configuration is checked before the gateway listens.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};

use bellwether_remedy::{ErrorClass, class_of_listen, impl_remedy};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::audit_file::AuditFile;
use super::exposure::Protection;
use super::limits::{Limits, LimitsError};
use super::server::{self, Gateway};
use super::tls::{LoadedTls, TlsError};
use crate::metrics::Metrics;
use bellwether::client::Client;

/// Default address of a gateway: reachable from this machine only.
pub const DEFAULT_ADDRESS: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8080));

/// The audit lines that are written in addition to the lines about changes, and a file of all lines.
#[derive(Debug, Clone, Default)]
#[must_use]
#[non_exhaustive]
pub struct Auditing {
    /// The file of all lines.
    pub file: Option<AuditFile>,
    /// Whether reads of payloads and refused reads leave a line.
    pub reads: bool,
    /// Whether requests that may change something are refused while the file cannot be written.
    pub required: bool,
}

impl Auditing {
    /// Sets the file of all lines. Default `None`: the lines are written to the log only.
    pub fn file(self, file: impl Into<Option<AuditFile>>) -> Self {
        Self { file: file.into(), ..self }
    }

    /// Also writes lines for reads of payloads, and for refused reads. Default `false`.
    pub fn reads(self, reads: bool) -> Self {
        Self { reads, ..self }
    }

    /// Refuses requests that may change something while the file cannot be written. Default `false`. Has no effect without a
    /// file.
    pub fn required(self, required: bool) -> Self {
        Self { required, ..self }
    }
}

/// Builds a [`Gateway`].
#[must_use]
pub struct GatewayBuilder {
    pub(super) client: Client,
    pub(super) address: SocketAddr,
    pub(super) any_port: bool,
    pub(super) protection: Protection,
    pub(super) limits: Limits,
    pub(super) metrics: Option<Metrics>,
    pub(super) open_namespace: bool,
    pub(super) auditing: Auditing,
    pub(super) trusted_proxies: Vec<IpAddr>,
}

impl std::fmt::Debug for GatewayBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { address, protection: Protection { tokens, jwt, tls, insecure }, limits, any_port, .. } =
            self;
        f.debug_struct("GatewayBuilder")
            .field("address", address)
            .field("any_port", any_port)
            .field("tokens", tokens)
            .field("jwt", jwt)
            .field("tls", tls)
            .field("insecure", insecure)
            .field("limits", limits)
            .finish_non_exhaustive()
    }
}

/// Why a gateway or a server of metrics cannot serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// Other machines could reach the address, and it is not protected. Nothing listens.
    #[error(
        "nothing listens on {address}, which other machines can reach, without {lacks}: \
         configure them, listen on 127.0.0.1, or allow it explicitly if something else protects it"
    )]
    Exposed {
        /// The requested address.
        address: SocketAddr,
        /// The missing protection: TLS, tokens, or both.
        lacks: &'static str,
    },
    /// The address is in use, is not an address of this machine, or needs a privilege.
    #[error("cannot listen on {address}: choose another address, or port 0 for any free one")]
    Listen {
        /// The requested address.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A limit is out of its bounds.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// The TLS files cannot be used. Nothing listens.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The tasks of the gateway failed repeatedly.
    #[error("the tasks of the gateway failed repeatedly")]
    Died,
}

impl GatewayError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Exposed { .. } | Self::Limits(_) => ErrorClass::Invalid,
            Self::Listen { source, .. } => class_of_listen(source),
            Self::Tls(error) => error.class(),
            Self::Died => ErrorClass::Failed,
        }
    }
}

impl_remedy!(GatewayError);

impl GatewayBuilder {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            address: DEFAULT_ADDRESS,
            any_port: false,
            protection: Protection::default(),
            limits: Limits::default(),
            metrics: None,
            open_namespace: false,
            auditing: Auditing::default(),
            trusted_proxies: Vec::new(),
        }
    }

    /// Sets the address; the default is [`DEFAULT_ADDRESS`]. Port 0 selects a free port, see [`Gateway::address`].
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// Listens on any free port if the address is in use, see [`Gateway::address`].
    pub fn any_port(mut self, any_port: bool) -> Self {
        self.any_port = any_port;
        self
    }

    /// Does not report that the namespace is open: it is one of a server in memory, for development.
    pub fn open_namespace(mut self, intended: bool) -> Self {
        self.open_namespace = intended;
        self
    }

    /// Sets the further audit lines and their file.
    pub fn auditing(mut self, auditing: Auditing) -> Self {
        self.auditing = auditing;
        self
    }

    /// Sets the addresses of proxies whose header `X-Forwarded-For` names the caller.
    pub fn trusted_proxies(mut self, proxies: impl IntoIterator<Item = IpAddr>) -> Self {
        self.trusted_proxies = proxies.into_iter().map(|proxy| proxy.to_canonical()).collect();
        self
    }

    /// Sets tokens, TLS, and whether they may be missing. Default: neither, for an address that only this machine can reach.
    pub fn protection(mut self, protection: Protection) -> Self {
        self.protection = protection;
        self
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Serves these metrics at `/metrics`; [`crate::metrics::record`] returns the handle. Without it the path does not
    /// exist.
    pub fn metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = Some(metrics);
        self
    }

    /// Checks the configuration, and reads the TLS files. Does not listen.
    ///
    /// # Errors
    /// [`GatewayError::Limits`], [`GatewayError::Tls`], [`GatewayError::Exposed`].
    pub fn check(&self) -> Result<(), GatewayError> {
        self.checked().map(drop)
    }

    /// Like [`check`](Self::check); returns the content of the TLS files.
    fn checked(&self) -> Result<Option<LoadedTls>, GatewayError> {
        self.limits.check()?;
        self.protection.checked(self.address)
    }

    /// Starts to listen and serves until [`Gateway::stop`].
    ///
    /// # Errors
    /// [`GatewayError`]. An unreachable ZooKeeper is not an error: requests are answered with 503 until it serves.
    pub async fn start(self) -> Result<Gateway, GatewayError> {
        let tls = self.checked()?;
        self.started(tls).await
    }

    /// Boxed, so that the future is compiled in this crate and not again in each program.
    fn started(self, tls: Option<LoadedTls>) -> BoxFuture<'static, Result<Gateway, GatewayError>> {
        server::start(self, tls).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Issued, Role, Tokens};

    fn builder() -> GatewayBuilder {
        GatewayBuilder::new(crate::fuzz::client())
    }

    fn tokens() -> Tokens {
        let issued = Issued::new("ci", Role::Read).unwrap();
        Tokens::parse(&issued.line, std::path::Path::new("tokens")).unwrap()
    }

    #[test]
    fn a_gateway_without_protection_is_not_reachable_from_other_machines() {
        for open in ["0.0.0.0:80", "[::]:80", "10.0.0.7:80", "[::ffff:10.0.0.7]:80"] {
            let open = || builder().listen(open.parse().unwrap());
            let said = open().check().unwrap_err().to_string();
            assert!(said.contains("without TLS and tokens: configure them"), "{said}");
            let said =
                open().protection(Protection::default().tokens(tokens())).check().unwrap_err().to_string();
            assert!(said.contains("without TLS: "), "{said}");
            open().protection(Protection::default().insecure(true)).check().unwrap();
        }
        for local in ["127.0.0.1:80", "127.9.9.9:80", "[::1]:80", "[::ffff:127.0.0.1]:80"] {
            builder().listen(local.parse().unwrap()).check().unwrap();
        }
    }

    #[test]
    fn a_limit_that_allows_no_request_is_rejected_by_name() {
        let limits = Limits::default().waits(0);
        let said = builder().limits(limits).check().unwrap_err().to_string();
        assert_eq!(said, "the gateway's limit `waits` must be 1 or more");
    }
}
