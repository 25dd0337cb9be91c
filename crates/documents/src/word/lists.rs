//! The lists of words, with the meaning of each.

use std::time::Duration;

use bellwether::client::{
    Accepted, Added, AttemptOutcome, ChangeKind, Ended, GroupStage, IfExists, ScheduleState, WaitReason,
};
use bellwether::error::Remedy;
use bellwether::node::ElectionStrategy;
use bellwether::schedule::{Misfire, Overlap, SkipReason};
use bellwether::{Scheme, State};

use super::super::outcome::{JobOutcome, KindOutcome, WorkerOutcome};
use super::{Described, Words};

impl Words for ElectionStrategy {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Queue, "queue", "A queue: each candidate watches the one before it"),
        (Self::Single, "single", "One znode: the first candidate to create it leads"),
    ];
}

impl Described for Accepted {
    const NAME: &'static str = "Accepted";
    const TEXT: &'static str = "How a submission was accepted.";
}

impl Words for Accepted {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::New, "new", "A job was created"),
        (Self::Same, "same", "The same job already existed"),
        (Self::Other, "other", "Another job has the id, and `if_exists` is `ignore`"),
        (Self::Again(1), "again", "The job had ended and is open again"),
    ];
}

impl Described for Added {
    const NAME: &'static str = "Added";
    const TEXT: &'static str = "What adding a schedule did.";
}

impl Words for Added {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Created, "created", "The schedule was created"),
        (Self::Unchanged, "unchanged", "The same schedule existed already"),
        (Self::Replaced, "replaced", "The schedule has another spec now"),
    ];
}

impl Described for AttemptOutcome {
    const NAME: &'static str = "AttemptOutcome";
    const TEXT: &'static str = "How an attempt ended.";
}

impl Words for AttemptOutcome {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Succeeded, "succeeded", "The handler returned a result"),
        (Self::Failed, "failed", "The handler failed, panicked or exceeded its time limit"),
        (Self::Lost, "lost", "The worker was lost"),
        (Self::Released, "released", "The worker handed the job back while it drained"),
        (Self::Cancelled, "cancelled", "The job was cancelled"),
        (Self::Invalid, "invalid", "The handler reported that the job can never succeed"),
        (Self::Snoozed, "snoozed", "The handler asked to be called again later"),
        (Self::LeaseExpired, "lease_expired", "The lease was not renewed in time"),
        (Self::Expired, "expired", "The job expired before the attempt started"),
    ];
}

impl Described for ChangeKind {
    const NAME: &'static str = "ChangeKind";
    const TEXT: &'static str = "What the author of a change did.";
}

impl Words for ChangeKind {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Added, "added", "Added a schedule"),
        (Self::Cancelled, "cancelled", "Cancelled a job"),
        (Self::Reopened, "reopened", "Opened an ended job again"),
        (Self::Released, "released", "Released a job from quarantine"),
        (Self::Replaced, "replaced", "Changed a schedule"),
        (Self::Paused, "paused", "Paused a schedule"),
        (Self::Resumed, "resumed", "Resumed a schedule"),
        (Self::Abandoned, "abandoned", "Abandoned a group"),
        (Self::Set, "set", "Changed a setting of the namespace or of a worker"),
        (Self::Removed, "removed", "Removed a schedule, or the records of ended jobs"),
    ];
}

impl Described for Ended {
    const NAME: &'static str = "Ended";
    const TEXT: &'static str = "Final state of a job.";
}

impl Words for Ended {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Succeeded, "succeeded", "The job succeeded"),
        (Self::Cancelled, "cancelled", "The job was cancelled"),
        (Self::Dead, "dead", "The job failed or lost its workers too often, can never succeed, or expired"),
    ];
}

impl Described for GroupStage {
    const NAME: &'static str = "GroupStage";
    const TEXT: &'static str = "Stage of a group.";
}

