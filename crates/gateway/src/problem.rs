//! Every error, as `application/problem+json` (RFC 9457).
//!
//! A handler or a layer returns a [`Problem`]. The outermost layer, which knows the request's id, writes it in one
//! place, [`Problem::written`]. So errors of the framework (method not allowed, path not found) have the same form.

use std::num::NonZeroU32;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bellwether::error::{ErrorClass, Remedy, chain};
use bellwether::{JobId, NameError};
use bellwether_documents::RemedyDocument;
use serde::Serialize;
use utoipa::ToSchema;

use super::limits;
use bellwether::client::{
    ChangeRetentionError, ChangeWorkerError, Error, GroupError, GroupWaitError, PurgeError, ScheduleError,
    SubmitError, Unavailable, WaitError,
};

/// An error for programs (`type`, `status`) and for people (`title`, `detail`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct Problem {
    /// Type of the problem: `urn:bellwether:problem:` and a word that does not change.
    #[serde(rename = "type", serialize_with = "urn")]
    #[schema(value_type = String, example = "urn:bellwether:problem:not-found")]
    kind: &'static str,
    /// Title of the problem type.
    #[schema(value_type = String)]
    title: &'static str,
    /// HTTP status of the answer.
    #[serde(serialize_with = "code")]
    #[schema(value_type = u16)]
    status: StatusCode,
    /// The problem with this request, and the way out.
    #[schema(value_type = String)]
    detail: Box<str>,
    /// What the caller can do.
    remedy: RemedyDocument,
    /// Id of the request, as in the header `X-Request-Id` and in the gateway's log.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    request_id: Option<Box<str>>,
    /// The job concerned. For a submission without an id it is the generated id; use it to repeat the submission.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    job: Option<JobId>,
    /// In seconds.
    #[serde(skip)]
    retry_after: Option<NonZeroU32>,
    /// What only the log may say: addresses of ZooKeeper's servers, and the user.
    #[serde(skip)]
    cause: Option<Box<str>>,
}

/// Type of a problem that its status describes completely (RFC 9457).
const NO_KIND: &str = "about:blank";

fn urn<S: serde::Serializer>(kind: &str, serializer: S) -> Result<S::Ok, S::Error> {
    match kind {
        NO_KIND => serializer.serialize_str(NO_KIND),
        word => serializer.collect_str(&format_args!("urn:bellwether:problem:{word}")),
    }
}

fn code<S: serde::Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

/// The problem types. Each has one status, and a word that programs may rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Invalid,
    Unauthenticated,
    Forbidden,
    ForeignOrigin,
    NotFound,
    /// A remote worker that this gateway does not have.
    UnknownWorker,
    NotAllowed,
    Conflict,
    /// An attempt that a remote worker no longer has.
    Fenced,
    LengthRequired,
    TooLarge,
    NotJson,
    TooMany,
    /// The token has too many open jobs.
    TooManyOpen,
    Panicked,
    Refused,
    Saturated,
    /// The audit line of a change cannot be written.
    AuditUnavailable,
    Unavailable,
    Unknown,
    Late,
}

/// Cuts a text that may quote the request: serde quotes a wrong string in full, and escapes it.
fn shortened(mut text: String) -> String {
    if text.len() > limits::MAX_DETAIL {
        let end = (0..=limits::MAX_DETAIL).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or_default());
        text.push('…');
    }
    text
}

/// At least one second.
fn seconds(after: Duration) -> NonZeroU32 {
    u32::try_from(after.as_secs()).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
}

