//! The simulated loads.

use super::share::Share;

/// Virtual seconds of a run. Rates and idle slots are counted after the first ten.
pub(super) const SECONDS: u64 = 120;
pub(super) const WARM_UP: u64 = 10;

/// Waiting jobs of low priority at the beginning, and jobs with a lane of a paused kind.
pub(super) const BACKLOG: u64 = 990_000_000;
pub(super) const PARKED: u64 = 10_000_000;

/// A load and the cluster that it meets.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// The name of the load.
    pub load: &'static str,
    /// Ensembles.
    pub partitions: usize,
    /// How slots are shared.
    pub share: Share,
    /// All random numbers are drawn from it.
    pub seed: u64,
    pub(super) workers: usize,
    pub(super) slots: u64,
    /// Mean run. Runs last between half of it and one and a half.
    pub(super) run_ms: u64,
    /// One in this many partitions holds the backlog, but the last one never, unless it is the only one.
    pub(super) backlog_in: usize,
    /// Arrivals per second.
    pub(super) single: f64,
    pub(super) laned: f64,
    pub(super) groups: f64,
    /// Second at which a group of this many members arrives in the last partition.
    pub(super) burst: Option<(u64, u64)>,
    /// Seconds between which the servers of the first partition do not answer.
    pub(super) lost: Option<(u64, u64)>,
}

/// Lanes, of which few have most jobs (Zipf with this exponent).
pub(super) const LANES: usize = 1_000;
pub(super) const SKEW: f64 = 1.0;

/// Sizes of groups: 10 to the power of a number between these.
pub(super) const GROUP: (f64, f64) = (2.0, 4.0);

impl Setup {
    /// All loads for this number of partitions.
    #[must_use]
    pub fn all(partitions: usize, share: Share, seed: u64) -> [Self; 5] {
        let base = Self { partitions, share, seed, ..Self::EVEN };
        let long = Self { run_ms: 2_000, ..base };
        [
            base,
            Self { load: "skewed", backlog_in: 4, laned: 100.0, groups: 1.0, ..long },
            Self { load: "burst", burst: Some((30, 200_000)), ..long },
            Self { load: "loss", lost: Some((40, 70)), laned: 100.0, ..base },
            // A sixteenth of the slots, in small workers, with a sixteenth of the arrivals.
            Self {
                load: "small workers",
                workers: 512,
                slots: 4,
                single: 62.0,
                laned: 6.0,
                groups: 0.06,
                backlog_in: 4,
                ..long
            },
        ]
    }

    const EVEN: Self = Self {
        load: "even",
        partitions: 1,
        share: Share::FairByPriority,
        seed: 0,
        workers: 64,
        slots: 512,
        run_ms: 50,
        backlog_in: 1,
        single: 1_000.0,
        laned: 0.0,
        groups: 0.0,
        burst: None,
        lost: None,
    };

    /// Returns the partitions that hold the backlog.
    pub(super) fn backlogged(&self) -> Vec<usize> {
        let some = (0..self.partitions).filter(|at| at.is_multiple_of(self.backlog_in));
        let with_last = self.burst.is_none() || self.partitions == 1;
        some.filter(|at| with_last || at + 1 < self.partitions).collect()
    }
}
