//! Metrics on an address of their own, for nodes without a gateway.
//!
//! The listener has the defences of the gateway: the check of its address, TLS, tokens, and limits of connections and
//! time. `/healthz` needs no token.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::routing::get;
use bellwether_remedy::{ErrorClass, class_of_listen, impl_remedy};
use tokio::sync::watch;

use super::exposure::Protection;
use super::layers::{Guard, guard};
use super::limits::Limits;
use super::reload;
use super::server::{Listening, PerAddress, Phase, bind};
use super::tls::TlsError;
use crate::metrics::Metrics;

/// Prometheus, a second one, probes and a person with curl.
const MAX_CONNECTIONS: usize = 64;

/// The content type of the text format of Prometheus.
pub(super) const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Why metrics cannot be served. Nothing listens.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MetricsServerError {
    /// Other machines can reach the address, and it is not protected.
    #[error(
        "metrics are not served on {address}, which other machines can reach, without {lacks}: configure them, \
         listen on 127.0.0.1, or allow it explicitly if something else protects them"
    )]
    Exposed {
        /// The address.
        address: SocketAddr,
        /// The missing protection: TLS, tokens, or both.
        lacks: &'static str,
    },
    /// The address cannot be used.
    #[error("cannot serve metrics on {address}: choose another address, or port 0 for any free one")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The TLS files cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl MetricsServerError {
    /// Returns the class of the error.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Exposed { .. } => ErrorClass::Invalid,
            Self::Listen { source, .. } => class_of_listen(source),
            Self::Tls(error) => error.class(),
        }
    }
}

impl_remedy!(MetricsServerError);

/// Serves until the process ends or the value is dropped.
#[derive(Debug)]
pub struct MetricsServer {
    address: SocketAddr,
    _phase: watch::Sender<Phase>,
}

impl MetricsServer {
    /// Starts to listen. Port 0 selects a free port.
    ///
    /// # Errors
    /// [`MetricsServerError`]: nothing listens.
    pub async fn start(
        address: SocketAddr,
        protection: Protection,
        metrics: Metrics,
    ) -> Result<Self, MetricsServerError> {
        let tls = protection.load_tls()?;
        if let Some(lacks) = protection.lacks(address) {
            return Err(MetricsServerError::Exposed { address, lacks });
        }
        let listen = |source| MetricsServerError::Listen { address, source };
        let listener = bind(address).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let (phase, phases) = watch::channel(Phase::Serving);
        let accepted = protection.accepted();
        let local_only = accepted.is_anonymous() && address.ip().to_canonical().is_loopback();
        reload::start(&protection, tls.clone(), phases.clone());
        let guarded = Guard { accepted, local_only, is_tls: tls.is_some() };
        Listening {
            listener: Arc::new(listener),
            tls,
            connections: MAX_CONNECTIONS,
            // One machine may run Prometheus and people with curl.
            per_address: PerAddress { most: MAX_CONNECTIONS / 2, loopback: false },
            header_time: Limits::default().header_time,
            router: router(metrics, guarded),
            phase: phases,
        }
        .start();
        Ok(Self { address, _phase: phase })
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn router(metrics: Metrics, guarded: Guard) -> Router {
    let scrape = |State(metrics): State<Metrics>| async move {
        ([(CONTENT_TYPE, TEXT)], metrics.render()).into_response()
    };
    Router::new()
        .route("/metrics", get(scrape))
        .with_state(metrics)
        .layer(from_fn_with_state(guarded, guard))
        .route("/healthz", get(async || "ok\n"))
}
