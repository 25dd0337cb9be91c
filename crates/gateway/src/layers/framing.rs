//! Rejects requests whose end is ambiguous.
//!
//! A proxy and a server that disagree about the length of a body can be made to see a different number of requests
//! (request smuggling). hyper rejects contradictory and malformed lengths. What remains is a length together with a
//! transfer coding: so a body needs a length here, and every transfer coding is rejected.

use axum::http::header::{HOST, TRANSFER_ENCODING};
use axum::http::{HeaderMap, StatusCode};

use crate::problem::{Fault, Problem};

pub(super) fn check(headers: &HeaderMap) -> Result<(), Problem> {
    if headers.contains_key(TRANSFER_ENCODING) {
        return Err(Fault::LengthRequired.because("send the body with a Content-Length, not in chunks"));
    }
    if headers.get_all(HOST).iter().nth(1).is_some() {
        return Err(Fault::Invalid.because("send exactly one header Host"));
    }
    Ok(())
}

/// Whether the connection must be closed, because the bytes that follow are ambiguous.
pub(super) fn ends_connection(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::LENGTH_REQUIRED | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT
    )
}
