//! Which jobs may share a worker with a job that has lost workers (S20).
//!
//! A loss does not show which job caused it: all jobs of the lost worker are suspects. With these rules and the default
//! limit of three losses, no job is dead because of its neighbours:
//!
//! | losses | the job runs | so its next loss |
//! | --- | --- | --- |
//! | 0 | with any jobs but one that is alone | may be caused by any neighbour |
//! | 1 | apart from other jobs with losses | may be caused by the job or by a neighbour without losses |
//! | 2, or one less than its limit | alone | is caused by the job or from outside |
//!
//! The last permitted loss always comes from a run alone, unless the limit is 1. The assigner enforces it.

/// How a job is isolated from others. Each level includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Isolation {
    /// It has lost no worker and shares its worker with other jobs.
    #[default]
    Shared,
    /// It does not share its worker with other jobs that have lost a worker. After a bounded wait it does.
    Apart,
    /// It does not share its worker with any job.
    Alone,
}

impl Isolation {
    /// Returns the isolation of a job after this many losses.
    #[must_use]
    pub const fn after(losses: u32, max_losses: u32) -> Self {
        match losses {
            0 => Self::Shared,
            1 if max_losses > 2 => Self::Apart,
            _ => Self::Alone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_permitted_run_is_alone() {
        for max in 2..10 {
            assert_eq!(Isolation::after(max - 1, max), Isolation::Alone, "{max}");
        }
    }

    #[test]
    fn losses_isolate_by_default_first_from_other_suspects_and_then_from_all_jobs() {
        let after = [0, 1, 2].map(|losses| Isolation::after(losses, 3));
        assert_eq!(after, [Isolation::Shared, Isolation::Apart, Isolation::Alone]);
        assert_eq!(Isolation::after(2, 1_000), Isolation::Alone);
        assert_eq!(Isolation::after(0, 1), Isolation::Shared);
    }
}
