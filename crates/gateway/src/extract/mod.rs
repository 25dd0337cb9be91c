//! Extractors of requests. Their problems name the field, the bound and the way out.

mod json;

use std::convert::Infallible;

use axum::extract::{FromRequestParts, Query, RawPathParams};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri};
use bellwether::TraceContext;
use bellwether::{GroupId, JobId, Kind, ScheduleId, WorkerId};
use form_urlencoded::Serializer;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;
use uuid::Uuid;

use super::problem::{Fault, Problem};

pub(super) use json::{Bounded, Json};

/// The job id in the path. The decoded id is checked as a whole, so `../x` is rejected as an invalid name.
pub(super) struct Id(pub(super) JobId);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let name = name(parts, state, "id").await?;
        Ok(Self(JobId::new(name)?))
    }
}

/// The kind in the path.
pub(super) struct KindName(pub(super) Kind);

impl<S: Send + Sync> FromRequestParts<S> for KindName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(Kind::new(name(parts, state, "kind").await?)?))
    }
}

/// The group id in the path.
pub(super) struct GroupName(pub(super) GroupId);

impl<S: Send + Sync> FromRequestParts<S> for GroupName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(GroupId::new(name(parts, state, "id").await?)?))
    }
}

/// The schedule id in the path.
pub(super) struct SchedulePath(pub(super) ScheduleId);

impl<S: Send + Sync> FromRequestParts<S> for SchedulePath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(ScheduleId::new(name(parts, state, "id").await?)?))
    }
}

/// The worker id in the path.
pub(super) struct WorkerName(pub(super) WorkerId);

impl<S: Send + Sync> FromRequestParts<S> for WorkerName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let name = name(parts, state, "id").await?;
        let id = WorkerId::parse(&name);
        Ok(Self(id.ok_or_else(|| Fault::Invalid.because("a worker's id is a UUID: see /v1/workers"))?))
    }
}

/// The key of the remote worker in the path.
pub(super) struct Key(pub(super) Uuid);

impl<S: Send + Sync> FromRequestParts<S> for Key {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let name = name(parts, state, "key").await?;
        let key = name.parse().map_err(|_| {
            Fault::Invalid.because("the key of a remote worker is a UUID that its process draws at its start")
        })?;
        Ok(Self(key))
    }
}

/// Returns a decoded path parameter.
async fn name<S: Send + Sync>(parts: &mut Parts, state: &S, parameter: &str) -> Result<String, Problem> {
    let all = RawPathParams::from_request_parts(parts, state).await;
    let all = all.map_err(|_| Fault::Invalid.because("the decoded path is not UTF-8"))?;
    let found = all.iter().find(|(name, _)| *name == parameter).map(|(_, value)| value.to_owned());
    found.ok_or_else(|| Fault::NotFound.because("there is nothing at this path: see /docs"))
}

/// The trace of the request. An invalid or repeated `traceparent` is ignored, as W3C Trace Context requires: an
/// intermediary may have set it.
pub(super) struct Traced(pub(super) Option<TraceContext>);

impl Traced {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut all = headers.get_all("traceparent").iter();
        let (Some(one), None) = (all.next(), all.next()) else { return Self(None) };
        Self(one.to_str().ok().and_then(|text| text.parse().ok()))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Traced {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.headers))
    }
}

/// The query parameters.
pub(super) struct QueryParameters<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for QueryParameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        decoded(parts.uri.query().unwrap_or_default()).map(Self)
    }
}

/// The query parameters of two types: those of the second type, and all others.
pub(super) struct TwoQueryParameters<A, B>(pub(super) A, pub(super) B);

impl<S: Send + Sync, A: DeserializeOwned, B: DeserializeOwned + IntoParams> FromRequestParts<S>
    for TwoQueryParameters<A, B>
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let names = B::into_params(|| None).into_iter().map(|parameter| parameter.name).collect::<Vec<_>>();
        let [mut first, mut second] = [(); 2].map(|()| Serializer::new(String::new()));
        for (name, value) in form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()) {
            let part = if names.iter().any(|known| *known == name) { &mut second } else { &mut first };
            part.append_pair(&name, &value);
        }
        Ok(Self(decoded(&first.finish())?, decoded(&second.finish())?))
    }
}

/// Decodes the query of a request, or a part of it.
fn decoded<T: DeserializeOwned>(query: &str) -> Result<T, Problem> {
    let invalid = |text: String| Fault::Invalid.because(format!("the query is not valid: {text}"));
    let uri = Uri::try_from(format!("/?{query}")).map_err(|error| invalid(error.to_string()))?;
    Query::<T>::try_from_uri(&uri).map(|Query(query)| query).map_err(|error| {
        invalid(std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string))
    })
}
