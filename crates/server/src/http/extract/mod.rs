//! What a request says, or a problem that names the field, the bound and the way out.

mod depth;
mod json;

use std::convert::Infallible;

use axum::extract::{FromRequestParts, Query, RawPathParams};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use bellwether::TraceContext;
use bellwether::{GroupId, JobId, Kind, ScheduleId, WorkerId};
use serde::de::DeserializeOwned;

use super::problem::{Fault, Problem};

pub(super) use depth::shallow;
pub(super) use json::{Bounded, Json};

/// The job that the path names. An id is taken apart by nobody: `../x` is refused as a name, as it would be anywhere.
pub(super) struct Id(pub(super) JobId);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let name = name(parts, state, "id").await?;
        Ok(Self(JobId::new(name)?))
    }
}

/// The kind that the path names.
pub(super) struct KindName(pub(super) Kind);

impl<S: Send + Sync> FromRequestParts<S> for KindName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(Kind::new(name(parts, state, "kind").await?)?))
    }
}

/// The group that the path names.
pub(super) struct GroupName(pub(super) GroupId);

impl<S: Send + Sync> FromRequestParts<S> for GroupName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(GroupId::new(name(parts, state, "id").await?)?))
    }
}

/// The schedule that the path names.
pub(super) struct ScheduleName(pub(super) ScheduleId);

impl<S: Send + Sync> FromRequestParts<S> for ScheduleName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        Ok(Self(ScheduleId::new(name(parts, state, "id").await?)?))
    }
}

/// The worker that the path names.
pub(super) struct WorkerName(pub(super) WorkerId);

impl<S: Send + Sync> FromRequestParts<S> for WorkerName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let name = name(parts, state, "id").await?;
        let id = WorkerId::parse(&name);
        Ok(Self(id.ok_or_else(|| Fault::Invalid.because("a worker's id is a UUID: see /v1/workers"))?))
    }
}

/// A parameter of the path, decoded.
async fn name<S: Send + Sync>(parts: &mut Parts, state: &S, parameter: &str) -> Result<String, Problem> {
    let all = RawPathParams::from_request_parts(parts, state).await;
    let all = all.map_err(|_| Fault::Invalid.because("the path is not UTF-8 once it is decoded"))?;
    let found = all.iter().find(|(name, _)| *name == parameter).map(|(_, value)| value.to_owned());
    found.ok_or_else(|| Fault::NotFound.because("there is nothing at this path: see /docs"))
}

/// The trace that the request belongs to. What is no `traceparent`, or two of them, is none, as the standard wants it: the
/// request is not to blame for what stands between.
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

/// The parameters after the `?`.
pub(super) struct Asked<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        let query = query.map_err(|error| {
            let text =
                std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            Fault::Invalid.because(format!("the query is not valid: {text}"))
        })?;
        Ok(Self(query.0))
    }
}