impl Words for GroupStage {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Open, "open", "Members are submitted and run"),
        (Self::Joining, "joining", "The join waits for a worker, or runs"),
        (Self::Finishing, "finishing", "The parent's finished handler waits for a worker, or runs"),
        (Self::Done, "done", "The group has ended"),
    ];
}

impl Described for IfExists {
    const NAME: &'static str = "IfExists";
    const TEXT: &'static str = "What to do if a job with this id exists.";
}

impl Words for IfExists {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Same, "same", "The same job if kind and payload are the same, otherwise a conflict"),
        (
            Self::Ignore,
            "ignore",
            "The submission is accepted and nothing is done, whatever the existing job is",
        ),
        (
            Self::Again,
            "again",
            "As `same`, but a job that has ended is opened again. Over HTTP that needs the role `operate`",
        ),
    ];
}

impl Described for JobOutcome {
    const NAME: &'static str = "JobOutcome";
    const TEXT: &'static str = "What a cancellation or a retry of a job did.";
}

impl Words for JobOutcome {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Cancelled, "cancelled", "The job is cancelled"),
        (Self::Requested, "requested", "Its worker was asked to stop it"),
        (Self::AlreadyCancelled, "already_cancelled", "The job was already cancelled"),
        (Self::Reopened, "reopened", "The job is queued again as a new generation"),
        (Self::Released, "released", "The job is released from quarantine"),
        (Self::StillOpen, "still_open", "The job has not ended and needs no retry"),
    ];
}

impl Described for KindOutcome {
    const NAME: &'static str = "KindOutcome";
    const TEXT: &'static str = "What a change of a kind did.";
}

impl Words for KindOutcome {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Paused, "paused", "The kind is paused"),
        (Self::AlreadyPaused, "already_paused", "The kind was already paused"),
        (Self::Resumed, "resumed", "The kind is no longer paused"),
        (Self::NotPaused, "not_paused", "The kind was not paused"),
    ];
}

impl Described for Misfire {
    const NAME: &'static str = "Misfire";
    const TEXT: &'static str = "What to do with ticks that were missed because there was no leader.";
}

impl Words for Misfire {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Skip, "skip", "No missed tick gets a job"),
        (Self::Once, "once", "The last missed tick gets a job, on behalf of all of them"),
        (CATCH_UP, "catch_up", "The last missed ticks get their jobs, in order"),
    ];
}

/// The policy `catch_up` with its default limits.
const CATCH_UP: Misfire = Misfire::CatchUp { limit: 10, within: Duration::from_secs(24 * 3600) };

impl Described for Overlap {
    const NAME: &'static str = "Overlap";
    const TEXT: &'static str = "What to do with a tick while the job of the last tick has not ended.";
}

impl Words for Overlap {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Allow, "allow", "The tick gets its job"),
        (Self::Forbid, "forbid", "The tick is skipped"),
        (Self::Queue, "queue", "The tick gets its job, which waits for the other jobs in a lane"),
    ];
}

impl Described for Remedy {
    const NAME: &'static str = "Remedy";
    const TEXT: &'static str = "What the caller of a failed request can do.";
}

impl Words for Remedy {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Retry, "retry", "Send the same request again later; repeating it is safe"),
        (
            Self::ReadBack,
            "read_back",
            "Read the state and decide: the change may or may not have been applied",
        ),
        (Self::FixInput, "fix_input", "Correct the request, or the state that it conflicts with"),
        (Self::GiveUp, "give_up", "The same request cannot succeed: an operator may have to act"),
    ];
}

impl Described for ScheduleState {
    const NAME: &'static str = "ScheduleState";
    const TEXT: &'static str = "State of a schedule.";
}

impl Words for ScheduleState {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Ticking, "ticking", "The next tick is known"),
        (Self::Paused, "paused", "The schedule is paused"),
        (Self::Ended, "ended", "There are no further ticks"),
    ];
}

impl Words for Scheme {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (
            Self::Digest,
            "digest",
            "ZooKeeper's built-in scheme: every server supports it and accepts any password",
        ),
        (
            Self::SaslDigestMd5,
            "sasl-digest-md5",
            "SASL DIGEST-MD5, for an ensemble that stores the passwords and rejects wrong ones",
        ),
    ];
}

