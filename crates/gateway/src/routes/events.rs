//! `GET /v1/events`: server-sent events, from the client's one hub.
//!
//! A stream costs a task, its buffers and a place in the hub's ring, but no watch and no read of ZooKeeper.

use std::fmt::Write;
use std::pin::pin;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bellwether::metrics as metric;
use bellwether::{JobId, Kind};
use futures::stream;
use metrics::gauge;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use utoipa::IntoParams;

use crate::extract::QueryParameters;
use crate::kind_statistics;
use crate::problem::{Fault, Problem};
use crate::server::{EventStream, Phase};
use crate::state::App;
use bellwether::client::{Event, Events, Notification};
use bellwether_documents::EventDocument;

/// Interval of comments on a stream without events. It is below the timeout of proxies (60 s), and detects a peer that
/// has disconnected.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

/// Limit for a stream to wait for the watch.
const WATCHING_WITHIN: Duration = Duration::from_secs(10);

/// Maximum number of events in one write, and of bytes after which no further event is added. An event with an error can have 24 KiB.
const AT_ONCE: usize = 64;
const BYTES_AT_ONCE: usize = 8 * 1024;

/// Filter for events.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EventQuery {
    /// Only events of this job.
    #[param(inline)]
    job: Option<JobId>,
    /// Only events of jobs of this kind.
    #[param(inline)]
    kind: Option<Kind>,
}

/// The data of an event `missed`.
#[derive(Serialize)]
struct MissedDocument {
    /// Number of events that the stream was too slow for.
    events: u64,
}

impl EventQuery {
    fn lets(&self, event: &Event) -> bool {
        self.job.as_ref().is_none_or(|job| *job == event.job)
            && self.kind.as_ref().is_none_or(|kind| event.kind.as_ref() == Some(kind))
    }

    /// Appends the text of the event, unless it is filtered out.
    fn write(&self, text: &mut String, heard: Notification) {
        let (name, data) = match heard {
            Notification::Event(event) if self.lets(&event) => {
                ("job", serde_json::to_string(&EventDocument::from(&*event)))
            }
            Notification::Event(_) => return,
            Notification::Missed(events) => ("missed", serde_json::to_string(&MissedDocument { events })),
            // A gap, or a notification of a later version of the library: the follower must list the jobs.
            _ => ("gap", Ok("{}".to_owned())),
        };
        let data = data.expect("a struct of texts and numbers is JSON");
        // Serialized JSON contains no raw line breaks.
        write!(text, "event: {name}\ndata: {data}\n\n").expect("writing to a string does not fail");
    }
}

/// An event stream. Dropping it updates the gauge.
struct Follower {
    events: Events,
    filter: EventQuery,
    phase: watch::Receiver<Phase>,
    begun: bool,
}

impl Drop for Follower {
    fn drop(&mut self) {
        gauge!(metric::HTTP_EVENT_STREAMS).decrement(1.0);
    }
}

/// Follow events of jobs.
///
/// Server-sent events, starting with the answer: `job` with the current state of a job; `missed` with the number of
/// events that this stream was too slow for; `gap` if the connection to ZooKeeper was lost or too many events occurred,
/// so that some may be missing. A short-lived state may be omitted, but not the last one. Events are not sent again:
/// list the jobs after `missed`, `gap` or a new connection.
#[utoipa::path(
    get, path = "/v1/events", tag = "jobs", security(("token" = ["read"])),
    params(EventQuery),
    responses(
        (status = 200, description = "A stream that ends with the connection", body = EventDocument, content_type = "text/event-stream"),
        (status = "4XX", description = "No stream", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", description = "No stream", body = Problem, content_type = "application/problem+json"),
    )
)]
pub(super) async fn follow_events(
    State(app): State<App>,
    QueryParameters(filter): QueryParameters<EventQuery>,
) -> Result<Response, Problem> {
    let mut events = app.client.events();
    if !matches!(timeout(WATCHING_WITHIN, events.watching()).await, Ok(true)) {
        return Err(Fault::Unavailable.because("ZooKeeper does not serve this gateway now"));
    }
    gauge!(metric::HTTP_EVENT_STREAMS).increment(1.0);
    kind_statistics::start(&app);
    let follower = Follower { events, filter, phase: app.phase.clone(), begun: false };
    let body = Body::from_stream(stream::unfold(follower, |mut follower| async move {
        let chunk = follower.next().await?;
        Some((Ok::<_, std::convert::Infallible>(chunk), follower))
    }));
    let head = [(CONTENT_TYPE.as_str(), "text/event-stream"), ("x-accel-buffering", "no")];
    let mut answer = (head, body).into_response();
    answer.extensions_mut().insert(EventStream);
    Ok(answer)
}

impl Follower {
    /// Returns the next chunk; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.begun, true) {
            return Some(Bytes::from_static(b"retry: 2000\n\n"));
        }
        // One timer for all events that are filtered out, so that they do not delay the comment.
        let mut silent = pin!(sleep(ALIVE_EVERY));
        loop {
            let heard = tokio::select! {
                heard = self.events.next() => heard?,
                () = &mut silent => return Some(Bytes::from_static(b":\n\n")),
                _ = self.phase.wait_for(|phase| *phase > Phase::Serving) => return None,
            };
            let mut text = String::new();
            self.filter.write(&mut text, heard);
            for _ in 1..AT_ONCE {
                if text.len() >= BYTES_AT_ONCE {
                    break;
                }
                let Some(heard) = self.events.try_next() else { break };
                self.filter.write(&mut text, heard);
            }
            if !text.is_empty() {
                return Some(text.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use bellwether::client::State;
    use bellwether::testing::views;
    use bellwether::{JobId, Kind};

    fn written(filter: &EventQuery, heard: Notification) -> String {
        let mut text = String::new();
        filter.write(&mut text, heard);
        text
    }

    #[test]
    fn missed_events_are_sent_to_all_streams_and_jobs_to_matching_streams() {
        let all = EventQuery { job: None, kind: None };
        let one = EventQuery { job: Some(JobId::new("a").unwrap()), kind: None };
        let event = |job: &str| {
            let (job, kind) = (JobId::new(job).unwrap(), Some(Kind::new("sum").unwrap()));
            Notification::Event(Arc::new(views::event(job, kind, State::Queued)))
        };
        for filter in [&all, &one] {
            assert_eq!(written(filter, Notification::Missed(7)), "event: missed\ndata: {\"events\":7}\n\n");
            assert_eq!(written(filter, Notification::Gap), "event: gap\ndata: {}\n\n");
            let told = written(filter, event("a"));
            assert!(told.starts_with("event: job\ndata: {\"job\":\"a\""), "{told}");
            assert!(told.ends_with("}\n\n") && told.lines().count() == 3, "{told}");
        }
        assert!(written(&all, event("b")).starts_with("event: job\n"));
        assert_eq!(written(&one, event("b")), "");
    }
}
