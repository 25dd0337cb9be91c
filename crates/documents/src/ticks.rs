//! The ticks of a rule and of a schedule.

use std::time::SystemTime;

use bellwether::client::{PastTick, ScheduleTicks};
use bellwether::{InstantText, State};
use serde::Serialize;
use utoipa::ToSchema;

/// The next ticks of a rule.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = NextTicks)]
pub struct NextTicksDocument {
    /// The ticks in the order of time; empty if the rule has no further tick.
    next: Vec<InstantText>,
}

impl NextTicksDocument {
    /// Returns the document of these ticks.
    pub fn new(ticks: &[SystemTime]) -> Self {
        Self { next: instants(ticks) }
    }
}

/// The ticks of a schedule.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ScheduleTicks)]
pub struct ScheduleTicksDocument {
    /// The next ticks, the earliest first; empty while the schedule is paused.
    next: Vec<InstantText>,
    /// The last ticks by the present rule since the schedule was added, the latest first.
    last: Vec<PastTickDocument>,
}

/// A tick that is decided.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = PastTick)]
struct PastTickDocument {
    /// When it was due.
    at: InstantText,
    /// Its job; null if it got none, or if the record of its job was removed. If all ticks start the same job, only the last
    /// tick that did so has it.
    #[schema(required)]
    job: Option<String>,
    /// State of the job.
    #[schema(required)]
    state: Option<State>,
}

impl From<&PastTick> for PastTickDocument {
    fn from(tick: &PastTick) -> Self {
        let job = tick.job.as_ref();
        Self {
            at: InstantText(tick.at),
            job: job.map(|job| job.id.to_string()),
            state: job.map(|job| job.state),
        }
    }
}

impl From<&ScheduleTicks> for ScheduleTicksDocument {
    fn from(ticks: &ScheduleTicks) -> Self {
        Self { next: instants(&ticks.next), last: ticks.last.iter().map(Into::into).collect() }
    }
}

fn instants(ticks: &[SystemTime]) -> Vec<InstantText> {
    ticks.iter().map(|at| InstantText(*at)).collect()
}