impl Described for SkipReason {
    const NAME: &'static str = "SkipReason";
    const TEXT: &'static str = "Why ticks got no job.";
}

impl Words for SkipReason {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (
            Self::Misfire,
            "misfire",
            "There was no leader in time, and the misfire policy creates no job for these ticks",
        ),
        (Self::Overlap, "overlap", "The job of the last tick was open, and the schedule forbids overlap"),
        (Self::Pause, "pause", "The schedule was paused"),
        (Self::Replacement, "replacement", "A replacement of the schedule skipped them"),
        (Self::Taken, "taken", "A job with the id of the tick existed"),
        (Self::JobOpen, "job_open", "The job with the schedule's job id was open"),
        (Self::Conflict, "conflict", "The job with the schedule's job id has another kind or payload"),
    ];
}

impl Described for State {
    const NAME: &'static str = "State";
    const TEXT: &'static str = "State of a job.";
}

impl Words for State {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Queued, "queued", "Waits for a worker"),
        (Self::Delayed, "delayed", "Waits for its time"),
        (Self::Running, "running", "Assigned to a worker"),
        (Self::Succeeded, "succeeded", "Ended with a result"),
        (Self::Cancelled, "cancelled", "The job was cancelled"),
        (Self::Dead, "dead", "Failed or lost its workers too often, can never succeed, or expired"),
        (Self::Quarantined, "quarantined", "Its record cannot be read"),
    ];
}

impl Described for WaitReason {
    const NAME: &'static str = "WaitReason";
    const TEXT: &'static str = "Why a job does not run now.";
}

impl Words for WaitReason {
    const ALL: &'static [(Self, &'static str, &'static str)] = &{
        let mut all = [(Self::Nowhere, "", ""); Self::ALL.len()];
        let mut at = 0;
        while at < all.len() {
            let reason = Self::ALL[at];
            all[at] = (reason, reason.as_str(), reason.sentence());
            at += 1;
        }
        all
    };
}

impl Described for WorkerOutcome {
    const NAME: &'static str = "WorkerOutcome";
    const TEXT: &'static str = "What a drain of a worker did.";
}

