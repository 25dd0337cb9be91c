//! `GET /v1/kinds/statistics`.

use axum::Json as Answer;
use axum::extract::State;
use bellwether::{DurationText, Kind};
use serde::Serialize;
use utoipa::ToSchema;

use crate::kind_statistics::{OfKind, Report, WINDOW};
use crate::state::App;

/// What this gateway has seen of the ends of jobs.
#[derive(Serialize, ToSchema)]
#[schema(as = KindStatistics)]
pub(super) struct StatisticsDocument {
    /// The time that the rates consider.
    window: DurationText,
    /// For how much of it the gateway has counted.
    observed: DurationText,
    /// Whether events were lost or kinds left out in this time: then the rates are too low.
    incomplete: bool,
    /// Jobs of all kinds that died in this time.
    dead: u32,
    /// The kinds of which jobs have ended, by name.
    kinds: Vec<KindStatisticsDocument>,
}

/// The ends of the jobs of a kind. The rates are null if the gateway has counted for less than a second.
#[derive(Serialize, ToSchema)]
#[schema(as = StatisticsOfKind)]
struct KindStatisticsDocument {
    /// Name of the kind.
    kind: String,
    /// Jobs that succeeded, per second.
    #[schema(required)]
    succeeded_per_second: Option<f64>,
    /// Jobs that died, per second.
    #[schema(required)]
    dead_per_second: Option<f64>,
    /// Jobs that were cancelled, per second.
    #[schema(required)]
    cancelled_per_second: Option<f64>,
    /// How long the last attempts of jobs took that succeeded within an hour; null if there are none.
    #[schema(required)]
    run_time: Option<RunTimeDocument>,
}

/// Times from the assignment to the end of an attempt.
#[derive(Serialize, ToSchema)]
#[schema(as = RunTime)]
struct RunTimeDocument {
    /// Half of the attempts took at most this long.
    p50: DurationText,
    /// 99 % of the attempts took at most this long.
    p99: DurationText,
    /// The number of attempts, at most 500.
    jobs: usize,
}

impl From<Report> for StatisticsDocument {
    fn from(report: Report) -> Self {
        let seconds = report.observed.as_secs_f64();
        let rate =
            |count: u32| (seconds >= 1.0).then(|| (f64::from(count) / seconds * 1_000.0).round() / 1_000.0);
        let kind = |(kind, OfKind { ends, run_time }): (Kind, OfKind)| KindStatisticsDocument {
            kind: kind.to_string(),
            succeeded_per_second: rate(ends.succeeded),
            dead_per_second: rate(ends.dead),
            cancelled_per_second: rate(ends.cancelled),
            run_time: run_time.map(|run| RunTimeDocument {
                p50: DurationText(run.p50),
                p99: DurationText(run.p99),
                jobs: run.jobs,
            }),
        };
        Self {
            window: DurationText(WINDOW),
            observed: DurationText(report.observed),
            incomplete: report.incomplete,
            dead: report.kinds.values().map(|of| of.ends.dead).sum(),
            kinds: report.kinds.into_iter().map(kind).collect(),
        }
    }
}

/// Show how many jobs of each kind end, and how long they run.
///
/// The gateway that answers counts while at most 100 jobs per second are submitted and end, or while it sends events to at least one
/// follower of `/v1/events`, for example an open console. It keeps the counts of ten minutes, and the run times of an hour, of at most 500 jobs of a kind and 100 kinds.
#[utoipa::path(
    get, path = "/v1/kinds/statistics", tag = "kinds", security(("token" = ["read"])),
    responses(
        (status = 200, description = "What the gateway has counted", body = StatisticsDocument),
    )
)]
pub(super) async fn show_kind_statistics(State(app): State<App>) -> Answer<StatisticsDocument> {
    Answer(app.kind_statistics.report().into())
}
