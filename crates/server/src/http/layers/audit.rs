//! An audit line for each request that may change something: caller, address, operation and outcome. The polls and
//! heartbeats of remote workers change nothing that was submitted, and leave no line.
//!
//! The line is written when the request ends, also if it was refused or if its caller disconnected before the answer.
//! The line names jobs by their ids. It never contains payloads, query parameters or tokens.

use std::time::{Instant, SystemTime};

use axum::extract::{MatchedPath, Request};
use axum::http::{Method, StatusCode};
use bellwether::client::rfc3339;

use super::credentials::Caller;
use super::request_id::RequestId;
use super::{Layers, Peer, mutates};
use crate::http::audit_log::AuditEntry;
use crate::http::routes::{HEARTBEAT, POLL};
use crate::http::state::App;

/// The target of audit lines, for log filters.
const TARGET: &str = "bellwether::audit";

/// What a route did, for the audit line. The route puts it into the extensions of its answer.
#[derive(Debug, Clone)]
pub(in crate::http) struct AuditNote(pub(in crate::http) String);

/// An audit line, written when the request ends.
pub(super) struct Line {
    /// `None` for a request that only reads.
    line: Option<Begun>,
}

struct Begun {
    app: App,
    started: Instant,
    id: RequestId,
    method: Method,
    path: String,
    operation: Option<&'static str>,
    peer: Option<Peer>,
    caller: Option<Caller>,
}

impl Line {
    pub(super) fn begin(request: &Request, id: &RequestId, Layers { app, operations }: &Layers) -> Self {
        let route = request.extensions().get::<MatchedPath>();
        let quiet = route.is_some_and(|route| [POLL, HEARTBEAT].contains(&route.as_str()));
        if quiet || !mutates(request.method()) {
            return Self { line: None };
        }
        let line = Begun {
            app: app.clone(),
            started: Instant::now(),
            id: id.clone(),
            method: request.method().clone(),
            path: request.uri().path().chars().take(512).collect(),
            operation: operations.of(request.method(), route).map(|operation| operation.name),
            peer: request.extensions().get::<Peer>().copied(),
            caller: None,
        };
        Self { line: Some(line) }
    }

    pub(super) fn by(&mut self, caller: &Caller) {
        if let Some(line) = &mut self.line {
            line.caller = Some(caller.clone());
        }
    }

    pub(super) fn end(mut self, status: StatusCode, told: Option<&AuditNote>) {
        if let Some(line) = self.line.take() {
            line.write(Some(status), told);
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // The connection was lost; the operation may be applied nevertheless.
        if let Some(line) = self.line.take() {
            line.write(None, None);
        }
    }
}

impl Begun {
    fn write(self, status: Option<StatusCode>, told: Option<&AuditNote>) {
        let Self { app, started, id, method, path, operation, peer, caller } = self;
        app.audit.push(AuditEntry {
            number: 0,
            at: rfc3339(SystemTime::now()),
            who: caller.as_ref().map(|caller| caller.name.to_string()),
            role: caller.as_ref().map(|caller| caller.role.as_str()),
            from: peer.map(|peer| peer.0.to_string()),
            operation,
            path: path.clone(),
            status: status.map(|status| status.as_u16()),
            what: told.map(|told| told.0.clone()),
            request_id: id.as_str().to_owned(),
        });
        tracing::info!(
            target: TARGET,
            who = caller.as_ref().map_or("-", |caller| &*caller.name),
            role = caller.as_ref().map_or("-", |caller| caller.role.as_str()),
            from = peer.map(|peer| tracing::field::display(peer.0)),
            operation = operation.unwrap_or("-"),
            %method,
            path,
            status = status.map_or(0, |status| status.as_u16()),
            what = told.map_or("-", |told| told.0.as_str()),
            millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            request_id = id.as_str(),
            "{}",
            if status.is_some() { "answered" } else { "the caller disconnected before the answer" },
        );
    }
}