impl Words for WorkerOutcome {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Draining, "draining", "The worker drains"),
        (Self::AlreadyDraining, "already_draining", "The worker was already draining"),
        (Self::NotFound, "not_found", "There is no such worker; only on the command line"),
        (Self::Left, "left", "The worker has left; only on the command line"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words<T: Words>() -> Vec<&'static str> {
        T::ALL.iter().map(|(_, word, _)| *word).collect()
    }

    #[test]
    fn the_words_are_those_of_the_library() {
        assert_eq!(words::<GroupStage>(), GroupStage::ALL.map(GroupStage::as_str));
        assert_eq!(words::<State>(), State::ALL.map(State::as_str));
        assert_eq!(words::<AttemptOutcome>(), AttemptOutcome::ALL.map(AttemptOutcome::as_str));
        assert_eq!(words::<ChangeKind>(), ChangeKind::ALL.map(ChangeKind::as_str));
        assert_eq!(words::<ScheduleState>(), ScheduleState::ALL.map(ScheduleState::as_str));
        assert_eq!(words::<SkipReason>(), SkipReason::ALL.map(SkipReason::as_str));
        assert_eq!(words::<WaitReason>(), WaitReason::ALL.map(WaitReason::as_str));
        assert_eq!(words::<Added>(), Added::ALL.map(Added::as_str));
        let accepted = [Accepted::New, Accepted::Same, Accepted::Other, Accepted::Again(1)];
        assert_eq!(words::<Accepted>(), accepted.map(Accepted::as_str));
        // Exhaustive, so that a new value is not forgotten.
        let ended = Ended::ALL.iter().map(|(value, ..)| match value {
            Ended::Succeeded => "succeeded",
            Ended::Cancelled => "cancelled",
            Ended::Dead => "dead",
        });
        assert_eq!(words::<Ended>(), ended.collect::<Vec<_>>());
        let of_a_job = JobOutcome::ALL.iter().map(|(value, ..)| match value {
            JobOutcome::Cancelled => "cancelled",
            JobOutcome::Requested => "requested",
            JobOutcome::AlreadyCancelled => "already_cancelled",
            JobOutcome::Reopened => "reopened",
            JobOutcome::Released => "released",
            JobOutcome::StillOpen => "still_open",
        });
        assert_eq!(words::<JobOutcome>(), of_a_job.collect::<Vec<_>>());
        let of_a_kind = KindOutcome::ALL.iter().map(|(value, ..)| match value {
            KindOutcome::Paused => "paused",
            KindOutcome::AlreadyPaused => "already_paused",
            KindOutcome::Resumed => "resumed",
            KindOutcome::NotPaused => "not_paused",
        });
        assert_eq!(words::<KindOutcome>(), of_a_kind.collect::<Vec<_>>());
        let of_a_worker = WorkerOutcome::ALL.iter().map(|(value, ..)| match value {
            WorkerOutcome::Draining => "draining",
            WorkerOutcome::AlreadyDraining => "already_draining",
            WorkerOutcome::NotFound => "not_found",
            WorkerOutcome::Left => "left",
        });
        assert_eq!(words::<WorkerOutcome>(), of_a_worker.collect::<Vec<_>>());
        let if_exists = IfExists::ALL.iter().map(|(value, ..)| match value {
            IfExists::Same => "same",
            IfExists::Ignore => "ignore",
            IfExists::Again => "again",
        });
        assert_eq!(words::<IfExists>(), if_exists.collect::<Vec<_>>());
        let remedy = Remedy::ALL.iter().map(|(value, ..)| match value {
            Remedy::Retry => "retry",
            Remedy::ReadBack => "read_back",
            Remedy::FixInput => "fix_input",
            Remedy::GiveUp => "give_up",
        });
        assert_eq!(words::<Remedy>(), remedy.collect::<Vec<_>>());
        let misfire = Misfire::ALL.iter().map(|(value, ..)| match value {
            Misfire::Skip => "skip",
            Misfire::Once => "once",
            Misfire::CatchUp { .. } => "catch_up",
        });
        assert_eq!(words::<Misfire>(), misfire.collect::<Vec<_>>());
        let overlap = Overlap::ALL.iter().map(|(value, ..)| match value {
            Overlap::Allow => "allow",
            Overlap::Forbid => "forbid",
            Overlap::Queue => "queue",
        });
        assert_eq!(words::<Overlap>(), overlap.collect::<Vec<_>>());
        let election = ElectionStrategy::ALL.iter().map(|(value, ..)| match value {
            ElectionStrategy::Queue => "queue",
            ElectionStrategy::Single => "single",
        });
        assert_eq!(words::<ElectionStrategy>(), election.collect::<Vec<_>>());
        let scheme = Scheme::ALL.iter().map(|(value, ..)| match value {
            Scheme::Digest => "digest",
            Scheme::SaslDigestMd5 => "sasl-digest-md5",
        });
        assert_eq!(words::<Scheme>(), scheme.collect::<Vec<_>>());
    }

    #[test]
    fn the_console_has_the_words() {
        fn all<T: Words>(page: &str) {
            for word in words::<T>() {
                let there = page.contains(&format!("'{word}'")) || page.contains(&format!("\n  {word}: "));
                assert!(there, "{word}");
            }
        }
        all::<State>(include_str!("../../../../console/pages/jobs.js"));
        all::<GroupStage>(include_str!("../../../../console/pages/groups.js"));
        all::<Ended>(include_str!("../../../../console/pages/settings.js"));
        all::<Misfire>(include_str!("../../../../console/pages/schedule.js"));
        all::<Overlap>(include_str!("../../../../console/pages/schedule.js"));
        all::<AttemptOutcome>(include_str!("../../../../console/pages/job.js"));
    }
}
