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

/// Defines extractors of a parameter of the path.
macro_rules! path_parameters {
    ($($(#[$about:meta])* $name:ident($value:ty) = $parameter:literal, $read:expr;)*) => {$(
        $(#[$about])*
        pub(super) struct $name(pub(super) $value);

        impl<S: Send + Sync> FromRequestParts<S> for $name {
            type Rejection = Problem;

            async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
                let name = name(parts, state, $parameter).await?;
                Ok(Self($read(&name)?))
            }
        }
    )*};
}

path_parameters! {
    /// The job id in the path. The decoded id is checked as a whole, so `../x` is rejected as an invalid name.
    Id(JobId) = "id", JobId::new;
    /// The kind in the path.
    KindName(Kind) = "kind", Kind::new;
    /// The group id in the path.
    GroupName(GroupId) = "id", GroupId::new;
    /// The schedule id in the path.
    SchedulePath(ScheduleId) = "id", ScheduleId::new;
    /// The worker id in the path.
    WorkerName(WorkerId) = "id", worker_id;
    /// The key of the remote worker in the path.
    Key(Uuid) = "key", remote_key;
}

fn worker_id(name: &str) -> Result<WorkerId, Problem> {
    WorkerId::parse(name).ok_or_else(|| Fault::Invalid.because("a worker's id is a UUID: see /v1/workers"))
}

fn remote_key(name: &str) -> Result<Uuid, Problem> {
    let what = "the key of a remote worker is a UUID that its process draws at its start";
    name.parse().map_err(|_| Fault::Invalid.because(what))
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
        decoded(&parts.uri).map(Self)
    }
}

/// The query parameters of two types, divided by the names of the second type. An unknown parameter is refused.
pub(super) struct TwoQueryParameters<A, B>(pub(super) A, pub(super) B);

impl<S, A, B> FromRequestParts<S> for TwoQueryParameters<A, B>
where
    S: Send + Sync,
    A: DeserializeOwned + IntoParams,
    B: DeserializeOwned + IntoParams,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Self::of(parts.uri.query().unwrap_or_default())
    }
}

impl<A: DeserializeOwned + IntoParams, B: DeserializeOwned + IntoParams> TwoQueryParameters<A, B> {
    fn of(query: &str) -> Result<Self, Problem> {
        let names = (names_of::<A>(), names_of::<B>());
        let [mut first, mut second] = [(); 2].map(|()| Serializer::new(String::new()));
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let part = if names.1.iter().any(|known| *known == name) {
                &mut second
            } else if names.0.iter().any(|known| *known == name) {
                &mut first
            } else {
                let given = name.chars().take(64).collect::<String>();
                let known = names.0.iter().chain(&names.1).map(|known| format!("`{known}`"));
                let known = known.collect::<Vec<_>>().join(", ");
                return Err(invalid(&format!("unknown field `{given}`, expected one of {known}")));
            };
            part.append_pair(&name, &value);
        }
        Ok(Self(decoded_text(&first.finish())?, decoded_text(&second.finish())?))
    }
}

fn names_of<T: IntoParams>() -> Vec<String> {
    T::into_params(|| None).into_iter().map(|parameter| parameter.name).collect()
}

fn invalid(text: &str) -> Problem {
    Fault::Invalid.because(format!("the query is not valid: {text}"))
}

fn decoded_text<T: DeserializeOwned>(query: &str) -> Result<T, Problem> {
    let uri = Uri::try_from(format!("/?{query}")).map_err(|_| invalid("it is too long"))?;
    decoded(&uri)
}

/// Decodes the query of an address.
fn decoded<T: DeserializeOwned>(uri: &Uri) -> Result<T, Problem> {
    let query = Query::<T>::try_from_uri(uri);
    query.map(|Query(query)| query).map_err(|error| {
        invalid(&std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string))
    })
}

#[cfg(test)]
mod tests {
    use bellwether::State;
    use bellwether::client::Filter;
    use bellwether_documents::JobPageQuery;

    use super::*;

    type Jobs = TwoQueryParameters<Filter, JobPageQuery>;

    fn refused(query: &str) -> String {
        match Jobs::of(query) {
            Ok(_) => panic!("{query} is accepted"),
            Err(problem) => problem.detail().to_owned(),
        }
    }

    #[test]
    fn a_query_is_divided_between_a_filter_and_a_page() {
        let TwoQueryParameters(filter, page) = Jobs::of("state=dead&l%69mit=7&payloads=true").unwrap();
        assert_eq!(filter, Filter::default().state(State::Dead));
        assert_eq!((page.limit.0, page.payloads, page.after), (7, true, None));
        let TwoQueryParameters(filter, page) = Jobs::of("").unwrap();
        assert_eq!((filter, page.limit.0), (Filter::default(), 100));
    }

    #[test]
    fn an_unknown_or_invalid_parameter_is_refused_with_its_name() {
        let unknown = refused("stat=dead");
        assert!(unknown.contains("unknown field `stat`, expected one of `state`, `kind`"), "{unknown}");
        assert!(unknown.ends_with("`limit`, `after`, `payloads`"), "{unknown}");
        assert!(refused("limit=x").contains("limit: invalid digit"), "{}", refused("limit=x"));
        assert!(refused("state=x").contains("state: unknown variant `x`"), "{}", refused("state=x"));
        assert!(refused("state=dead&state=dead").contains("duplicate field"));
        assert!(refused(&format!("{}=1", "x".repeat(70_000))).len() < 400);
    }
}