impl Fault {
    /// Returns status, word, title, and what the caller can do. An error of the library replaces the last.
    const fn tell(self) -> (StatusCode, &'static str, &'static str, Remedy) {
        use Remedy::{FixInput, GiveUp, ReadBack, Retry};
        match self {
            Self::Invalid => (StatusCode::BAD_REQUEST, "invalid", "Invalid request", FixInput),
            Self::Unauthenticated => {
                (StatusCode::UNAUTHORIZED, "unauthenticated", "Authentication required", FixInput)
            }
            Self::Forbidden => (StatusCode::FORBIDDEN, "forbidden", "Insufficient role", FixInput),
            Self::ForeignOrigin => {
                (StatusCode::FORBIDDEN, "foreign-origin", "Request of another origin", FixInput)
            }
            Self::NotFound => (StatusCode::NOT_FOUND, "not-found", "Not found", FixInput),
            // The worker registers again.
            Self::UnknownWorker => (
                StatusCode::NOT_FOUND,
                "remote-worker-unknown",
                "Remote worker unknown to this gateway",
                FixInput,
            ),
            Self::NotAllowed => {
                (StatusCode::METHOD_NOT_ALLOWED, "not-allowed", "Method not allowed", FixInput)
            }
            Self::Conflict => (StatusCode::CONFLICT, "conflict", "Conflict with the stored state", FixInput),
            // The worker drops the outcome of its attempt.
            Self::Fenced => {
                (StatusCode::CONFLICT, "attempt-fenced", "Attempt closed without this finish", GiveUp)
            }
            Self::LengthRequired => {
                (StatusCode::LENGTH_REQUIRED, "length-required", "Content-Length required", FixInput)
            }
            Self::TooLarge => {
                (StatusCode::PAYLOAD_TOO_LARGE, "too-large", "Request body too large", FixInput)
            }
            Self::NotJson => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "not-json", "JSON body required", FixInput),
            Self::TooMany => {
                let title = "Too many concurrent requests of this caller";
                (StatusCode::TOO_MANY_REQUESTS, "too-many-requests", title, Retry)
            }
            Self::TooManyOpen => (
                StatusCode::TOO_MANY_REQUESTS,
                "too-many-open-jobs",
                "Too many open jobs of this token",
                Retry,
            ),
            Self::Panicked => (StatusCode::INTERNAL_SERVER_ERROR, "panicked", "Internal error", GiveUp),
            Self::Refused => (StatusCode::BAD_GATEWAY, "refused", "ZooKeeper refused the operation", GiveUp),
            Self::Saturated => (StatusCode::SERVICE_UNAVAILABLE, "saturated", "Gateway saturated", Retry),
            Self::AuditUnavailable => {
                (StatusCode::SERVICE_UNAVAILABLE, "audit-unavailable", "Audit file not writable", Retry)
            }
            Self::Unavailable => {
                (StatusCode::SERVICE_UNAVAILABLE, "unavailable", "Namespace unavailable", Retry)
            }
            Self::Unknown => (StatusCode::GATEWAY_TIMEOUT, "unknown", "Outcome unknown", ReadBack),
            Self::Late => (StatusCode::GATEWAY_TIMEOUT, "late", "Timeout", Retry),
        }
    }

    /// Returns a problem of this type.
    pub(super) fn because(self, detail: impl Into<String>) -> Problem {
        let (status, word, title, remedy) = self.tell();
        let later = matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        let retry_after = later.then(|| seconds(limits::RETRY_AFTER));
        Problem {
            kind: word,
            title,
            status,
            detail: shortened(detail.into()).into(),
            remedy: RemedyDocument(remedy),
            request_id: None,
            job: None,
            retry_after,
            cause: None,
        }
    }
}

impl Problem {
    /// Returns the problem as a sentence, which has nothing that callers may not see.
    pub(super) fn detail(&self) -> &str {
        &self.detail
    }

    fn of(class: ErrorClass, remedy: Remedy, error: &dyn std::error::Error) -> Self {
        let problem = Self::of_class(class, chain(error));
        // The client of this gateway has ended. Another gateway serves the call, or this one after its restart.
        if class == ErrorClass::Closed { problem } else { Self { remedy: RemedyDocument(remedy), ..problem } }
    }

