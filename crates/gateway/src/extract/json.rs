//! A JSON body with a size limit per route.

use axum::body::HttpBody;
use axum::extract::{FromRequest, OptionalFromRequest, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use crate::problem::{Fault, Problem};

/// A body with a size limit.
pub(crate) trait Bounded: DeserializeOwned {
    const MAX_BYTES: usize;
}

/// A body that was read and decoded.
pub(crate) struct Json<T>(pub(crate) T);

impl<S: Send + Sync, T: Bounded> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            return Err(Fault::NotJson.because("send the body with `Content-Type: application/json`"));
        }
        // Checked before anything is read. A missing length means that there is no body.
        let announced =
            request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if announced.is_some_and(|length: u64| length > T::MAX_BYTES as u64) {
            return Err(too_large::<T>());
        }
        let body = Limited::new(request.into_body(), T::MAX_BYTES).collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() {
                too_large::<T>()
            } else {
                Fault::Invalid.because("the body ended before its length")
            }
        })?;
        let body = body.to_bytes();
        serde_json::from_slice(&body).map(Self).map_err(|error| invalid::<T>(&body, &error))
    }
}

/// A body that may be empty.
impl<S: Send + Sync, T: Bounded> OptionalFromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Option<Self>, Problem> {
        if request.body().is_end_stream() {
            return Ok(None);
        }
        <Self as FromRequest<S>>::from_request(request, state).await.map(Some)
    }
}

/// Reads an invalid body again, this time with the path of each value: the error names the field.
fn invalid<T: Bounded>(body: &[u8], error: &serde_json::Error) -> Problem {
    let mut body = serde_json::Deserializer::from_slice(body);
    let error = match serde_path_to_error::deserialize::<_, T>(&mut body) {
        Err(found) => found.to_string(),
        // The error is behind the value.
        Ok(_) => error.to_string(),
    };
    Fault::Invalid.because(format!("the body is not valid: {error}"))
}

fn too_large<T: Bounded>() -> Problem {
    Fault::TooLarge.because(format!("the body may have at most {} bytes", T::MAX_BYTES))
}

fn is_json(headers: &HeaderMap) -> bool {
    let essence = |value: &HeaderValue| {
        let text = value.to_str().ok()?;
        Some(text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
    };
    headers.get(CONTENT_TYPE).and_then(essence).is_some_and(|essence| essence == "application/json")
}
