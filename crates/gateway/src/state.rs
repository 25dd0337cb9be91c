//! State shared by all requests.

use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::{Semaphore, watch};

use super::access::Accepted;
use super::audit_log::AuditLog;
use super::builder::Auditing;
use super::exposure::Protection;
use super::kind_statistics::KindStatistics;
use super::layers::{Admission, Limited, PageTurns, Sampler};
use super::limits::{Limits, MAX_BATCHES_AT_ONCE, MAX_PAGES_AT_ONCE};
use super::open_jobs::OpenJobs;
use super::remote::RemoteWorkers;
use super::samples::Samples;
use super::server::Phase;
use crate::metrics::Metrics;
use bellwether::client::Client;

/// A handle, cheap to clone.
#[derive(Clone)]
pub(super) struct App(Arc<Shared>);

pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) limits: Limits,
    pub(super) accepted: Accepted,
    /// Whether it listens on the loopback interface without tokens: then it accepts only host names of this machine.
    pub(super) local_only: bool,
    /// Whether it serves HTTPS.
    pub(super) tls: bool,
    pub(super) metrics: Option<Metrics>,
    pub(super) admission: Admission,
    pub(super) batches: Admission,
    /// Pages of jobs wait for their turn.
    pub(super) pages: PageTurns,
    pub(super) open_jobs: OpenJobs,
    /// One at a time, because a purge reads all records.
    pub(super) purges: Semaphore,
    pub(super) waits: Admission,
    pub(super) streams: Admission,
    pub(super) remote_workers: RemoteWorkers,
    pub(super) samples: Samples,
    pub(super) kind_statistics: KindStatistics,
    pub(super) audit: AuditLog,
    pub(super) auditing: Auditing,
    /// Limits the audit lines of requests without a valid token.
    pub(super) unauthenticated: Sampler,
    /// Proxies whose header names the caller.
    pub(super) trusted_proxies: Vec<IpAddr>,
    pub(super) phase: watch::Receiver<Phase>,
}

/// What surrounds the requests.
pub(super) struct Around<'a> {
    pub(super) protection: &'a Protection,
    pub(super) local_only: bool,
    pub(super) metrics: Option<Metrics>,
    pub(super) auditing: Auditing,
    pub(super) trusted_proxies: Vec<IpAddr>,
}

impl std::ops::Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl App {
    pub(super) fn new(
        client: Client,
        limits: Limits,
        Around { protection, local_only, metrics, auditing, trusted_proxies }: Around<'_>,
        phase: watch::Receiver<Phase>,
    ) -> Self {
        Self(Arc::new(Shared {
            client,
            limits,
            local_only: local_only && protection.accepted().is_anonymous(),
            accepted: protection.accepted(),
            tls: protection.tls.is_some(),
            metrics,
            admission: Admission::requests(limits.requests, limits.requests_per_caller),
            batches: Admission::shared(Limited::Batches, MAX_BATCHES_AT_ONCE),
            pages: PageTurns::new(MAX_PAGES_AT_ONCE),
            open_jobs: OpenJobs::default(),
            purges: Semaphore::new(1),
            waits: Admission::shared(Limited::Waits, limits.waits),
            streams: Admission::shared(Limited::Streams, limits.streams),
            remote_workers: RemoteWorkers::new(limits.remote_workers),
            samples: Samples::default(),
            kind_statistics: KindStatistics::default(),
            audit: AuditLog::default(),
            auditing,
            unauthenticated: Sampler::default(),
            trusted_proxies,
            phase,
        }))
    }
}
