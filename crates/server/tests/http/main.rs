//! The HTTP gateway against a real server, as its callers see it.
#![allow(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod access;
mod ask;
mod audit;
mod audit_required;
mod certificates;
mod client_certificates;
mod document;
mod event_stream_memory;
mod events;
mod faults;
mod hostile;
mod idle_connections;
mod jobs;
mod jwt;
mod lanes;
mod metric_series;
mod metrics_address;
mod operators;
mod placement;
mod provider;
mod readers;
mod remote_workers;
mod retention;
mod schedules;
mod scopes;
mod stage;
mod stored;
mod worker_jobs;
