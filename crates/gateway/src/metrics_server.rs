//! Metrics on an address of their own, for nodes without a gateway.
//!
//! The listener has the defences of the gateway: the check of its address, TLS, tokens, and limits of connections and
//! time. `/healthz` needs no token.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::sync::watch;

use super::builder::GatewayError;
use super::exposure::Protection;
use super::layers::{Guard, guard};
use super::limits::Limits;
use super::reload;
use super::server::{Listening, PerAddress, Phase, bind};
use crate::metrics::Metrics;

/// Prometheus, a second one, probes and a person with curl.
const MAX_CONNECTIONS: usize = 64;

/// The content type of the text format of Prometheus.
pub(super) const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

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
    /// [`GatewayError`]: nothing listens.
    pub async fn start(
        address: SocketAddr,
        protection: Protection,
        metrics: Metrics,
    ) -> Result<Self, GatewayError> {
        let tls = protection.checked(address)?;
        let listen = |source| GatewayError::Listen { address, source };
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