    fn of_class(class: ErrorClass, detail: String) -> Self {
        match class {
            ErrorClass::Invalid => Fault::Invalid.because(detail),
            ErrorClass::NotFound => Fault::NotFound.because(detail),
            ErrorClass::Contended => Fault::Conflict.because(detail).retry_after(limits::RETRY_AFTER),
            // Retention or an operator frees space, which takes a while.
            ErrorClass::Overloaded => Fault::Saturated.because(detail).retry_after(60 * limits::RETRY_AFTER),
            ErrorClass::Unavailable | ErrorClass::Closed => Fault::Unavailable
                .because("ZooKeeper does not serve this gateway now: try again")
                .caused_by(detail),
            ErrorClass::Refused => Fault::Refused
                .because("ZooKeeper refused the operation: the gateway's log has the reason")
                .caused_by(detail),
            ErrorClass::Unknown => Fault::Unknown.because(detail),
            ErrorClass::TimedOut => Fault::Late.because(detail),
            ErrorClass::Conflict | ErrorClass::Unreadable | ErrorClass::Failed => {
                Fault::Conflict.because(detail)
            }
            // A class of a later version of the library.
            _ => Fault::Conflict.because(detail),
        }
    }

    /// Returns its word, and its detail for the log.
    pub(super) fn for_log(&self) -> (&'static str, &str) {
        (self.kind, self.cause.as_deref().unwrap_or(&self.detail))
    }

    fn caused_by(mut self, cause: String) -> Self {
        tracing::debug!(cause, "a request failed because of ZooKeeper");
        self.cause = Some(cause.into());
        self
    }

    pub(super) fn about(mut self, job: JobId) -> Self {
        self.job = Some(job);
        self
    }

    /// Adds the part of the request that is concerned.
    pub(super) fn within(mut self, part: &str) -> Self {
        self.detail = shortened(format!("{part}: {}", self.detail)).into();
        self
    }

    pub(super) fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(seconds(after));
        self
    }

    /// Returns the problem for an error answer of the framework, by its status.
    pub(super) fn of_status(status: StatusCode) -> Self {
        match status {
            StatusCode::NOT_FOUND => Fault::NotFound.because("no resource at this path: see /docs"),
            StatusCode::METHOD_NOT_ALLOWED => {
                Fault::NotAllowed.because("the header Allow lists the methods of this path")
            }
            other => Self {
                kind: NO_KIND,
                title: other.canonical_reason().unwrap_or("Error"),
                status: other,
                detail: "".into(),
                remedy: RemedyDocument(if other.is_client_error() {
                    Remedy::FixInput
                } else {
                    Remedy::GiveUp
                }),
                request_id: None,
                job: None,
                retry_after: None,
                cause: None,
            },
        }
    }

    /// Returns the complete answer, with the headers that another layer has set.
    pub(super) fn written(mut self, answer: Response, request_id: &str) -> Response {
        self.request_id = Some(request_id.into());
        let (mut head, _) = answer.into_parts();
        let body = serde_json::to_vec(&self).expect("a problem has string keys only");
        head.status = self.status;
        head.headers.remove(axum::http::header::CONTENT_LENGTH);
        head.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(after) = self.retry_after {
            head.headers.insert(RETRY_AFTER, HeaderValue::from(after.get()));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            head.headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        Response::from_parts(head, Body::from(body))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut answer = self.status.into_response();
        answer.extensions_mut().insert(self);
        answer
    }
}

impl From<NameError> for Problem {
    fn from(error: NameError) -> Self {
        Fault::Invalid.because(error.to_string())
    }
}

/// The problem of an error of the library: its class determines the type, and its text is the detail. The
/// problem has the remedy of the error, except if the client of the gateway has ended.
macro_rules! problems {
    ($($error:ty $(: $job:ident)?),+ $(,)?) => {$(
        impl From<$error> for Problem {
            fn from(error: $error) -> Self {
                let problem = Self::of(error.class(), error.remedy(), &error);
                $(let problem = match error.$job() {
                    Some(id) => problem.about(id.clone()),
                    None => problem,
                };)?
                problem
            }
        }
    )+};
}

problems!(
    Error: job,
    GroupError,
    GroupWaitError,
    PurgeError,
    ScheduleError: job,
    ChangeRetentionError,
    SubmitError: job,
    Unavailable,
    ChangeWorkerError,
    WaitError: job,
);

#[cfg(test)]
mod tests;
