//! An audit line for each request that may change something, and for requests without a valid token, of which only samples
//! are written: caller, address, operation and outcome. On request also for reads of payloads and for refused reads. The polls and
//! heartbeats of remote workers change nothing that was submitted, and leave no line.
//!
//! If the audit file is required, a request that may change something is also written to it before it begins, and is refused
//! if that fails. The intent is known to the file before the change, so no change is without a line.
//!
//! The line is written when the request ends, even if it was refused or its caller disconnected before the answer.
//! The line names jobs by their ids. It never contains payloads, query parameters or tokens.

use std::convert::Infallible;
use std::time::{Instant, SystemTime};

use axum::extract::{MatchedPath, Request};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponseParts, ResponseParts};
use bellwether::InstantText;

use super::credentials::Caller;
use super::operations::Operation;
use super::request_id::RequestId;
use super::{Layers, Peer, mutates};
use crate::access::Role;
use crate::audit_file::Unwritten;
use crate::audit_log::{AuditEntry, AuditIntent};
use crate::builder::Auditing;
use crate::problem::{Fault, Problem};
use crate::routes::{DATA, HEARTBEAT, POLL, WAIT};
use crate::state::App;

/// The target of audit lines, for log filters.
const TARGET: &str = "bellwether::audit";

/// What a route did, for the audit line. It is a part of the answer, among its extensions.
#[derive(Debug, Clone)]
pub(crate) struct AuditNote(pub(crate) String);

impl IntoResponseParts for AuditNote {
    type Error = Infallible;

    fn into_response_parts(self, mut answer: ResponseParts) -> Result<ResponseParts, Infallible> {
        answer.extensions_mut().insert(self);
        Ok(answer)
    }
}

/// An audit line, written when the request ends.
pub(super) struct Line {
    /// `None` for a request that leaves no line.
    line: Option<Begun>,
    when: When,
}

/// Which end of a request leaves a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    /// If it was refused for its credentials, role or number, or if its route has a note.
    RefusedOrTold,
    /// If it has no valid token.
    Unauthenticated,
}

impl When {
    /// A request that only reads.
    fn of_read(app: &App, route: Option<&str>) -> Self {
        if !app.auditing.reads {
            return Self::Unauthenticated;
        }
        let shows_data = route.is_some_and(|route| route == WAIT || DATA.contains(&route));
        if shows_data { Self::Always } else { Self::RefusedOrTold }
    }

    fn leaves(self, status: StatusCode, told: Option<&AuditNote>) -> bool {
        match self {
            Self::Always => true,
            Self::RefusedOrTold => {
                told.is_some()
                    || matches!(
                        status,
                        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS
                    )
            }
            Self::Unauthenticated => status == StatusCode::UNAUTHORIZED,
        }
    }
}

struct Begun {
    app: App,
    started: Instant,
    id: RequestId,
    method: Method,
    path: String,
    operation: Option<Operation>,
    peer: Option<Peer>,
    caller: Option<Caller>,
    intent: Option<u64>,
}

impl Line {
    pub(super) fn begin(request: &Request, id: &RequestId, Layers { app, operations }: &Layers) -> Self {
        let route = request.extensions().get::<MatchedPath>();
        let quiet = route.is_some_and(|route| [POLL, HEARTBEAT].contains(&route.as_str()));
        let mut when = When::Always;
        if quiet || !mutates(request.method()) {
            if quiet {
                return Self { line: None, when };
            }
            when = When::of_read(app, route.map(MatchedPath::as_str));
        }
        let line = Begun {
            app: app.clone(),
            started: Instant::now(),
            id: id.clone(),
            method: request.method().clone(),
            path: request.uri().path().chars().take(512).collect(),
            operation: operations.of(request.method(), route),
            peer: request.extensions().get::<Peer>().copied(),
            caller: None,
            intent: None,
        };
        Self { line: Some(line), when }
    }

    /// Writes to the audit file that the request begins, if it may change something and the file is required.
    ///
    /// # Errors
    /// 503 if the line cannot be written: the request must not begin.
    pub(super) fn intend(&mut self, caller: &Caller) -> Result<(), Problem> {
        let Some(line) = self.line.as_mut().filter(|line| mutates(&line.method)) else { return Ok(()) };
        let Auditing { file: Some(file), required: true, .. } = &line.app.auditing else { return Ok(()) };
        let number = line.app.audit.number();
        let intent = AuditIntent {
            event: "intent",
            number,
            at: InstantText(SystemTime::now()),
            caller: &caller.name,
            role: caller.role.as_str(),
            from: line.peer.map(|peer| peer.0.to_string()),
            operation: line.operation.map(|operation| operation.name),
            path: &line.path,
            request_id: line.id.as_str(),
        };
        file.append(&intent).map_err(|Unwritten| {
            Fault::AuditUnavailable
                .because("the audit line of this request cannot be written, so nothing was changed")
        })?;
        line.intent = Some(number);
        Ok(())
    }

    pub(super) fn by(&mut self, caller: &Caller) {
        if let Some(line) = &mut self.line {
            line.caller = Some(caller.clone());
        }
    }

    pub(super) fn end(mut self, status: StatusCode, told: Option<&AuditNote>) {
        if let Some(line) = self.line.take().filter(|_| self.when.leaves(status, told)) {
            line.write(Some(status), told);
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // The connection was lost; the operation may be applied nevertheless.
        if let Some(line) = self.line.take().filter(|_| self.when == When::Always) {
            line.write(None, None);
        }
    }
}

impl Begun {
    fn write(self, status: Option<StatusCode>, told: Option<&AuditNote>) {
        let Self { app, started, id, method, path, operation, peer, caller, intent } = self;
        let left_out = match caller {
            Some(_) => 0,
            None => match app.unauthenticated.line(Instant::now()) {
                Some(left_out) => left_out,
                None => return,
            },
        };
        let is_routine = operation.is_some_and(|operation| match operation.role {
            Role::Submit | Role::Work => true,
            Role::Read | Role::Operate | Role::Admin => false,
        });
        let operation = operation.map(|operation| operation.name);
        let entry = AuditEntry {
            number: 0,
            at: InstantText(SystemTime::now()),
            caller: caller.as_ref().map(|caller| caller.name.to_string()),
            role: caller.as_ref().map(|caller| caller.role.as_str()),
            from: peer.map(|peer| peer.0.to_string()),
            operation,
            path: path.clone(),
            status: status.map(|status| status.as_u16()),
            what: told.map(|told| told.0.clone()),
            request_id: id.as_str().to_owned(),
            left_out,
            intent,
            is_routine,
        };
        let entry = app.audit.push(entry);
        if let Some(file) = &app.auditing.file
            && let Err(Unwritten) = file.append(&entry)
        {
            // The request has ended, so it cannot be refused. The file has logged the cause.
            tracing::debug!(number = entry.number, "the gateway wrote an audit line only to the log");
        }
        tracing::info!(
            target: TARGET,
            caller = caller.as_ref().map_or("-", |caller| &*caller.name),
            role = caller.as_ref().map_or("-", |caller| caller.role.as_str()),
            from = peer.map(|peer| tracing::field::display(peer.0)),
            operation = operation.unwrap_or("-"),
            %method,
            path,
            status = status.map_or(0, |status| status.as_u16()),
            what = told.map_or("-", |told| told.0.as_str()),
            millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            request_id = id.as_str(),
            left_out,
            answered = status.is_some(),
            "the gateway ended a request",
        );
    }
}
