//! Where a request ends must not be a matter of opinion.
//!
//! A proxy and a server that disagree about a body's length can be made to see two requests where the other sees one.
//! hyper refuses lengths that contradict each other and malformed ones. What is left is a length beside a
//! transfer coding: so a body needs a length here, and a coding is refused, whatever else is said.

use axum::http::header::{HOST, TRANSFER_ENCODING};
use axum::http::{HeaderMap, StatusCode};

use crate::http::problem::{Fault, Problem};

pub(super) fn check(headers: &HeaderMap) -> Result<(), Problem> {
    if headers.contains_key(TRANSFER_ENCODING) {
        return Err(Fault::LengthRequired.because("send the body with a Content-Length, not in chunks"));
    }
    if headers.get_all(HOST).iter().nth(1).is_some() {
        return Err(Fault::Invalid.because("there is more than one header Host"));
    }
    Ok(())
}

/// What follows on such a connection may be anything.
pub(super) fn ends_connection(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::LENGTH_REQUIRED | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT
    )
}
